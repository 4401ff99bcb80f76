package past_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/record/gitstate"
	"coder/internal/record/past"
	"coder/internal/record/undo"
)

const key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// repository is one with two commits, the first of which holds a key.
func repository(t *testing.T) (dir string, state []byte, door program.Launcher) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "shop")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "plain.txt"), key)
	write(t, filepath.Join(dir, ".env"), "X=1\n")
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	git(t, dir, "rm", "-q", "plain.txt", ".env")
	write(t, filepath.Join(dir, "a.txt"), "two\n")
	git(t, dir, "commit", "-qam", "second")
	write(t, filepath.Join(dir, "staged.txt"), "staged\n")
	git(t, dir, "add", "staged.txt")
	from, _ := gitstate.Find(dir)
	state, err := from.Save(jsonx.MustMarshal(past.Notes{Repository: true, Seen: []string{"seen.md"}, Configs: past.ReadConfigs(from)}))
	if err != nil {
		t.Fatal(err)
	}
	return dir, state, program.NewOutside(os.Environ(), t.TempDir())
}

// layOut lays a repository out in a new folder that has its files.
func layOut(t *testing.T, state []byte, door program.Launcher, pack []byte, objects ...string) (string, error) {
	t.Helper()
	top := t.TempDir()
	to, err := past.CopyRepository(gitstate.Repository{}, top)
	if err == nil {
		err = past.RestoreRepository(t.Context(), state, to, ".", door, pack, objects...)
	}
	write(t, filepath.Join(top, "a.txt"), "two\n")
	write(t, filepath.Join(top, "staged.txt"), "staged\n")
	return top, err
}

func TestARepositoryIsLaidOutAsItWas(t *testing.T) {
	dir, state, door := repository(t)
	head := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "commit", "-qm", "third")
	top, err := layOut(t, state, door, nil, filepath.Join(dir, ".git", "objects"))
	if err != nil || git(t, top, "rev-parse", "HEAD") != head || git(t, top, "status", "--short") != "A  staged.txt" {
		t.Fatalf("%s, %s: %v", git(t, top, "rev-parse", "HEAD"), git(t, top, "status", "--short"), err)
	}
	write(t, filepath.Join(top, ".coder/log/x"), "")
	write(t, filepath.Join(top, ".coder/seen.md"), "")
	if got := git(t, top, "status", "--short", "-uall"); !strings.Contains(got, "seen.md") || strings.Contains(got, "log") {
		t.Errorf("git sees %s", got)
	}
	git(t, top, "commit", "-qm", "mine")
	if got := git(t, dir, "log", "--format=%s", "-n1"); got != "third" {
		t.Errorf("the user's repository has %s", got)
	}
	gone := (*past.CommitError)(nil)
	if _, err := layOut(t, state, door, nil); !errors.As(err, &gone) || gone.Commit != head {
		t.Errorf("without its objects: %v", err)
	}
}

// TestWhatGitWouldObeyComesFromNoState: neither a configuration nor a hook is laid out.
func TestWhatGitWouldObeyComesFromNoState(t *testing.T) {
	dir, state, door := repository(t)
	git(t, dir, "config", "alias.x", "!touch /nowhere")
	top, err := layOut(t, state, door, nil, filepath.Join(dir, ".git", "objects"))
	if _, found := os.Lstat(filepath.Join(top, ".git", "config")); err != nil || found == nil {
		t.Errorf("a configuration is there: %v", err)
	}
	to, _ := past.CopyRepository(gitstate.Repository{}, top)
	if err := past.WriteConfigs(to, past.ReadNotes(state).Configs); err != nil {
		t.Fatal(err)
	}
	if got := git(t, top, "config", "--get", "core.bare"); got != "false" {
		t.Errorf("one's own configuration says %s", got)
	}
}

func TestALinkedWorkTreeIsLinkedInTheCopy(t *testing.T) {
	dir, _, _ := repository(t)
	git(t, dir, "worktree", "add", "-q", "../linked")
	from, _ := gitstate.Find(filepath.Join(filepath.Dir(dir), "linked"))
	top := filepath.Join(t.TempDir(), "in", "linked")
	to, err := past.CopyRepository(from, top)
	if err != nil || !to.IsLinked() || to.Common != filepath.Join(filepath.Dir(top), "shop", ".git") {
		t.Fatalf("%+v: %v", to, err)
	}
	if got, ok := gitstate.Find(top); !ok || got.GitDir != to.GitDir {
		t.Errorf("the copy leads to %+v", got)
	}
}

func TestAPackHoldsNoSecrets(t *testing.T) {
	dir, state, door := repository(t)
	tree, err := worktree.Open(t.Context(), dir, door)
	if err != nil {
		t.Fatal(err)
	}
	pack, left, err := past.PackObjects(t.Context(), tree)
	slices.Sort(left)
	if err != nil || !slices.Equal(left, []string{".env (in git's history)", "plain.txt (in git's history)"}) {
		t.Fatalf("left out: %q, %v", left, err)
	}
	alone, _ := gitstate.MakeStandalone(state, jsonx.MustMarshal(past.Notes{Repository: true}))
	top, err := layOut(t, alone, door, pack)
	if err != nil || git(t, top, "show", "HEAD:a.txt") != "two" || git(t, top, "show", "HEAD^:a.txt") != "one" {
		t.Fatalf("the pack lacks history: %v", err)
	}
	secret := strings.Fields(git(t, dir, "ls-tree", "HEAD^", "plain.txt"))[2]
	if exec.Command("git", "-C", top, "cat-file", "-e", secret).Run() == nil {
		t.Error("the pack holds the key")
	}
}

// TestContentsComeFromWhoeverHasThem: the workspace, git's history, and the state that was saved.
func TestContentsComeFromWhoeverHasThem(t *testing.T) {
	dir, state, door := repository(t)
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	p := &past.Store{CurrentStore: past.CurrentStore{Keeper: undo.New(ws, undo.OpenStore(t.TempDir(), undo.StoreOptions{}), undo.Options{Launcher: door, Now: time.Now}), Workspace: ws}, Launcher: door, RepoState: state}
	staged := git(t, dir, "rev-parse", ":staged.txt")
	git(t, dir, "rm", "-q", "--cached", "staged.txt")
	if err := errors.Join(os.Remove(filepath.Join(dir, "staged.txt")), os.Remove(filepath.Join(dir, ".git/objects", staged[:2], staged[2:]))); err != nil {
		t.Fatal(err)
	}
	sum := func(name, text string) event.FileState {
		return event.FileState{Path: name, Hash: past.ContentHash([]byte(text)), Size: int64(len(text))}
	}
	for want, s := range map[string]event.FileState{
		"two\n": sum("a.txt", "two\n"), "one\n": sum("a.txt", "one\n"), "staged\n": {Path: "staged.txt", Hash: "git:" + staged, Size: 7},
	} {
		if text, err := p.Content(t.Context(), s, 1000); err != nil || string(text) != want {
			t.Errorf("%s held %q: %v", s.Path, text, err)
		}
	}
	if text, err := p.Content(t.Context(), sum("a.txt", "never"), 1000); err == nil {
		t.Errorf("nobody had %q", text)
	}
	w := past.NewFileHistory([]event.FileState{sum("a.txt", "one\n")}, nil)
	write(t, filepath.Join(dir, "new.txt"), "new")
	if err := p.Complete(t.Context(), w, time.Now().Add(-time.Hour)); err != nil || w.Start["a.txt"].Size != 4 || w.Start["new.txt"].Size != 3 || !slices.Equal(w.Uncertain, []string{"new.txt"}) {
		t.Errorf("completed to %v, unsure %v: %v", w.Start, w.Uncertain, err)
	}
}
