package gitstate_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/record/gitstate"
)

// git runs git in a folder, with no settings but its own.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// looks are what git says of a repository, files of the work tree aside.
var looks = [][]string{
	{"log", "--all", "--format=%H %s %d"}, {"diff", "--cached"}, {"stash", "list"}, {"branch", "-av"}, {"reflog"}, {"ls-files", "-s"}, {"show", "stash@{0}"}, {"show", ":staged.txt"},
}

// TestAStateIsLaidOutAsItWas: whatever happens in a repository afterwards, and though its
// objects are removed, git says of the copy what it said then.
func TestAStateIsLaidOutAsItWas(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, copied := t.TempDir(), t.TempDir()
	git(t, dir, "init", "-q", "-b", "main", ".")
	write(t, dir, "a.txt", "one\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	git(t, dir, "branch", "side")
	write(t, dir, "a.txt", "stashed\n")
	git(t, dir, "stash", "-q")
	write(t, dir, "staged.txt", "staged\n")
	git(t, dir, "add", "staged.txt")
	r, ok := gitstate.Find(dir)
	if !ok || r.IsLinked() {
		t.Fatalf("found %+v", r)
	}
	state, err := r.Save([]byte("notes"))
	if err != nil {
		t.Fatal(err)
	}
	var then []string
	for _, look := range looks {
		then = append(then, git(t, dir, look...))
	}
	git(t, dir, "stash", "clear")
	git(t, dir, "reset", "-q", "--hard")
	git(t, dir, "branch", "-D", "side")
	git(t, dir, "gc", "-q", "--prune=now")
	to := gitstate.Repository{Top: copied, GitDir: filepath.Join(copied, ".git"), Common: filepath.Join(copied, ".git")}
	if err := to.ShareObjects(filepath.Join(r.Common, "objects")); err != nil {
		t.Fatal(err)
	}
	if err := gitstate.Restore(state, to); err != nil {
		t.Fatal(err)
	}
	for i, look := range looks {
		if got := git(t, copied, look...); got != then[i] {
			t.Errorf("git %v says\n%s\nand said\n%s", look, got, then[i])
		}
	}
	if notes, err := gitstate.Notes(state); err != nil || string(notes) != "notes" {
		t.Errorf("the notes are %q (%v)", notes, err)
	}
	id := strings.Fields(git(t, copied, "ls-files", "-s", "staged.txt"))[1]
	if text, err := gitstate.Object(state, id); err != nil || string(text) != "staged\n" {
		t.Errorf("the staged file held %q (%v)", text, err)
	}
}

// TestNothingThatGitObeysIsLaidOut: a state is data, from any program.
func TestNothingThatGitObeysIsLaidOut(t *testing.T) {
	for _, name := range []string{
		"common/config", "common/hooks/pre-commit", "common/objects/info/alternates", "common/../x", "common/refs/../../x", "own/config.worktree", "/etc/x",
		"common/worktrees/a/config.worktree", "common/modules/a/config", "common/info/attributes", "common/refs/heads/a.lock", "other/HEAD",
	} {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		if err := w.WriteHeader(&tar.Header{Name: name, Size: 1, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("x"))
		_ = w.Close()
		dir := t.TempDir()
		to := gitstate.Repository{Top: dir, GitDir: filepath.Join(dir, "git"), Common: filepath.Join(dir, "git")}
		if err := gitstate.Restore(out.Bytes(), to); err == nil {
			t.Errorf("%s was laid out", name)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
	if err := gitstate.Restore([]byte("no archive"), gitstate.Repository{}); err == nil {
		t.Error("what is no state was laid out")
	}
}

// TestWithoutARepositoryThereAreNotes alone.
func TestWithoutARepositoryThereAreNotes(t *testing.T) {
	state, err := gitstate.Repository{}.Save([]byte("n"))
	if err != nil {
		t.Fatal(err)
	}
	if notes, err := gitstate.Notes(state); err != nil || string(notes) != "n" {
		t.Errorf("%q, %v", notes, err)
	}
	alone, err := gitstate.MakeStandalone(state, []byte("others"))
	if notes, err2 := gitstate.Notes(alone); err != nil || err2 != nil || string(notes) != "others" {
		t.Errorf("%q, %v, %v", notes, err, err2)
	}
}

// TestCommittedObjectsAreLeftOut: of many loose objects those that no commit has are saved.
func TestCommittedObjectsAreLeftOut(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main", ".")
	for i := range 30 {
		write(t, dir, fmt.Sprint("f", i), fmt.Sprint(i))
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	id := func(name string) string { return strings.TrimSpace(git(t, dir, "rev-parse", ":"+name)) }
	committed := make(map[string]bool)
	for i := range 30 {
		committed[id(fmt.Sprint("f", i))] = true
	}
	write(t, dir, "staged", "staged")
	git(t, dir, "add", "-A")
	r, _ := gitstate.Find(dir)
	state, err := r.SaveUncommitted(func() map[string]bool { return committed }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gitstate.Object(state, id("f0")); err == nil {
		t.Error("a committed object was saved")
	}
	if text, err := gitstate.Object(state, id("staged")); string(text) != "staged" {
		t.Errorf("the staged object is %q, %v", text, err)
	}
}
