package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/ui/term/ink"
)

// moveTo opens the session that the person wants to go to. If that fails
// everything is as it was.
func (h *house) moveTo(ctx context.Context, sup *supervisor.Supervisor, to *orchestrator.Next, from string, out event.Sink) (*supervisor.Session, error) {
	if !to.New {
		return h.goBackTo(ctx, sup, to.Session, out)
	}
	s, err := sup.Start(ctx, to.Session, out)
	if err != nil {
		return nil, err
	}
	note := event.LocalAdded{Input: "/new", Output: "new session: " + to.Session + ", after " + from}
	if err := s.Note(ctx, note); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// goBackTo resumes a session in the mode it was in.
func (h *house) goBackTo(ctx context.Context, sup *supervisor.Supervisor, id string, out event.Sink) (*supervisor.Session, error) {
	was, preset := h.state.Current()
	start := h.flags.mode
	if start == "" {
		start = h.conf.Agents.Default
	}
	if err := h.state.Switch(start); err != nil {
		return nil, err
	}
	s, err := sup.Resume(ctx, id, out)
	if err != nil {
		return nil, errors.Join(err, h.state.Switch(was.Name), h.state.Preset(preset))
	}
	return s, nil
}

// sitting is a run of inputs without a terminal: the session they go to, which
// a command may change.
type sitting struct {
	*supervisor.Session
	house *house
	sup   *supervisor.Supervisor
	waits *patient // nil unless questions wait for an answer
	over  bool     // the person said that it is
}

// turn runs one prompt and reports what came of it. An empty prompt takes up
// the turn that was left unfinished.
func (s *sitting) turn(ctx context.Context, out *output, prompt string) error {
	out.begin()
	ctx, done := s.waits.turn(ctx)
	defer done()
	if strings.TrimSpace(prompt) != "" {
		done, err := s.Run(ctx, prompt, out)
		if err == nil {
			err = s.follow(ctx, out, done.Next)
		}
		return out.end(done.Text, err)
	}
	answer, err := s.Continue(ctx, out)
	if errors.Is(err, supervisor.ErrFinished) {
		return inputf("the prompt is empty, and session %s has no unfinished turn to go on with", s.ID)
	}
	return out.end(answer, err)
}

// follow goes where the person said, if they did.
func (s *sitting) follow(ctx context.Context, out event.Sink, to *orchestrator.Next) error {
	switch {
	case to == nil:
		return nil
	case to.Exit:
		s.over = true
		return nil
	}
	other, err := s.house.moveTo(ctx, s.sup, to, s.ID, out)
	if err != nil {
		return err
	}
	err = s.Session.Close()
	s.Session = other
	return err
}

// errGone ends the conversation at a terminal in good order.
var errGone = errors.New("the person has left")

// visit is the session as the terminal sees it: where the person goes from it is
// noted.
type visit struct {
	*supervisor.Session
	console *console
}

// Continue puts the turn that was cut off to the person.
func (v visit) Continue(ctx context.Context, out event.Sink) (string, error) {
	answer, words, err := v.Session.TakeUp(ctx, out)
	if words == "" || err != nil {
		return answer, err
	}
	return v.Run(ctx, words, out)
}

func (v visit) Run(ctx context.Context, input string, out event.Sink) (string, error) {
	if t, ok := v.Session.Unfinished(); ok {
		v.console.warn(fmt.Sprintf("the turn that was cut off is closed: %s", oneLine(t.Title)))
	}
	done, err := v.Session.Run(ctx, input, out)
	v.console.next = done.Next
	return done.Text, err
}

// goWhereTold opens another session after the input that asked for it. If that
// fails the one in use stays.
func (c *console) goWhereTold(ctx context.Context) error {
	to := c.next
	c.next = nil
	switch {
	case to == nil:
		return nil
	case to.Exit:
		return errGone
	}
	other, err := c.moveTo(ctx, c.sup, to, c.session.ID, c.face.Out())
	if err != nil {
		return c.face.Say(c.palette.Paint(ink.Bad, c.words.Said(message(err))))
	}
	if err := c.session.Close(); err != nil {
		c.warn(fmt.Sprintf("close the session: %v", err))
	}
	c.session = other
	if err := c.greet(); err != nil {
		return err
	}
	if err := c.recap(ctx); err != nil || !c.cutOff() {
		return err
	}
	c.face.Resume(ctx)
	return nil
}

// How much of a session is shown when it is gone back to.
const (
	recapMessages = 6
	recapLine     = 200
)

// recap shows the last things said in the session.
func (c *console) recap(ctx context.Context) error {
	var lines []string
	for r, err := range c.sup.Store.Read(ctx, c.session.ID, 0, event.Conversation) {
		if err != nil {
			return err
		}
		e, ok := r.Event.(event.MessageAdded)
		if !ok || strings.TrimSpace(e.Message.Text()) == "" {
			continue
		}
		switch e.Message.Role {
		case chat.User:
			lines = append(lines, "> "+shortLine(e.Message.Text()))
		case chat.Assistant:
			lines = append(lines, "  "+shortLine(e.Message.Text()))
		case chat.System, chat.Tool:
		}
		lines = lines[max(len(lines)-recapMessages, 0):]
	}
	if len(lines) == 0 {
		return nil
	}
	return c.face.Say(c.palette.Paint(ink.Dim, strings.Join(lines, "\n")))
}

// shortLine is the beginning of what was said, on one line.
func shortLine(text string) string {
	line := []rune(oneLine(strings.TrimSpace(text)))
	if len(line) <= recapLine {
		return string(line)
	}
	return string(line[:recapLine]) + "…"
}
