package supervisor_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
	"coder/internal/policy"
	"coder/internal/policy/mode"
)

// forged is a world whose session s holds what change made of the records of
// that in w, as they are read from a disk.
func (w *world) forged(from string, change func(event.Record) []event.Record) *world {
	w.t.Helper()
	other := &world{t: w.t, secret: w.key(), ids: 100}
	release, err := other.store.Claim(w.t.Context(), "s")
	if err != nil {
		w.t.Fatal(err)
	}
	last := uint64(0)
	for r := range w.store.Read(w.t.Context(), from, 0) {
		read := reflect.New(reflect.TypeOf(r.Event))
		if err := json.Unmarshal(jsonx.MustMarshal(r.Event), read.Interface()); err != nil {
			w.t.Fatal(err)
		}
		r.Event = read.Elem().Interface().(event.Event)
		for _, r := range change(r) {
			r.Session, r.Seq = "s", last+1
			if err := other.store.Append(w.t.Context(), last, r); err != nil {
				w.t.Fatal(err)
			}
			last++
		}
	}
	if err := release(); err != nil {
		w.t.Fatal(err)
	}
	return other
}

// only changes the events of one type.
func only[E event.Event](change func(*E)) func(event.Record) []event.Record {
	return func(r event.Record) []event.Record {
		if e, ok := r.Event.(E); ok {
			change(&e)
			r.Event = e
		}
		return []event.Record{r}
	}
}

func unchanged(r event.Record) []event.Record { return []event.Record{r} }

// witness is a person who refuses, and keeps what they were shown and told.
type witness struct {
	asked []uip.Request
	told  []string
}

func (p *witness) Ask(_ context.Context, q uip.Request) (uip.Response, error) {
	p.asked = append(p.asked, q)
	return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject}, nil
}

func (p *witness) Emit(_ context.Context, r event.Record) error {
	if e, ok := r.Event.(event.Notice); ok {
		p.told = append(p.told, e.Text)
	}
	return nil
}

// takeUp resumes session s of the world and goes on with it.
func (p *witness) takeUp(w *world, verdict policy.Verdict) {
	w.t.Helper()
	s, err := w.start("say done\n---\nsay done", verdict, p, -1).ResumeSession(w.t.Context(), "s", p)
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Continue(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
	w.check()
}

// answered is a world whose process died between an answer and its call.
func answered(t *testing.T, option string) *world {
	t.Helper()
	w := &world{t: t}
	person := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: option}, nil
	})
	if err := w.start(writeThenSay, policy.Ask, person, 7).run("go"); err == nil {
		t.Fatal("it survived")
	}
	return w
}

func TestAnAnswerOnRecordCountsOnlyAsItWasGiven(t *testing.T) {
	yes, no := answered(t, uip.OptionApprove), answered(t, uip.OptionReject)
	shifted := false
	tests := []struct {
		name string
		w    *world
	}{
		{"made with another key", func() *world { o := yes.forged("s", unchanged); o.secret = authkey.NewTemporary(); return o }()},
		{"in a log that is in doubt", func() *world { o := yes.forged("s", unchanged); o.doubt = "it is tracked by git"; return o }()},
		{"without a seal", yes.forged("s", func(r event.Record) []event.Record { r.Seal = ""; return []event.Record{r} })},
		{"that was a no", no.forged("s", only(func(e *event.InteractionResponded) { e.Option = uip.OptionApprove }))},
		{"by somebody else", yes.forged("s", func(r event.Record) []event.Record {
			if _, ok := r.Event.(event.InteractionResponded); ok {
				r.Actor = "main"
			}
			return []event.Record{r}
		})},
		{"to a question that was edited", yes.forged("s", only(func(e *event.InteractionRequested) { e.Display.Title = "write notes" }))},
		{"to a call that was edited", yes.forged("s", only(func(e *event.MessageAdded) {
			for i, p := range e.Message.Parts {
				if c, ok := p.(chat.ToolCall); ok {
					c.Args = []byte(`{"path":"b"}`)
					e.Message.Parts[i] = c
				}
			}
		}))},
		{"in another place", yes.forged("s", func(r event.Record) []event.Record {
			if !shifted {
				shifted = true
				return []event.Record{r, {Task: r.Task, Event: event.LocalAdded{Input: "/help"}}}
			}
			return []event.Record{r}
		})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p witness
			p.takeUp(tt.w, policy.Ask)
			if len(tt.w.wrote) != 0 || len(p.asked) != 1 {
				t.Errorf("wrote %v, asked %d times", tt.w.wrote, len(p.asked))
			}
			if len(p.told) == 0 {
				t.Error("nothing was said of it")
			}
			if len(p.asked) == 1 && !strings.HasPrefix(p.asked[0].Display.Title, "write ") || len(p.asked) == 1 && p.asked[0].Display.Title == "write notes" {
				t.Errorf("shown %q", p.asked[0].Display.Title)
			}
		})
	}
	t.Run("not changed", func(t *testing.T) {
		var p witness
		w := yes.forged("s", unchanged)
		p.takeUp(w, policy.Ask)
		if len(w.wrote) != 1 || len(p.asked) != 0 || len(p.told) != 0 {
			t.Errorf("wrote %v, asked %d times, told %q", w.wrote, len(p.asked), p.told)
		}
	})
}

func TestAnAnswerOfAnotherSessionDoesNotCount(t *testing.T) {
	w := answered(t, uip.OptionApprove)
	moved := w.forged("s", unchanged)
	p := moved.start("say done", policy.Ask, uip.NoInteractor, -1)
	q := &witness{}
	p.User = q
	p.Config.Dir = "/elsewhere" // the same session, copied to another folder
	s, err := supervisor.New(p.Config).ResumeSession(t.Context(), "s", q)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Continue(t.Context(), q); err != nil || len(moved.wrote) != 0 || len(q.asked) != 1 {
		t.Errorf("%v: wrote %v, asked %d times", err, moved.wrote, len(q.asked))
	}
}

// What policy would let pass is asked about if nobody vouches that a model
// wanted it.
func TestCallsThatALogBroughtAlongAreAskedAbout(t *testing.T) {
	w := &world{t: t}
	// created, started, system, user, assistant; then it dies
	if err := w.start(writeThenSay, policy.Allow, uip.NoInteractor, 5).run("go"); err == nil {
		t.Fatal("it survived")
	}
	own, foreign := w.forged("s", unchanged), w.forged("s", unchanged)
	foreign.secret = authkey.NewTemporary()
	edited := w.forged("s", only(func(e *event.MessageAdded) {
		if e.Message.Role == chat.Assistant {
			e.Message.Parts = []chat.Part{chat.ToolCall{ID: "c1", Name: "write", Args: []byte(`{"path":"b"}`)}}
		}
	}))
	for name, tt := range map[string]struct {
		w     *world
		asked int
	}{"own": {own, 0}, "foreign": {foreign, 1}, "edited": {edited, 1}} {
		t.Run(name, func(t *testing.T) {
			var p witness
			p.takeUp(tt.w, policy.Allow)
			if len(p.asked) != tt.asked || len(tt.w.wrote) != 1-tt.asked {
				t.Errorf("asked %d times, wrote %v", len(p.asked), tt.w.wrote)
			}
		})
	}
}

// A call that was under way is not run again because the record says that it
// only read.
func TestAMarkOnRecordDoesNotLetACallRunTwice(t *testing.T) {
	w := &world{t: t}
	first := w.start(writeThenSay, policy.Allow, uip.NoInteractor, -1)
	first.during = first.store.die
	if err := first.run("go"); err == nil {
		t.Fatal("it survived")
	}
	for name, mark := range map[string]func(*event.ToolCallRequested){
		"read-only": func(e *event.ToolCallRequested) { e.ReadOnly = true },
		"only a note": func(e *event.ToolCallRequested) {
			e.Effects = []event.Effect{{Kind: event.EffectNote, Target: "todo list"}}
		},
		"only reading": func(e *event.ToolCallRequested) { e.Effects = []event.Effect{{Kind: event.EffectRead, Target: "a"}} },
	} {
		t.Run(name, func(t *testing.T) {
			forged := w.forged("s", only(mark))
			var p witness
			p.takeUp(forged, policy.Allow)
			if len(forged.wrote) != 0 {
				t.Errorf("it ran again: %v", forged.wrote)
			}
		})
	}
}

func TestAModeOnRecordCountsIfThePersonChoseItOrItIsNarrower(t *testing.T) {
	w := &world{t: t}
	withMode := func(p *process, name string, chosen bool) (*supervisor.Supervisor, *mode.State) {
		state, err := mode.NewState(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := p.Config
		engine := c.Engine
		c.Engine = func(id string, spawn supervisor.SpawnFunc) (supervisor.Engine, error) {
			e, err := engine(id, spawn)
			e.Mode, e.ModeChosen = state, chosen
			return e, err
		}
		return supervisor.New(c), state
	}
	record := func(changes ...event.ModeChanged) *world {
		w := &world{t: t, secret: w.key()}
		sup, _ := withMode(w.start("say hi", policy.Allow, uip.NoInteractor, -1), mode.Build, false)
		s, err := sup.StartSession(t.Context(), "s", event.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if err := s.SwitchMode(t.Context(), c.Mode, event.Discard); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return w
	}
	changedTo := func(name string) event.ModeChanged { return event.ModeChanged{Mode: name} }
	to := func(name, preset string) func(event.Record) []event.Record {
		return only(func(e *event.ModeChanged) { e.Mode, e.Preset = name, preset })
	}
	autoEdit := record(changedTo(mode.AutoEdit))
	foreign := autoEdit.forged("s", unchanged)
	foreign.secret = authkey.NewTemporary()
	for name, tt := range map[string]struct {
		w      *world
		start  string
		chosen bool
		want   string
		said   bool
	}{
		"chosen by the person":             {autoEdit.forged("s", unchanged), mode.Build, false, mode.AutoEdit, false},
		"with another key":                 {foreign, mode.Build, false, mode.Build, true},
		"edited to be wider":               {record(changedTo(mode.Plan)).forged("s", to(mode.AutoEdit, mode.AutoEdit)), mode.Build, false, mode.Build, true},
		"edited to be yolo":                {autoEdit.forged("s", to(mode.Yolo, mode.Yolo)), mode.Build, false, mode.Build, false},
		"yolo by its permissions":          {autoEdit.forged("s", to(mode.Build, mode.Yolo)), mode.Build, false, mode.Build, false},
		"auto-edit by its permissions":     {autoEdit.forged("s", to(mode.Build, mode.AutoEdit)), mode.Build, false, mode.Build, true},
		"edited to be narrower":            {autoEdit.forged("s", to(mode.Plan, mode.Plan)), mode.Build, false, mode.Plan, false},
		"wider than a narrow start":        {autoEdit.forged("s", to(mode.Build, mode.Build)), mode.Plan, false, mode.Plan, true},
		"not where the person chose now":   {autoEdit.forged("s", unchanged), mode.Plan, true, mode.Plan, false},
		"yolo is left by whoever chose it": {record(changedTo(mode.AutoEdit), changedTo(mode.Yolo)), mode.Build, false, mode.AutoEdit, true},
	} {
		t.Run(name, func(t *testing.T) {
			var p witness
			sup, state := withMode(tt.w.start("say hi", policy.Allow, uip.NoInteractor, -1), tt.start, tt.chosen)
			s, err := sup.ResumeSession(t.Context(), "s", &p)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got, _ := state.Current(); got.Name != tt.want || (len(p.told) > 0) != tt.said {
				t.Errorf("mode %s, want %s; told %q", got.Name, tt.want, p.told)
			}
		})
	}
}
