package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/rerun"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/program"
	"coder/internal/policy"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/git"
	"coder/internal/tool/mcp"
)

// Replay replaces everything that a rerun session must not reach with the record.
type Replay struct {
	*rerun.Replayer
	calls       []event.ToolCallRequested // recorded
	hiddenDirs  []string                  // folders that commands cannot see
	secretFiles []string                  // secret files in the original workspace
}

// withRecordedVerdicts returns p, but allows calls that were allowed in the recorded run for reasons that no longer exist.
func (r *Replay) withRecordedVerdicts(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := p.Judge(ctx, c)
		if err == nil && o.Verdict == policy.Ask && r.WasAllowed(c.Call.ID, c.Tool, !o.IsWaivable()) {
			asks := policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) { return o, nil })
			return policy.AutoApproveRisks(asks).Judge(ctx, c)
		}
		return o, err
	})
}

// withRecordedDates makes git give commits of a rerun the dates of their calls, so that the history has the same order.
func (a *Session) withRecordedDates(o *bash.Options, g *git.Options) {
	if a.Replay == nil {
		return
	}
	dates := func(ctx context.Context, env []string) []string {
		then := a.Replay.Date(tool.CallID(ctx)).Format("2006-01-02T15:04:05-07:00")
		return append(slices.Clip(env), "GIT_AUTHOR_DATE="+then, "GIT_COMMITTER_DATE="+then)
	}
	command, tools := o.Confine, g.Confine
	o.Confine = func(ctx context.Context, read tool.Line) (bash.Confinement, error) {
		c, err := command(ctx, read)
		c.Env = dates(ctx, c.Env)
		return c, err
	}
	g.Confine = func(ctx context.Context, cmd *program.Cmd, write ...string) error {
		cmd.Env = dates(ctx, cmd.Env)
		return tools(ctx, cmd, write...)
	}
}

// withReplacements adds replacements for other programs' tools, and lets
// calls be prepared that are recorded without their keys.
func (r *Replay) withReplacements(tools []tool.Tool) []tool.Tool {
	names := make(map[string]bool)
	for _, c := range r.calls {
		names[c.Tool] = names[c.Tool] || rerun.NeedsKeys(c)
	}
	for i, t := range tools {
		if name := t.Spec().Name; names[name] {
			tools[i] = recordedTool{t, name, r}
		}
	}
	for name := range names {
		if rerun.IsMCPTool(name) && name != mcp.ResourceTool { // it is not the model's
			tools = append(tools, recordedTool{nil, name, r})
		}
	}
	return tools
}

// List returns nil: other programs' prompts are unknown before they are used.
func (r *Replay) List() []orchestrator.Command { return nil }

// Find returns the text that another program wrote for a command.
func (r *Replay) Find(_ context.Context, name string) (func(context.Context, string) (string, error), bool) {
	text, ok := r.CommandText(name)
	return func(context.Context, string) (string, error) { return text, nil }, ok && rerun.IsMCPTool(name)
}

// resourceReader returns the resources of other programs that messages named.
func (r *Replay) resourceReader() *orchestrator.ResourceReader {
	if !slices.ContainsFunc(r.calls, func(c event.ToolCallRequested) bool { return c.Tool == mcp.ResourceTool }) {
		return nil
	}
	set, err := tool.NewSet(recordedTool{nil, mcp.ResourceTool, r})
	if err != nil {
		panic(err) // a single tool cannot conflict
	}
	return &orchestrator.ResourceReader{Tools: set, Tool: mcp.ResourceTool,
		ReadArgs: func(name string) (json.RawMessage, bool) {
			for _, c := range r.calls {
				var args mcp.ResourceArgs
				named := c.Tool == mcp.ResourceTool && json.Unmarshal(c.Input, &args) == nil
				if named && (name == args.Server+":"+args.URI || name == mcp.CleanName(args.Server)+":"+args.URI) {
					return jsonx.MustMarshal(args), true
				}
			}
			return nil, false
		}}
}

// recordedTool is a tool with calls that cannot be prepared: their keys are
// not recorded, or the tool is another program's, which is not available.
type recordedTool struct {
	tool.Tool
	name   string
	replay *Replay
}

func (t recordedTool) Spec() tool.Spec {
	if t.Tool != nil {
		return t.Tool.Spec()
	}
	return tool.Spec{Name: t.name, Schema: json.RawMessage(`{"type":"object"}`), Unlisted: true}
}

// Prepare returns a call with its recorded plan. The call cannot run.
func (t recordedTool) Prepare(ctx context.Context, args json.RawMessage) (call tool.Call, err error) {
	err = errNotInRecord
	if t.Tool != nil {
		if call, err = t.Tool.Prepare(ctx, args); err == nil {
			return call, nil
		}
	}
	asked, ok := t.replay.PlannedCall(ctx, t.name)
	if !ok || t.Tool != nil && (asked.Verdict == event.VerdictInvalid || !rerun.NeedsKeys(asked)) {
		return nil, err
	}
	return recordedCall{Title: asked.Title, Effects: asked.Effects}, nil
}

var errNotInRecord = errors.New("a rerun does not call this tool")

type recordedCall tool.Plan

func (c recordedCall) Plan() tool.Plan { return tool.Plan(c) }

func (c recordedCall) Run(context.Context, io.Writer) (tool.Result, error) {
	return tool.Result{}, errNotInRecord
}
