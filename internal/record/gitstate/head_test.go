package gitstate_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/record/gitstate"
)

// repository is one with many committed files, whose objects are all loose.
func repository(t *testing.T, format string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir = t.TempDir()
	git(t, dir, "init", "-q", "-b", "main", "--object-format="+format)
	for i := range 30 {
		name := fmt.Sprintf("d%d/f%d", i%3, i)
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, name)
	}
	write(t, dir, "top", "top")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	return dir
}

// savedObjects are the objects in the saved state of a repository; asked reports whether git
// had to tell what HEAD has.
func savedObjects(t *testing.T, dir string) (ids []string, asked bool) {
	t.Helper()
	r, ok := gitstate.Find(dir)
	if !ok {
		t.Fatal("no repository")
	}
	state, err := r.SaveUncommitted(func() map[string]bool {
		asked = true
		has := make(map[string]bool)
		for line := range strings.Lines(git(t, dir, "ls-tree", "-r", "HEAD")) {
			has[strings.Fields(line)[2]] = true
		}
		return has
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(bytes.NewReader(state)); ; {
		h, err := in.Next()
		if err != nil {
			slices.Sort(ids)
			return ids, asked
		}
		if _, id, ok := strings.Cut(h.Name, "/objects/"); ok {
			ids = append(ids, strings.Replace(id, "/", "", 1))
		}
	}
}

// What HEAD has is found without git, and all that it does not have is saved.
func TestOnlyStagedObjectsAreSaved(t *testing.T) {
	for name, change := range map[string]func(dir string) string{
		"linked work tree": func(dir string) string {
			linked := filepath.Join(t.TempDir(), "linked")
			git(t, dir, "worktree", "add", "-q", linked)
			return linked
		},
		"detached":     func(dir string) string { git(t, dir, "checkout", "-q", "--detach"); return dir },
		"packed refs":  func(dir string) string { git(t, dir, "pack-refs", "--all"); return dir },
		"branch":       func(dir string) string { git(t, dir, "checkout", "-q", "-b", "a/b"); return dir },
		"nothing else": func(dir string) string { return dir },
	} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+" "+format, func(t *testing.T) {
				dir := change(repository(t, format))
				if ids, asked := savedObjects(t, dir); asked || len(ids) > 0 {
					t.Errorf("nothing is staged, and %v are saved; git was asked: %v", ids, asked)
				}
				write(t, dir, "d1/new", "new")
				write(t, dir, "top", "changed")
				git(t, dir, "add", "-A")
				git(t, dir, "mv", "d2/f2", "moved") // HEAD has what it holds
				ids, asked := savedObjects(t, dir)
				want := strings.Fields(git(t, dir, "rev-parse", ":d1/new", ":top"))
				slices.Sort(want)
				if asked || !slices.Equal(ids, want) {
					t.Errorf("%v are saved, want %v; git was asked: %v", ids, want, asked)
				}
			})
		}
	}
}

// Where the index or the objects do not tell what HEAD has, git is asked.
func TestGitIsAskedWhatHeadHas(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"no trees": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, ".git/index")); err != nil {
				t.Fatal(err)
			}
			git(t, dir, "add", "-A")
		},
		"packed commit": func(t *testing.T, dir string) {
			commit := exec.Command("git", "pack-objects", "-q", ".git/objects/pack/pack")
			commit.Dir, commit.Stdin = dir, strings.NewReader(git(t, dir, "rev-parse", "HEAD"))
			if out, err := commit.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			git(t, dir, "prune-packed", "-q")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t, "sha1")
			change(t, dir)
			for i := range 25 {
				write(t, dir, fmt.Sprint("new", i), fmt.Sprint(i))
			}
			git(t, dir, "add", "-A")
			ids, asked := savedObjects(t, dir)
			if !asked || len(ids) != 25 {
				t.Errorf("%d objects are saved; git was asked: %v", len(ids), asked)
			}
		})
	}
}

// A log of the stash names objects alone, not files elsewhere.
func TestStashNamesNoFilesOutside(t *testing.T) {
	dir := repository(t, "sha1")
	outside := filepath.Join(dir, ".git", "outside-of-the-objects-with-forty-letters")
	write(t, filepath.Dir(outside), filepath.Base(outside), "secret")
	logs := filepath.Join(dir, ".git", "logs", "refs")
	write(t, logs, "stash", "0 ../"+filepath.Base(outside)+" a\n0 ..//"+filepath.Base(outside)+" a\n")
	if ids, _ := savedObjects(t, dir); len(ids) > 0 {
		t.Errorf("saved %v", ids)
	}
}
