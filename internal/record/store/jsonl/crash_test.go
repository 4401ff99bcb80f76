package jsonl_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
)

// whole is a session as a writer leaves it: its records, and the bytes of each
// log.
type whole struct {
	records []event.Record
	logs    map[event.Log][]byte
}

func writeWhole(t testing.TB, events ...event.Event) whole {
	t.Helper()
	dir := t.TempDir()
	s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever})
	release := eventtest.Claim(t, s, "a")
	w := whole{records: eventtest.Append(t, s, "a", 0, events...), logs: make(map[event.Log][]byte)}
	release()
	for _, l := range event.AllLogs {
		w.logs[l] = readLog(t, dir, l)
	}
	return w
}

func readLog(t testing.TB, dir string, l event.Log) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "a", l.String()+".jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b
}

// spoil puts the session down in a new directory with log l replaced.
func (w whole) spoil(t testing.TB, dir string, l event.Log, b []byte) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for log, bytes := range w.logs {
		if log == l {
			bytes = b
		}
		pendingWrite(t, filepath.Join(dir, "a", log.String()+".jsonl"), string(bytes))
	}
}

// survivors are the records before the first one in l that is not whole any
// more, when only the first n bytes of l are as they were.
func (w whole) survivors(l event.Log, n int) []event.Record {
	intact := bytes.Count(w.logs[l][:n], []byte("\n"))
	for i, r := range w.records {
		if event.LogOf(r.Event) != l {
			continue
		}
		if intact == 0 {
			return w.records[:i]
		}
		intact--
	}
	return w.records
}

// endMark opens a spoiled session and sees that want is left of it, that nothing
// was thrown away, and that it can go on.
func endMark(t testing.TB, dir string, want []event.Record) {
	t.Helper()
	before := make(map[event.Log][]byte)
	for _, l := range event.AllLogs {
		before[l] = readLog(t, dir, l)
	}
	var repairs []jsonl.Repair
	s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever, OnRepair: func(r jsonl.Repair) { repairs = append(repairs, r) }})
	eventtest.Expect(t, s, "a", 0, want) // as a process that only looks sees it
	release := eventtest.Claim(t, s, "a")
	eventtest.Expect(t, s, "a", 0, want)

	for _, r := range repairs {
		if r.Session != "a" || r.Last != uint64(len(want)) || !strings.HasPrefix(r.File, dir) {
			t.Fatalf("%+v", r)
		}
		for _, a := range r.Moved {
			torn, err := os.ReadFile(a.Path)
			if err != nil {
				t.Fatal(err)
			}
			kept := readLog(t, dir, a.Log)
			if a.Bytes != int64(len(torn)) || !bytes.Equal(before[a.Log], slices.Concat(kept, torn)) {
				t.Fatalf("%+v: %d bytes kept and %d set aside of %d", r, len(kept), len(torn), len(before[a.Log]))
			}
			delete(before, a.Log)
		}
	}
	for l, b := range before {
		if !bytes.Equal(b, readLog(t, dir, l)) {
			t.Fatalf("%s log changed without a report", l)
		}
	}

	all := slices.Concat(want, eventtest.Append(t, s, "a", uint64(len(want)), eventtest.Samples()...))
	eventtest.Expect(t, s, "a", 0, all)
	release()
	again := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever, OnRepair: noRepair(t)})
	eventtest.Claim(t, again, "a")()
	eventtest.Expect(t, again, "a", 0, all)
	if _, err := again.Verify("a"); err != nil {
		t.Fatal(err)
	}
}

func TestTruncatedAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	w := writeWhole(t, eventtest.Samples()...)
	dir := filepath.Join(t.TempDir(), "log")
	for _, l := range event.AllLogs {
		for n := range w.logs[l] {
			if n%23 != 0 && !bytes.Contains(w.logs[l][max(n-2, 0):n+1], []byte("\n")) {
				continue // every byte around the ends of lines, a sample elsewhere
			}
			w.spoil(t, dir, l, w.logs[l][:n])
			endMark(t, dir, w.survivors(l, n))
		}
	}
}

func TestTailOverwritten(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	w := writeWhole(t, eventtest.Samples()...)
	dir := filepath.Join(t.TempDir(), "log")
	for name, junk := range map[string]byte{"NULs": 0, "garbage": 0xfe, "braces": '{', "newlines": '\n', "quotes": '"'} {
		for _, l := range event.AllLogs {
			for n := 0; n < len(w.logs[l]); n += 97 {
				b := slices.Concat(w.logs[l][:n], bytes.Repeat([]byte{junk}, len(w.logs[l])-n))
				if bytes.Equal(b, w.logs[l]) {
					continue
				}
				want := w.survivors(l, n)
				if junk == '\n' && w.logs[l][n] == '\n' {
					want = w.survivors(l, n+1) // that byte is a newline anyway
				}
				w.spoil(t, dir, l, b)
				endMark(t, dir, want)
				if t.Failed() {
					t.Fatalf("%s over the %s log from byte %d", name, l, n)
				}
			}
		}
	}
}

// A crash between the writes of one batch, or a disk that kept one file and
// not the other, leaves a gap in the numbering.
func TestLinesMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	w := writeWhole(t, slices.Concat(eventtest.Samples(), eventtest.Samples())...)
	dir := filepath.Join(t.TempDir(), "log")
	for _, l := range event.AllLogs {
		ls := bytes.SplitAfter(w.logs[l], []byte("\n"))
		for i := range len(ls) - 1 {
			start := len(bytes.Join(ls[:i], nil))
			w.spoil(t, dir, l, bytes.Join(slices.Delete(slices.Clone(ls), i, i+1), nil))
			endMark(t, dir, w.survivors(l, start))
			w.spoil(t, dir, l, bytes.Join(slices.Insert(slices.Clone(ls), i, ls[i]), nil)) // and one twice
			endMark(t, dir, w.survivors(l, start+len(ls[i])))
		}
		w.spoil(t, dir, l, nil)
		endMark(t, dir, w.survivors(l, 0))
	}
}

func TestAWholeLogMissing(t *testing.T) {
	w := writeWhole(t, eventtest.Samples()...)
	dir := filepath.Join(t.TempDir(), "log")
	for _, l := range event.AllLogs {
		w.spoil(t, dir, l, nil)
		if err := os.Remove(filepath.Join(dir, "a", l.String()+".jsonl")); err != nil {
			t.Fatal(err)
		}
		endMark(t, dir, w.survivors(l, 0))
	}
}

// Every repair gets a file of its own.
func TestRepairsDoNotOverwriteEachOther(t *testing.T) {
	dir := t.TempDir()
	torn := make(map[string]string)
	for i := range 12 {
		tail := fmt.Sprintf("tail %d", i)
		path := filepath.Join(dir, "a", "audit.jsonl")
		pendingWrite(t, path, tail)
		s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever, OnRepair: func(r jsonl.Repair) { torn[r.Moved[0].Path] = tail }})
		eventtest.Claim(t, s, "a")()
	}
	if len(torn) != 12 {
		t.Errorf("12 repairs set aside %d files", len(torn))
	}
	for path, want := range maps.All(torn) {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v, want %q", path, b, err, want)
		}
	}
}
