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

// Initialize is how the editor begins.
type Initialize struct {
	Version      int `json:"protocolVersion"`
	Capabilities struct {
		Files struct {
			Read bool `json:"readTextFile"`
		} `json:"fs"`
		Session struct {
			Notices *struct{} `json:"notices"` // what is told beside a turn has a place
		} `json:"session"`
	} `json:"clientCapabilities"`
	Client struct {
		Name string `json:"name"`
	} `json:"clientInfo"`
}

// Greeting is the answer to [Initialize].
type Greeting struct {
	Version      int          `json:"protocolVersion"`
	Capabilities capabilities `json:"agentCapabilities"`
	Auth         []any        `json:"authMethods"`
	Agent        agentInfo    `json:"agentInfo"`
}

type capabilities struct {
	Load   bool            `json:"loadSession"`
	Prompt map[string]bool `json:"promptCapabilities"`
	MCP    map[string]bool `json:"mcpCapabilities"`
	// Session names what else can be done with sessions.
	Session map[string]struct{} `json:"sessionCapabilities"`
}

type agentInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

// Hello is the greeting of this program.
func Hello(version string) Greeting {
	return Greeting{
		Version: Version, Auth: []any{}, Agent: agentInfo{"coder", "coder", version},
		Capabilities: capabilities{
			Load: true, Prompt: map[string]bool{"image": true, "audio": false, "embeddedContext": true}, MCP: map[string]bool{"http": true, "sse": true},
			Session: map[string]struct{}{"list": {}, "resume": {}, "close": {}},
		},
	}
}

// Open asks for a session, a new one or one to go on with.
type Open struct {
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

// MCP are the servers of the editor in the form that settings have them in.
func (o Open) MCP() map[string]any {
	all := make(map[string]any)
	for _, s := range o.Servers {
		one := map[string]any{"type": s.Type}
		if s.Type == "" || s.Type == "stdio" {
			one = map[string]any{"type": "stdio", "command": s.Command, "args": s.Args, "env": object(s.Env)}
		} else {
			one["url"], one["headers"] = s.URL, object(s.Headers)
		}
		all[s.Name] = one
	}
	return all
}

func object(pairs []pair) map[string]string {
	m := make(map[string]string)
	for _, p := range pairs {
		m[p.Name] = p.Value
	}
	return m
}

// Opened is the answer to [Open].
type Opened struct {
	Session string `json:"sessionId,omitempty"` // of a new one
	Modes   Modes  `json:"modes"`
	// Options are told beside the modes: editors that know them look there alone.
	Options []Option `json:"configOptions"`
}

// Option is something of a session that the person chooses from a list.
type Option struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Type     string   `json:"type"`
	Current  string   `json:"currentValue"`
	Choices  []Choice `json:"options"`
}

// Choice is one of them.
type Choice struct {
	Value string `json:"value"`
	Name  string `json:"name"`
	About string `json:"description,omitempty"`
}

// Options are the choices of the mode and of the model.
func Options(modes Modes, model string, models []string) []Option {
	all := []Option{
		{ID: "mode", Name: "Mode", Category: "mode", Type: "select", Current: modes.Current},
		{ID: "model", Name: "Model", Category: "model", Type: "select", Current: model},
	}
	for _, m := range modes.Available {
		all[0].Choices = append(all[0].Choices, Choice{m.ID, m.Name, m.About})
	}
	for _, name := range models {
		all[1].Choices = append(all[1].Choices, Choice{Value: name, Name: name})
	}
	return all
}

// Listed is the answer to who asks which sessions there are.
type Listed struct {
	Sessions []Session `json:"sessions"`
}

// Session is one of them.
type Session struct {
	ID      string `json:"sessionId"`
	Dir     string `json:"cwd"`
	Title   string `json:"title,omitempty"`
	Updated string `json:"updatedAt"`
}

// Modes are those there are.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// Mode is one of them.
type Mode struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	About string `json:"description"`
}

// Command is a slash command as editors know it.
type Command struct {
	Name  string `json:"name"`
	About string `json:"description"`
	Input *hint  `json:"input,omitempty"`
}

type hint struct {
	Hint string `json:"hint"`
}

// Commands are those that can be typed.
func Commands(all []orchestrator.Command) []Command {
	list := []Command{}
	for _, c := range all {
		one := Command{Name: c.Name, About: c.Help}
		if c.Args != "" {
			one.Input = &hint{c.Args}
		}
		list = append(list, one)
	}
	return list
}

// Prompt is what the person says in their editor.
type Prompt struct {
	Session string  `json:"sessionId"`
	Blocks  []Block `json:"prompt"`
}

// Of is the session that it is about.
func (p *Prompt) Of() string { return p.Session }

// Block is a piece of what is said, by either side.
type Block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	Media    string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI  string `json:"uri"`
	Text string `json:"text"`
	Blob string `json:"blob,omitempty"`
}

func text(s string) Block { return Block{Type: "text", Text: s} }

// Said is the words and pictures of a prompt. Files that it links to are named as
// a person names them, those it brings stand in it.
func (p Prompt) Said(root string) (orchestrator.Said, error) {
	var said orchestrator.Said
	add := func(from chat.Origin, text string) {
		said.Words = append(said.Words, chat.Piece{Origin: from, Text: text})
	}
	linked := false // the last that was said is a link
	for _, b := range p.Blocks {
		switch {
		case b.Type == "text":
			if first, _ := utf8.DecodeRuneInString(b.Text); linked && b.Text != "" && !unicode.IsSpace(first) && !unicode.IsPunct(first) {
				add(chat.Attached, " ") // it is no part of the name
			}
			add(chat.Typed, b.Text)
			linked = false
		case b.Type == "image":
			data, err := base64.StdEncoding.DecodeString(b.Data)
			if err != nil {
				return said, &Error{Code: CodeParams, Message: "the data of an image is not base64"}
			}
			said.Pictures = append(said.Pictures, chat.Image{MediaType: b.Media, Data: data})
		case b.Type == "resource_link":
			if last, n := utf8.DecodeLastRuneInString(said.Text()); n > 0 && !unicode.IsSpace(last) {
				add(chat.Attached, " ") // a name in the middle of a word is none
			}
			add(chat.Linked, link(root, b.URI))
			linked = true
		case b.Type == "resource" && b.Resource != nil && b.Resource.Blob == "":
			add(chat.Attached, fmt.Sprintf("\n<resource uri=%q>\n%s\n</resource>\n", b.Resource.URI, b.Resource.Text))
		default:
			return said, &Error{Code: CodeParams, Message: fmt.Sprintf("content type %q is not supported", b.Type)}
		}
	}
	said.Words = said.Trim()
	if len(said.Words) == 0 && len(said.Pictures) == 0 {
		return said, &Error{Code: CodeParams, Message: "the prompt is empty"}
	}
	return said, nil
}

// link is a file as a person names it in a message, or the address of something
// else.
func link(root, uri string) string {
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

// Selection is the mode that the person chose in their editor, or another option.
type Selection struct {
	Session string `json:"sessionId"`
	Mode    string `json:"modeId"`
	Option  string `json:"configId"`
	Value   string `json:"value"`
}

// Of is the session that it is about.
func (s *Selection) Of() string { return s.Session }

// update is what a session tells the editor.
type update struct {
	Kind      string     `json:"sessionUpdate,omitempty"`
	Content   any        `json:"content,omitempty"` // of a chunk a block, of a call a list
	CallID    string     `json:"toolCallId,omitempty"`
	Title     string     `json:"title,omitempty"`
	Sort      string     `json:"kind,omitempty"`
	Status    string     `json:"status,omitempty"`
	Locations []location `json:"locations,omitempty"`
	RawInput  any        `json:"rawInput,omitempty"`
	RawOutput any        `json:"rawOutput,omitempty"`
	Entries   []entry    `json:"entries,omitempty"`
	Commands  []Command  `json:"availableCommands,omitempty"`
	Mode      string     `json:"currentModeId,omitempty"`
	Options   []Option   `json:"configOptions,omitempty"`
}

type location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

type entry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// content is what a call shows: a block, or a change of a file.
type content struct {
	Type    string  `json:"type"`
	Content *Block  `json:"content,omitempty"`
	Path    string  `json:"path,omitempty"`
	Old     *string `json:"oldText,omitempty"`
	New     *string `json:"newText,omitempty"`
}

func shown(s string) content {
	b := text(s)
	return content{Type: "content", Content: &b}
}

// raw is JSON as it stands, or nothing.
func raw(text []byte) any {
	if len(text) == 0 || !json.Valid(text) {
		return nil
	}
	return json.RawMessage(text)
}
