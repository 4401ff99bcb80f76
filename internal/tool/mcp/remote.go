package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// These limits apply to a server's descriptions of its tools.
const (
	maxTools  = 1000
	maxName   = 64 // characters of a tool name
	maxDoc    = 4 << 10
	maxSchema = 64 << 10
	// callTimeout is the timeout of a call if the server's settings have none.
	callTimeout = 10 * time.Minute
)

// remoteTool is a tool of a server. It is an immutable [tool.Tool].
type remoteTool struct {
	peer         *peer
	remoteName   string // the server's name for it
	spec         tool.Spec
	version      string               // hash of the server's description
	readOnlyHint bool                 // the server says that it only reads
	schema       *jsonschema.Resolved // nil if arguments cannot be checked
}

// newRemote makes a tool from a server's description.
func newRemote(p *peer, t *sdk.Tool) (*remoteTool, error) {
	if t == nil || strings.TrimSpace(t.Name) == "" {
		return nil, errors.New("the tool has no name")
	}
	name := "mcp__" + CleanName(p.Name) + "__" + replaceSymbols(t.Name)
	if len(name) > maxName {
		return nil, message.Errorf("tool and server name are longer than %d characters", maxName)
	}
	given, err := json.Marshal(t.InputSchema)
	if err != nil || len(given) > maxSchema {
		return nil, message.Errorf("the schema is longer than %d bytes", maxSchema)
	}
	shown, schema, err := parseSchema(given)
	if err != nil {
		return nil, err
	}
	r := &remoteTool{peer: p, remoteName: t.Name, schema: schema,
		readOnlyHint: t.Annotations != nil && t.Annotations.ReadOnlyHint}
	doc := sanitize.Text(strings.TrimSpace(t.Description))
	if doc == "" {
		doc = sanitize.Line(t.Title, maxDoc)
	}
	r.spec = tool.Spec{Name: name, Doc: clip.Truncate(doc, maxDoc), Schema: shown}
	sum := sha256.Sum256(jsonx.MustMarshal([]any{p.identity(), t.Name, t.Title, t.Description, json.RawMessage(given),
		t.Annotations}))
	r.version = hex.EncodeToString(sum[:8])
	return r, nil
}

// parseSchema parses the schema of a tool's arguments: as shown to the model, and as used to check
// arguments, or nil if that is not possible.
func parseSchema(given json.RawMessage) (shown json.RawMessage, check *jsonschema.Resolved, err error) {
	if bytes.Equal(given, []byte("null")) {
		given = json.RawMessage(`{"type":"object"}`)
	}
	var object map[string]any
	var schema jsonschema.Schema
	if json.Unmarshal(given, &object) != nil || json.Unmarshal(given, &schema) != nil || object == nil {
		return nil, nil, errors.New("invalid schema")
	}
	if kind, ok := object["type"]; ok && kind != "object" {
		return nil, nil, errors.New("the schema is not an object schema")
	}
	if check, err = schema.Resolve(nil); err != nil {
		check = nil // it refers to external schemas; the server checks
	}
	for _, key := range []string{"$schema", "$id", "oneOf", "anyOf", "allOf"} { // model providers reject these here
		delete(object, key)
	}
	object["type"] = "object"
	if _, ok := object["properties"].(map[string]any); !ok {
		object["properties"] = map[string]any{}
	}
	cleanTexts(object)
	return jsonx.MustMarshal(object), check, nil
}

// cleanTexts cleans the texts in a schema.
func cleanTexts(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok && (key == "description" || key == "title") {
				v[key] = clip.Truncate(sanitize.Text(text), maxDoc)
			}
			cleanTexts(value)
		}
	case []any:
		for _, value := range v {
			cleanTexts(value)
		}
	}
}

// isReadOnly reports whether the tool is trusted to only read.
func (r *remoteTool) isReadOnly() bool { return r.readOnlyHint && r.peer.TrustHints }

// Spec describes the tool to the model.
func (r *remoteTool) Spec() tool.Spec { return r.spec }

// Prepare checks the arguments of a call.
func (r *remoteTool) Prepare(_ context.Context, args json.RawMessage) (tool.Call, error) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	var object map[string]any
	if err := json.Unmarshal(args, &object); err != nil || object == nil {
		return nil, message.Errorf("%s: arguments must be a JSON object", r.spec.Name)
	}
	if r.schema != nil {
		if err := r.schema.Validate(object); err != nil {
			return nil, message.Errorf("%s: the arguments do not match the schema: %s", r.spec.Name,
				clip.Truncate(err.Error(), 1000))
		}
	}
	return &remoteCall{r, args}, nil
}

// remoteCall is a prepared call of a tool.
type remoteCall struct {
	*remoteTool
	args json.RawMessage
}

// maxTitle limits the title of a call.
const maxTitle = 120

// Plan returns a plan with unknown effects, unless the user trusts the server's hints.
func (c *remoteCall) Plan() tool.Plan {
	e := tool.Effect{Kind: tool.Unknown, Target: c.spec.Name}
	if c.isReadOnly() {
		e.Kind = tool.Read
	}
	title := ""
	if text := string(c.args); text != "{}" {
		title = clip.Truncate(sanitize.Line(text, maxTitle), maxTitle)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, c.args, "", "  ") != nil {
		pretty.Reset()
	}
	about := fmt.Sprintf("%s: %s (%s)\n%s\n\n%s", oneLine(c.peer.Name), oneLine(c.remoteName),
		oneLine(c.peer.DisplayAddress()), clip.Truncate(c.spec.Doc, 600), pretty.String())
	return tool.Plan{Title: title, Effects: []tool.Effect{e}, Preview: display.Text(about), Version: c.version}
}

// Run calls the tool on the server.
func (c *remoteCall) Run(ctx context.Context, out io.Writer) (tool.Result, error) {
	session, err := c.peer.sessionFor(c.remoteTool)
	if err != nil {
		return tool.Result{}, err
	}
	limit := c.peer.Timeout
	if limit <= 0 {
		limit = callTimeout
	}
	open, done := c.peer.calls.begin(ctx, out, limit)
	defer done()
	params := &sdk.CallToolParams{Name: c.remoteName, Arguments: c.args}
	params.SetProgressToken(open.token)
	look := func(context.Context) string { return "" }
	if watch := c.peer.host.options.WatchCall; watch != nil && !c.isReadOnly() {
		look = watch(ctx)
	}
	given, err := session.CallTool(open.ctx, params)
	left := look(context.WithoutCancel(ctx))
	var res tool.Result
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case context.Cause(open.ctx) == errCallTimeout:
		err = message.Errorf(
			"the MCP server %s did not answer within %s", oneLine(c.peer.Name),
			display.FormatDuration(limit))
	case err != nil:
		err = message.Errorf("the MCP server %s: %w", oneLine(c.peer.Name), c.peer.plainError(err))
	default:
		res = c.result(given, left)
	}
	res.Events = c.peer.calls.costs(open)
	return res, err
}

// sessionFor returns the connection to call a tool, if its description has not changed.
func (p *peer) sessionFor(r *remoteTool) (*sdk.ClientSession, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil {
		why := "not started yet"
		if p.lastErr != nil {
			why = oneLine(p.lastErr.Error())
		}
		return nil, message.Errorf("the MCP server %s is not available: %s", oneLine(p.Name), why)
	}
	for _, t := range p.tools {
		switch {
		case t.spec.Name != r.spec.Name:
		case t.version != r.version:
			return nil,
				message.Errorf("the MCP server %s has changed its description of %s; call it again if you still want that",
					oneLine(p.Name), r.spec.Name)
		default:
			return p.session, nil
		}
	}
	return nil, message.Errorf("the MCP server %s no longer has %s", oneLine(p.Name), r.spec.Name)
}

// listTools reloads the server's tools. Invalid tools do not prevent the use of the others.
func (p *peer) listTools(ctx context.Context, session *sdk.ClientSession) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var tools []*remoteTool
	var refused []string
	says := ""
	if about := session.InitializeResult(); about != nil && about.ServerInfo != nil {
		says = oneLine(about.ServerInfo.Name + " " + about.ServerInfo.Version)
	}
	if about := session.InitializeResult(); about != nil && about.Capabilities != nil && about.Capabilities.Tools != nil {
		names := make(map[string]string)
		for t, err := range session.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			r, err := newRemote(p, t)
			switch {
			case len(tools) >= maxTools:
				refused = append(refused, fmt.Sprintf("more than %d tools; the rest are skipped", maxTools))
			case err == nil && names[foldName(r.spec.Name)] != "":
				err = message.Errorf("the name is too similar to %s", oneLine(names[foldName(r.spec.Name)]))
			case err == nil && p.host.options.IsTaken != nil && p.host.options.IsTaken(r.spec.Name):
				err = errors.New("the name is reserved for a coder tool")
			}
			if len(tools) >= maxTools {
				break
			}
			if err != nil {
				refused = append(refused, fmt.Sprintf("tool %s is skipped: %s", oneLine(t.Name), err))
				continue
			}
			names[foldName(r.spec.Name)] = t.Name
			tools = append(tools, r)
		}
	}
	p.mu.Lock()
	p.tools, p.serverName = tools, says
	news := len(refused) > 0 && strings.Join(refused, "\n") != strings.Join(p.skipped, "\n")
	p.skipped = refused
	p.mu.Unlock()
	if news {
		more := ""
		if len(refused) > 1 {
			more = fmt.Sprintf(" (and %d more; coder mcp test %s shows them)", len(refused)-1, oneLine(p.Name))
			if p.host.options.Interactive {
				more = fmt.Sprintf(" (and %d more; /mcp shows them)", len(refused)-1)
			}
		}
		p.warnOnce("refused", fmt.Sprintf("MCP server %s: %v", oneLine(p.Name), refused[0]+more))
	}
	return nil
}

// foldName returns a name in the form in which [tool.Set] compares names.
func foldName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
