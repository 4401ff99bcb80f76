package undo

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"coder/internal/undo/blob"
)

func TestRestoreEnds(t *testing.T) {
	for _, tc := range []struct{ stored, was string }{
		{"a\nb\n", "a\nb\n"},
		{"a\nb\n", "a\r\nb\r\n"},
		{"a\r\nb\n", "a\r\nb\r\n"},
		{"\n", "\r\n"},
		{"", ""},
	} {
		got, err := restoreEnds([]byte(tc.stored), int64(len(tc.was)))
		if string(got) != tc.was || err != nil {
			t.Errorf("%q to %d bytes = %q, %v, want %q", tc.stored, len(tc.was), got, err, tc.was)
		}
	}
	for _, size := range []int64{0, 3, 5, 7, 100} {
		if got, err := restoreEnds([]byte("a\nb\n"), size); err == nil {
			t.Errorf("%d bytes: %q", size, got)
		}
	}
}

func TestFreshness(t *testing.T) {
	now := time.Unix(1_700_000_000, 500)
	at := func(t time.Time) stamp { return stamp{mtime: t.UnixNano(), ctime: t.UnixNano()} }
	for name, tc := range map[string]struct {
		s     stamp
		fresh bool
	}{
		"now":                   {at(now), true},
		"in the future":         {at(now.Add(time.Hour)), true},
		"a tick ago":            {at(now.Add(-10 * time.Millisecond)), true},
		"a second ago":          {at(now.Add(-time.Second)), false},
		"slow clock":            {at(now.Truncate(time.Second).Add(-2 * time.Second)), true},
		"long ago":              {at(now.Truncate(time.Second).Add(-time.Hour)), false},
		"old content, new mode": {stamp{mtime: 1, ctime: now.UnixNano()}, true},
	} {
		if got := tc.s.fresh(now); got != tc.fresh {
			t.Errorf("%s: fresh = %v", name, got)
		}
	}
	if !at(now.Add(-time.Hour)).fresh(time.Time{}) {
		t.Error("without a clock everything is fresh")
	}
}

var nodes = rapid.Custom(func(t *rapid.T) node {
	return node{
		stamp: stamp{
			mode: rapid.SampledFrom([]fs.FileMode{0o644, 0o755, fs.ModeDir | 0o700, fs.ModeSymlink | 0o777}).Draw(t, "mode"),
			size: rapid.Int64().Draw(t, "size"), mtime: rapid.Int64Range(0, 1<<62).Draw(t, "mtime"),
			ctime: rapid.Int64Range(0, 1<<62).Draw(t, "ctime"), ino: rapid.Uint64().Draw(t, "ino"),
		},
		hash: rapid.SampledFrom([]string{"", dirHash, leadingTo(""), leadingTo("x"), "git:00", strings.Repeat("ab", 32)}).Draw(t, "hash"),
		lost: rapid.Bool().Draw(t, "lost"), fresh: rapid.Bool().Draw(t, "fresh"), closed: rapid.Bool().Draw(t, "closed"),
	}
})

// However often a tree changes, what is read back is what was kept.
func TestTreesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "undo")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		k := &Keeper{store: blob.Open(dir, blob.Options{NoSync: true})}
		defer k.store.Close()
		now := &tree{folders: map[string]*folder{".": {}}, roots: []string{"."}}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			var edits []edit
			for range rapid.IntRange(0, 5).Draw(t, "edits") {
				e := edit{path: rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "d/e/f", "g/h"}).Draw(t, "path")}
				if rapid.Bool().Draw(t, "put") {
					n := nodes.Draw(t, "node")
					n.name = filepath.Base(e.path)
					e.node = &n
				}
				edits = append(edits, e)
			}
			now = now.with(slices.Values(edits), nil)
			now.at, now.partial = rapid.Int64().Draw(t, "at"), rapid.Bool().Draw(t, "partial")
			if err := k.persist(context.Background(), now); err != nil {
				t.Fatal(err)
			}
			back, err := k.loadTree(context.Background(), now.name())
			if err != nil {
				t.Fatal(err)
			}
			if diff := compare(back, now); len(diff) > 0 {
				t.Fatalf("different: %+v", diff)
			}
		}
	})
}

func TestSaw(t *testing.T) {
	dir := func(name string, closed bool) *node { return &node{name: name, hash: dirHash, closed: closed} }
	tr := (&tree{}).with(slices.Values([]edit{
		{"a", dir("a", false)}, {"a/f", &node{name: "f"}}, {"a/shut", dir("shut", true)}, {"a/empty", dir("empty", false)},
	}), nil)
	for _, partial := range []bool{false, true} {
		tr.partial = partial
		for path, want := range map[string]bool{
			".": true, "a": true, "a/new": true, "a/new/er": true, "a/f": true, "new": true,
			"a/shut": false, "a/shut/in": false, "a/empty": !partial, "a/empty/in": !partial,
		} {
			if got := tr.saw(path); got != want {
				t.Errorf("partial %v: saw(%s) = %v", partial, path, got)
			}
		}
	}
	if (&tree{}).saw("a") {
		t.Error("saw what could not be listed at all")
	}
}

func FuzzDecodeTree(f *testing.F) {
	n := &node{name: "b", hash: leadingTo("l"), stamp: stamp{mode: 0o644, size: 1, mtime: 2, ctime: 3, ino: 4}}
	t := (&tree{}).with(slices.Values([]edit{{"a/b", n}}), nil)
	f.Add(encoded(nil, t))
	f.Add(encoded(t, &tree{}))
	f.Add([]byte(treeMagic))
	far := (&tree{}).with(slices.Values([]edit{{"/x/a/b", n}}), nil)
	f.Add(encoded(nil, far)) // it says nothing of its root
	far.roots = []string{".", "/x"}
	f.Add(encoded(nil, far))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := openTree(data)
		edits := slices.Collect(d.edits)
		if d.err != nil {
			return
		}
		for _, e := range edits {
			within := func(root string) bool { return strings.HasPrefix(e.path, root+"/") }
			if e.node != nil && !filepath.IsLocal(e.path) && !slices.ContainsFunc(d.head.roots, within) {
				t.Errorf("path %q", e.path)
			}
		}
		_ = (&tree{}).with(slices.Values(edits), nil)
	})
}

// encoded is what makes t out of base as it is kept.
func encoded(base, t *tree) []byte {
	b, _ := io.ReadAll(newTreeReader(base, t)) // it never fails
	return b
}
