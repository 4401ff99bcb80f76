package undo

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/host/workspace"

	"pgregory.net/rapid"
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
		if got := tc.s.isFresh(now.UnixNano()); got != tc.fresh {
			t.Errorf("%s: fresh = %v", name, got)
		}
	}
	if !at(now.Add(-time.Hour)).isFresh(workspace.FileTime{}.Now) {
		t.Error("where the time is not known everything is fresh")
	}
}

// A file that is not fresh when it is read cannot be changed later and have the
// stamp it was read with, however slowly the clock of its file system ticks.
func TestWhatIsNotFreshIsStampedAnew(t *testing.T) {
	const step = 7 * time.Millisecond
	for _, ticks := range []time.Duration{1, time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond, 15625 * time.Microsecond, time.Second, 2 * time.Second} {
		stamped := func(at time.Duration) int64 { return int64(at.Truncate(ticks)) }
		settled := false
		for changed := time.Hour; changed < time.Hour+2*time.Second; changed += 13 * step {
			s := stamp{mtime: stamped(changed), ctime: stamped(changed)}
			for read := changed; read < changed+6*time.Second; read += step {
				if s.isFresh(stamped(read)) {
					continue
				}
				if settled = true; stamped(read) == s.ctime {
					t.Fatalf("ticks of %v: changed at %v and again at %v without a trace", ticks, changed, read)
				}
			}
		}
		if !settled {
			t.Errorf("ticks of %v: never to be relied on", ticks)
		}
	}
}

// Whether a stamp can be relied on is a matter between files: our clock may be
// behind theirs, or ahead of it.
func TestOurClockDoesNotSayWhatIsFresh(t *testing.T) {
	for name, off := range map[string]time.Duration{"set back": -time.Hour, "ahead": time.Hour, "a little ahead": 2 * clockTick, "right": 0} {
		dir := t.TempDir()
		ws, err := workspace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		store := OpenStore(t.TempDir(), StoreOptions{NoSync: true})
		defer store.Close()
		k := New(ws, store, Options{Now: func() time.Time { return time.Now().Add(off) }})
		write := func(name string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("old")
		for seen := lstat(t, ws, "old"); seen.isFresh(ws.FileTime().Now); {
			time.Sleep(time.Millisecond) // until the file system's clock went on
		}
		write("new")
		seen, err := k.scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if seen.find("old").isFresh || !seen.find("new").isFresh {
			t.Errorf("clock %s: fresh are old %v, new %v", name, seen.find("old").isFresh, seen.find("new").isFresh)
		}
		if past := ws.FileTime().Now - seen.scanTime; past < 0 || past > int64(time.Hour)/2 {
			t.Errorf("clock %s: the tree is dated %v before the files' time", name, time.Duration(past))
		}
	}
}

// What a command wrote is its work, whatever our clock says while we look.
func TestOurClockDoesNotSayWhoseWorkItIs(t *testing.T) {
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	store := OpenStore(t.TempDir(), StoreOptions{NoSync: true})
	defer store.Close()
	now := time.Now().Add(-time.Hour)
	k := New(ws, store, Options{Now: func() time.Time { // it is set right while we look
		defer func() { now = now.Add(30 * time.Minute) }()
		return now
	}})
	kept, err := k.SaveOriginals(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "made"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := k.ChangesSince(t.Context(), kept); err != nil || len(c) != 1 {
		t.Errorf("changes %+v, %v", c, err)
	}
}

var nodes = rapid.Custom(func(t *rapid.T) node {
	return node{
		stamp: stamp{
			mode: rapid.SampledFrom([]fs.FileMode{0o644, 0o755, fs.ModeDir | 0o700, fs.ModeSymlink | 0o777}).Draw(t, "mode"),
			size: rapid.Int64().Draw(t, "size"), mtime: rapid.Int64Range(0, 1<<62).Draw(t, "mtime"),
			ctime: rapid.Int64Range(0, 1<<62).Draw(t, "ctime"), ino: rapid.Uint64().Draw(t, "ino"),
		},
		hash:   rapid.SampledFrom([]string{"", dirHash, linkHashOf(""), linkHashOf("x"), "git:00", strings.Repeat("ab", 32)}).Draw(t, "hash"),
		isLost: rapid.Bool().Draw(t, "lost"), isFresh: rapid.Bool().Draw(t, "fresh"), isUnlisted: rapid.Bool().Draw(t, "closed"),
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
		k := &Keeper{store: OpenStore(dir, StoreOptions{NoSync: true})}
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
			now = now.withEdits(slices.Values(edits), nil)
			now.scanTime, now.isPartial = rapid.Int64().Draw(t, "at"), rapid.Bool().Draw(t, "partial")
			if err := k.saveTree(context.Background(), now); err != nil {
				t.Fatal(err)
			}
			back, err := k.loadTree(context.Background(), now.name())
			if err != nil {
				t.Fatal(err)
			}
			if diff := compareTrees(back, now); len(diff) > 0 {
				t.Fatalf("different: %+v", diff)
			}
		}
	})
}

func TestSaw(t *testing.T) {
	dir := func(name string, closed bool) *node { return &node{name: name, hash: dirHash, isUnlisted: closed} }
	tr := (&tree{}).withEdits(slices.Values([]edit{
		{"a", dir("a", false)}, {"a/f", &node{name: "f"}}, {"a/shut", dir("shut", true)}, {"a/empty", dir("empty", false)},
	}), nil)
	for _, partial := range []bool{false, true} {
		tr.isPartial = partial
		for path, want := range map[string]bool{
			".": true, "a": true, "a/new": true, "a/new/er": true, "a/f": true, "new": true,
			"a/shut": false, "a/shut/in": false, "a/empty": !partial, "a/empty/in": !partial,
		} {
			if got := tr.coversDir(path); got != want {
				t.Errorf("partial %v: saw(%s) = %v", partial, path, got)
			}
		}
	}
	if (&tree{}).coversDir("a") {
		t.Error("saw what could not be listed at all")
	}
}

func FuzzDecodeTree(f *testing.F) {
	n := &node{name: "b", hash: linkHashOf("l"), stamp: stamp{mode: 0o644, size: 1, mtime: 2, ctime: 3, ino: 4}}
	t := (&tree{}).withEdits(slices.Values([]edit{{"a/b", n}}), nil)
	f.Add(encoded(nil, t))
	f.Add(encoded(t, &tree{}))
	f.Add([]byte(treeMagic))
	far := (&tree{}).withEdits(slices.Values([]edit{{"/x/a/b", n}}), nil)
	f.Add(encoded(nil, far)) // it says nothing of its root
	far.roots = []string{".", "/x"}
	f.Add(encoded(nil, far))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newTreeDecoder(data)
		edits := slices.Collect(d.edits)
		if d.err != nil {
			return
		}
		for _, e := range edits {
			within := func(root string) bool { return strings.HasPrefix(e.path, root+"/") }
			if e.node != nil && !filepath.IsLocal(e.path) && !slices.ContainsFunc(d.roots, within) {
				t.Errorf("path %q", e.path)
			}
		}
		_ = (&tree{}).withEdits(slices.Values(edits), nil)
	})
}

// encoded is what makes t out of base as it is kept.
func encoded(base, t *tree) []byte {
	b := encodeTree(base, t)
	return b
}

func lstat(t *testing.T, ws *workspace.Workspace, name string) stamp {
	t.Helper()
	info, err := ws.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return stampOf(info)
}
