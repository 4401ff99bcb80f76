package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/hooks"
	"coder/internal/app"
	"coder/internal/core/message"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/record/undo"
	"coder/internal/ui/control"
	"coder/internal/ui/drive"
	"coder/internal/ui/streamjson"
)

// handleRequest answers a control request.
func (d *drivenSession) handleRequest(ctx context.Context, line control.Line) error {
	var r control.Request
	if err := json.Unmarshal(line.Request, &r); err != nil {
		return d.channel.Reply(line.RequestID, nil, invalidRequestError(err))
	}
	if r.Subtype == "initialize" {
		return d.initialize(ctx, line)
	}
	if err := d.openSession(ctx, nil); err != nil {
		return errors.Join(d.channel.Reply(line.RequestID, nil, errors.New(errorMessage(err).String())), err)
	}
	switch r.Subtype {
	case "interrupt":
		if r.CancelQueued {
			d.TakeAll()
		}
		err := d.channel.Reply(line.RequestID, nil, nil) // before the result of the turn that it stops
		d.Interrupt()
		return err
	case "set_permission_mode":
		to, err := d.setMode(ctx, r.Mode)
		if err = d.channel.Reply(line.RequestID, map[string]string{"mode": r.Mode}, err); err != nil || to == "" {
			return err
		}
		return d.renderer.ReportMode(to)
	case "set_model":
		name := ""
		if r.Model != nil && *r.Model != "default" {
			name = *r.Model
		}
		d.app.UseModel(name)
		d.set.model = &name
		err := d.Session().ChangeSettings(ctx, "", d.out)
		return d.channel.Reply(line.RequestID, map[string]string{"model": d.app.ModelName()}, err)
	case "mcp_status":
		return d.channel.Reply(line.RequestID, map[string]any{"mcpServers": d.servers()}, nil)
	case "mcp_reconnect", "mcp_toggle":
		found := false
		if r.Subtype == "mcp_toggle" {
			found = d.Inside().SetMCPEnabled(r.Server, r.Enabled)
		} else {
			found = d.Inside().ReconnectMCP(r.Server)
		}
		var err error
		if !found {
			err = message.Errorf("unknown MCP server %s", singleLine(r.Server))
		}
		return d.channel.Reply(line.RequestID, nil, err)
	case "get_settings":
		return d.channel.Reply(line.RequestID, d.settings(), nil)
	case "mcp_set_servers":
		result, err := d.setServers(ctx, r.Servers)
		return d.channel.Reply(line.RequestID, result, err)
	case "reload_plugins":
		result, err := d.reloadPlugins(ctx, r.PluginDirs())
		return d.channel.Reply(line.RequestID, result, err)
	case "set_max_thinking_tokens":
		level := ""
		if r.Thinking != nil {
			level = effortForTokens(*r.Thinking)
		}
		d.app.UseEffort(level)
		d.set.effort = &level
		return d.channel.Reply(line.RequestID, nil, nil)
	case "stop_task":
		var err error
		if !d.Session().StopSubtask(r.Task) && !d.Inside().StopJob(r.Task) {
			err = message.Errorf("no running task %s", singleLine(r.Task))
		}
		return d.channel.Reply(line.RequestID, nil, err)
	case "rewind_files":
		return d.queueRewind(line.RequestID, r)
	case "get_context_usage":
		used, most := d.usedTokens.Load(), d.maxTokens.Load()
		system, tools := d.Session().FixedTokens()
		type part struct {
			Name   string `json:"name"`
			Tokens int64  `json:"tokens"`
			Color  string `json:"color"`
		}
		return d.channel.Reply(line.RequestID, map[string]any{
			"totalTokens": used, "maxTokens": most, "rawMaxTokens": most,
			"percentage": float64(100*used) / float64(max(most, 1)),
			"model":      d.app.ModelName(), "categories": []part{
				{Name: "System prompt", Tokens: int64(system)}, {Name: "System tools", Tokens: int64(tools)},
				{Name: "Messages", Tokens: max(0, used-int64(system+tools))}, {Name: "Free space", Tokens: max(0, most-used)},
			},
			"memoryFiles": []any{}, "mcpTools": []any{}, "agents": []any{}, "gridRows": []any{}, "isAutoCompactEnabled": true,
		}, nil)
	}
	return d.channel.Reply(line.RequestID, nil, message.Errorf("control requests of subtype %q are not supported",
		singleLine(r.Subtype)))
}

// invalidRequestError describes an invalid request.
func invalidRequestError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return message.Errorf("cannot read the request: %s has the wrong type: %s", kind.Field, kind.Value)
	}
	return errors.New("cannot read the request: it must be an object with a subtype")
}

// setMode switches to a mode by the program's name. A mode that allows everything must have been allowed
// at the start.
func (d *drivenSession) setMode(ctx context.Context, theirs string) (ours string, err error) {
	ours, dontAsk := fromForeignMode(theirs)
	switch {
	case theirs == "":
		return "", errors.New("the request names no mode")
	case theirs == "auto":
		return "", errors.New("auto mode is not supported")
	case ours == mode.Yolo && !d.invocation.flags.allowBypass: // the mode is not available either; this says why
		return "", errors.New("the session was not started with --allow-dangerously-skip-permissions")
	}
	if err := d.Session().ChangeSettings(ctx, ours, d.out); err != nil {
		return "", err
	}
	d.dontAsk.Store(dontAsk)
	d.channel.DecidesCalls.Store(d.invocation.flags.approver == "stdio" && !dontAsk)
	return ours, nil
}

// toForeignMode returns the program's name of a mode.
func (d *drivenSession) toForeignMode(ours string) string {
	if ours == mode.Build && d.dontAsk.Load() {
		return "dontAsk"
	}
	return hooks.ExternalMode(ours)
}

// queueRewind restores files to before one of the program's messages, in its turn: the running turn has
// ended, and earlier messages are done.
func (d *drivenSession) queueRewind(id json.RawMessage, r control.Request) error {
	if _, waiting := d.State(); waiting > int(d.pendingRewinds.Load()) || d.busy.Load() {
		return d.channel.Reply(id, nil, errors.New("a turn is running; interrupt it, or wait for its result"))
	}
	d.pendingRewinds.Add(1)
	d.Add(drive.Message{Action: func(ctx context.Context) error {
		d.pendingRewinds.Add(-1)
		s := d.Session()
		own, known := d.messageSeqs[r.MessageID]
		meant := func(seq uint64) bool { return known && seq == own || r.MessageID == streamjson.UUID(s.ID, seq) }
		plan, err := s.UndoSince(ctx, meant, undo.Request{All: true, DryRun: r.DryRun}, d.out)
		if err != nil && r.DryRun {
			return d.channel.Reply(id, map[string]any{"canRewind": false, "error": err.Error()}, nil)
		}
		changed := []string{}
		for _, path := range slices.Sorted(slices.Values(slices.Concat(plan.Restored, plan.Removed))) {
			changed = append(changed, filepath.Join(d.app.Root, path))
		}
		told := map[string]any{"canRewind": true, "filesChanged": changed}
		var left []string
		for _, n := range plan.UnchangedFiles() {
			left = append(left, n.Path+" ("+n.Why+")")
		}
		if len(left) > 0 {
			told["error"] = "unchanged: " + strings.Join(left, ", ")
		}
		return d.channel.Reply(id, told, err)
	}})
	return nil
}

// applyUpdate applies the permission change in an answer: its rules and mode apply from now on in this
// session.
func (d *drivenSession) applyUpdate(u control.Update) {
	var specs []rule.Spec
	for _, r := range u.Rules {
		if s, err := rule.ParseSpec(rule.Spec{Tool: r.Tool, On: r.Content}.String()); err == nil {
			specs = append(specs, app.NormalizeSpecs([]rule.Spec{s})...)
		}
	}
	switch {
	case u.Type == "addRules" && u.Behavior == "allow":
		d.Inside().AddRules(specs, nil)
		d.set.add(specs, nil)
	case u.Type == "addRules" && u.Behavior == "deny":
		d.Inside().AddRules(nil, specs)
		d.set.add(nil, specs)
	case u.Type == "setMode":
		if _, err := d.setMode(context.Background(), u.Mode); err != nil {
			d.invocation.warn(fmt.Sprintf("the mode is unchanged: %v", err))
		}
		return
	default:
		d.invocation.warn(fmt.Sprintf("skipped: a permission change of type %s", singleLine(u.Type+" "+u.Behavior)))
		return
	}
	if u.Destination != "" && u.Destination != "session" && u.Destination != "cliArg" {
		d.invocation.warn("rules sent by a program apply to this session only")
	}
}
