package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
	"coder/internal/model/scripted"
	"coder/internal/policy"
	"coder/internal/record/session"
	"coder/internal/record/store/mem"
	"coder/internal/slash"
	"coder/internal/tool"
)

// errDead is what a process that has died can do.
var errDead = errors.New("dead")

// mortal is a store whose writer dies after some records: what it took is
// kept, what comes later is lost, as when a process is killed.
type mortal struct {
	event.Store
	mu    sync.Mutex
	lives int // records it still takes; negative means no end
}

func (m *mortal) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lives == 0 {
		return errDead
	}
	m.lives--
	return m.Store.Append(ctx, last, rs...)
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives = 0
}

// world is what outlives a process: the stores, and what the tools did.
type world struct {
	t        *testing.T
	store    mem.Store
	sessions mem.Sessions
	wrote    []string
	secret   *authkey.Key // of the person; made when first needed
	doubt    string       // about the logs

	mu  sync.Mutex // guards the field below
	ids int
}

// process is one run of the program in a world.
type process struct {
	*supervisor.Supervisor
	w      *world
	store  *mortal
	model  *scripted.Provider
	during func() // happens while a tool writes
}

func (w *world) start(script string, verdict policy.Verdict, person uip.Interactor, lives int) *process {
	w.t.Helper()
	s, err := scripted.Parse(script)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &process{w: w, store: &mortal{Store: &w.store, lives: lives}, model: scripted.New(s, scripted.Options{})}
	p.Supervisor = supervisor.New(supervisor.Config{
		Store: p.store, Sessions: &w.sessions, User: person, Engine: p.engine(verdict),
		Dir: "/project", NewID: w.newID, Now: time.Now, Key: w.key, DoubtReason: func(string) string { return w.doubt },
	})
	return p
}

// key is the one key of this world's person.
func (w *world) key() *authkey.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.secret == nil {
		w.secret = authkey.NewTemporary()
	}
	return w.secret
}

func (w *world) newID(prefix string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprint(prefix, w.ids)
}

func (p *process) engine(verdict policy.Verdict) func(string, supervisor.SpawnFunc) (supervisor.Engine, error) {
	judge := policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: verdict, Reasons: []policy.Reason{{By: "rule", Text: "test", Lasting: true}}}, nil
	})
	set, err := tool.NewSet(p.tool())
	if err != nil {
		p.w.t.Fatal(err)
	}
	return func(string, supervisor.SpawnFunc) (supervisor.Engine, error) {
		return supervisor.Engine{Engine: orchestrator.Engine{
			Provider: p.model, Commands: []slash.Command{slash.Help(), slash.Compact()},
			Runner: &toolrun.Runner{Policy: judge, NewID: func() string { return p.w.newID("ui") }, Now: time.Now},
			Settings: func() orchestrator.Settings {
				return orchestrator.Settings{Model: "m", Mode: "build", System: "sys", Tools: set, MaxSteps: 9, ContextLimit: 1000}
			},
		}}, nil
	}
}

type writeArgs struct {
	Path string `json:"path"`
}

func (p *process) tool() tool.Tool {
	return tool.Func[writeArgs]{
		Name: "write", Doc: "write a file",
		Plan: func(_ context.Context, a writeArgs) (tool.Plan, error) {
			return tool.Plan{Title: a.Path, Effects: []tool.Effect{{Kind: tool.Write, Target: a.Path}}}, nil
		},
		Do: func(_ context.Context, a writeArgs, _ io.Writer) (tool.Result, error) {
			p.w.wrote = append(p.w.wrote, a.Path)
			if p.during != nil {
				p.during()
			}
			return tool.Result{Value: map[string]any{"ok": true, "path": a.Path}}, nil
		},
	}
}

// run starts session "s" and runs input, however it ends. The session is let
// go as a dead process lets go of its lock.
func (p *process) run(input string) error {
	s, err := p.StartSession(p.w.t.Context(), "s", event.Discard)
	if err != nil {
		return err
	}
	_, err = s.RunText(p.w.t.Context(), input, event.Discard)
	return errors.Join(err, s.Close())
}

func (p *process) resume() *supervisor.Session {
	p.w.t.Helper()
	s, err := p.ResumeSession(p.w.t.Context(), "s", event.Discard)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// check holds the whole record against its promises.
func (w *world) check() {
	w.t.Helper()
	var (
		requested, completed = map[string]int{}, map[string]int{}
		calls, results       = map[string]int{}, map[string]int{}
		last                 uint64
	)
	for r, err := range w.store.Read(w.t.Context(), "s", 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		if r.Seq != last+1 {
			w.t.Errorf("record %d follows %d", r.Seq, last)
		}
		last = r.Seq
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			requested[e.CallID]++
		case event.ToolCallCompleted:
			completed[e.CallID]++
		case event.MessageAdded:
			for _, c := range e.Message.Calls() {
				calls[c.ID]++
			}
			for r := range chat.PartsOf[chat.ToolResult](e.Message) {
				results[r.CallID]++
			}
		}
	}
	for id := range calls {
		if calls[id] != 1 || results[id] != 1 {
			w.t.Errorf("call %s was said %d times and answered %d times", id, calls[id], results[id])
		}
	}
	for id := range requested {
		if requested[id] != 1 || completed[id] != 1 {
			w.t.Errorf("call %s was requested %d times and completed %d times", id, requested[id], completed[id])
		}
	}
}

// domain lists the types of the domain events, in order.
func (w *world) domain() string {
	var names []string
	for r := range w.store.Read(w.t.Context(), "s", 0, event.LogDomain) {
		name, _ := event.WireName(r.Event)
		names = append(names, strings.TrimPrefix(name, "UserInteraction"))
	}
	return strings.Join(names, " ")
}

func told(p *process, n int) string {
	var b strings.Builder
	for _, m := range p.model.Requests()[n].Messages {
		fmt.Fprintf(&b, "%s:%s", m.Role, m.Text())
		for r := range chat.PartsOf[chat.ToolResult](m) {
			b.WriteString(r.Text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

var _ session.Store = (*mem.Sessions)(nil)
