package toolrun

import (
	"context"
	"errors"

	"coder/internal/core/chat"
	"coder/internal/policy"
	"coder/internal/tool"
)

// ErrNeedsApproval reports a call that a person would have to be asked about.
var ErrNeedsApproval = errors.New("needs approval")

// Unasked reports whether a call would run without anyone being asked about it;
// the error says why not. Nothing runs, and nothing is recorded.
func (r *Runner) Unasked(ctx context.Context, set tool.Set, c chat.ToolCall) error {
	a := (&run{Runner: r, Round: Round{Set: set}}).look(ctx, c)
	if a.err == nil && a.opinion.Verdict == policy.Ask {
		return ErrNeedsApproval
	}
	return a.err
}

// Harmless reports whether a call, prepared now, can be run any number of times
// without harm: it only reads, or asks, or writes the program's own notes.
func (r *Runner) Harmless(ctx context.Context, set tool.Set, c chat.ToolCall) bool {
	return (&run{Runner: r, Round: Round{Set: set}}).look(ctx, c).harmless()
}
