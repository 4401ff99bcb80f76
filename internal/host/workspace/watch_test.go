package workspace_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"coder/internal/host/workspace"

	"golang.org/x/sys/unix"
)

// view keeps the names and sizes of a workspace's files by looking again at what
// the feed says has changed.
type view struct {
	ws    *workspace.Workspace
	feed  *workspace.Feed
	dirs  map[string][]string
	walks int
}

func (v *view) look(t *testing.T) []string {
	t.Helper()
	s := workspace.Survey{Limit: 10_000, Feed: v.feed, Each: func(f workspace.Folder) {
		if f.Err != nil {
			delete(v.dirs, f.Path)
			return
		}
		v.dirs[f.Path] = []string{}
		for _, e := range f.Entries {
			if e.Mode.IsDir() {
				e.Size = 0
			}
			v.dirs[f.Path] = append(v.dirs[f.Path], fmt.Sprintf("%s %v %d", path.Join(f.Path, e.Name), e.Mode, e.Size))
		}
	}}
	c := v.feed.Changes()
	if c.All {
		v.walks++
		v.dirs = make(map[string][]string)
	} else {
		s.Dirs = []string{}
		for dir := range v.dirs {
			above := c.NeedsRescan(dir)
			if !above && (c.Rescan[dir] || c.Dirs[dir]) {
				s.Dirs = append(s.Dirs, dir)
			}
			if above || c.Rescan[dir] {
				delete(v.dirs, dir)
			}
		}
		s.Skip = func(dir string) bool { return v.dirs[dir] != nil || slices.Contains(s.Dirs, dir) }
	}
	if more, err := v.ws.Survey(t.Context(), s); more || err != nil {
		t.Fatal(more, err)
	}
	var all []string
	for _, lines := range v.dirs {
		all = append(all, lines...)
	}
	slices.Sort(all)
	return all
}

func fresh(t *testing.T, ws *workspace.Workspace) []string {
	return (&view{ws: ws, feed: ws.Subscribe()}).look(t)
}

func watched(t *testing.T, ws *workspace.Workspace) {
	t.Helper()
	f := ws.Subscribe()
	f.Changes()
	if _, err := ws.Survey(t.Context(), workspace.Survey{Limit: 100, Feed: f, Each: func(workspace.Folder) {}}); err != nil {
		t.Fatal(err)
	}
	if f.Changes().All {
		t.Skip("this system does not tell what changes here")
	}
}

// meddle does something at random to a tree, as any program might.
func meddle(r *rand.Rand, dir string) {
	name := func() string {
		parts := []string{dir}
		for range 1 + r.IntN(3) {
			parts = append(parts, string(rune('a'+r.IntN(4))))
		}
		return filepath.Join(parts...)
	}
	one, two := name(), name()
	switch r.IntN(9) {
	case 0, 1:
		_ = os.WriteFile(one, make([]byte, r.IntN(9)), 0o644)
	case 2, 3:
		_ = os.MkdirAll(one, 0o755)
	case 4:
		_ = os.Rename(one, two)
	case 5:
		_ = os.RemoveAll(one)
	case 6:
		_ = os.Chmod(one, fs.FileMode(0o700|r.IntN(8)))
	case 7:
		_ = os.Symlink("a", one)
	case 8:
		_ = os.WriteFile(filepath.Join(filepath.Dir(one), ".gitignore"), []byte(string(rune('a'+r.IntN(4)))+"\n"), 0o644)
	}
}

func TestAWatchedTreeIsAsAWalkFindsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testWatchedTree(t, seed) })
	}
}

func testWatchedTree(t *testing.T, seed uint64) {
	ws, dir, _ := open(t)
	watched(t, ws)
	v := &view{ws: ws, feed: ws.Subscribe()}
	r := rand.New(rand.NewPCG(seed, 2))
	for round := range 250 {
		for range r.IntN(6) {
			meddle(r, dir)
		}
		if got, want := v.look(t), fresh(t, ws); !slices.Equal(got, want) {
			t.Fatalf("round %d:\n got %q\nwant %q", round, got, want)
		}
	}
	if v.walks > 50 { // others may mount something now and then
		t.Errorf("walked %d times", v.walks)
	}
}

// What was told to one is told to all.
func TestEveryFeedIsToldByItself(t *testing.T) {
	ws, dir, _ := open(t)
	watched(t, ws)
	put(t, dir+"/sub/f", "")
	a, b := &view{ws: ws, feed: ws.Subscribe()}, &view{ws: ws, feed: ws.Subscribe()}
	a.look(t)
	b.look(t)
	for _, v := range []*view{a, b} {
		if c := v.feed.Changes(); c.All || len(c.Dirs)+len(c.Rescan) > 0 {
			t.Errorf("nothing happened, but %+v", c)
		}
	}
	if err := os.RemoveAll(dir + "/sub"); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/sub/g", "")
	if got, want := a.look(t), fresh(t, ws); !slices.Equal(got, want) {
		t.Errorf("first: got %q want %q", got, want)
	}
	if got, want := b.look(t), fresh(t, ws); !slices.Equal(got, want) {
		t.Errorf("second: got %q want %q", got, want)
	}
}

// More happens than the system keeps for us.
func TestAnOverflowIsAWalk(t *testing.T) {
	ws, dir, _ := open(t)
	watched(t, ws)
	v := &view{ws: ws, feed: ws.Subscribe()}
	v.look(t)
	a, b := dir+"/a", dir+"/b"
	put(t, a, "")
	for range 10_000 { // two happenings each
		if err := os.Rename(a, b); err != nil {
			t.Fatal(err)
		}
		a, b = b, a
	}
	put(t, dir+"/late", "late")
	if got, want := v.look(t), fresh(t, ws); !slices.Equal(got, want) {
		t.Errorf("got %q want %q", got, want)
	}
}

func TestNamed(t *testing.T) {
	ws, dir, evil := open(t)
	secret := func(rel string, isDir bool) bool {
		return !isDir && path.Base(rel) == "a" || isDir && path.Base(rel) == "keys"
	}
	skip := func(rel string) bool { return path.Base(rel) == ".git" }
	put(t, dir+"/.gitignore", "ignored/\na\n")
	put(t, dir+"/a", "")
	put(t, dir+"/ignored/deep/a", "")
	put(t, dir+"/.git/a", "")
	put(t, dir+"/keys/k", "")
	put(t, evil+"/a", "")
	linkUnnamed(t, evil, dir+"/out")
	n := ws.IndexNames(secret, skip)
	check := func(want ...string) {
		t.Helper()
		got, whole, err := n.List(t.Context())
		if err != nil || !whole || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, %v\nwant %q", got, whole, err, want)
		}
	}
	check("a", "ignored/deep/a", "keys")
	check("a", "ignored/deep/a", "keys")
	if err := os.Rename(dir+"/ignored/deep", dir+"/shallow"); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/new/er/a", "")
	check("a", "keys", "new/er/a", "shallow/a")
	if err := os.RemoveAll(dir + "/new"); err != nil {
		t.Fatal(err)
	}
	check("a", "keys", "shallow/a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	put(t, dir+"/x/a", "")
	if _, _, err := n.List(ctx); err == nil {
		t.Skip("it was too fast to be stopped")
	}
	check("a", "keys", "shallow/a", "x/a")
}

func TestNamedFollowsEverything(t *testing.T) {
	ws, dir, _ := open(t)
	match := func(rel string, isDir bool) bool { return !isDir && path.Base(rel) == "a" }
	skip := func(string) bool { return false }
	n := ws.IndexNames(match, skip)
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		for range r.IntN(5) {
			meddle(r, dir)
		}
		got, _, err := n.List(t.Context())
		want, _, err2 := ws.IndexNames(match, skip).List(t.Context())
		if err != nil || err2 != nil || !slices.Equal(got, want) {
			t.Fatalf("round %d:\n got %q %v\nwant %q %v", round, got, err, want, err2)
		}
	}
}

// Where the system does not tell what changes, a directory whose times are old
// and the same is not listed again, and any other is.
func TestNamedGoesByTheTimesOfDirectories(t *testing.T) {
	ws, dir, _ := open(t)
	put(t, dir+"/still/a", "")
	put(t, dir+"/moving/b", "")
	asked := 0
	match := func(rel string, isDir bool) bool {
		if !isDir {
			asked++
		}
		return !isDir && path.Base(rel) == "a"
	}
	real := ws.FileTime()
	turn := func(by time.Duration, device uint64) {
		ws.SetClock(func() workspace.FileTime { return workspace.FileTime{Now: real.Now + int64(by), Device: device} })
	}
	turn(time.Minute, real.Device) // as if all this were done a minute ago
	n := ws.IndexNames(match, func(string) bool { return false })
	look := func(want ...string) {
		t.Helper()
		ws.Walks() // nothing is told from here on
		got, whole, err := n.List(t.Context())
		if err != nil || !whole || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, %v; want %q", got, whole, err, want)
		}
	}
	look("still/a")
	before := asked
	look("still/a")
	if asked != before {
		t.Errorf("asked about %d files again", asked-before)
	}
	put(t, dir+"/moving/a", "")
	look("moving/a", "still/a")
	for name, strange := range map[string]func(){
		"set back":               func() { turn(-time.Hour, real.Device) },
		"of another file system": func() { turn(time.Minute, real.Device+1) },
		"not known":              func() { turn(-time.Duration(real.Now), 0) },
		"that ticks in seconds":  func() { turn(2*time.Second, real.Device) },
	} {
		strange()
		look("moving/a", "still/a")
		before = asked
		look("moving/a", "still/a")
		if asked == before {
			t.Errorf("a clock %s: went by times that may yet be given again", name)
		}
	}
}

// The time of a file system is what it gives to files, and to ask for it leaves
// nothing behind and is no change.
func TestFileTime(t *testing.T) {
	ws, dir, _ := open(t)
	before := ws.FileTime()
	put(t, dir+"/a", "")
	v := view{ws: ws, feed: ws.Subscribe()}
	v.look(t)
	after := ws.FileTime()
	if c := v.feed.Changes(); !c.All && len(c.Dirs)+len(c.Rescan) > 0 {
		t.Errorf("it is taken for a change: %+v", c)
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir+"/a", &st); err != nil {
		t.Fatal(err)
	}
	at := unix.TimespecToNsec(st.Ctim)
	if at < before.Now || at > after.Now || uint64(st.Dev) != after.Device {
		t.Errorf("a file of %d on %d between %+v and %+v", at, st.Dev, before, after)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
