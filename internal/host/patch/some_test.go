package patch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/host/patch"
)

// Making all hunks of a change makes the change, making none leaves the file, and
// what is made of some is made of all if the rest follows.
func TestSomeHunks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		lines := randomFile(r, 80, 40)
		old := []byte(strings.Join(lines, "\n"))
		new := []byte(strings.Join(edited(r, lines, 6), "\n"))
		if r.IntN(2) == 0 {
			new = append(new, '\n')
		}
		n := patch.CountHunks(old, new)
		if diff, _, _ := patch.Unified("f", old, new); len(display.SplitHunks(diff)) != n {
			t.Fatalf("%d hunks are counted, %d shown in\n%s", n, len(display.SplitHunks(diff)), diff)
		}
		if n == 0 {
			continue
		}
		if got := patch.ApplyHunks(old, new, func(int) bool { return true }); !bytes.Equal(got, new) {
			t.Fatalf("all of it is %q, want %q", got, new)
		}
		if got := patch.ApplyHunks(old, new, func(int) bool { return false }); !bytes.Equal(got, old) {
			t.Fatalf("none of it is %q, want %q", got, old)
		}
		one := r.IntN(n) + 1
		with, without := func(i int) bool { return i == one }, func(i int) bool { return i != one }
		_, added, deleted := patch.Unified("f", old, patch.ApplyHunks(old, new, with))
		_, more, fewer := patch.Unified("f", old, patch.ApplyHunks(old, new, without))
		_, all, gone := patch.Unified("f", old, new)
		if grown := len(patch.ApplyHunks(old, new, with)) + len(patch.ApplyHunks(old, new, without)) - 2*len(old); grown != len(new)-len(old) {
			t.Fatalf("the parts are %d bytes more, the whole %d", grown, len(new)-len(old))
		}
		if added+more-deleted-fewer != all-gone {
			t.Fatalf("+%d -%d and +%d -%d are not +%d -%d", added, deleted, more, fewer, all, gone)
		}
	}
}

func TestHunksOfADiff(t *testing.T) {
	var old, new []string
	for i := range 40 {
		old = append(old, fmt.Sprintf("line %d\n", i))
		new = append(new, fmt.Sprintf("line %d\n", i))
	}
	new[2], new[30] = "--- a/not a name\n", "@@ -1,1 +1,1 @@\n"
	text := func(l []string) []byte { return []byte(strings.Join(l, "")) }
	var diff string
	for _, c := range []struct {
		patch.Change
		mode patch.Mode
	}{
		{Change: patch.Change{Path: "two", Old: text(old), New: text(new)}},
		{Change: patch.Change{Path: "pure", From: "was", Old: []byte("x"), New: []byte("x")}},
		{Change: patch.Change{Path: "none", New: []byte{}}},
		{Change: patch.Change{Path: "made", New: []byte("x\n")}},
		{Change: patch.Change{Path: "gone", Old: []byte("x")}},
		{Change: patch.Change{Path: "empty", New: []byte{}}},
		{Change: patch.Change{Path: "there", From: "here", Old: text(old), New: text(new)}},
		{Change: patch.Change{Path: "run", Old: text(old), New: text(new)}, mode: patch.Executable},
		{Change: patch.Change{Path: "last", Old: []byte("a\n"), New: []byte("b")}},
	} {
		d, _, _ := c.Diff(c.mode)
		diff += d
	}
	lines := strings.SplitAfter(diff, "\n")
	var firsts, whole string
	for _, h := range display.SplitHunks(diff) {
		firsts += strings.Join(strings.Fields(h.FileHeader + lines[h.Line])[:2], " ") + "\n"
		if !strings.HasPrefix(h.Body, lines[h.Line]) {
			t.Errorf("hunk %+v does not begin with line %d", h, h.Line)
		}
		whole += h.Body
	}
	want := "--- a/two\n--- a/two\ndiff --git\ndiff --git\n--- /dev/null\n--- a/gone\ndiff --git\ndiff --git\ndiff --git\n--- a/last\n"
	if firsts != want {
		t.Errorf("hunks begin with\n%s\nwant\n%s", firsts, want)
	}
	if n := strings.Count(whole, "\n+") - strings.Count(whole, "\n+++ b/"); n != 2+1+0+2+2+1 {
		t.Errorf("%d lines are added in\n%s", n, whole)
	}
}
