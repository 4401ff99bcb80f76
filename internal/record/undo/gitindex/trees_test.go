package gitindex

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gitWorld is a repository in which git runs.
type gitWorld struct {
	*testing.T
	dir string
}

func newGitWorld(t *testing.T, format string) gitWorld {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := gitWorld{t, t.TempDir()}
	w.git("init", "-q", "--object-format="+format)
	for _, name := range []string{"a", "b/c", "b/cc/d", "e/f"} {
		w.write(name, name)
	}
	w.git("add", "-A")
	w.git("commit", "-qm", "first")
	return w
}

func (w gitWorld) git(args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (w gitWorld) write(name, text string) {
	w.Helper()
	file := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
	then := time.Now().Add(-time.Hour) // git looks again at a file as new as its index
	if err := os.Chtimes(file, then, then); err != nil {
		w.Fatal(err)
	}
}

func (w gitWorld) index() []byte {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, ".git/index"))
	if err != nil {
		w.Fatal(err)
	}
	return text
}

func TestTreesAreThoseOfGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			w := newGitWorld(t, format)
			trees, err := ReadTrees(w.index(), OIDSize(w.index()))
			if err != nil || len(trees) != 4 {
				t.Fatalf("trees %v, %v", trees, err)
			}
			for name, id := range trees {
				if want := w.git("rev-parse", "HEAD:"+name); id != want {
					t.Errorf("%q is %s, want %s", name, id, want)
				}
			}
			w.write("b/new", "")
			w.git("add", "-A")
			trees, err = ReadTrees(w.index(), OIDSize(w.index()))
			if _, changed := trees["b"]; err != nil || len(trees) != 2 || changed || trees["e"] == "" || trees["b/cc"] == "" {
				t.Errorf("after a file was staged: %v, %v", trees, err)
			}
		})
	}
}

func TestTreesAreNotReadFromAnIndexThatSaysLess(t *testing.T) {
	for name, change := range map[string]func(w gitWorld){
		"split": func(w gitWorld) { w.git("update-index", "--split-index"); w.write("a", "2"); w.git("add", "a") },
		"sparse": func(w gitWorld) {
			w.git("sparse-checkout", "init", "--cone", "--sparse-index")
			w.git("sparse-checkout", "set", "e")
		},
		"without trees": func(w gitWorld) {
			if err := os.Remove(filepath.Join(w.dir, ".git/index")); err != nil {
				w.Fatal(err)
			}
			w.git("add", "-A")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGitWorld(t, "sha1")
			change(w)
			if trees, err := ReadTrees(w.index(), OIDSize(w.index())); err == nil {
				t.Errorf("trees %v", trees)
			}
		})
	}
}

func TestTreesOfADamagedIndex(t *testing.T) {
	whole := newGitWorld(t, "sha1").index()
	at := bytes.Index(whole, []byte("TREE")) + extensionHeaderSize
	for name, damage := range map[string]func(text []byte) []byte{
		"cut":           func(text []byte) []byte { return text[:len(text)-30] },
		"longer":        func(text []byte) []byte { return append(text, 0) },
		"another count": func(text []byte) []byte { text[at+1]++; return text },
		"no number":     func(text []byte) []byte { text[at+1] = 'x'; return text },
		"a root with a name": func(text []byte) []byte {
			text[at] = 'x'
			return text
		},
		"a size beyond the end": func(text []byte) []byte {
			binary.BigEndian.PutUint32(text[at-4:], 1<<31)
			return text
		},
		"no index": func([]byte) []byte { return []byte("DIRC") },
	} {
		t.Run(name, func(t *testing.T) {
			if trees, err := ReadTrees(damage(bytes.Clone(whole)), 20); err == nil {
				t.Errorf("trees %v", trees)
			}
		})
	}
}
