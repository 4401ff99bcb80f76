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
	"coder/internal/core/uip"
	"coder/internal/host/stdio"
	"coder/internal/serve"
)

// runHeadless runs turns non-interactively: one, or as many as come on stdin.
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
	images, err := inv.images(a)
	if err != nil {
		return err
	}
	prompt = joinWords(images, prompt)
	if strings.TrimSpace(prompt.Text()) == "" && !fl.session.Resumes() {
		return inputf("the prompt is empty; pass it as an argument or on stdin")
	}
	return inv.withSession(ctx, a, out, func(s *headless) error {
		return s.turn(ctx, orchestrator.Said{Words: prompt, Pictures: images.Pictures()})
	})
}

// stream runs the prompts from stdin in order. A failed turn is reported immediately and does not keep
// the next from running; the program ends with the first error.
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
		if ctx.Err() != nil || s.Over() {
			break
		}
	}
	if first == nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if turns == 0 {
		return inputf("no message on stdin; each is a line like %s", messageForm)
	}
	return first
}

// headless runs inputs non-interactively.
type headless struct {
	*serve.Host
	out     *output
	program context.Context // ends when the program should end; nil unless questions wait for an answer
}

// withSession opens the requested session, runs work, and always closes the session in use at the end.
func (inv *invocation) withSession(ctx context.Context, a *app.Workspace, out *output, work func(*headless) error) error {
	s := &headless{out: out}
	o := serve.Options{Which: inv.flags.session, Person: uip.Nobody, Said: inv.warn}
	switch inv.flags.onAsk {
	case "park":
		o.Person, o.Kept = uip.Parked, true
	case "wait":
		s.program = ctx
		o.Person, o.Kept, o.Elsewhere = uip.Func(s.wait), true, true
	}
	err := inv.open(ctx, a, s, o)
	if err != nil {
		return err
	}
	err = work(s)
	running := s.Inside().Running()
	if err = inv.close(ctx, s, err); len(running) > 0 {
		inv.warn(fmt.Sprintf("no longer running in the background: %s", oneLine(strings.Join(running, ", "))))
	}
	return err
}

// open opens a session that out shows.
func (inv *invocation) open(ctx context.Context, a *app.Workspace, s *headless, o serve.Options) (err error) {
	o.Sink = s.out
	if s.Host, err = serve.Open(ctx, a, o); err == nil {
		inv.exit.opened()
		s.out.unkept, s.out.host = a.Store().Unkept, s.Host
	}
	return err
}

// close closes a session whose work ended with err.
func (inv *invocation) close(ctx context.Context, s *headless, err error) error {
	return cmp.Or(err, inv.closed(s.Close(ctx)))
}

// turn runs one prompt and reports its result. An empty prompt continues the unfinished turn.
func (s *headless) turn(ctx context.Context, said orchestrator.Said) error {
	s.out.begin()
	ctx, done := s.patient(ctx)
	defer done()
	ctx, over := s.Stoppable(ctx, s.out.inv.warn)
	defer over()
	if strings.TrimSpace(said.Text()) != "" || len(said.Pictures) > 0 {
		did, err := s.do(ctx, said)
		return s.out.end(did.Text, err)
	}
	answer, err := s.Continue(ctx)
	if errors.Is(err, supervisor.ErrFinished) {
		return inputf("the prompt is empty, and session %s has no unfinished turn to continue", s.ID())
	}
	return s.out.end(answer, err)
}

// wait lets a question wait for an answer from another process. It leaves the question open if the
// program should end.
func (s *headless) wait(ctx context.Context, q uip.Request) (uip.Response, error) {
	s.out.inv.warn(parkedHint(&uip.Waiting{Request: q}))
	select {
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	case <-s.program.Done():
		return uip.Response{}, uip.ErrParked
	}
}

// patient returns the context of a turn: the end of the program ends it, unless a question waits for an
// answer.
func (s *headless) patient(ctx context.Context) (turn context.Context, done func()) {
	if s.program == nil {
		return ctx, func() {}
	}
	turn, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if _, asked := s.Questions.Open(); !asked {
			cancel()
		}
	})
	return turn, func() { stop(); cancel() }
}

// do runs one input and follows it to another session.
func (s *headless) do(ctx context.Context, said orchestrator.Said) (serve.Outcome, error) {
	did, err := s.Do(ctx, said)
	if did.Left != nil {
		err = cmp.Or(err, s.out.inv.closed(*did.Left))
	}
	return did, cmp.Or(err, did.Stayed)
}

// runPiped answers the lines from a pipe one by one, without any terminal sequences. A failed turn has
// reported its error and does not keep the next from running.
func (inv *invocation) runPiped(ctx context.Context) error {
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	inv.warnOfWide(a.Root)
	typed, err := inv.typed(a)
	if err != nil {
		return err
	}
	out, _ := inv.newLines(a)
	err = inv.withSession(ctx, a, out, func(s *headless) error {
		said := orchestrator.Said{Words: typed.Words(), Pictures: typed.Pictures()}
		for {
			if strings.TrimSpace(said.Text()) != "" {
				turn, done := s.patient(ctx)
				did, err := s.Do(turn, said)
				done()
				if did.Left != nil {
					did.Stayed = inv.closed(*did.Left)
				}
				if did.Stayed != nil {
					inv.warn(message(did.Stayed))
				}
				if errors.Is(err, uip.ErrParked) {
					return err
				}
			}
			if ctx.Err() != nil || s.Over() {
				return ctx.Err()
			}
			line, err := inv.input.Line(ctx, promptLimit)
			said = orchestrator.Say(chat.From(chat.Line, line))
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
