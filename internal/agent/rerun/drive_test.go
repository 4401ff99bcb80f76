package rerun

import (
	"context"
	"errors"
	"testing"

	"coder/internal/agent/supervisor"
)

// TestAnInterruptIsNoDifference: what a rerun did differently because it was
// interrupted is not the session's doing.
func TestAnInterruptIsNoDifference(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	f := Follow(New("s", "/ws", nil), Side{}, Side{}, NewWorld(nil, nil))
	err := f.Again(ctx, func(ctx context.Context, _ bool) (*supervisor.Session, error) {
		interrupt()
		f.parted = true
		return nil, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
