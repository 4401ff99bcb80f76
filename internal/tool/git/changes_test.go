//go:build unix

package git_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"coder/internal/host/workspace"
	"coder/internal/tool/git"
)

func (r repo) look(path string) git.Changes {
	r.Helper()
	c, err := git.ListChanges(r.Context(), r.options("."), path)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func TestLookTellsWhatChangedSinceTheLastCommit(t *testing.T) {
	r := newRepo(t)
	r.put("b.txt", "1\n2\n")
	r.put("sub/c.bin", "\x00\x01")
	r.git("add", ".")
	r.git("commit", "-qm", "second")
	if c := r.look(""); len(c.Files)+len(c.Untracked) != 0 {
		t.Errorf("clean: %+v", c)
	}
	r.put("a.txt", "one\ntwo\n") // not staged
	r.put("b.txt", "1\n")
	r.git("add", "b.txt")
	r.put("sub/c.bin", "\x00\x02")
	r.put("new/x y.txt", "new")
	r.put(".gitignore", "*.log\n")
	r.put("z.log", "ignored")
	c := r.look("")
	if got := fmt.Sprint(c.Files, c.Untracked); got != "[{a.txt 1 0 false} {b.txt 0 1 false} {sub/c.bin 0 0 true}] [.gitignore new/]" {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(r.look("sub").Files); got != "[{sub/c.bin 0 0 true}]" {
		t.Errorf("below sub: %s", got)
	}
	diff, cut, err := git.WorkingDiff(t.Context(), r.options("."), "a.txt")
	if err != nil || cut || !strings.Contains(diff, "@@ -1 +1,2 @@\n one\n+two\n") || strings.Contains(diff, "b.txt") {
		t.Errorf("%q, %v, %v", diff, cut, err)
	}
	if _, err := git.ListChanges(t.Context(), r.options("."), "../elsewhere"); !errors.Is(err, workspace.ErrOutside) {
		t.Errorf("err = %v", err)
	}
}

func TestLookPassesOverFilesThatWereOnlyTouched(t *testing.T) {
	r := newRepo(t)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(r.dir+"/a.txt", later, later); err != nil {
		t.Fatal(err)
	}
	if c := r.look(""); len(c.Files) != 0 {
		t.Errorf("%+v", c)
	}
	if err := os.Chmod(r.dir+"/a.txt", 0o755); err != nil {
		t.Fatal(err)
	}
	if c := r.look(""); fmt.Sprint(c.Files) != "[{a.txt 0 0 false}]" {
		t.Errorf("%+v", c)
	}
}

func TestLookBeforeTheFirstCommitAndWithoutARepository(t *testing.T) {
	r := newRepo(t)
	r.git("update-ref", "-d", "HEAD")
	if c := r.look(""); fmt.Sprint(c.Files) != "[{a.txt 1 0 false}]" {
		t.Errorf("%+v", c)
	}
	if err := os.RemoveAll(r.dir + "/.git"); err != nil {
		t.Fatal(err)
	}
	if _, err := git.ListChanges(t.Context(), r.options("."), ""); !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("err = %v", err)
	}
}

func TestLookingRunsNothingOfTheRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, tr := range traps {
		t.Run(tr.name, func(t *testing.T) {
			r, program, mark := trapped(t)
			change(r)
			tr.set(r, program)
			_, err := git.ListChanges(t.Context(), r.options("."), "")
			_, _, hunksErr := git.WorkingDiff(t.Context(), r.options("."), "")
			if (err != nil || hunksErr != nil) && !tr.breaks {
				t.Error(err, hunksErr)
			}
			if ran, err := os.ReadFile(mark); err == nil {
				t.Errorf("a program of the repository ran: %s", ran)
			}
		})
	}
}
