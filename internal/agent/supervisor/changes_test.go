package supervisor_test

import (
	"context"
	"strings"
	"testing"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/policy/mode"
)

// TestAChangeIsTakenUpBetweenTheStepsOfATurn and on record before it holds; with
// no turn under way it is at once.
func TestAChangeIsTakenUpBetweenTheStepsOfATurn(t *testing.T) {
	w := &world{t: t}
	var s *supervisor.Session
	var records []string
	var state *mode.State
	out := event.SinkFunc(func(_ context.Context, r event.Record) error {
		switch e := r.Event.(type) {
		case event.ModeChanged:
			records = append(records, "mode "+e.Mode)
		case event.ToolFinished:
			m, _ := state.Current()
			records = append(records, "call in "+m.Name)
		case event.MessageAdded:
			if text := e.Message.Text(); text == "done" || text == "more" {
				m, _ := state.Current()
				records = append(records, text+" in "+m.Name)
			}
		}
		return nil
	})
	person := uip.InteractorFunc(func(ctx context.Context, q uip.Request) (uip.Response, error) { // in the middle of a round
		if err := s.ChangeSettings(ctx, mode.AutoEdit, out); err != nil {
			t.Error(err)
		}
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
	})
	p := w.start(writeThenSay+"\n---\nsay more", policy.Ask, person, -1)
	c, engine := p.Config, p.Engine
	state, err := mode.NewState(mode.Build, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Engine = func(id string, spawn supervisor.SpawnFunc) (supervisor.Engine, error) {
		e, err := engine(id, spawn)
		e.Mode = state
		return e, err
	}
	if s, err = supervisor.New(c).StartSession(t.Context(), "s", out); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.ChangeSettings(t.Context(), "sideways", out); err == nil {
		t.Error("there is a mode sideways")
	}
	if _, err := s.RunText(t.Context(), "go", out); err != nil {
		t.Fatal(err)
	}
	if err := s.ChangeSettings(t.Context(), mode.Plan, out); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunText(t.Context(), "again", out); err != nil {
		t.Fatal(err)
	}
	want := "call in build, mode auto-edit, done in auto-edit, mode plan, more in plan"
	if got := strings.Join(records, ", "); got != want {
		t.Errorf("happened: %s\nwant: %s", got, want)
	}
}
