package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// office is a process whose model may hand work to others: to "looker", which
// only reads, and to "worker".
type office struct {
	*process
	reading func(context.Context) error // happens while a tool reads
	stop    bool                        // a refused call ends the turn
	steps   int                         // of others; 0 means enough

	mu      sync.Mutex // guards the fields below
	reports []supervisor.SubtaskReport
	reads   int
}

func (w *world) office(script string, verdict policy.Verdict, person uip.Interactor, lives int) *office {
	o := &office{process: w.start(script, verdict, person, lives)}
	simple := o.Engine
	o.Engine = func(id string, spawn supervisor.SpawnFunc) (supervisor.Engine, error) {
		e, err := simple(id, spawn)
		judge := e.Runner.Policy
		e.Runner.Policy = policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
			if c.Plan.Effects[0].Kind != tool.Write {
				return policy.Opinion{Verdict: policy.Allow}, nil
			}
			return judge.Judge(ctx, c)
		})
		set, setErr := tool.NewSet(o.tool(), o.readTool(), o.taskTool(e.Runner, spawn))
		e.Settings = func() orchestrator.Settings {
			return orchestrator.Settings{Model: "m", Mode: "build", System: "sys", Tools: set, MaxSteps: 40, ContextLimit: 1000, StopOnReject: o.stop}
		}
		return e, errors.Join(err, setErr)
	}
	return o
}

func (o *office) readTool() tool.Tool {
	return tool.Func[writeArgs]{
		Name: "read", Doc: "read a file",
		Plan: func(_ context.Context, a writeArgs) (tool.Plan, error) {
			return tool.Plan{Title: a.Path, Effects: []tool.Effect{{Kind: tool.Read, Target: a.Path}}}, nil
		},
		Do: func(ctx context.Context, a writeArgs, _ io.Writer) (tool.Result, error) {
			o.mu.Lock()
			o.reads++
			o.mu.Unlock()
			if o.reading != nil {
				if err := o.reading(ctx); err != nil {
					return tool.Result{}, err
				}
			}
			return tool.Result{Value: map[string]any{"ok": true, "path": a.Path}}, nil
		},
	}
}

type taskArgs struct {
	Agent string `json:"agent"`
	Work  string `json:"work"`
}

func (o *office) taskTool(runner *toolrun.Runner, spawn supervisor.SpawnFunc) tool.Tool {
	kinds := map[string]tool.Kind{"looker": tool.Read, "worker": tool.Note}
	others, err := tool.NewSet(o.tool(), o.readTool())
	if err != nil {
		o.w.t.Fatal(err)
	}
	return tool.Func[taskArgs]{
		Name: "task", Doc: "hand work to another",
		Plan: func(_ context.Context, a taskArgs) (tool.Plan, error) {
			return tool.Plan{Title: a.Work, Effects: []tool.Effect{{Kind: kinds[a.Agent], Target: "subtask"}}}, nil
		},
		Do: func(ctx context.Context, a taskArgs, _ io.Writer) (tool.Result, error) {
			steps := o.steps
			if steps == 0 {
				steps = 9
			}
			r, err := spawn(ctx, supervisor.Subtask{
				Agent: a.Agent, Title: "to " + a.Work, Objective: a.Work, Runner: runner,
				Settings: orchestrator.Settings{Model: "small", Mode: "build", System: "sys of " + a.Agent, Tools: others, MaxSteps: steps, StopOnReject: o.stop},
			})
			o.mu.Lock()
			o.reports = append(o.reports, r)
			o.mu.Unlock()
			if err != nil && r.Task == "" {
				return tool.Result{}, err
			}
			return tool.Result{Value: map[string]any{"ok": r.Err == nil, "summary": r.Summary, "error": fmt.Sprint(r.Err)}, Failed: r.Err != nil}, err
		},
	}
}

// balanced holds the record against its promises, where calls may be run again:
// every task has its one end, every request its completion, every call its
// result.
func (w *world) balanced() {
	w.t.Helper()
	var (
		tasks  task.Tasks
		audit  = map[string]int{}
		calls  = map[string]int{}
		author = map[string]string{}
	)
	for r, err := range w.store.Read(w.t.Context(), "s", 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		if err := tasks.Add(r); err != nil {
			w.t.Errorf("record %d: %v", r.Seq, err)
		}
		switch e := r.Event.(type) {
		case event.TaskCreated:
			author[r.Task] = e.AgentID
		case event.ToolCallRequested:
			audit[e.CallID]++
			if e.Author != author[r.Task] || e.TaskID != r.Task {
				w.t.Errorf("record %d: a call of %s in a task of %s", r.Seq, e.Author, author[r.Task])
			}
		case event.ToolCallCompleted:
			audit[e.CallID]--
		case event.MessageAdded:
			for _, c := range e.Message.Calls() {
				calls[c.ID]++
			}
			for res := range chat.PartsOf[chat.ToolResult](e.Message) {
				calls[res.CallID]--
			}
		}
	}
	for _, t := range tasks.All() {
		if !t.Status.IsEnded() {
			w.t.Errorf("task %s of %s is %s", t.ID, author[t.ID], t.Status)
		}
	}
	for _, m := range []map[string]int{audit, calls} {
		for id, n := range m {
			if n != 0 {
				w.t.Errorf("call %s is off by %+d", id, n)
			}
		}
	}
}

// ends lists how the tasks of others ended, in the order they began.
func (w *world) ends() string {
	var tasks task.Tasks
	for r := range w.store.Read(w.t.Context(), "s", 0, event.LogDomain) {
		_ = tasks.Add(r) // balanced tells what is wrong
	}
	var all []string
	for _, t := range tasks.All() {
		if t.Parent != "" {
			all = append(all, string(t.Status))
		}
	}
	return strings.Join(all, " ")
}

const handOver = `
call task id=p {"agent":"worker","work":"the work"}
usage 100 10
---
to the work
say on it
call write id=p {"path":"a"}
usage 5 1
---
to the work
say it is done
usage 7 2
---
say all done
usage 200 20
`

func TestAnotherAgentHasAConversationOfItsOwn(t *testing.T) {
	w := &world{t: t}
	p := w.office(handOver+"---\nsay and more", policy.Allow, uip.NoInteractor, -1)
	if err := p.run("go"); err != nil {
		t.Fatal(err)
	}
	const child = `system: sys of worker, model: small, tools: write read
user:the work
assistant:on it
tool:{"ok":true,"path":"a"}
`
	if got := sees(p, 2); got != child {
		t.Errorf("the other agent sees\n%swant\n%s", got, child)
	}
	const parent = `system: sys, model: m, tools: write read task
user:go
assistant:
tool:{"error":"<nil>","ok":true,"summary":"it is done"}
`
	if got := sees(p, 3); got != parent {
		t.Errorf("the main agent sees\n%swant\n%s", got, parent)
	}
	r := p.reports[0]
	if r.Usage.In != 12 || r.Usage.Out != 3 || strings.Join(r.WrittenFiles, " ") != "a" || r.Err != nil || !strings.HasPrefix(r.Task, "task") {
		t.Errorf("report %+v", r)
	}
	w.balanced()
	w.check() // the two calls with one id have been told apart
	w.wantSnapshot("system user assistant tool assistant", 1)

	// A new process hears nothing of it either.
	again := w.office("say and more", policy.Allow, uip.NoInteractor, -1)
	if _, err := again.resume().RunText(t.Context(), "next", event.Discard); err != nil {
		t.Fatal(err)
	}
	if got, want := sees(again, 0), parent+"assistant:all done\nuser:next\n"; got != want {
		t.Errorf("after a restart the main agent sees\n%swant\n%s", got, want)
	}
	w.wantSnapshot("system user assistant tool assistant user assistant", 2)
}

func sees(p *office, n int) string {
	req := p.model.Requests()[n]
	var tools []string
	for _, s := range req.Tools {
		tools = append(tools, s.Name)
	}
	return fmt.Sprintf("system: %s, model: %s, tools: %s\n", req.System, req.Model, strings.Join(tools, " ")) + told(p.process, n)
}

func (w *world) wantSnapshot(roles string, turns int) {
	w.t.Helper()
	snap, err := w.sessions.Load(w.t.Context(), "s")
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, raw := range snap.Messages {
		role, _, _ := strings.Cut(strings.TrimPrefix(string(raw), `{"role":"`), `"`)
		got = append(got, role)
	}
	if strings.Join(got, " ") != roles || snap.Meta.Turns != turns || len(snap.Notes) != len(got)-1 {
		w.t.Errorf("the session file has %v in %d turns with %d notes", got, snap.Meta.Turns, len(snap.Notes))
	}
}

// TestWhatIsOnRecordOfAnotherAgent goes through the records of a subtask.
func TestWhatIsOnRecordOfAnotherAgent(t *testing.T) {
	w := &world{t: t}
	p := w.office(handOver, policy.Allow, uip.NoInteractor, -1)
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	_, err = s.RunText(t.Context(), "go", event.SinkFunc(func(_ context.Context, r event.Record) error {
		if _, delta := r.Event.(event.TextDelta); !delta {
			got = append(got, strings.TrimPrefix(fmt.Sprintf("%s/%s %T", r.Actor, r.Task, r.Event), "event."))
		}
		if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
			if e.ParentID != "task1" || e.CallID != "p" || e.AgentID != "worker" || e.Author != "main" || e.Title != "to the work" || e.Intent != "the work" || e.Priority != event.PriorityNormal {
				t.Errorf("created %+v", e)
			}
		}
		if e, ok := r.Event.(event.TaskCompleted); ok && e.TaskID == "task2" && (e.Summary != "it is done" || e.Author != "worker") {
			t.Errorf("completed %+v", e)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.Join(got, "\n"), "event.", "")
	const want = `main/task2 TaskCreated
worker/task2 TaskStarted
worker/task2 MessageAdded
main/task2 MessageAdded
worker/task2 MessageAdded
worker/task2 ToolCallRequested
worker/task2 ToolStarted
worker/task2 ToolCallCompleted
worker/task2 ToolFinished
worker/task2 MessageAdded
worker/task2 MessageAdded
worker/task2 TaskCompleted
`
	if !strings.Contains(text, want) {
		t.Errorf("records:\n%s\nwant in it:\n%s", text, want)
	}
	if n := strings.Count(text, "StateChanged"); n != 2 {
		t.Errorf("busy and idle were told %d times, want 2", n)
	}
}

func lookers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "call task {\"agent\":\"looker\",\"work\":\"look %02d\"}\n", i)
	}
	for i := range n {
		fmt.Fprintf(&b, "---\nto look %02d\ncall read {\"path\":\"x\"}\n---\nto look %02[1]d\nsay seen %02[1]d\n", i)
	}
	return b.String() + "---\nwant seen 00\nsay all done"
}

func TestOthersThatOnlyLookWorkSideBySideAndNotTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		p := w.office(lookers(8), policy.Allow, uip.NoInteractor, -1)
		var now, most int
		p.reading = func(ctx context.Context) error {
			p.mu.Lock()
			now++
			most = max(most, now)
			p.mu.Unlock()
			time.Sleep(time.Second)
			p.mu.Lock()
			now--
			p.mu.Unlock()
			return nil
		}
		began := time.Now()
		if err := p.run("go"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); most != supervisor.MaxParallelSubtasks || took != 2*time.Second {
			t.Errorf("%d at once, in %v", most, took)
		}
		var results []string
		for _, m := range p.model.Requests()[len(p.model.Requests())-1].Messages {
			for r := range chat.PartsOf[chat.ToolResult](m) {
				results = append(results, r.Text)
			}
		}
		if len(results) != 8 || !slices.IsSorted(results) {
			t.Errorf("results: %q", results)
		}
		w.balanced()
	})
}

func TestATurnHandsOutOnlySoMuch(t *testing.T) {
	w := &world{t: t}
	const n = supervisor.MaxSubtasksPerTurn
	p := w.office(lookers(n+1), policy.Allow, uip.NoInteractor, -1)
	if err := p.run("go"); err != nil {
		t.Fatal(err)
	}
	if all := strings.Fields(w.ends()); len(all) != n {
		t.Errorf("%d others worked, want %d", len(all), n)
	}
	last := told(p.process, len(p.model.Requests())-1)
	if strings.Count(last, supervisor.ErrTooManySubtasks.Error()) != 1 || strings.Count(last, "seen ") != n {
		t.Errorf("the model was told %s", last)
	}
	// The next turn may again.
	w2 := &world{t: t}
	p = w2.office(strings.ReplaceAll(lookers(9), "say all done", "say done")+"\n---\n"+strings.ReplaceAll(lookers(9), "look ", "peer "), policy.Allow, uip.NoInteractor, -1)
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.RunText(t.Context(), "go", event.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if all := strings.Fields(w2.ends()); len(all) != 18 {
		t.Errorf("%d others worked in two turns, want 18", len(all))
	}
}

func TestEscStopsAll(t *testing.T) {
	w := &world{t: t}
	p := w.office(lookers(6), policy.Allow, uip.NoInteractor, -1)
	ctx, esc := context.WithCancel(t.Context())
	p.reading = func(ctx context.Context) error {
		p.mu.Lock()
		if p.reads == supervisor.MaxParallelSubtasks {
			esc()
		}
		p.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	}
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	_, err = s.RunText(ctx, "go", event.SinkFunc(func(_ context.Context, r event.Record) error {
		if _, ok := r.Event.(event.Interrupted); ok {
			told++
		}
		return nil
	}))
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("%v; told of the interruption %d times", err, told)
	}
	if got := w.ends(); got != "canceled canceled canceled canceled" {
		t.Errorf("the others ended %s", got)
	}
	w.balanced()
	w.check()
}

func TestAnotherAgentThatFailsDoesNotEndTheTurn(t *testing.T) {
	for name, tt := range map[string]struct{ script, want, summary string }{
		"provider":   {"fail auth no key", "no key", ""},
		"step limit": {"say still at it\ncall read {\"path\":\"x\"}\nrepeat", "step limit reached (3)", "still at it"},
		"too long":   {"fail context too long", "too long", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t}
			p := w.office("call task {\"agent\":\"worker\",\"work\":\"the work\"}\n---\nto the work\n"+tt.script+"\n---\nwant "+tt.want+"\nsay I see", policy.Allow, uip.NoInteractor, -1)
			p.steps = 3
			if err := p.run("go"); err != nil {
				t.Fatal(err)
			}
			if got := w.ends(); got != "failed" || p.reports[0].Summary != tt.summary {
				t.Errorf("it ended %s with %q", got, p.reports[0].Summary)
			}
			w.balanced()
		})
	}
}

func TestARefusalThatStopsEndsBothTurns(t *testing.T) {
	w := &world{t: t}
	no := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		if q.Author != "worker" || q.TaskID != "task2" {
			t.Errorf("asked by %s in %s", q.Author, q.TaskID)
		}
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject}, nil
	})
	p := w.office(handOver, policy.Ask, no, -1)
	p.stop = true
	if err := p.run("go"); !errors.Is(err, toolrun.ErrDeniedAndStopped) {
		t.Errorf("err = %v", err)
	}
	if got := w.ends(); got != "canceled" || len(w.wrote) != 0 {
		t.Errorf("it ended %s, wrote %v", got, w.wrote)
	}
	w.balanced()
}

func TestNobodyIsSentOutsideATurn(t *testing.T) {
	w := &world{t: t}
	p := w.office("", policy.Allow, uip.NoInteractor, -1)
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Spawn(t.Context(), supervisor.Subtask{}); err == nil || !strings.Contains(err.Error(), "no turn is running") {
		t.Errorf("err = %v", err)
	}
}
