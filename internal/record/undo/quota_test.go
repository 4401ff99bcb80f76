package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A session of many turns over a small store: it never grows beyond its quota,
// what it drops is of the oldest turns, the last ones come back whole, and of
// the others it is told what is lost. All that holds across restarts.
func TestManyTurnsOverASmallStore(t *testing.T) {
	const turns, pinned, size = 40, 5, 2000
	w := newWorld(t)
	w.so.Quota = 20 * size
	w.restart()
	at := time.Now().Add(-turns * time.Hour)
	f, g := func(i int) string { return fmt.Sprintf("f%02d", i) }, func(i int) string { return fmt.Sprintf("g%02d", i) }
	content := func(name string) string { return strings.Repeat(name+" ", size/4) }
	for i := range turns {
		before := w.blobs()
		w.put(f(i), content(f(i)))
		w.put(g(i), content(g(i)))
		w.edit(fmt.Sprint("t", i), func() { w.put(f(i), "edited") }, f(i))
		w.shell(fmt.Sprint("t", i), func() { w.put(g(i), "overwritten") })
		w.age(before, at.Add(time.Duration(i)*time.Hour))
		if n := w.stored(); n > w.so.Quota {
			t.Fatalf("the store has %d bytes after turn %d", n, i)
		}
		if i%7 == 0 {
			w.restart()
		}
	}
	w.restart()
	firstLost := -1
	for i := turns - 1; i >= 0; i-- {
		r := w.undo("all")
		if r.Turn.ID != fmt.Sprint("t", i) || len(r.Unchanged)+len(r.Failed) > 0 {
			t.Fatalf("turn %d: %+v", i, r)
		}
		if len(r.Lost) == 0 && !slices.Equal(r.Restored, []string{f(i), g(i)}) {
			t.Errorf("turn %d: %+v", i, r)
		}
		if len(r.Lost) > 0 && firstLost < 0 {
			firstLost = i
		}
		if firstLost >= 0 && i < firstLost && len(r.Lost) != 2 {
			t.Errorf("turn %d is older than turn %d, which is lost: %+v", i, firstLost, r)
		}
		for _, name := range r.Restored {
			if got, err := os.ReadFile(w.path(name)); string(got) != content(name) {
				t.Errorf("%s has %d bytes, %v", name, len(got), err)
			}
		}
	}
	if firstLost < 0 || firstLost >= turns-pinned {
		t.Errorf("the newest turn that lost something is %d", firstLost)
	}
}

// age dates the blobs that were not there before.
func (w *world) age(before []string, at time.Time) {
	w.t.Helper()
	for _, b := range w.blobs() {
		if !slices.Contains(before, b) {
			w.must(os.Chtimes(filepath.Join(w.data, "objects", b[:2], b[2:]), at, at))
		}
	}
}

// stored is how many bytes the store holds.
func (w *world) stored() (n int64) {
	w.t.Helper()
	for _, b := range w.blobs() {
		info, err := os.Stat(filepath.Join(w.data, "objects", b[:2], b[2:]))
		w.must(err)
		n += info.Size()
	}
	return n
}
