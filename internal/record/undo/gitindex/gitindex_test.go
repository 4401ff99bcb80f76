package gitindex

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseAgreesWithGit(t *testing.T) {
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
			files, err := filesOf(data, "")
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
			for name, e := range files {
				got[name] = e.OID()
				info, err := os.Lstat(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if name != "later" && (e.ModTime != info.ModTime().UnixNano() || int64(e.Size) != info.Size()) {
					t.Errorf("%s: %+v, want %v, %d bytes", name, e, info.ModTime(), info.Size())
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
			below, err := filesOf(data, "b/")
			if keys := slices.Sorted(maps.Keys(below)); err != nil || !slices.Equal(keys, []string{"c", "cc/d", "d"}) {
				t.Errorf("below b/: %q, %v", keys, err)
			}
		})
	}
}

// smallIndex is an index of one file, written by hand.
func smallIndex(version byte, name string) []byte {
	b := append([]byte("DIRC\x00\x00\x00"), version, 0, 0, 0, 1)
	entry := make([]byte, statSize+20+2)
	entry[26] = 0x81 // a regular file
	entry[len(entry)-1] = byte(len(name))
	if version == 4 {
		return append(append(append(b, entry...), 0), name+"\x00"+strings.Repeat("#", 20)...)
	}
	entry = append(entry, name...)
	return append(append(b, append(entry, make([]byte, 8-len(entry)%8)...)...), strings.Repeat("#", 20)...)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("DIRC"))
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"))
	for _, v := range []byte{2, 3, 4} {
		f.Add(smallIndex(v, "a/b"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ReadTrees(data, OIDSize(data))
		if files, err := filesOf(data, ""); err == nil && len(files) > len(data) {
			t.Errorf("%d files out of %d bytes", len(files), len(data))
		}
	})
}

func TestSmallIndex(t *testing.T) {
	for _, v := range []byte{2, 3, 4} {
		files, err := filesOf(smallIndex(v, "a/b"), "")
		if _, ok := files["a/b"]; err != nil || !ok {
			t.Errorf("version %d: %v, %v", v, files, err)
		}
	}
	if _, err := filesOf(smallIndex(5, "a"), ""); err == nil {
		t.Error("a version yet to come was understood")
	}
}

func TestUnchanged(t *testing.T) {
	f := File{ModTime: 10, ChangeTime: 11, Ino: 1, Size: 2}
	if !f.IsUnchanged(f, 12) {
		t.Error("the same is taken for another")
	}
	for name, other := range map[string]File{
		"mtime": {ModTime: 9, ChangeTime: 11, Ino: 1, Size: 2}, "ctime": {ModTime: 10, ChangeTime: 10, Ino: 1, Size: 2},
		"ino": {ModTime: 10, ChangeTime: 11, Ino: 2, Size: 2}, "size": {ModTime: 10, ChangeTime: 11, Ino: 1, Size: 3},
	} {
		if f.IsUnchanged(other, 12) {
			t.Errorf("another %s is not noticed", name)
		}
	}
	for _, written := range []int64{10, 11} {
		if f.IsUnchanged(f, written) {
			t.Errorf("index written at %d: the file may have changed since", written)
		}
	}
}

// filesOf collects the files of an index.
func filesOf(data []byte, prefix string) (map[string]Entry, error) {
	files := make(map[string]Entry)
	err := Read(data, OIDSize(data), prefix, func(e Entry) {
		name := string(e.Name)
		e.ID, e.Name = bytes.Clone(e.ID), nil
		files[name] = e
	})
	return files, err
}
