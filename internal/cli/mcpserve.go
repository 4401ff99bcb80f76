package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/serve"
	"coder/internal/tool"
	"coder/internal/tool/mcp"
)

// unservedClasses lists the classes of tools that only make sense in this program's own sessions: a caller has
// its own user, todo list and agents.
var unservedClasses = []tool.Class{
	tool.ClassDelegate, tool.ClassAskUser, tool.ClassEndPlan, tool.ClassReadTodos, tool.ClassWriteTodos,
	tool.ClassLoadSkill, tool.ClassFindTools,
}

// runMCPServe offers this program's tools to another agent over standard streams. All calls belong to
// one session.
func (inv *invocation) runMCPServe(ctx context.Context, a *app.Workspace) error {
	h, err := serve.Open(ctx, a, serve.Options{Which: inv.flags.session, User: mcp.ClientInteractor})
	if err != nil {
		return err
	}
	inv.shutdown.markSessionOpen()
	s := h.Session()
	offers := []mcp.OfferedTool{inv.delegateTool()}
	for spec := range s.Specs() {
		if !slices.Contains(unservedClasses, spec.Class) && !strings.HasPrefix(spec.Name, "mcp__") {
			run := func(ctx context.Context, args json.RawMessage, tell func(string)) (mcp.OfferedResult, error) {
				done, err := s.RunCall(ctx, chat.ToolCall{Name: spec.Name, Args: args}, progressSink(tell))
				return mcp.OfferedResult{Text: done.Result.Text, Failed: done.Result.Failed, Images: done.Images}, err
			}
			offers = append(offers, mcp.OfferedTool{Name: spec.Name, Doc: spec.Doc, Schema: spec.Schema, Run: run})
		}
	}
	err = mcp.Serve(ctx, inv.Stdin, inv.Stdout, app.Version, offers)
	return errors.Join(err, inv.recordClose(h.Close(ctx)))
}

// progressSink returns a sink that reports progress in a few words.
func progressSink(tell func(string)) event.Sink {
	return event.SinkFunc(func(_ context.Context, r event.Record) error {
		if e, ok := r.Event.(event.ToolStarted); ok {
			tell(e.Tool + " " + e.Title)
		}
		return nil
	})
}

// delegateTool returns the tool that runs a whole task in its own session.
func (inv *invocation) delegateTool() mcp.OfferedTool {
	schema := `{"type":"object","properties":{"task":{"type":"string","description":"what to do, with all the context it needs"}},"required":["task"]}`
	return mcp.OfferedTool{
		Name: "delegate", Doc: "Hands a whole task to coder, a coding agent: it works in the folder where this server was started, with its own model, tools and permissions, until it is done. The result is its answer, and the session that records its work.",
		Schema: json.RawMessage(schema),
		Run: func(ctx context.Context, args json.RawMessage, tell func(string)) (mcp.OfferedResult, error) {
			var given struct{ Task string }
			if err := json.Unmarshal(args, &given); err != nil || strings.TrimSpace(given.Task) == "" {
				return mcp.OfferedResult{}, errors.New("the task is empty")
			}
			return inv.runDelegated(ctx, given.Task, tell)
		},
	}
}

// runDelegated runs another agent's task. Its text is never a command, and files named in it do not count as
// named by the user.
func (inv *invocation) runDelegated(ctx context.Context, words string, tell func(string)) (mcp.OfferedResult, error) {
	if strings.HasPrefix(strings.TrimSpace(words), "/") || strings.HasPrefix(strings.TrimSpace(words), "!") {
		words = "Task: " + words
	}
	o := inv.flags.Options
	a, err := app.New(inv.Env.Env, o, inv.settings, inv.warn)
	if err != nil {
		return mcp.OfferedResult{}, err
	}
	h, err := serve.Open(ctx, a, serve.Options{Sink: progressSink(tell), User: mcp.ClientInteractor})
	if err != nil {
		return mcp.OfferedResult{}, err
	}
	done, err := h.Run(ctx, orchestrator.TextInput(chat.NewUserText(chat.OriginUnknown, words)))
	ended := h.Close(ctx)
	err = cmp.Or(err, inv.recordClose(ended))
	answer := struct {
		OK      bool   `json:"ok"`
		Answer  string `json:"answer"`
		Error   string `json:"error,omitempty"`
		Session string `json:"session"`
		Kept    bool   `json:"persisted"`
	}{OK: err == nil, Answer: done.Text, Session: ended.ID, Kept: ended.UnsavedErr == nil}
	if err != nil {
		answer.Error = errorMessage(err).String()
	}
	return mcp.OfferedResult{Text: string(jsonx.MustMarshal(answer)), Failed: err != nil}, nil
}
