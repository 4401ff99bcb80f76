package acp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
)

// InitializeRequest is the editor's first request.
type InitializeRequest struct {
	Version      int `json:"protocolVersion"`
	Capabilities struct {
		Files struct {
			Read bool `json:"readTextFile"`
		} `json:"fs"`
		Session struct {
			Notices *struct{} `json:"notices"` // the editor shows notices that belong to no turn
		} `json:"session"`
	} `json:"clientCapabilities"`
	Client struct {
		Name string `json:"name"`
	} `json:"clientInfo"`
}

// InitializeResponse is the response to [InitializeRequest].
type InitializeResponse struct {
	Version      int          `json:"protocolVersion"`
	Capabilities capabilities `json:"agentCapabilities"`
	Auth         []any        `json:"authMethods"`
	Agent        agentInfo    `json:"agentInfo"`
}

type capabilities struct {
	Load   bool            `json:"loadSession"`
	Prompt map[string]bool `json:"promptCapabilities"`
	MCP    map[string]bool `json:"mcpCapabilities"`
	// Session lists the additional session methods.
	Session map[string]struct{} `json:"sessionCapabilities"`
}

type agentInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

// NewInitializeResponse returns this program's greeting.
func NewInitializeResponse(version string) InitializeResponse {
	return InitializeResponse{
		Version: Version, Auth: []any{}, Agent: agentInfo{"coder", "coder", version},
		Capabilities: capabilities{
			Load: true, Prompt: map[string]bool{"image": true, "audio": false, "embeddedContext": true},
			MCP:     map[string]bool{"http": true, "sse": true},
			Session: map[string]struct{}{"list": {}, "resume": {}, "close": {}, "delete": {}},
		},
	}
}

// OpenRequest asks for a session, new or existing.
type OpenRequest struct {
	Session string   `json:"sessionId"`
	Dir     string   `json:"cwd"`
	Servers []server `json:"mcpServers"`
	AddDirs []string `json:"additionalDirectories"`
}

type server struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []pair   `json:"env"`
	URL     string   `json:"url"`
	Headers []pair   `json:"headers"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MCPSettings returns the editor's servers in the form of the settings.
func (o OpenRequest) MCPSettings() map[string]any {
	all := make(map[string]any)
	for _, s := range o.Servers {
		one := map[string]any{"type": s.Type}
		if s.Type == "" || s.Type == "stdio" {
			one = map[string]any{"type": "stdio", "command": s.Command, "args": s.Args, "env": pairMap(s.Env)}
		} else {
			one["url"], one["headers"] = s.URL, pairMap(s.Headers)
		}
		all[s.Name] = one
	}
	return all
}

func pairMap(pairs []pair) map[string]string {
	m := make(map[string]string)
	for _, p := range pairs {
		m[p.Name] = p.Value
	}
	return m
}

// OpenResponse is the response to [OpenRequest].
type OpenResponse struct {
	Session string `json:"sessionId,omitempty"` // set for a new session
	Modes   Modes  `json:"modes"`
	// Options repeats the modes: editors that know config options read only these.
	Options []Option `json:"configOptions"`
}

// Option is a session setting that the user chooses from a list.
type Option struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Type     string   `json:"type"`
	Current  string   `json:"currentValue"`
	Choices  []Choice `json:"options"`
}

// Choice is one value of an [Option].
type Choice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Options returns the options for mode and model.
func Options(modes Modes, model string, models []string) []Option {
	all := []Option{
		{ID: "mode", Name: "Mode", Category: "mode", Type: "select", Current: modes.Current},
		{ID: "model", Name: "Model", Category: "model", Type: "select", Current: model},
	}
	for _, m := range modes.Available {
		all[0].Choices = append(all[0].Choices, Choice{m.ID, m.Name, m.Description})
	}
	for _, name := range models {
		all[1].Choices = append(all[1].Choices, Choice{Value: name, Name: name})
	}
	return all
}

// SessionList is the response to a request for the sessions.
type SessionList struct {
	Sessions []Session `json:"sessions"`
}

// Session is one entry of [SessionList].
type Session struct {
	ID      string `json:"sessionId"`
	Dir     string `json:"cwd"`
	Title   string `json:"title,omitempty"`
	Updated string `json:"updatedAt"`
}

// Modes are the available modes and the current one.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// Mode is one entry of [Modes].
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Command is a slash command in the protocol's form.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Input       *hint  `json:"input,omitempty"`
}

type hint struct {
	Hint string `json:"hint"`
}

// Commands converts the slash commands for the editor.
func Commands(all []orchestrator.Command) []Command {
	list := []Command{}
	for _, c := range all {
		one := Command{Name: c.Name, Description: c.Help}
		if c.Args != "" {
			one.Input = &hint{c.Args}
		}
		list = append(list, one)
	}
	return list
}

// Prompt is the user's message in the editor.
type Prompt struct {
	Session string  `json:"sessionId"`
	Blocks  []Block `json:"prompt"`
}

// SessionID returns the id of the session.
func (p *Prompt) SessionID() string { return p.Session }

// Block is a piece of a message, from either side.
type Block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	MIMEType string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI  string `json:"uri"`
	Text string `json:"text"`
	Blob string `json:"blob,omitempty"`
}

func textBlock(s string) Block { return Block{Type: "text", Text: s} }

// Input returns the text and images of a prompt. A linked file becomes its name, an embedded file its
// content.
func (p Prompt) Input(root string) (orchestrator.Input, error) {
	var said orchestrator.Input
	add := func(from chat.Origin, text string) {
		said.UserText = append(said.UserText, chat.TextPiece{Origin: from, Text: text})
	}
	linked := false // whether the last piece is a link
	for _, b := range p.Blocks {
		switch {
		case b.Type == "text":
			if first, _ := utf8.DecodeRuneInString(b.Text); linked && b.Text != "" && !unicode.IsSpace(first) &&
				!unicode.IsPunct(first) {
				add(chat.OriginAttached, " ") // separates the text from the file name
			}
			add(chat.OriginTyped, b.Text)
			linked = false
		case b.Type == "image":
			data, err := base64.StdEncoding.DecodeString(b.Data)
			if err != nil {
				return said, &Error{Code: CodeInvalidParams, Message: "the data of an image is not base64"}
			}
			said.Pictures = append(said.Pictures, chat.Image{MediaType: b.MIMEType, Data: data})
		case b.Type == "resource_link":
			if last, n := utf8.DecodeLastRuneInString(said.Text()); n > 0 && !unicode.IsSpace(last) {
				add(chat.OriginAttached, " ") // a name inside a word is not recognized
			}
			add(chat.OriginLinked, fileLink(root, b.URI))
			linked = true
		case b.Type == "resource" && b.Resource != nil && b.Resource.Blob == "":
			add(chat.OriginAttached, fmt.Sprintf("\n<resource uri=%q>\n%s\n</resource>\n", b.Resource.URI, b.Resource.Text))
		default:
			return said, &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("content type %q is not supported", b.Type)}
		}
	}
	said.UserText = said.Trim()
	if len(said.UserText) == 0 && len(said.Pictures) == 0 {
		return said, &Error{Code: CodeInvalidParams, Message: "the prompt is empty"}
	}
	return said, nil
}

// fileLink returns a file as the user would name it in a message, or the uri if it is not a file.
func fileLink(root, uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return uri
	}
	path := u.Path
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	if strings.ContainsAny(path, " \t") {
		return `@"` + path + `"`
	}
	return "@" + path
}

// Selection is the mode or another option that the user chose in the editor.
type Selection struct {
	Session string `json:"sessionId"`
	Mode    string `json:"modeId"`
	Option  string `json:"configId"`
	Value   string `json:"value"`
}

// SessionID returns the id of the session.
func (s *Selection) SessionID() string { return s.Session }

// update is the body of a session update.
type update struct {
	Kind      string      `json:"sessionUpdate,omitempty"`
	Content   any         `json:"content,omitempty"` // a block for a chunk, a list for a call
	CallID    string      `json:"toolCallId,omitempty"`
	Title     string      `json:"title,omitempty"`
	ToolKind  string      `json:"kind,omitempty"`
	Status    string      `json:"status,omitempty"`
	Locations []location  `json:"locations,omitempty"`
	RawInput  any         `json:"rawInput,omitempty"`
	RawOutput any         `json:"rawOutput,omitempty"`
	Entries   []planEntry `json:"entries,omitempty"`
	Commands  []Command   `json:"availableCommands,omitempty"`
	Mode      string      `json:"currentModeId,omitempty"`
	Options   []Option    `json:"configOptions,omitempty"`
}

type location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// callContent is what a call shows: a block, or a change to a file.
type callContent struct {
	Type    string  `json:"type"`
	Content *Block  `json:"content,omitempty"`
	Path    string  `json:"path,omitempty"`
	Old     *string `json:"oldText,omitempty"`
	New     *string `json:"newText,omitempty"`
}

func textContent(s string) callContent {
	b := textBlock(s)
	return callContent{Type: "content", Content: &b}
}

// rawJSON returns text as JSON, or nil if it is not valid JSON.
func rawJSON(text []byte) any {
	if len(text) == 0 || !json.Valid(text) {
		return nil
	}
	return json.RawMessage(text)
}
