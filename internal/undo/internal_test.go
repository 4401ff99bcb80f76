package undo

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseIndexAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, version := range []string{"2", "3", "4"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			git := func(args ...string) string {
				cmd := exec.Command("git", args...)
				cmd.Dir = dir
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("git %q: %v", args, err)
				}
				return string(out)
			}
			git("init", "-q")
			for _, name := range []string{"a", "b/c", "b/cc/d", "b/d", "e e", "ü", strings.Repeat("long/", 50) + strings.Repeat("n", 200)} {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			git("add", "-A")
			if version == "3" { // extended flags ask for it
				if err := os.WriteFile(filepath.Join(dir, "later"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				git("add", "-N", "later")
			} else {
				git("update-index", "--index-version", version)
			}
			data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
			if err != nil {
				t.Fatal(err)
			}
			x, err := parseIndex(data, "")
			if err != nil {
				t.Fatal(err)
			}
			want := make(map[string]string)
			for line := range strings.SplitSeq(strings.TrimSuffix(git("ls-files", "-s", "-z"), "\x00"), "\x00") {
				meta, name, _ := strings.Cut(line, "\t")
				if f := strings.Fields(meta); f[0] != "120000" {
					want[name] = f[1]
				}
			}
			got := make(map[string]string)
			for name, e := range x.files {
				got[name] = e.oid
				info, err := os.Lstat(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				s := stampOf(info)
				if name != "later" && (e.mtime != s.mtime || e.ctime != s.ctime || e.size != uint32(s.size) || e.ino != uint32(s.ino)) {
					t.Errorf("%s: %+v, want %+v", name, e, s)
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
			below, err := parseIndex(data, "b/")
			if keys := slices.Sorted(maps.Keys(below.files)); err != nil || !slices.Equal(keys, []string{"c", "cc/d", "d"}) {
				t.Errorf("below b/: %q, %v", keys, err)
			}
		})
	}
}

// smallIndex is an index of one file, written by hand.
func smallIndex(version byte, name string) []byte {
	b := append([]byte("DIRC\x00\x00\x00"), version, 0, 0, 0, 1)
	entry := make([]byte, statPart+20+2)
	entry[26] = 0x81 // a regular file
	entry[len(entry)-1] = byte(len(name))
	if version == 4 {
		return append(append(append(b, entry...), 0), name+"\x00"...)
	}
	entry = append(entry, name...)
	return append(b, append(entry, make([]byte, 8-len(entry)%8)...)...)
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("DIRC"))
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"))
	for _, v := range []byte{2, 3, 4} {
		f.Add(smallIndex(v, "a/b"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if x, err := parseIndex(data, ""); err == nil && len(x.files) > len(data) {
			t.Errorf("%d files out of %d bytes", len(x.files), len(data))
		}
	})
}

func TestSmallIndex(t *testing.T) {
	for _, v := range []byte{2, 3, 4} {
		x, err := parseIndex(smallIndex(v, "a/b"), "")
		if _, ok := x.files["a/b"]; err != nil || !ok {
			t.Errorf("version %d: %v, %v", v, x, err)
		}
	}
	if _, err := parseIndex(smallIndex(5, "a"), ""); err == nil {
		t.Error("a version yet to come was understood")
	}
}

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
		hash: rapid.SampledFrom([]string{"", dirHash, linkHash, "git:00", strings.Repeat("ab", 32)}).Draw(t, "hash"),
		link: rapid.SampledFrom([]string{"", "x"}).Draw(t, "link"),
		lost: rapid.Bool().Draw(t, "lost"), fresh: rapid.Bool().Draw(t, "fresh"),
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
		now := &tree{folders: map[string]*folder{}}
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
			now = now.with(edits)
			now.at, now.partial = rapid.Int64().Draw(t, "at"), rapid.Bool().Draw(t, "partial")
			if err := k.persist(now); err != nil {
				t.Fatal(err)
			}
			back, err := loadTree(k.store, now.name())
			if err != nil {
				t.Fatal(err)
			}
			if diff := compare(back, now); len(diff) > 0 {
				t.Fatalf("different: %+v", diff)
			}
		}
	})
}

func FuzzDecodeTree(f *testing.F) {
	n := &node{name: "b", hash: "h", link: "l", stamp: stamp{mode: 0o644, size: 1, mtime: 2, ctime: 3, ino: 4}}
	t := (&tree{}).with([]edit{{"a/b", n}})
	f.Add(encodeTree(nil, t))
	f.Add(encodeTree(t, &tree{}))
	f.Add([]byte(treeMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		edits, _, err := decodeTree(data)
		if err != nil {
			return
		}
		for _, e := range edits {
			if !filepath.IsLocal(e.path) {
				t.Errorf("path %q", e.path)
			}
		}
		_ = (&tree{}).with(edits)
	})
}

func newStore(t testing.TB, o StoreOptions) *Store {
	s := OpenStore(filepath.Join(t.TempDir(), "store"), o)
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, s *Store, text string) string {
	t.Helper()
	hash, err := s.Put(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestStore(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		s := newStore(t, StoreOptions{NoSync: noSync, Now: time.Now})
		if s.Has(strings.Repeat("0", 64)) || s.Has("") || s.Has("../../etc") {
			t.Error("Has of nothing")
		}
		texts := []string{"", "x", strings.Repeat("packs well ", 10_000), strings.Repeat("x", 3<<20)}
		var hashes []string
		for _, text := range texts {
			hashes = append(hashes, put(t, s, text), put(t, s, text))
		}
		check := func(s *Store) {
			t.Helper()
			for i, hash := range hashes {
				if got, err := readAll(s, hash); string(got) != texts[i/2] || err != nil {
					t.Errorf("read %d: %d bytes, %v", i, len(got), err)
				}
			}
		}
		check(s)
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		check(s)
		check(OpenStore(s.dir, StoreOptions{}))
		var size int64
		for _, o := range s.list() {
			size += o.size
		}
		if n := len(s.list()); n != len(texts) || size > 100_000 {
			t.Errorf("%d blobs, %d bytes", n, size)
		}
		if left := readDir(s.root, temporary); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestStoreIsPrivateAndKeptOutOfGit(t *testing.T) {
	s := newStore(t, StoreOptions{})
	put(t, s, "secret")
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, ".gitignore")); string(text) != "*\n" || err != nil {
		t.Errorf(".gitignore = %q, %v", text, err)
	}
}

// What was not committed is not there after a crash, and what a crash left in
// the place of a blob is not taken for one.
func TestStoreAfterACrash(t *testing.T) {
	s := newStore(t, StoreOptions{Now: time.Now})
	a, b := put(t, s, "a"), ""
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	b = put(t, s, "b")
	name := filepath.Join(s.dir, place(a))
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later := func() time.Time { return time.Now().Add(2 * stale) }
	s2 := OpenStore(s.dir, StoreOptions{Now: later})
	defer s2.Close()
	if s2.Has(a) || s2.Has(b) {
		t.Error("it has what it lost")
	}
	put(t, s2, "a")
	if err := s2.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(s2, a); string(got) != "a" || err != nil {
		t.Errorf("a = %q, %v", got, err)
	}
	if left := readDir(s2.root, temporary); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDamagedBlobs(t *testing.T) {
	s := newStore(t, StoreOptions{})
	for _, text := range []string{"short", strings.Repeat("packed ", 5000)} {
		hash := put(t, s, text)
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(s.dir, place(hash))
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range [][]byte{whole[:len(whole)-1], append(slices.Clone(whole[:len(whole)-2]), 'x', 'y'), []byte("?"), {}} {
			if err := os.WriteFile(name, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := s.Open(hash)
			if err != nil {
				continue
			}
			if got, err := io.ReadAll(r); err == nil {
				t.Errorf("read %d bytes of a damaged blob", len(got))
			}
			r.Close()
		}
	}
}

func TestPruneDropsTheOldest(t *testing.T) {
	now := time.Now()
	s := newStore(t, StoreOptions{NoSync: true, Quota: 10_000, Now: func() time.Time { return now }})
	var hashes []string
	for i := range 9 {
		h := put(t, s, strings.Repeat(fmt.Sprint(i), 1000))
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		at := now.Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(filepath.Join(s.dir, place(h)), at, at); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, h)
	}
	if _, err := s.Put(strings.NewReader(strings.Repeat("x", 2000))); err != ErrFull {
		t.Errorf("Put beyond the quota: %v", err)
	}
	put(t, s, strings.Repeat("0", 1000)) // of use again
	for range 3 {
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	s.Prune(2000, func(h string) bool { return h == hashes[2] })
	for i, h := range hashes {
		if want := i != 1 && i != 3; s.Has(h) != want {
			t.Errorf("has %d = %v", i, !want)
		}
	}
	put(t, s, strings.Repeat("x", 2000))
	put(t, s, strings.Repeat("1", 100))
	if n := s.Prune(1<<20, func(string) bool { return true }); n != 0 {
		t.Errorf("%d pinned bytes were pruned", n)
	}
}

// A content that was asked for a moment ago is not pruned before it can be on
// record.
func TestPruneSparesWhatWasJustUsed(t *testing.T) {
	s := newStore(t, StoreOptions{NoSync: true, Quota: 3000})
	nobody := func(string) bool { return false }
	a := put(t, s, strings.Repeat("a", 1000))
	for range 3 {
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, strings.Repeat("a", 1000))
	s.Prune(3000, nobody)
	if !s.Has(a) {
		t.Fatal("it was pruned while in use")
	}
	for range 2 {
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if s.Prune(3000, nobody); s.Has(a) {
		t.Error("it is never pruned")
	}
}

func FuzzBlob(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("text"))
	f.Add(bytes.Repeat([]byte("pack "), 2000))
	s := newStore(f, StoreOptions{NoSync: true})
	f.Fuzz(func(t *testing.T, data []byte) {
		hash, err := s.Put(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(s, hash); !bytes.Equal(got, data) || err != nil {
			t.Errorf("read %d bytes, %v, want %d", len(got), err, len(data))
		}
	})
}
