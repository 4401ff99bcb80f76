package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/broker"
	"coder/internal/agent/conversation"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/scripted"
	"coder/internal/policy"
	"coder/internal/record/store/mem"
	"coder/internal/record/timeline"
	"coder/internal/tool"
)

type workArgs struct {
	Path string `json:"path,omitzero" also:"command"`
}

// bench is an orchestrator on a scripted model, with a transcript of what was
// shown.
type bench struct {
	*Orchestrator
	t     *testing.T
	model *scripted.Provider
	log   strings.Builder
	saved int

	during func(ctx context.Context, path string) error // what the tools do meanwhile
	onEach func(event.Event)                            // called for every event shown
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	s, err := scripted.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, model: scripted.New(s, scripted.Options{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})}
	set, err := tool.NewSet(b.tool("read", tool.Read), b.tool("write", tool.Write), b.tool("bash", tool.Exec))
	if err != nil {
		t.Fatal(err)
	}
	line, err := timeline.Open(t.Context(), new(mem.Store), "s", timeline.Options{Now: time.Now, New: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = line.Close() })
	n := 0
	id := func(prefix string) string { n++; return fmt.Sprint(prefix, n) }
	allow := policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: policy.Allow}, nil
	})
	b.Orchestrator = New(Config{
		Engine: Engine{
			Provider: b.model,
			Runner:   &toolrun.Runner{Policy: allow, NewID: func() string { return id("ui") }, Now: time.Now},
			Settings: func() Settings {
				return Settings{Model: "m", Mode: "build", System: "be good", Tools: set, MaxSteps: 4, ContextLimit: 1000, ParseBang: plainLine}
			},
		},
		Conversation: new(conversation.Conversation), RecordingSink: line.Wrap, NewInteractor: broker.New(uip.NoInteractor).WithSink,
		Save:  func(context.Context) error { b.saved++; return nil },
		NewID: id, Now: time.Now,
	})
	return b
}

func (b *bench) tool(name string, kind tool.Kind) tool.Tool {
	return tool.Func[workArgs]{
		Name: name, Doc: name + " something",
		Plan: func(_ context.Context, a workArgs) (tool.Plan, error) {
			return tool.Plan{Title: a.Path, Effects: []tool.Effect{{Kind: kind, Target: a.Path}}}, nil
		},
		Do: func(ctx context.Context, a workArgs, _ io.Writer) (tool.Result, error) {
			if b.during != nil {
				if err := b.during(ctx, a.Path); err != nil {
					return tool.Result{}, err
				}
			}
			return tool.Result{Value: map[string]any{"ok": true, "path": a.Path}}, nil
		},
	}
}

// Emit writes the transcript: what a sink shows, in order.
func (b *bench) Emit(_ context.Context, r event.Record) error {
	name := strings.TrimPrefix(fmt.Sprintf("%T", r.Event), "event.")
	if m, ok := r.Event.(event.MessageAdded); ok {
		name += ":" + string(m.Message.Role)
		if m.Interrupted {
			name += "(part)"
		}
	}
	if _, ok := r.Event.(event.TextDelta); !ok {
		b.log.WriteString(name + " ")
	}
	if b.onEach != nil {
		b.onEach(r.Event)
	}
	return nil
}

// failure is how the next task fails.
func (b *bench) failure() *event.TaskFailed {
	var failed event.TaskFailed
	b.onEach = func(e event.Event) {
		if f, ok := e.(event.TaskFailed); ok {
			failed = f
		}
	}
	return &failed
}

// told is what the model was told in request n, one "role: text" a line.
func (b *bench) told(n int) string {
	var lines []string
	for _, m := range b.model.Requests()[n].Messages {
		text := m.Text()
		for _, c := range m.Calls() {
			text += fmt.Sprintf("call %s %s", c.ID, c.Name)
		}
		for r := range chat.PartsOf[chat.ToolResult](m) {
			text += fmt.Sprintf("%s %s", r.CallID, r.Text)
		}
		lines = append(lines, string(m.Role)+": "+text)
	}
	return strings.Join(lines, "\n")
}

// wellFormed checks that every call that was said has exactly one result.
func (b *bench) wellFormed() {
	b.t.Helper()
	asked, answered := map[string]int{}, map[string]int{}
	for _, m := range b.Conversation.Messages() {
		for _, c := range m.Calls() {
			asked[c.ID]++
		}
		for r := range chat.PartsOf[chat.ToolResult](m) {
			answered[r.CallID]++
		}
	}
	for id, n := range asked {
		if n != 1 || answered[id] != 1 {
			b.t.Errorf("call %s was asked for %d times and answered %d times", id, n, answered[id])
		}
	}
	if len(b.Conversation.OpenCalls()) > 0 {
		b.t.Errorf("calls are left open: %v", b.Conversation.OpenCalls())
	}
}

func (b *bench) wantLog(want string) {
	b.t.Helper()
	if got := strings.Join(strings.Fields(b.log.String()), " "); got != strings.Join(strings.Fields(want), " ") {
		b.t.Errorf("shown:\n%s\nwant:\n%s", got, want)
	}
}

var errBoom = errors.New("boom")

// plainLine reads lines that need nothing.
func plainLine(string, bool) BangLine { return needsNothing{} }

type needsNothing struct{}

func (needsNothing) WithTerminal(ctx context.Context) context.Context { return ctx }
func (needsNothing) Unconfined() bool                                 { return false }
func (needsNothing) OutputHint(string) string                         { return "" }
func (needsNothing) EndNotes(tool.ShellResult) []string               { return nil }
