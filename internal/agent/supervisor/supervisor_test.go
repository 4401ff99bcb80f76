package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/record/session"
)

const writeThenSay = "say on it\ncall write id=c1 {\"path\":\"a\"}\n---\nsay done"

func TestASessionGoesOnWhereItWasLeft(t *testing.T) {
	w := &world{t: t}
	if err := w.start("say hello", policy.Allow, uip.NoInteractor, -1).run("hi"); err != nil {
		t.Fatal(err)
	}
	p := w.start("say again", policy.Allow, uip.NoInteractor, -1)
	s := p.resume()
	if _, err := s.Continue(t.Context(), event.Discard); !errors.Is(err, supervisor.ErrFinished) {
		t.Errorf("Continue of a finished session: %v", err)
	}
	if got, err := s.RunText(t.Context(), "more", event.Discard); err != nil || got.Text != "again" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got := told(p, 0); got != "user:hi\nassistant:hello\nuser:more\n" {
		t.Errorf("the model was told %q", got)
	}
	if got := w.domain(); got != "TaskCreated TaskStarted TaskCompleted TaskCreated TaskStarted TaskCompleted" {
		t.Errorf("domain events: %s", got)
	}
	w.check()
}

func TestUnknownSession(t *testing.T) {
	w := &world{t: t}
	p := w.start("", policy.Allow, uip.NoInteractor, -1)
	if _, err := p.ResumeSession(t.Context(), "nope", event.Discard); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("err = %v, want ErrNotFound", err)
	}
	if ok, err := p.Exists(t.Context(), "nope"); ok || err != nil {
		t.Errorf("Exists: %v, %v", ok, err)
	}
}

// TestAProcessMayDieAtAnyRecord kills the writer after each record of a turn
// in turn, then goes on in a new process.
func TestAProcessMayDieAtAnyRecord(t *testing.T) {
	for lives := 1; ; lives++ {
		w := &world{t: t}
		died := w.start(writeThenSay, policy.Allow, uip.NoInteractor, lives).run("go") != nil
		p := w.start("say next", policy.Allow, uip.NoInteractor, -1)
		s := p.resume()
		if got, err := s.RunText(t.Context(), "and now", event.Discard); err != nil || got.Text != "next" {
			t.Fatalf("after %d records: %+v, %v", lives, got, err)
		}
		w.check()
		if n := len(w.wrote); n > 1 {
			t.Errorf("after %d records: the file was written %d times", lives, n)
		}
		if _, left := s.UnfinishedTask(); left {
			t.Errorf("after %d records: still unfinished", lives)
		}
		if !died {
			return
		}
	}
}

// TestAnUnfinishedTurnIsTakenUp does the same, but lets the new process finish
// the turn itself.
func TestAnUnfinishedTurnIsTakenUp(t *testing.T) {
	answered := 0 // so often the model had answered before the process died
	for lives := 1; ; lives++ {
		w := &world{t: t}
		if w.start(writeThenSay, policy.Allow, uip.NoInteractor, lives).run("go") == nil {
			break
		}
		p := w.start("say done\n---\nsay done\n---\nsay done", policy.Allow, uip.NoInteractor, -1)
		s := p.resume()
		got, err := s.Continue(t.Context(), event.Discard)
		if err != nil || got != "done" {
			t.Fatalf("after %d records: %q, %v", lives, got, err)
		}
		w.check()
		if n := len(w.wrote); n > 1 {
			t.Errorf("after %d records: the file was written %d times", lives, n)
		}
		if len(p.model.Requests()) == 0 {
			answered++
		} else if first := told(p, 0); !strings.HasPrefix(first, "user:go\n") {
			t.Errorf("after %d records the model was told %q", lives, first)
		}
		if !strings.HasSuffix(w.domain(), "TaskCompleted") {
			t.Errorf("after %d records: %s", lives, w.domain())
		}
	}
	if answered != 1 {
		t.Errorf("the model was not asked again in %d cases", answered)
	}
}

func TestACallUnderWayWhenTheProcessDiedHasAnUnknownOutcome(t *testing.T) {
	w := &world{t: t}
	first := w.start(writeThenSay, policy.Allow, uip.NoInteractor, -1)
	first.during = first.store.die
	if err := first.run("go"); err == nil {
		t.Fatal("it survived")
	}
	p := w.start("want outcome is unknown\nsay I will look first", policy.Allow, uip.NoInteractor, -1)
	if got, err := p.resume().Continue(t.Context(), event.Discard); err != nil || got != "I will look first" {
		t.Fatalf("got %q, %v", got, err)
	}
	if len(w.wrote) != 1 {
		t.Errorf("the call ran %d times", len(w.wrote))
	}
	for r := range w.store.Read(t.Context(), "s", 0, event.LogAudit) {
		if e, ok := r.Event.(event.ToolCallCompleted); ok && !e.OutcomeUnknown {
			t.Errorf("the audit says that it ended: %+v", e)
		}
	}
	w.check()
}

func TestAnOpenQuestionIsPutAgainAndItsCallRunsOnce(t *testing.T) {
	w := &world{t: t}
	var first *process
	var asked []string
	first = w.start(writeThenSay, policy.Ask, uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		asked = append(asked, q.ID)
		first.store.die()
		return uip.Response{}, errDead
	}), -1)
	if err := first.run("go"); err == nil {
		t.Fatal("it survived")
	}
	p := w.start("say done", policy.Ask, uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		asked = append(asked, q.ID)
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
	}), -1)
	s := p.resume()
	if left, ok := s.UnfinishedTask(); !ok || left.Pending == nil || left.Pending.ID != asked[0] {
		t.Fatalf("unfinished: %+v", left)
	}
	if got, err := s.Continue(t.Context(), event.Discard); err != nil || got != "done" {
		t.Fatalf("got %q, %v", got, err)
	}
	if len(asked) != 2 || asked[0] != asked[1] {
		t.Errorf("asked under %v, want the same id twice", asked)
	}
	if len(w.wrote) != 1 {
		t.Errorf("the call ran %d times", len(w.wrote))
	}
	if got := w.domain(); got != "TaskCreated TaskStarted Requested Responded TaskCompleted" {
		t.Errorf("domain events: %s", got)
	}
	w.check()
}

func TestAnAnswerSurvivesAndIsNotAskedForAgain(t *testing.T) {
	w := &world{t: t}
	yes := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
	})
	// created, started, system, user, assistant, asked, answered; then it dies
	if err := w.start(writeThenSay, policy.Ask, yes, 7).run("go"); err == nil {
		t.Fatal("it survived")
	}
	if got := w.domain(); got != "TaskCreated TaskStarted Requested Responded" {
		t.Fatalf("domain events: %s", got)
	}
	never := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		t.Error("asked again")
		return uip.NoAnswer(q), nil
	})
	if got, err := w.start("say done", policy.Ask, never, -1).resume().Continue(t.Context(), event.Discard); err != nil || got != "done" {
		t.Fatalf("got %q, %v", got, err)
	}
	if len(w.wrote) != 1 {
		t.Errorf("the call ran %d times", len(w.wrote))
	}
	w.check()
}

func TestTheSnapshotIsAChatRequest(t *testing.T) {
	w := &world{t: t}
	p := w.start("reason hmm\n"+writeThenSay, policy.Allow, uip.NoInteractor, -1)
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"first\nline two", "/help"} {
		if _, err := s.RunText(t.Context(), in, event.Discard); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := w.sessions.Load(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if snap.ID != "s" || snap.Meta.Title != "first" || snap.Model != "m" || snap.Meta.Dir != "/project" || len(snap.Tools) != 1 {
		t.Errorf("head %+v, %d tools", snap.Head, len(snap.Tools))
	}
	if len(snap.Local) != 1 || snap.Local[0].Input != "/help" || !snap.Local[0].Local || snap.Local[0].Before != 5 {
		t.Errorf("local entries: %+v", snap.Local)
	}
	allowed := []string{"role", "content", "tool_calls", "tool_call_id", "name", "reasoning"}
	var roles []string
	for _, raw := range snap.Messages {
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		roles = append(roles, m["role"].(string))
		for k := range m {
			if !slices.Contains(allowed, k) {
				t.Errorf("a message has the key %q", k)
			}
		}
	}
	if got := strings.Join(roles, " "); got != "system user assistant tool assistant" {
		t.Errorf("roles: %s", got)
	}
}

func TestASessionWithoutLogsIsImportedFromItsSnapshot(t *testing.T) {
	w := &world{t: t}
	if err := w.start(writeThenSay, policy.Allow, uip.NoInteractor, -1).run("go"); err != nil {
		t.Fatal(err)
	}
	snap, err := w.sessions.Load(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	other := &world{t: t}
	if err := other.sessions.Save(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	p := other.start("say again", policy.Allow, uip.NoInteractor, -1)
	if got, err := p.resume().RunText(t.Context(), "more", event.Discard); err != nil || got.Text != "again" {
		t.Fatalf("got %+v, %v", got, err)
	}
	const want = "user:go\nassistant:on it\ntool:{\"ok\":true,\"path\":\"a\"}\nassistant:done\nuser:more\n"
	if got := told(p, 0); got != want {
		t.Errorf("the model was told:\n%swant:\n%s", got, want)
	}
	other.check()
}

func TestTwoProcessesCannotShareASession(t *testing.T) {
	w := &world{t: t}
	p := w.start("say x", policy.Allow, uip.NoInteractor, -1)
	s, err := p.StartSession(t.Context(), "s", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunText(t.Context(), "hi", event.Discard); err != nil {
		t.Fatal(err)
	}
	var claimed *event.ClaimedError
	if _, err := w.start("", policy.Allow, uip.NoInteractor, -1).ResumeSession(t.Context(), "s", event.Discard); !errors.As(err, &claimed) {
		t.Errorf("err = %v, want a ClaimedError", err)
	}
}
