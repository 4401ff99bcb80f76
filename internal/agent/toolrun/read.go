package toolrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/clip"
	"coder/internal/core/jsonx"
	"coder/internal/model/jsonscan"
	"coder/internal/policy/grant"
	"coder/internal/tool"
	"coder/internal/tool/dialect"
)

// prepare finds a call's tool and prepares the call: as written or, if it makes no sense, as a call
// in another agent's form. It reports whether the tool is switched off; then nothing is prepared.
func (r *run) prepare(ctx context.Context, a *admission) (off bool) {
	ctx = tool.WithCall(ctx, a.call.ID)
	call, note := r.withoutPrefix(a.call)
	t, known := r.Set.Lookup(call.Name)
	if g, ok := t.(tool.Group); ok {
		if call, note, a.err = r.member(g, call, note); a.err != nil {
			return false
		}
		t, known = r.Set.Lookup(call.Name)
	}
	if known {
		a.tool = t.Spec().Name
		if r.Set.Off(a.tool) {
			return true
		}
	}
	var meant dialect.Call
	a.note = note
	if a.prepared, meant, a.err = r.read(ctx, a.call, call, t); a.prepared != nil || a.err != nil {
		return false
	}
	if t, known = r.Set.Lookup(meant.Tool); !known {
		a.err = r.noSuchTool(a.call.Name)
		return false
	}
	a.tool, a.note = t.Spec().Name, tool.JoinNotes(note, meant.Note)
	if r.Set.Off(a.tool) {
		return true
	}
	a.prepared, a.err = grant.Prepare(ctx, t, a.call, meant.Args)
	return false
}

// member returns a call to a group as a call to the tool it means:
// as written, or in another agent's form for a tool of that name.
func (r *run) member(g tool.Group, c chat.ToolCall, note string) (chat.ToolCall, string, error) {
	if c.Broken != "" {
		meant, err := freeform(g.Spec(), c.Broken)
		if err != nil {
			return c, note, err
		}
		c.Args, c.Broken, note = meant.Args, "", tool.JoinNotes(note, meant.Note)
	}
	t, args, err := g.Of(c.Args)
	if err == nil {
		c.Name, c.Args = t.Spec().Name, args
		return c, note, nil
	}
	if meant, ok, refused := dialect.Read(c.Name, c.Args); ok {
		c.Name, c.Args = meant.Tool, meant.Args
		return c, tool.JoinNotes(note, meant.Note), refused
	}
	return c, note, err
}

// withoutPrefix returns the call with its tool's bare name if only that is known, and a note about it.
func (r *run) withoutPrefix(c chat.ToolCall) (chat.ToolCall, string) {
	name := dialect.Bare(c.Name)
	if name == "" || r.knows(c.Name) || !r.knows(name) {
		return c, ""
	}
	note := "taken: " + c.Name + " as " + name
	c.Name = name
	return c, note
}

// knows reports whether a tool name is known, here or in another agent.
func (r *run) knows(name string) bool {
	_, ours := r.Set.Lookup(name)
	return ours || dialect.Knows(name)
}

// read returns the call as written, prepared by its tool, or the call that it
// means if it makes no sense as written: its tool is unknown, or a shell command
// is really a tool's name, or the arguments are no object or do not fit.
func (r *run) read(ctx context.Context, written, c chat.ToolCall, t tool.Tool) (as *grant.Call, meant dialect.Call, err error) {
	ok := false
	switch {
	case t == nil:
		meant, err = r.foreign(ctx, c)
		return nil, meant, err
	case c.Broken != "":
		meant, err = freeform(t.Spec(), c.Broken)
		return nil, meant, err
	case t.Spec().Class == tool.RunsShell:
		if meant, ok, err = dialect.Command(c.Args); ok {
			return nil, meant, err
		}
	}
	as, err = grant.Prepare(ctx, t, written, c.Args)
	var wrong *tool.ArgumentError
	if !errors.As(err, &wrong) {
		return as, meant, err
	}
	meant, ok, refused := dialect.Read(c.Name, c.Args)
	if !ok {
		meant, ok, refused = dialect.Read(wrong.Tool, c.Args)
	}
	switch {
	case refused != nil:
		return nil, meant, fmt.Errorf("%w (%w)", refused, err)
	case !ok:
		return nil, meant, err
	}
	return nil, meant, nil
}

// foreign interprets a call to a tool that coder does not have.
func (r *run) foreign(ctx context.Context, c chat.ToolCall) (dialect.Call, error) {
	meant, ok, err := dialect.Read(c.Name, c.Args)
	if ok && err == nil && tool.ClassOf(meant.Tool) == tool.RunsShell {
		if as, isTool, err := dialect.Command(meant.Args); isTool {
			return as, err
		}
	}
	if ok {
		return meant, err
	}
	for _, ours := range dialect.Ours(c.Name) {
		t, known := r.Set.Lookup(ours)
		if !known {
			continue
		}
		if _, err := grant.Prepare(ctx, t, c, c.Args); err != nil {
			return meant, fmt.Errorf("%s is %s here; %w", c.Name, ours, err)
		}
		return dialect.Call{Tool: ours, Args: c.Args, Note: "taken: " + c.Name + " as " + ours}, nil
	}
	return meant, r.noSuchTool(c.Name)
}

// mcpServer returns the MCP server in a tool's name.
func mcpServer(name string) string {
	rest, is := strings.CutPrefix(name, "mcp__")
	server, _, named := strings.Cut(rest, "__")
	if !is || !named {
		return ""
	}
	return server
}

func (r *run) noSuchTool(name string) error {
	var all []string
	server := mcpServer(name)
	running := false
	for s := range r.Set.Specs() {
		all = append(all, s.Name)
		running = running || server != "" && mcpServer(s.Name) == server
	}
	if server != "" && !running {
		return fmt.Errorf("unknown tool %q: no MCP server %s is in use; coder mcp list shows the servers, --mcp-config adds others", name, server)
	}
	return fmt.Errorf("unknown tool %q; the tools are %s", name, strings.Join(all, ", "))
}

// freeform interprets arguments that are no JSON object as the text of the tool's one required argument.
func freeform(own tool.Spec, text string) (dialect.Call, error) {
	var schema struct {
		Required   []string
		Properties map[string]struct{ Type string }
	}
	value := text
	if json.Unmarshal([]byte(text), &value) != nil {
		value = text
	}
	begins := strings.TrimSpace(value)
	if json.Unmarshal(own.Schema, &schema) != nil || len(schema.Required) != 1 || schema.Properties[schema.Required[0]].Type != "string" ||
		begins == "" || strings.ContainsRune(`{["`, rune(begins[0])) {
		if jsonscan.TooDeep([]byte(begins)) {
			return dialect.Call{}, fmt.Errorf("%s: the arguments are nested too deeply: more than %d levels", own.Name, jsonscan.Deepest)
		}
		if strings.HasPrefix(begins, "{") && json.Valid([]byte(begins)) {
			return dialect.Call{}, fmt.Errorf("%s: not run: the reply reached a length limit in this call and may be incomplete. Send it again, with less in one reply", own.Name)
		}
		if strings.HasPrefix(begins, "{") {
			return dialect.Call{}, fmt.Errorf("%s: the arguments are not a JSON object: they break off after %d bytes, most likely because the reply reached a length limit. Send less in one call: a long file in parts, a large change as several small ones. They end with %s", own.Name, len(text), tail(text, 80))
		}
		return dialect.Call{}, fmt.Errorf("%s: the arguments are not a JSON object: %s", own.Name, clip.Text(text, 200))
	}
	name := schema.Required[0]
	return dialect.Call{Tool: own.Name, Args: jsonx.Must(map[string]string{name: value}), Note: "taken: the whole text as " + name}, nil
}

// tail returns at most the last n bytes of s, beginning with a whole rune.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + clip.Tail(s, n)
}

// maxTurnedDown limits the rejected changes shown to the model.
const maxTurnedDown = 16 << 10

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
	object["note"] = jsonx.Must(tool.JoinNotes(a.note, before))
	if a.turnedDown != "" {
		object["turned_down"] = jsonx.Must(clip.Text(strings.ToValidUTF8(a.turnedDown, "\ufffd"), maxTurnedDown))
	}
	return jsonx.Must(object)
}
