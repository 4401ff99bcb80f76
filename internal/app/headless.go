package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/event"
	"coder/internal/supervisor"
	"coder/internal/uip"
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
	prompt, err := readPrompt(ctx, env, fl.args)
	if err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" && !fl.resumes() {
		return inputf("the prompt is empty; give it as an argument or on stdin")
	}
	return h.withSession(ctx, out, func(s *supervisor.Session) error { return h.turn(ctx, s, out, prompt) })
}

func (f *flags) resumes() bool { return f.resumeAny || f.resume != "" }

// stream runs the prompts that come on stdin, one after the other. What
// becomes of one is in its result; the last failure is the program's.
func (h *house) stream(ctx context.Context, out *output) error {
	return h.withSession(ctx, out, func(s *supervisor.Session) error {
		var last error
		for prompt, err := range readMessages(h.env.Stdin) {
			if err != nil {
				return err
			}
			if last = h.turn(ctx, s, out, prompt); ctx.Err() != nil {
				return last
			}
		}
		return last
	})
}

// withSession opens the session the flags ask for, and closes it whatever
// happens.
func (h *house) withSession(ctx context.Context, out *output, work func(*supervisor.Session) error) error {
	sup, err := h.supervise(uip.Nobody)
	if err != nil {
		return err
	}
	s, err := h.open(ctx, sup, out)
	if err != nil {
		return err
	}
	err = work(s)
	if closeErr := s.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close the session: %w", closeErr)
	}
	h.keepOutOfGit()
	h.mendSnapshots(ctx, sup, s.ID)
	return err
}

// turn runs one prompt and reports what came of it. An empty prompt takes up
// the turn that was left unfinished.
func (h *house) turn(ctx context.Context, s *supervisor.Session, out *output, prompt string) error {
	out.begin()
	var (
		answer string
		err    error
	)
	if strings.TrimSpace(prompt) == "" {
		answer, err = s.Continue(ctx, out)
		if errors.Is(err, supervisor.ErrFinished) {
			return inputf("the prompt is empty, and session %s has no unfinished turn to go on with", s.ID)
		}
	} else {
		answer, err = s.Run(ctx, prompt, out)
	}
	return out.end(answer, err)
}

func (h *house) open(ctx context.Context, sup *supervisor.Supervisor, out event.Sink) (*supervisor.Session, error) {
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
const ignored = "# kept by coder; config.json and what people write here may be shared\nlog/\nsessions/\nruns/\n"

// keepOutOfGit leaves a note for git beside a data folder we made. It is a
// courtesy: where it cannot be written nothing is lost.
func (h *house) keepOutOfGit() {
	if h.flags.ephemeral {
		return
	}
	path := filepath.Join(h.data(), ".gitignore")
	if _, err := os.Lstat(h.data()); err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(ignored)
	_ = f.Close()
}
