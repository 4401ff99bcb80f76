package queue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"

	"github.com/nats-io/nats.go/jetstream"
)

// reportTime is how often workers say that they are there.
const reportTime = 5 * time.Second

// WorkerState is what a worker says of itself.
type WorkerState struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Slots   int       `json:"slots"`
	Busy    int       `json:"busy"`
	State   string    `json:"state"` // ready, draining, or why it takes nothing
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Seen    time.Time `json:"seen"`
}

// Report says that a worker is there. It counts for a while.
func (q *Queue) Report(ctx context.Context, s WorkerState) error {
	s.Seen = q.now().UTC()
	_, err := q.workers.Put(ctx, s.Name, jsonx.MustMarshal(s))
	return err
}

// Leave takes a worker off the list.
func (q *Queue) Leave(ctx context.Context, name string) error { return q.workers.Delete(ctx, name) }

// Workers lists who is there.
func (q *Queue) Workers(ctx context.Context) ([]WorkerState, error) {
	all := []WorkerState{}
	for e, err := range q.entries(ctx, "worker") {
		if err != nil {
			return nil, message.Errorf("list the workers: %w", err)
		}
		var s WorkerState
		if len(e.value) > maxEntry || json.Unmarshal(e.value, &s) != nil || s.Name != e.key || !ValidName(s.Name) {
			s = WorkerState{Name: e.key, State: "broken: skipped this entry", Seen: e.at}
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b WorkerState) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Drain asks a worker to take nothing more and to leave when it is done.
func (q *Queue) Drain(ctx context.Context, worker string) error {
	_, err := q.fleet.Put(ctx, "drain."+worker, []byte("drain"))
	return err
}

// Draining reports whether a worker was asked to leave, and forgets it.
func (q *Queue) Draining(ctx context.Context, worker string) (bool, error) {
	_, err := q.fleet.Get(ctx, "drain."+worker)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, q.fleet.Delete(ctx, "drain."+worker)
}
