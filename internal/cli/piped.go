package cli

import (
	"coder/internal/core/uip"
	"coder/internal/host/stdio"
	"context"
	"errors"
	"io"
	"strings"
)

// runPiped answers what comes through a pipe, line by line, without a byte
// that is meant for a terminal.
func (inv *invocation) runPiped(ctx context.Context) error {
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	out, _ := inv.newLines()
	err = inv.withSession(ctx, a, out, func(s *headless) error {
		if first := strings.Join(inv.flags.args, " "); first != "" {
			if err := inv.pipedTurn(ctx, s, first); err != nil {
				return err
			}
		}
		for !s.over {
			line, err := inv.input.Line(ctx, promptLimit)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case errors.Is(err, stdio.ErrTooLong):
				return tooLong()
			case err != nil:
				return err
			case strings.TrimSpace(line) == "":
				continue
			}
			if err := inv.pipedTurn(ctx, s, line); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if n := len(out.tally.Denials); err == nil && n > 0 {
		return &exitError{code: ExitRefused, text: out.refused(n)}
	}
	return err
}

// pipedTurn runs one line. A turn that goes wrong has said so and does not keep
// the next from running.
func (inv *invocation) pipedTurn(ctx context.Context, s *headless, line string) error {
	turn, done := s.waits.turn(ctx)
	did, err := s.Run(turn, line, s.out)
	done()
	if followErr := s.follow(ctx, did.Next); followErr != nil {
		inv.warn(message(followErr))
	}
	if errors.Is(err, uip.ErrParked) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return nil // what went wrong the face has shown
}
