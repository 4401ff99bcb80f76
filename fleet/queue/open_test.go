package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go/jetstream"
)

// TestAFleetThatDoesNotAnswerIsWaitedFor: so it is while a cluster chooses a leader, but
// not for ever, and not where the answer is no.
func TestAFleetThatDoesNotAnswerIsWaitedFor(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		fails  int
		asked  int
		opened bool
	}{
		{"there", nil, 0, 1, true},
		{"a node has died", context.DeadlineExceeded, 3, 4, true},
		{"no leader", fmt.Errorf("open: %w", jetstream.ErrNoStreamResponse), 3, 4, true},
		{"gone", context.DeadlineExceeded, 100, openTries, false},
		{"no fleet", ErrNone, 100, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				q, err := patiently(t.Context(), func() (*Queue, error) {
					if asked++; asked <= tc.fails {
						return nil, tc.err
					}
					return new(Queue), nil
				})
				if (q != nil) != tc.opened || asked != tc.asked || !tc.opened && !errors.Is(err, tc.err) {
					t.Errorf("opened %v after %d tries: %v", q != nil, asked, err)
				}
			})
		})
	}
}
