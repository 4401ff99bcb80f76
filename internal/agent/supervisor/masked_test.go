package supervisor_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy"
)

const key = "known-0123456789"

// masking has a process keep keys off the record.
func (p *process) masking() *process {
	engine, c := p.Config.Engine, secret.NewConcealer([]string{key})
	p.Config.Engine = func(id string, spawn supervisor.SpawnFunc) (supervisor.Engine, error) {
		e, err := engine(id, spawn)
		e.Concealer, e.Runner.Concealer = c, c
		return e, err
	}
	return p
}

// clean reports what of the record, or of what the model was told, holds a key.
func (w *world) clean(ps ...*process) {
	w.t.Helper()
	for r, err := range w.store.Read(w.t.Context(), "s", 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		if line, _ := event.Encode(r); strings.Contains(string(line), key) || strings.Contains(string(line), "ghp_0123456789") {
			w.t.Errorf("record %d: %s", r.Seq, line)
		}
	}
	if snap, err := w.sessions.Load(w.t.Context(), "s"); err == nil {
		if text, _ := json.Marshal(snap); strings.Contains(string(text), key) {
			w.t.Errorf("snapshot: %s", text)
		}
	}
	for _, p := range ps {
		for _, req := range p.model.Requests() {
			if text, _ := json.Marshal(req); strings.Contains(string(text), key) {
				w.t.Errorf("the model was told %s", text)
			}
		}
	}
}

func TestACallRunsWithItsKeysAndIsKeptWithoutThem(t *testing.T) {
	w := &world{t: t}
	p := w.start("reason with "+key+"\nsay on it: "+key+"\ncall write id=c1 {\"path\":\""+key+"\"}\n---\nsay done, "+key, policy.Allow, uip.NoInteractor, -1).masking()
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	done, err := s.RunText(t.Context(), "use "+key, event.SinkFunc(func(_ context.Context, r event.Record) error {
		text, _ := json.Marshal(r)
		shown.Write(text)
		return nil
	}))
	if err != nil || done.Text != "done, "+secret.KeyMask {
		t.Errorf("%q, %v", done.Text, err)
	}
	if !slices.Equal(w.wrote, []string{key}) {
		t.Errorf("it wrote %q, want the call as the model made it", w.wrote)
	}
	if strings.Contains(shown.String(), key) {
		t.Errorf("shown: %s", shown.String())
	}
	if got := told(p, 1); strings.Count(got, secret.KeyMask) < 3 {
		t.Errorf("the model was told %s", got)
	}
	w.check()
	w.clean(p)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// However a process ends, a call whose keys are not on record is not run again
// without them, nor is an answer taken for it: the model is told to make it anew.
func TestACallWithoutItsKeysIsNotTakenUp(t *testing.T) {
	yes := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
	})
	script := "say on it\ncall write id=c1 {\"path\":\"" + key + "\"}\n---\nsay done"
	seen := false
	for lives := 1; ; lives++ {
		w := &world{t: t}
		if w.start(script, policy.Ask, yes, lives).masking().run("go") == nil {
			break
		}
		ran := len(w.wrote)
		p := w.start("say again", policy.Ask, uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			t.Errorf("after %d records: asked %q", lives, q.Display.Title)
			return uip.NoAnswer(q), nil
		}), -1).masking()
		s, err := p.ResumeSession(t.Context(), "s", event.Discard)
		if err != nil {
			continue // before the first record
		}
		_, _ = s.Continue(t.Context(), event.Discard)
		if len(w.wrote) != ran {
			t.Errorf("after %d records: it wrote %q", lives, w.wrote)
		}
		if len(p.model.Requests()) > 0 && strings.Contains(told(p, 0), "make the call again") {
			seen = true
		}
		w.check()
		w.clean(p)
		_ = s.Close()
	}
	if !seen {
		t.Error("the model was never told when to make the call again")
	}
}

func TestArgumentsOfAnAnswerAreNotTakenUpWithoutTheirKeys(t *testing.T) {
	w := &world{t: t}
	changed := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove, Args: json.RawMessage(`{"path":"` + key + `"}`)}, nil
	})
	if err := w.start(writeThenSay, policy.Ask, changed, 7).masking().run("go"); err == nil {
		t.Fatal("it survived")
	}
	p := w.start("say done", policy.Ask, uip.NoInteractor, -1).masking()
	if _, err := p.resume().Continue(t.Context(), event.Discard); err != nil || len(w.wrote) != 0 {
		t.Errorf("it wrote %q, %v", w.wrote, err)
	}
	w.check()
	w.clean(p)
}

// A key that comes in pieces is shown in none.
func TestAKeyInPiecesIsNotShown(t *testing.T) {
	w := &world{t: t}
	p := w.start("reason so "+key+" it is\nsay one "+key+" two\nsay ghp_0123456789abcdefghijklmnop", policy.Allow, uip.NoInteractor, -1).masking()
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var text, thought strings.Builder
	pieces := 0
	_, err = s.RunText(t.Context(), "go", event.SinkFunc(func(_ context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.TextDelta:
			text.WriteString(e.Text)
			pieces++
		case event.ReasoningDelta:
			thought.WriteString(e.Text)
		}
		return nil
	}))
	if err != nil || text.String() != "one "+secret.KeyMask+" two\nghp_01…[masked]" || thought.String() != "so "+secret.KeyMask+" it is" {
		t.Errorf("%q, %q, %v", text.String(), thought.String(), err)
	}
	if pieces < 2 {
		t.Errorf("it came in %d piece, which shows nothing", pieces)
	}
	w.clean(p)
	_ = s.Close()
}

// What is held back of the thinking is shown before the words that follow it.
func TestWhatIsHeldBackKeepsItsPlace(t *testing.T) {
	w := &world{t: t}
	p := w.start("reason it ends with an A\nsay so", policy.Allow, uip.NoInteractor, -1).masking()
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	_, err = s.RunText(t.Context(), "go", event.SinkFunc(func(_ context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.TextDelta:
			shown.WriteString("<" + e.Text + ">")
		case event.ReasoningDelta:
			shown.WriteString(e.Text)
		}
		return nil
	}))
	if err != nil || !strings.HasPrefix(shown.String(), "it ends with an A<") {
		t.Errorf("%q, %v", shown.String(), err)
	}
	_ = s.Close()
}
