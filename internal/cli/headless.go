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
	inv.warnWideFolder(a.Root)
	out := inv.newOutput(a)
	if streams {
		return inv.withSession(ctx, a, out, func(s *headless) error { return inv.runStream(ctx, s) })
	}
	prompt, err := inv.readPrompt(ctx)
	if err != nil {
		return err
	}
	images, err := inv.imageDraft(a)
	if err != nil {
		return err
	}
	prompt = joinWords(images, prompt)
	if strings.TrimSpace(prompt.Text()) == "" && !fl.session.IsResume() {
		return inputErrorf("the prompt is empty; pass it as an argument or on stdin")
	}
	return inv.withSession(ctx, a, out, func(s *headless) error {
		return s.runTurn(ctx, orchestrator.Input{UserText: prompt, Pictures: images.Pictures()})
	})
}

// runStream runs the prompts from stdin in order. A failed turn is reported immediately and does not keep
// the next from running; the program ends with the first error.
func (inv *invocation) runStream(ctx context.Context, s *headless) error {
	var first error
	turns := 0
	for prompt, err := range readMessages(ctx, inv.stdin) {
		if err != nil {
			return errors.Join(err, first)
		}
		turns++
		if err := s.runTurn(ctx, orchestrator.TextInput(prompt)); err != nil {
			printError(inv.Stderr, inv.printer.Translate(errorMessage(err)), 0)
			first = cmp.Or(first, error(&exitError{code: ExitCode(err)}))
		}
		if ctx.Err() != nil || s.Ended() {
			break
		}
	}
	if first == nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if turns == 0 {
		return inputErrorf("no message on stdin; each is a line like %s", messageExample)
	}
	return first
}

// headless runs inputs non-interactively.
type headless struct {
	*serve.Host
	out        *output
	programCtx context.Context // ends when the program should end; nil unless questions wait for an answer
}

// withSession opens the requested session, runs work, and always closes the session in use at the end.
func (inv *invocation) withSession(ctx context.Context, a *app.Workspace, out *output,
	work func(*headless) error) error {
	s := &headless{out: out}
	o := serve.Options{Which: inv.flags.session, User: uip.NoInteractor, Report: inv.warn}
	switch inv.flags.onAsk {
	case "park":
		o.User, o.RecordedOnly = uip.PendingInteractor, true
	case "wait":
		s.programCtx = ctx
		o.User, o.RecordedOnly, o.RemoteAnswers = uip.InteractorFunc(s.waitForAnswer), true, true
	}
	err := inv.openSession(ctx, a, s, o)
	if err != nil {
		return err
	}
	err = work(s)
	running := s.Inside().RunningJobs()
	if err = inv.closeSession(ctx, s, err); len(running) > 0 {
		inv.warn(fmt.Sprintf("no longer running in the background: %s", singleLine(strings.Join(running, ", "))))
	}
	return err
}

// openSession opens a session that out shows.
func (inv *invocation) openSession(ctx context.Context, a *app.Workspace, s *headless, o serve.Options) (err error) {
	o.Sink = s.out
	if s.Host, err = serve.Open(ctx, a, o); err == nil {
		inv.shutdown.markSessionOpen()
		s.out.unsavedReason, s.out.host = a.Store().UnsavedReason, s.Host
	}
	return err
}

// closeSession closes a session whose work ended with err.
func (inv *invocation) closeSession(ctx context.Context, s *headless, err error) error {
	return cmp.Or(err, inv.recordClose(s.Close(ctx)))
}

// runTurn runs one prompt and reports its result. An empty prompt continues the unfinished turn.
func (s *headless) runTurn(ctx context.Context, said orchestrator.Input) error {
	s.out.beginTurn()
	ctx, done := s.turnContext(ctx)
	defer done()
	ctx, over := s.WithRemoteStop(ctx, s.out.invocation.warn)
	defer over()
	if strings.TrimSpace(said.Text()) != "" || len(said.Pictures) > 0 {
		did, err := s.runInput(ctx, said)
		return s.out.endTurn(did.Text, err)
	}
	answer, err := s.ResumeTurn(ctx)
	if errors.Is(err, supervisor.ErrFinished) {
		return inputErrorf("the prompt is empty, and session %s has no unfinished turn to continue", s.ID())
	}
	return s.out.endTurn(answer, err)
}

// waitForAnswer lets a question wait for an answer from another process. It leaves the question open if the
// program should end.
func (s *headless) waitForAnswer(ctx context.Context, q uip.Request) (uip.Response, error) {
	s.out.invocation.warnMessage(pendingHint(&uip.PendingError{Request: q}))
	select {
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	case <-s.programCtx.Done():
		return uip.Response{}, uip.ErrAnswerPending
	}
}

// turnContext returns the context of a turn: the end of the program ends it, unless a question waits for an
// answer.
func (s *headless) turnContext(ctx context.Context) (turn context.Context, done func()) {
	if s.programCtx == nil {
		return ctx, func() {}
	}
	turn, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if _, asked := s.Questions.Current(); !asked {
			cancel()
		}
	})
	return turn, func() { stop(); cancel() }
}

// runInput runs one input and follows it to another session.
func (s *headless) runInput(ctx context.Context, said orchestrator.Input) (serve.Outcome, error) {
	did, err := s.Run(ctx, said)
	if did.Previous != nil {
		err = cmp.Or(err, s.out.invocation.recordClose(*did.Previous))
	}
	return did, cmp.Or(err, did.SwitchErr)
}

// runPiped answers the lines from a pipe one by one, without any terminal sequences. A failed turn has
// reported its error and does not keep the next from running.
func (inv *invocation) runPiped(ctx context.Context) error {
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	inv.warnWideFolder(a.Root)
	typed, err := inv.initialDraft(a)
	if err != nil {
		return err
	}
	out, _ := inv.newLineOutput(a)
	err = inv.withSession(ctx, a, out, func(s *headless) error {
		said := orchestrator.Input{UserText: typed.Words(), Pictures: typed.Pictures()}
		for {
			if strings.TrimSpace(said.Text()) != "" {
				turn, done := s.turnContext(ctx)
				did, err := s.Run(turn, said)
				done()
				if did.Previous != nil {
					did.SwitchErr = inv.recordClose(*did.Previous)
				}
				if did.SwitchErr != nil {
					inv.warnError(did.SwitchErr)
				}
				if errors.Is(err, uip.ErrAnswerPending) {
					return err
				}
			}
			if ctx.Err() != nil || s.Ended() {
				return ctx.Err()
			}
			line, err := inv.stdin.ReadLine(ctx, maxPromptBytes)
			said = orchestrator.TextInput(chat.NewUserText(chat.OriginLine, line))
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case errors.Is(err, stdio.ErrTooLong):
				return promptTooLongError()
			case err != nil:
				return err
			}
		}
	})
	if n := len(out.tally.Denials); err == nil && n > 0 {
		return &exitError{code: ExitDenied, text: out.deniedMessage(n)}
	}
	return err
}
