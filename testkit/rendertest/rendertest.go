// Package rendertest holds one session made by hand that every face is tested
// with, and the comparison of what a face wrote with a golden file.
package rendertest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"coder/internal/core/event"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with testdata/name.golden of the package under test.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || !bytes.Equal(g[i], w[i]) {
			t.Fatalf("%s line %d:\n got %s\nwant %s", path, i+1, line(g, i), line(w, i))
		}
	}
}

func line(ls [][]byte, i int) []byte {
	if i < len(ls) {
		return ls[i]
	}
	return []byte("(nothing)")
}

// Play shows rs to sink, one by one.
func Play(t testing.TB, sink event.Sink, rs []event.Record) {
	t.Helper()
	for _, r := range rs {
		if err := sink.Emit(context.Background(), r); err != nil {
			t.Fatalf("emit %T: %v", r.Event, err)
		}
	}
}

// Durable is what a log would have kept of rs.
func Durable(rs []event.Record) []event.Record {
	var kept []event.Record
	for _, r := range rs {
		if event.LogOf(r.Event) != event.LogNone {
			kept = append(kept, r)
		}
	}
	return kept
}

// Deltas is n equal pieces of a reply that does not end.
func Deltas(n int, piece string) []event.Record {
	s := &script{now: start}
	for range n {
		s.add(event.TextDelta{Text: piece})
	}
	return s.rs
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// script numbers and times records as a timeline would, ten milliseconds
// apart.
type script struct {
	now  time.Time
	seq  uint64
	task string
	rs   []event.Record
}

func (s *script) add(es ...event.Event) {
	for _, e := range es {
		s.now = s.now.Add(10 * time.Millisecond)
		r := event.Record{Time: s.now, Session: Session, Task: s.task, Actor: "main", Event: e}
		if event.LogOf(e) != event.LogNone {
			s.seq++
			r.Seq = s.seq
		}
		s.rs = append(s.rs, r)
	}
}
