package toolrun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/model/jsonscan"
	"coder/internal/policy/grant"
	"coder/internal/tool"
	"coder/internal/tool/dialect"
)

// prepare finds a call's tool and prepares the call: as written or, if it makes no sense, as a call
// in another agent's form. It reports whether the tool is switched off; then nothing is prepared.
func (r *run) prepare(ctx context.Context, a *admission) (off bool) {
	ctx = tool.WithCall(ctx, a.call.ID)
	call, note := r.stripPrefix(a.call)
	t, known := r.Tools.Lookup(call.Name)
	if g, ok := t.(tool.Group); ok {
		if call, note, a.err = r.groupMemberCall(g, call, note); a.err != nil {
			return false
		}
		t, known = r.Tools.Lookup(call.Name)
	}
	if known {
		a.tool = t.Spec().Name
		if r.Tools.IsOff(a.tool) {
			return true
		}
	}
	var meant dialect.Call
	a.note = note
	if a.prepared, meant, a.err = r.interpret(ctx, a.call, call, t); a.prepared != nil || a.err != nil {
		return false
	}
	if t, known = r.Tools.Lookup(meant.Tool); !known {
		a.err = r.unknownToolError(a.call.Name)
		return false
	}
	a.tool, a.note = t.Spec().Name, tool.JoinNotes(note, meant.Note)
	if r.Tools.IsOff(a.tool) {
		return true
	}
	a.prepared, a.err = grant.Prepare(ctx, t, a.call, meant.Args)
	return false
}

// groupMemberCall returns a call to a group as a call to the tool it means:
// as written, or in another agent's form for a tool of that name.
func (r *run) groupMemberCall(g tool.Group, c chat.ToolCall, note string) (chat.ToolCall, string, error) {
	if c.Broken != "" {
		meant, err := parseFreeform(g.Spec(), c.Broken)
		if err != nil {
			return c, note, err
		}
		c.Args, c.Broken, note = meant.Args, "", tool.JoinNotes(note, meant.Note)
	}
	t, args, err := g.Select(c.Args)
	if err == nil {
		c.Name, c.Args = t.Spec().Name, args
		return c, note, nil
	}
	if meant, ok, refused := dialect.Convert(c.Name, c.Args); ok {
		c.Name, c.Args = meant.Tool, meant.Args
		return c, tool.JoinNotes(note, meant.Note), refused
	}
	return c, note, err
}

// stripPrefix returns the call with its tool's bare name if only that is known, and a note about it.
func (r *run) stripPrefix(c chat.ToolCall) (chat.ToolCall, string) {
	name := dialect.BareName(c.Name)
	if name == "" || r.isKnownTool(c.Name) || !r.isKnownTool(name) {
		return c, ""
	}
	note := "taken: " + c.Name + " as " + name
	c.Name = name
	return c, note
}

// isKnownTool reports whether a tool name is known, here or in another agent.
func (r *run) isKnownTool(name string) bool {
	_, ours := r.Tools.Lookup(name)
	return ours || dialect.IsKnown(name)
}

// interpret returns the call as written, prepared by its tool, or the call that it
// means if it makes no sense as written: its tool is unknown, or a shell command
// is really a tool's name, or the arguments are no object or do not fit.
func (r *run) interpret(ctx context.Context, written, c chat.ToolCall, t tool.Tool) (as *grant.Call, meant dialect.Call,
	err error) {
	ok := false
	switch {
	case t == nil:
		meant, err = r.interpretForeign(ctx, c)
		return nil, meant, err
	case c.Broken != "":
		meant, err = parseFreeform(t.Spec(), c.Broken)
		return nil, meant, err
	case t.Spec().Class == tool.ClassShell:
		if meant, ok, err = dialect.ConvertCommand(c.Args); ok {
			return nil, meant, err
		}
	}
	as, err = grant.Prepare(ctx, t, written, c.Args)
	var wrong *tool.ArgumentError
	if !errors.As(err, &wrong) {
		return as, meant, err
	}
	meant, ok, refused := dialect.Convert(c.Name, c.Args)
	if !ok {
		meant, ok, refused = dialect.Convert(wrong.Tool, c.Args)
	}
	switch {
	case refused != nil:
		return nil, meant, message.Errorf("%w (%w)", refused, err)
	case !ok:
		return nil, meant, err
	}
	return nil, meant, nil
}

// interpretForeign interprets a call to a tool that coder does not have.
func (r *run) interpretForeign(ctx context.Context, c chat.ToolCall) (dialect.Call, error) {
	meant, ok, err := dialect.Convert(c.Name, c.Args)
	if ok && err == nil && tool.ClassOf(meant.Tool) == tool.ClassShell {
		if as, isTool, err := dialect.ConvertCommand(meant.Args); isTool {
			return as, err
		}
	}
	if ok {
		return meant, err
	}
	for _, ours := range dialect.Equivalents(c.Name) {
		t, known := r.Tools.Lookup(ours)
		if !known {
			continue
		}
		if _, err := grant.Prepare(ctx, t, c, c.Args); err != nil {
			return meant, message.Errorf("%s is %s here; %w", c.Name, ours, err)
		}
		return dialect.Call{Tool: ours, Args: c.Args, Note: "taken: " + c.Name + " as " + ours}, nil
	}
	return meant, r.unknownToolError(c.Name)
}

// mcpServerName returns the MCP server in a tool's name.
func mcpServerName(name string) string {
	rest, is := strings.CutPrefix(name, "mcp__")
	server, _, named := strings.Cut(rest, "__")
	if !is || !named {
		return ""
	}
	return server
}

func (r *run) unknownToolError(name string) error {
	var all []string
	server := mcpServerName(name)
	running := false
	for s := range r.Tools.Specs() {
		all = append(all, s.Name)
		running = running || server != "" && mcpServerName(s.Name) == server
	}
	if server != "" && !running {
		return message.Errorf("unknown tool %q: no MCP server %s is in use; coder mcp list shows the servers, --mcp-config adds others", name, server)
	}
	return message.Errorf("unknown tool %q; the tools are %s", name, strings.Join(all, ", "))
}

// parseFreeform interprets arguments that are no JSON object as the text of the tool's one required argument.
func parseFreeform(own tool.Spec, text string) (dialect.Call, error) {
	var schema struct {
		Required   []string
		Properties map[string]struct{ Type string }
	}
	value := text
	if json.Unmarshal([]byte(text), &value) != nil {
		value = text
	}
	begins := strings.TrimSpace(value)
	if json.Unmarshal(own.Schema, &schema) != nil || len(schema.Required) != 1 ||
		schema.Properties[schema.Required[0]].Type != "string" ||
		begins == "" || strings.ContainsRune(`{["`, rune(begins[0])) {
		if jsonscan.IsTooDeep([]byte(begins)) {
			return dialect.Call{}, message.Errorf("%s: the arguments are nested too deeply: more than %d levels",
				own.Name,
				jsonscan.MaxDepth)
		}
		if strings.HasPrefix(begins, "{") && json.Valid([]byte(begins)) {
			return dialect.Call{},
				message.Errorf("%s: not run: the reply reached a length limit in this call and may be incomplete. Send it again, with less in one reply", own.Name)
		}
		if strings.HasPrefix(begins, "{") {
			return dialect.Call{},
				message.Errorf("%s: the arguments are not a JSON object: they break off after %d bytes, most likely because the reply reached a length limit. Send less in one call: a long file in parts, a large change as several small ones. They end with %s", own.Name, len(text), truncateHead(text, 80))
		}
		return dialect.Call{}, message.Errorf("%s: the arguments are not a JSON object: %s", own.Name,
			clip.Truncate(text, 200))
	}
	name := schema.Required[0]
	return dialect.Call{Tool: own.Name, Args: jsonx.MustMarshal(map[string]string{name: value}),
		Note: "taken: the whole text as " + name}, nil
}

// truncateHead returns at most the last n bytes of s, beginning with a whole rune.
func truncateHead(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + clip.Tail(s, n)
}

// maxRejectedDiff limits the rejected changes shown to the model.
const maxRejectedDiff = 16 << 10

// withNote adds to a result how its call was interpreted.
func (a *admission) withNote(text json.RawMessage) json.RawMessage {
	if a.note == "" {
		return text
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return text
	}
	var before string
	_ = json.Unmarshal(object["note"], &before) // ignore a note that is no text
	object["note"] = jsonx.MustMarshal(tool.JoinNotes(a.note, before))
	if a.rejectedDiff != "" {
		object["turned_down"] = jsonx.MustMarshal(clip.Truncate(strings.ToValidUTF8(a.rejectedDiff, "\ufffd"),
			maxRejectedDiff))
	}
	return jsonx.MustMarshal(object)
}
