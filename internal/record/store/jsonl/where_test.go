package jsonl_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
)

// Records whose lines nobody wants are passed over, and what follows a line that
// is not as it was written is not read, wanted or not, also where the log had been
// read before and held.
func TestReadWhere(t *testing.T) {
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{Report: noRepair(t)})
	release, err := s.Claim(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(9) {
		r := event.Record{Seq: i + 1, Session: "a", Event: event.LocalAdded{Input: fmt.Sprintf("/n%d", i+1)}}
		if i%2 == 0 {
			r.Event = event.TaskStarted{TaskID: fmt.Sprintf("n%d", i+1)}
		}
		if err := s.Append(t.Context(), i, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	read := func() (seqs []uint64) {
		wants := func(line []byte) bool {
			return bytes.Contains(line, []byte("n3")) || bytes.Contains(line, []byte("n8"))
		}
		for r, err := range s.ReadWhere(t.Context(), "a", 0, wants) {
			if err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, r.Seq)
		}
		return seqs
	}
	logs, err := filepath.Glob(dir + "/a/*.jsonl")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	long := time.Now().Add(-time.Hour)
	for _, name := range logs {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for _, which := range []string{"checked", "known to hold"} {
		if got := read(); !slices.Equal(got, []uint64{3, 8}) {
			t.Errorf("%s: read %d", which, got)
		}
	}
	name := dir + "/a/" + event.Domain.String() + ".jsonl"
	text := bytes.Join(lines(t, dir, event.Domain), []byte("\n"))
	write(t, name, string(bytes.Replace(text, []byte("n5"), []byte("n6"), 1))+"\n")
	if got := read(); !slices.Equal(got, []uint64{3}) {
		t.Errorf("behind a line that was changed: %d", got)
	}
}
