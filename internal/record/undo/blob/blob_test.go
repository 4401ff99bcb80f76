package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func newStore(t testing.TB, o Options) *Store {
	s := Open(filepath.Join(t.TempDir(), "store"), o)
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
		s := newStore(t, Options{NoSync: noSync, Now: time.Now})
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
		check(Open(s.dir, Options{}))
		var size int64
		for _, o := range s.listObjects() {
			size += o.size
		}
		if n := len(s.listObjects()); n != len(texts) || size > 100_000 {
			t.Errorf("%d blobs, %d bytes", n, size)
		}
		if left := readDir(s.root, tempDir); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestPrivateAndKeptOutOfGit(t *testing.T) {
	s := newStore(t, Options{})
	put(t, s, "secret")
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, _ error) error {
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
	s := newStore(t, Options{Now: time.Now})
	a, b := put(t, s, "a"), ""
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	b = put(t, s, "b")
	name := filepath.Join(s.dir, s.blobPath(a))
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later := func() time.Time { return time.Now().Add(2 * maxTempAge) }
	s2 := Open(s.dir, Options{Now: later})
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
	if left := readDir(s2.root, tempDir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDamagedBlobs(t *testing.T) {
	s := newStore(t, Options{})
	for _, text := range []string{"short", strings.Repeat("packed ", 5000)} {
		hash := put(t, s, text)
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(s.dir, s.blobPath(hash))
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
	s := newStore(t, Options{NoSync: true, Quota: 10_000, Now: func() time.Time { return now }})
	var hashes []string
	for i := range 9 {
		h := put(t, s, strings.Repeat(fmt.Sprint(i), 1000))
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		at := now.Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(filepath.Join(s.dir, s.blobPath(h)), at, at); err != nil {
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
	s := newStore(t, Options{NoSync: true, Quota: 3000})
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
	s := newStore(f, Options{NoSync: true})
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

func readAll(s *Store, hash string) ([]byte, error) {
	r, err := s.Open(hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// failing reads well the first time over and fails the second.
type failing struct {
	*bytes.Reader
	after int64
	times int
}

var errBroken = errors.New("broken")

func (f *failing) Seek(offset int64, whence int) (int64, error) {
	f.times++
	return f.Reader.Seek(offset, whence)
}

func (f *failing) Read(p []byte) (int, error) {
	if f.times < 2 {
		return f.Reader.Read(p)
	}
	return io.MultiReader(io.LimitReader(f.Reader, f.after), iotest.ErrReader(errBroken)).Read(p)
}

// A content that cannot be read to its end is not kept in part.
func TestHalfAContentIsNotKept(t *testing.T) {
	for _, size := range []int{10, packMin + 10, sampleSize * 2} {
		s := newStore(t, Options{NoSync: true})
		if _, err := s.Put(&failing{Reader: bytes.NewReader(make([]byte, size)), after: 5}); !errors.Is(err, errBroken) {
			t.Errorf("Put of %d bytes: %v", size, err)
		}
		if err := s.Commit(); err != nil || len(s.listObjects()) > 0 || len(readDir(s.root, tempDir)) > 0 {
			t.Errorf("%d bytes: something was kept, %v", size, err)
		}
	}
}
