package jsonl_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/authkey"
	"coder/internal/host/disk"
	"coder/internal/record/store/jsonl"
)

// Records whose lines nobody wants are passed over, and what follows a line that
// was changed after it was written is not read, wanted or not, also where the log had been
// read before and held, in this process or another, and its time was put back.
func TestReadWhere(t *testing.T) {
	dir, heads, key := t.TempDir(), t.TempDir(), authkey.NewTemporary()
	open := func(key *authkey.Key) *jsonl.Store {
		return jsonl.Open(dir, jsonl.Options{
			OnRepair: noRepair(t), Heads: &jsonl.Heads{Dir: heads, Key: func() *authkey.Key { return key }},
			Now: func() time.Time { return time.Now().Add(time.Hour) },
		})
	}
	s := open(key)
	release, err := s.Claim(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(9) {
		long := strings.Repeat("-", 16<<10)
		r := event.Record{Seq: i + 1, Session: "a", Event: event.LocalAdded{Input: fmt.Sprintf("/n%d%s", i+1, long)}}
		if i%2 == 0 {
			r.Event = event.TaskStarted{TaskID: fmt.Sprintf("n%d%s", i+1, long)}
		}
		if err := s.Append(t.Context(), i, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	read := func(s *jsonl.Store) (seqs []uint64) {
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
	for _, round := range []struct {
		which string
		store *jsonl.Store
	}{{"checked", s}, {"known to hold", s}, {"known to an earlier process", open(key)}, {"known to somebody else", open(authkey.NewTemporary())}, {"known again", open(key)}} {
		if got := read(round.store); !slices.Equal(got, []uint64{3, 8}) {
			t.Errorf("%s: read %d", round.which, got)
		}
		if kept, err := filepath.Glob(heads + "/*.whole"); err != nil || len(kept) != 1 {
			t.Errorf("%s: kept %s, %v", round.which, kept, err)
		}
	}
	name := dir + "/a/" + event.LogDomain.String() + ".jsonl"
	was, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Join(encodeLines(t, dir, event.LogDomain), []byte("\n"))
	for now := was; disk.StampOf(now) == disk.StampOf(was); { // for a tick of its clock
		pendingWrite(t, name, string(bytes.Replace(text, []byte("n5"), []byte("n6"), 1))+"\n")
		if err := os.Chtimes(name, time.Time{}, was.ModTime()); err != nil {
			t.Fatal(err)
		}
		if now, err = os.Stat(name); err != nil || now.Size() != was.Size() {
			t.Fatal(now, err)
		}
	}
	for which, store := range map[string]*jsonl.Store{"this": s, "another": open(key)} {
		if got := read(store); !slices.Equal(got, []uint64{3}) {
			t.Errorf("behind a line that was changed, in %s process: %d", which, got)
		}
	}
}
