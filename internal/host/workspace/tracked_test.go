package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/workspace"
)

// maxShownName lists the files that a walk does not ignore, and makes sure that reading
// in batches finds the same.
func maxShownName(t *testing.T, dir string) (walked []string) {
	t.Helper()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	var batched []string
	for e := range ws.Walk(t.Context(), ".", 0) {
		if !e.Ignored && !e.IsDir() {
			walked = append(walked, e.Path)
		}
	}
	for b := range ws.Batches(t.Context(), ".") {
		for _, name := range b.Names {
			batched = append(batched, filepath.Join(b.Dir, name))
		}
	}
	slices.Sort(walked)
	slices.Sort(batched)
	if !slices.Equal(walked, batched) {
		t.Errorf("walked %q, in batches %q", walked, batched)
	}
	return walked
}

func TestWhatGitHasOnRecordIsNotIgnored(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		t.Run("version "+version, func(t *testing.T) {
			home, dir := t.TempDir(), t.TempDir()
			for _, name := range []string{"a.log", "b.log", "out/x", "out/y", "out/deep/z.txt", "out/deep/w", "out/node_modules/m", "src/long/name/one.go", "src/long/name/two.go", "ü.log"} {
				put(t, filepath.Join(dir, name), "x")
			}
			put(t, dir+"/.gitignore", "*.log\nout/\n")
			gitHere(t, home, dir, "init", "-q")
			gitHere(t, home, dir, "add", "-f", ".gitignore", "a.log", "out/x", "out/deep/z.txt", "out/node_modules/m", "src", "ü.log")
			gitHere(t, home, dir, "update-index", "--index-version", version)
			if version == "3" {
				gitHere(t, home, dir, "update-index", "--skip-worktree", "src/long/name/one.go") // which needs more flags
			}
			want := []string{".gitignore", "a.log", "out/deep/z.txt", "out/x", "src/long/name/one.go", "src/long/name/two.go", "ü.log"}
			slices.Sort(want)
			if got := maxShownName(t, dir); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			if got, want := maxShownName(t, dir+"/out/deep"), []string{"w", "z.txt"}; !slices.Equal(got, want) { // asked for, so that no rule counts
				t.Errorf("inside: %q, want %q", got, want)
			}
			gitHere(t, home, dir, "rm", "-q", "--cached", "a.log", "out/x")
			if got := strings.Join(maxShownName(t, dir), " "); strings.Contains(got, "a.log") || strings.Contains(got, "out/x") {
				t.Errorf("no longer on record: %s", got)
			}
		})
	}
}

func TestARecordInAnotherWorkTree(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	put(t, dir+"/.gitignore", "*.log\n")
	put(t, dir+"/p/a.log", "x")
	gitHere(t, home, dir, "init", "-q")
	gitHere(t, home, dir, "add", "-f", ".")
	gitHere(t, home, dir, "-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x")
	tree := filepath.Join(t.TempDir(), "tree")
	gitHere(t, home, dir, "worktree", "add", "-q", tree)
	put(t, tree+"/p/b.log", "x")
	if got, want := maxShownName(t, tree+"/p"), []string{"a.log"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// An index that is damaged is no harm.
func TestARecordThatCannotBeRead(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	home, dir := t.TempDir(), t.TempDir()
	put(t, dir+"/.gitignore", "*.log\n")
	put(t, dir+"/a.log", "x")
	gitHere(t, home, dir, "init", "-q")
	gitHere(t, home, dir, "add", "-f", ".")
	whole, err := os.ReadFile(dir + "/.git/index")
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		put(t, dir+"/.git/index", string(whole[:n]))
		_ = maxShownName(t, dir)
	}
	for i, b := range []byte{0, 3, 4, 5, 255} {
		put(t, dir+"/.git/index", string(whole[:7])+string(rune(b%128))+string(whole[8:]))
		if got := fmt.Sprint(i, maxShownName(t, dir)); !strings.Contains(got, ".gitignore") {
			t.Error(got)
		}
	}
}
