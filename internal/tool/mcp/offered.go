package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// These limits apply to what a server offers besides tools.
const (
	maxResources = 1000
	maxPrompts   = 200
	maxArguments = 20
	// namedTimeout is how long naming something of a server waits
	// for the server to be ready, and again for its answer.
	namedTimeout = 10 * time.Second
)

// Resource is something readable on a server.
type Resource struct{ Server, URI, Description string }

// Prompt is a text that a server writes for the model from the user's arguments.
type Prompt struct {
	Name, Description string // Name is the command's name
	Arguments         []Argument
	peer              *peer
	remoteName        string // the server's name for it
}

// Argument is an argument of a prompt.
type Argument struct {
	Name     string
	Required bool
}

// Usage returns the arguments as shown after the command's name.
func (p Prompt) Usage() string {
	var words []string
	for _, a := range p.Arguments {
		word := strings.ToUpper(a.Name)
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// Resources returns the resources that servers have listed.
func (h *Host) Resources() []Resource {
	return collect(h, func(p *peer) []Resource { return p.resources })
}

// Prompts returns the prompts that servers have listed.
func (h *Host) Prompts() []Prompt {
	return collect(h, func(p *peer) []Prompt { return p.prompts })
}

// collect collects something from all servers.
func collect[T any](h *Host, of func(*peer) []T) (all []T) {
	for _, p := range h.peers {
		p.mu.Lock()
		all = append(all, of(p)...)
		p.mu.Unlock()
	}
	return all
}

// listResources reloads the server's list of resources. The user can also name unlisted resources.
func (p *peer) listResources(ctx context.Context, session *sdk.ClientSession) {
	if about := session.InitializeResult(); about == nil || about.Capabilities == nil ||
		about.Capabilities.Resources == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var list []Resource
	for r, err := range session.Resources(ctx, nil) {
		if err != nil || len(list) == maxResources {
			break
		}
		if r != nil && oneLine(r.URI) == r.URI { // else the user could not name it
			list = append(list, Resource{p.Name, r.URI, oneLine(strings.Join([]string{r.Name, r.Description}, " "))})
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resources = list
}

// listPrompts reloads the server's list of prompts.
func (p *peer) listPrompts(ctx context.Context, session *sdk.ClientSession) {
	if about := session.InitializeResult(); about == nil || about.Capabilities == nil ||
		about.Capabilities.Prompts == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var list []Prompt
	for given, err := range session.Prompts(ctx, nil) {
		if err != nil || len(list) == maxPrompts {
			break
		}
		if given == nil || given.Name == "" {
			continue
		}
		one := Prompt{Name: "mcp__" + CleanName(p.Name) + "__" + replaceSymbols(given.Name), peer: p, remoteName: given.Name}
		one.Description = oneLine(given.Description)
		if one.Description == "" {
			one.Description = oneLine(given.Title)
		}
		for _, a := range given.Arguments[:min(len(given.Arguments), maxArguments)] {
			if a != nil && replaceSymbols(a.Name) == a.Name {
				one.Arguments = append(one.Arguments, Argument{a.Name, a.Required})
			}
		}
		if !slices.ContainsFunc(list, func(other Prompt) bool { return strings.EqualFold(other.Name, one.Name) }) {
			list = append(list, one)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompts = list
}

// FindPrompt returns the prompt behind a command. It waits for its server.
func (h *Host) FindPrompt(ctx context.Context, command string) (Prompt, bool) {
	for _, p := range h.peers {
		if !strings.HasPrefix(strings.ToLower(command), strings.ToLower("mcp__"+CleanName(p.Name)+"__")) {
			continue
		}
		if _, err := p.waitReady(ctx); err == nil {
			p.host.waitBriefly(ctx, p.listsLoaded)
		}
	}
	all := h.Prompts()
	i := slices.IndexFunc(all, func(p Prompt) bool { return strings.EqualFold(p.Name, command) })
	if i < 0 {
		return Prompt{}, false
	}
	return all[i], true
}

// waitReady returns the connection to a server that the user named, once it is ready.
func (p *peer) waitReady(ctx context.Context) (*sdk.ClientSession, error) {
	p.host.Start()
	p.host.waitBriefly(ctx, p.attempted)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case p.session != nil:
		return p.session, nil
	case p.lastErr != nil:
		return nil, message.Errorf("the MCP server %s is not available: %s", oneLine(p.Name),
			oneLine(p.lastErr.Error()))
	case p.switchedOff.Load():
		return nil, message.Errorf("the MCP server %s is disabled", oneLine(p.Name))
	}
	return nil, message.Errorf("the MCP server %s is not available: %s", oneLine(p.Name), "not started yet")
}

// waitBriefly waits for done, but not long.
func (h *Host) waitBriefly(ctx context.Context, done <-chan struct{}) {
	limit := time.NewTimer(namedTimeout * time.Duration(h.options.TimeoutFactor))
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// Render gets the prompt from the server, with the typed arguments.
func (p Prompt) Render(ctx context.Context, typed string) (string, error) {
	args, err := p.parseArguments(typed)
	if err != nil {
		return "", err
	}
	session, err := p.peer.waitReady(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	given, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: p.remoteName, Arguments: args})
	if err != nil {
		return "", message.Errorf("the MCP server %s: %w", oneLine(p.peer.Name), p.peer.plainError(err))
	}
	var texts []string
	for _, m := range given.Messages {
		text := contentText(m.Content)
		if m.Role == "assistant" {
			text = "(as the assistant would say:)\n" + text
		}
		texts = append(texts, text)
	}
	text := sanitize.Text(strings.TrimSpace(strings.Join(texts, "\n\n")))
	if text == "" {
		return "", message.Errorf("the MCP server %s returned nothing", oneLine(p.peer.Name))
	}
	return clip.Truncate(text, maxText), nil
}

// contentText returns content as text.
func contentText(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.EmbeddedResource:
		return resourceText(c.Resource)
	case *sdk.ResourceLink:
		return fmt.Sprintf("resource %s: %s", oneLine(c.Name), oneLine(c.URI))
	case *sdk.ImageContent:
		return fmt.Sprintf("(a picture that is left out: %s, %d bytes)", oneLine(c.MIMEType), len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("(a sound that is left out: %s, %d bytes)", oneLine(c.MIMEType), len(c.Data))
	}
	return ""
}

// parseArguments parses typed arguments: NAME=VALUE, or values in order. The last one gets the rest.
func (p Prompt) parseArguments(typed string) (map[string]string, error) {
	args := make(map[string]string)
	words := splitWords(typed)
	free := func() []Argument {
		return slices.DeleteFunc(slices.Clone(p.Arguments), func(a Argument) bool { _, given := args[a.Name]; return given })
	}
	var values []string
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if ok && slices.ContainsFunc(p.Arguments, func(a Argument) bool { return a.Name == name }) {
			args[name] = value
			continue
		}
		values = append(values, w)
	}
	for i, left := 0, free(); len(values) > 0; i++ {
		switch {
		case i >= len(left):
			return nil, message.Errorf("too many arguments for /%s; it takes: %s", p.Name, p.Usage())
		case i == len(left)-1:
			args[left[i].Name], values = strings.Join(values, " "), nil
		default:
			args[left[i].Name], values = values[0], values[1:]
		}
	}
	for _, a := range free() {
		if a.Required {
			return nil, message.Errorf("/%s needs %s; it takes: %s", p.Name, strings.ToUpper(a.Name), p.Usage())
		}
	}
	return args, nil
}

// splitWords splits a line into words; quotes keep words together.
func splitWords(line string) (words []string) {
	var word strings.Builder
	var quote rune
	begun := false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && (!begun || strings.HasSuffix(word.String(), "=")):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			end()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	end()
	return words
}

// ResourceTool is the name of the tool that reads a resource named in a message.
const ResourceTool = "mcp_resource"

// ResourceArgs are its arguments.
type ResourceArgs struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

// ParseResource parses a name like server:uri. It reports whether the server exists.
func (h *Host) ParseResource(name string) (ResourceArgs, bool) {
	for _, p := range h.peers {
		for _, own := range []string{p.Name, CleanName(p.Name)} {
			if uri, ok := strings.CutPrefix(name, own+":"); ok && strings.Contains(uri, ":") {
				return ResourceArgs{p.Name, uri}, true
			}
		}
	}
	return ResourceArgs{}, false
}

// resourceResult is the result of reading a resource, in the form of the tool that reads files.
type resourceResult struct {
	OK        bool   `json:"ok"`
	Content   string `json:"content"`
	StartLine int    `json:"start_line"`
	Note      string `json:"note,omitzero"`
}

// ResourceReader returns the tool that reads a resource named in a message. Only the user may call it,
// not the model: reading sends the server a request.
func (h *Host) ResourceReader() tool.Tool {
	return tool.Func[ResourceArgs]{
		Name: ResourceTool, Doc: "reads a resource that a message names",
		Plan: func(_ context.Context, a ResourceArgs) (tool.Plan, error) {
			name := oneLine(a.Server + ":" + a.URI)
			return tool.Plan{Title: name, Effects: []tool.Effect{{Kind: tool.Note, Target: name}}}, nil
		},
		Do: func(ctx context.Context, a ResourceArgs, out io.Writer) (tool.Result, error) {
			i := slices.IndexFunc(h.peers, func(p *peer) bool { return p.Name == a.Server })
			if i < 0 {
				return tool.Result{}, errors.New("unknown server")
			}
			return h.peers[i].readResource(ctx, a.URI, out)
		},
	}
}

func (p *peer) readResource(ctx context.Context, uri string, out io.Writer) (tool.Result, error) {
	session, err := p.waitReady(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	open, done := p.calls.begin(ctx, out, listTimeout)
	defer done()
	params := &sdk.ReadResourceParams{URI: uri}
	params.SetProgressToken(open.token)
	given, err := session.ReadResource(open.ctx, params)
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case context.Cause(open.ctx) == errCallTimeout:
		return tool.Result{}, message.Errorf("the MCP server %s did not answer within %s", oneLine(p.Name), listTimeout)
	case err != nil:
		return tool.Result{}, message.Errorf("the MCP server %s: %w", oneLine(p.Name), p.plainError(err))
	}
	v := resourceResult{OK: true, StartLine: 1}
	var texts []string
	var images []chat.Image
	for _, c := range given.Contents {
		kind := ""
		if c != nil && c.Blob != nil {
			kind = http.DetectContentType(c.Blob)
		}
		switch {
		case c == nil:
		case c.Blob == nil:
			texts = append(texts, c.Text)
		case slices.Contains(imageTypes, kind) && len(c.Blob) <= maxImage && len(images) < maxImages && p.host.options.Vision:
			images = append(images, chat.Image{MediaType: kind, Data: c.Blob})
			v.Note = tool.JoinNotes(v.Note, "the picture is shown with this message")
		default:
			v.Note = tool.JoinNotes(v.Note, fmt.Sprintf("there is something that cannot be shown: %s, %d bytes",
				oneLine(c.MIMEType), len(c.Blob)))
		}
	}
	v.Content = sanitize.Text(strings.Join(texts, "\n"))
	if len(v.Content) > maxText {
		v.Content = clip.Head(v.Content, maxText)
		v.Note = tool.JoinNotes(v.Note, fmt.Sprintf("only the first %d bytes are shown", maxText))
	}
	return tool.Result{Value: v, Images: images, Summary: resultSummary(v.Content, len(images))}, nil
}
