package eventtest

import (
	"context"
	"errors"
	"os"
	"testing"

	"coder/internal/core/event"

	"pgregory.net/rapid"
)

// Simulate plays random claims, appends, reads and restarts on a store and on
// the simplest thing that could be one, and compares. open is given an empty
// directory. If the store outlives its process, opening the directory again
// must give the same store.
func Simulate(t *testing.T, outlives bool, open func(dir string) event.Store) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "simulate")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		sim := &simulation{store: open(dir), model: make(map[string]*model)}
		actions := map[string]func(*rapid.T){
			"claim": sim.claim, "release": sim.release, "append": sim.append, "conflict": sim.conflict, "": sim.read,
		}
		if outlives {
			actions["restart"] = func(t *rapid.T) {
				sim.letGo(t)
				sim.store = open(dir)
			}
		}
		t.Repeat(actions)
		sim.letGo(t)
	})
}

type simulation struct {
	store event.Store
	model map[string]*model
}

// model is a session as it ought to be.
type model struct {
	records []event.Record
	release func() error // nil: not claimed
}

func (m *model) last() uint64 { return uint64(len(m.records)) }

func (sim *simulation) pick(t *rapid.T) (string, *model) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "session")
	if sim.model[name] == nil {
		sim.model[name] = new(model)
	}
	return name, sim.model[name]
}

func (sim *simulation) claim(t *rapid.T) {
	name, m := sim.pick(t)
	release, err := sim.store.Claim(context.Background(), name)
	if m.release == nil {
		if err != nil {
			t.Fatalf("claim %s: %v", name, err)
		}
		m.release = release
		return
	}
	var claimed *event.ClaimedError
	if !errors.As(err, &claimed) {
		t.Fatalf("claim %s again: %v, want a ClaimedError", name, err)
	}
}

func (sim *simulation) release(t *rapid.T) {
	name, m := sim.pick(t)
	if m.release == nil {
		t.Skip("not claimed")
	}
	if err := m.release(); err != nil {
		t.Fatalf("release %s: %v", name, err)
	}
	m.release = nil
}

func (sim *simulation) append(t *rapid.T) {
	name, m := sim.pick(t)
	events := rapid.SliceOfN(rapid.SampledFrom(Samples()), 1, 6).Draw(t, "events")
	rs := Records(name, m.last(), events...)
	err := sim.store.Append(context.Background(), m.last(), rs...)
	if m.release == nil {
		if !errors.Is(err, event.ErrConflict) {
			t.Fatalf("append to %s without a claim: %v", name, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("append to %s: %v", name, err)
	}
	m.records = append(m.records, rs...)
}

func (sim *simulation) conflict(t *rapid.T) {
	name, m := sim.pick(t)
	last := rapid.Uint64Range(0, m.last()+3).Filter(func(n uint64) bool { return n != m.last() }).Draw(t, "last")
	err := sim.store.Append(context.Background(), last, Records(name, last, event.LocalAdded{})...)
	if !errors.Is(err, event.ErrConflict) {
		t.Fatalf("append to %s after %d, which has %d: %v", name, last, m.last(), err)
	}
}

func (sim *simulation) read(t *rapid.T) {
	name, m := sim.pick(t)
	after := rapid.Uint64Range(0, m.last()+1).Draw(t, "after")
	logs := rapid.SliceOfN(rapid.SampledFrom(event.AllLogs), 0, 3).Draw(t, "logs")
	want := m.records[min(after, m.last()):]
	if len(logs) > 0 {
		want = only(want, logs)
	}
	var got []event.Record
	for r, err := range sim.store.Read(context.Background(), name, after, logs...) {
		if err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		got = append(got, r)
	}
	if err := Same(got, want); err != nil {
		t.Fatalf("read %s after %d: %v", name, after, err)
	}
}

func (sim *simulation) letGo(t *rapid.T) {
	for name, m := range sim.model {
		if m.release == nil {
			continue
		}
		if err := m.release(); err != nil {
			t.Fatalf("release %s: %v", name, err)
		}
		m.release = nil
	}
}
