package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// runHeadless runs turns without a terminal: one, or as many as come on stdin.
func runHeadless(ctx context.Context, env Env, fl *flags) error {
	out := newOutput(env, fl)
	h, err := newHouse(env, fl, out.warn)
	if err != nil {
		return err
	}
	if fl.inputFormat == "stream-json" {
		return h.stream(ctx, out)
	}
	prompt, err := readPrompt(ctx, env, fl.args, out.warn)
	if err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" && !fl.resumes() {
		return inputf("the prompt is empty; give it as an argument or on stdin")
	}
	if typed := strings.Join(fl.args, " "); typed != "-" {
		h.typed = typed
	}
	return h.sit(ctx, out, func(s *sitting) error { return s.turn(ctx, out, prompt) })
}

func (f *flags) resumes() bool { return f.resumeAny || f.resume != "" }

// stream runs the prompts that come on stdin, one after the other. A turn that
// goes wrong is told of at once and does not keep the next from running; the
// program ends with the first that did.
func (h *house) stream(ctx context.Context, out *output) error {
	return h.sit(ctx, out, func(s *sitting) error {
		var first error
		turns := 0
		for prompt, err := range readMessages(ctx, h.env.input) {
			if err != nil {
				return errors.Join(err, first)
			}
			turns++
			if err := s.turn(ctx, out, prompt); err != nil {
				complain(h.env.Stderr, h.words().Said(message(err)))
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
	})
}

// withSession is sit for work that stays in one session.
func (h *house) withSession(ctx context.Context, out *output, work func(*supervisor.Session) error) error {
	return h.sit(ctx, out, func(s *sitting) error { return work(s.Session) })
}

// sit opens the session the flags ask for, and closes the one in use at the end
// whatever happens.
func (h *house) sit(ctx context.Context, out *output, work func(*sitting) error) error {
	s := &sitting{house: h}
	person := uip.Nobody
	switch h.flags.onAsk {
	case "park":
		person = h.onRecord(uip.Parked)
	case "wait":
		s.waits = &patient{program: ctx, say: h.warn}
		out.Sink = event.Tee(s.waits, out.Sink)
		person = h.onRecord(h.reach(s.waits, h.warn, func() string { return s.ID }))
	}
	sup, err := h.supervise(person)
	if err != nil {
		return err
	}
	h.keepOutOfGit()
	first, err := h.open(ctx, sup, out)
	if err != nil {
		return err
	}
	s.Session, s.sup = first, sup
	out.unkept = h.unkept
	err = work(s)
	if closeErr := s.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close the session: %w", closeErr)
	}
	if why := h.unkept(); err == nil && why != nil && !h.flags.ephemeral {
		err = &exitError{code: ExitUnkept, text: fmt.Sprintf("done, but not everything could be kept on disk: %v", why)}
	}
	h.mendSnapshots(ctx, sup, s.ID)
	return err
}

// turn runs one prompt of work that stays in one session.
func (h *house) turn(ctx context.Context, s *supervisor.Session, out *output, prompt string) error {
	return (&sitting{Session: s, house: h, sup: h.kept}).turn(ctx, out, prompt)
}

// open opens the session the flags ask for.
func (h *house) open(ctx context.Context, sup *supervisor.Supervisor, out event.Sink) (*supervisor.Session, error) {
	s, err := h.pick(ctx, sup, out)
	if err == nil {
		h.env.exit.opened()
	}
	return s, err
}

func (h *house) pick(ctx context.Context, sup *supervisor.Supervisor, out event.Sink) (*supervisor.Session, error) {
	if m, _ := h.state.Current(); m.Unchecked {
		h.warn(orchestrator.YoloWarning)
	}
	switch {
	case h.flags.resume != "":
		return sup.Resume(ctx, h.flags.resume, out)
	case h.flags.resumeAny:
		id, err := h.lastSession()
		if err != nil {
			return nil, err
		}
		return sup.Resume(ctx, id, out)
	case h.flags.sessionID != "":
		if taken, err := sup.Exists(ctx, h.flags.sessionID); err != nil {
			return nil, err
		} else if taken {
			return nil, inputf("session %s exists already; go on with it by --resume %[1]s", h.flags.sessionID)
		}
		return sup.Start(ctx, h.flags.sessionID, out)
	}
	return sup.Start(ctx, newSessionID(h.env.Now()), out)
}

// ignored is what of the data folder does not belong in a repository.
const ignored = "# kept by coder; config.json and what people write here may be shared\nlog/\nsessions/\nruns/\nundo/\ncache/\nplans/\ntmp/\n.gitignore\n"

// keepOutOfGit leaves a note for git in the data folder before anything else
// is there. It is a courtesy: where it cannot be written nothing is lost.
func (h *house) keepOutOfGit() {
	if h.flags.ephemeral {
		return
	}
	path := filepath.Join(h.data(), ".gitignore")
	if _, err := os.Lstat(path); err == nil {
		return
	}
	_ = os.Mkdir(h.data(), 0o700)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(ignored)
	_ = f.Close()
}
