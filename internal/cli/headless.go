package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/host/stdio"
)

// runHeadless runs turns without a terminal: one, or as many as come on stdin.
func (inv *invocation) runHeadless(ctx context.Context) error {
	fl := inv.flags
	streams := fl.inputFormat == "stream-json"
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	inv.warnOfWide(a.Root)
	out := inv.newOutput(a)
	if streams {
		return inv.withSession(ctx, a, out, func(s *headless) error { return inv.stream(ctx, s) })
	}
	prompt, err := inv.readPrompt(ctx)
	if err != nil {
		return err
	}
	if strings.TrimSpace(prompt.Text()) == "" && !fl.session.Resumes() {
		return inputf("the prompt is empty; give it as an argument or on stdin")
	}
	return inv.withSession(ctx, a, out, func(s *headless) error { return s.turn(ctx, orchestrator.Say(prompt)) })
}

// stream runs the prompts that come on stdin, one after the other. A turn that
// goes wrong is told of at once and does not keep the next from running; the
// program ends with the first that did.
func (inv *invocation) stream(ctx context.Context, s *headless) error {
	var first error
	turns := 0
	for prompt, err := range readMessages(ctx, inv.input) {
		if err != nil {
			return errors.Join(err, first)
		}
		turns++
		if err := s.turn(ctx, orchestrator.Say(prompt)); err != nil {
			complain(inv.Stderr, inv.words.Said(message(err)), 0)
			first = cmp.Or(first, error(&exitError{code: ExitCode(err)}))
		}
		if ctx.Err() != nil || s.over {
			break
		}
	}
	if first == nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if turns == 0 {
		return inputf("no message came on stdin; each is a line like %s", messageForm)
	}
	return first
}

// headless is a run of inputs without a terminal: the session they go to, which
// a command may change.
type headless struct {
	*supervisor.Session
	app   *app.App
	sup   *supervisor.Supervisor
	out   *output
	waits *waiter // nil unless questions wait for an answer
	over  bool    // the person said that it is
}

// withSession opens the session the flags ask for, and closes the one in use at
// the end whatever happens.
func (inv *invocation) withSession(ctx context.Context, a *app.App, out *output, work func(*headless) error) error {
	s := &headless{app: a, out: out}
	person := uip.Nobody
	switch inv.flags.onAsk {
	case "park":
		person = onRecord(a.Store(), uip.Parked)
	case "wait":
		s.waits = &waiter{program: ctx, say: inv.warn}
		out.Sink = event.Tee(s.waits, out.Sink)
		person = onRecord(a.Store(), answerable(a, s.waits, inv.warn, func() string { return s.ID }))
	}
	s.sup = a.Supervise(person)
	first, err := a.Open(ctx, s.sup, inv.flags.session, out)
	if err != nil {
		return err
	}
	inv.exit.opened()
	s.Session = first
	out.unkept = a.Store().Unkept
	err = work(s)
	if closeErr := s.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close the session: %w", closeErr)
	}
	inv.closed(a)
	a.Store().Forget(s.ID)
	a.Store().MendSnapshots(ctx, s.ID)
	return err
}

// turn runs one prompt and reports what came of it. An empty prompt takes up
// the turn that was left unfinished.
func (s *headless) turn(ctx context.Context, said orchestrator.Said) error {
	s.out.begin()
	ctx, done := s.waits.turn(ctx)
	defer done()
	ctx, over := s.stoppable(ctx, s.out.inv.warn)
	defer over()
	if strings.TrimSpace(said.Text()) != "" || len(said.Pictures) > 0 {
		done, err := s.RunSaid(ctx, said, s.out)
		if err == nil {
			err = s.follow(ctx, done.Next)
		}
		return s.out.end(done.Text, err)
	}
	answer, err := s.Continue(ctx, s.out)
	if errors.Is(err, supervisor.ErrFinished) {
		return inputf("the prompt is empty, and session %s has no unfinished turn to go on with", s.ID)
	}
	return s.out.end(answer, err)
}

// follow goes where the person said, if they did.
func (s *headless) follow(ctx context.Context, to *orchestrator.Next) error {
	switch {
	case to == nil:
		return nil
	case to.Exit:
		s.over = true
		return nil
	}
	other, err := s.app.Move(ctx, s.sup, to, s.ID, s.out)
	if err != nil {
		return err
	}
	err = s.Session.Close()
	s.Session = other
	return err
}

// runPiped answers what comes through a pipe, line by line, without a byte
// that is meant for a terminal. A turn that goes wrong has said so and does not
// keep the next from running.
func (inv *invocation) runPiped(ctx context.Context) error {
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	inv.warnOfWide(a.Root)
	out, _ := inv.newLines(a)
	err = inv.withSession(ctx, a, out, func(s *headless) error {
		words := chat.From(chat.Typed, strings.Join(inv.flags.args, " "))
		for {
			if strings.TrimSpace(words.Text()) != "" {
				turn, done := s.waits.turn(ctx)
				did, err := s.RunSaid(turn, orchestrator.Say(words), out)
				done()
				if err := s.follow(ctx, did.Next); err != nil {
					inv.warn(message(err))
				}
				if errors.Is(err, uip.ErrParked) {
					return err
				}
			}
			if ctx.Err() != nil || s.over {
				return ctx.Err()
			}
			line, err := inv.input.Line(ctx, promptLimit)
			words = chat.From(chat.Line, line)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case errors.Is(err, stdio.ErrTooLong):
				return tooLong()
			case err != nil:
				return err
			}
		}
	})
	if n := len(out.tally.Denials); err == nil && n > 0 {
		return &exitError{code: ExitRefused, text: out.refused(n)}
	}
	return err
}
