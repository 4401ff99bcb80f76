package checkout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/fleet/checkout"
	"coder/internal/host/program"
)

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
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "gone.txt"), "gone\n")
	write(t, filepath.Join(dir, ".gitignore"), "build/\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	git(t, dir, "branch", "side")
	return dir
}

// What a task did, committed and not, is there again on another machine, and is
// its result.
func TestACheckpointGoesOnElsewhere(t *testing.T) {
	repo := repository(t)
	f, err := checkout.Clone(t.Context(), filepath.Join(t.TempDir(), "1"), repo, "side", program.NewOutside(os.Environ(), t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if file, err := f.Checkpoint(t.Context()); err != nil || file != "" {
		t.Fatalf("a checkpoint of nothing: %q, %v", file, err)
	}
	write(t, filepath.Join(f.Dir, "b.txt"), "committed\n")
	git(t, f.Dir, "add", "b.txt")
	git(t, f.Dir, "commit", "-qm", "the task's own")
	write(t, filepath.Join(f.Dir, "a.txt"), "two\n")
	write(t, filepath.Join(f.Dir, "new dir/ü.txt"), "new\n")
	write(t, filepath.Join(f.Dir, "build/x"), "ignored\n")
	if err := os.Remove(filepath.Join(f.Dir, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	status := git(t, f.Dir, "status", "--porcelain")
	file, err := f.Checkpoint(t.Context())
	if err != nil || file == "" {
		t.Fatalf("checkpoint: %q, %v", file, err)
	}
	if now := git(t, f.Dir, "status", "--porcelain"); now != status {
		t.Errorf("a checkpoint changed what the task sees:\n%s\nwas\n%s", now, status)
	}
	if again, err := f.Checkpoint(t.Context()); err != nil || again != "" {
		t.Errorf("a checkpoint of what did not change: %q, %v", again, err)
	}
	other, err := checkout.Clone(t.Context(), filepath.Join(t.TempDir(), "2"), repo, f.Base, program.NewOutside(os.Environ(), t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Restore(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if now := git(t, other.Dir, "status", "--porcelain"); now != status {
		t.Errorf("restored as\n%s\nwant\n%s", now, status)
	}
	if again, err := other.Checkpoint(t.Context()); err != nil || again != "" {
		t.Errorf("what was restored is not what was kept: %q, %v", again, err)
	}
	if log := git(t, other.Dir, "log", "--format=%s"); log != "the task's own\nfirst" {
		t.Errorf("commits are %q", log)
	}
	r, err := other.Result(t.Context(), "coder/t1", "do it")
	if err != nil || r.Branch != "coder/t1" {
		t.Fatalf("result %+v, %v", r, err)
	}
	git(t, repo, "fetch", "-q", r.Bundle, "coder/t1:taken")
	if log := git(t, repo, "log", "--format=%s", "taken"); log != "do it\nthe task's own\nfirst" {
		t.Errorf("the branch holds %q", log)
	}
	git(t, repo, "apply", r.Patch)
	if a, b := read(t, filepath.Join(repo, "a.txt")), read(t, filepath.Join(repo, "new dir/ü.txt")); a != "two\n" || b != "new\n" {
		t.Errorf("the patch gives %q and %q", a, b)
	}
}

func TestNoChangeIsNoResult(t *testing.T) {
	f, err := checkout.Clone(t.Context(), filepath.Join(t.TempDir(), "1"), repository(t), "", program.NewOutside(os.Environ(), t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := f.Result(t.Context(), "coder/t1", "do it"); err != nil || r != (checkout.Result{}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// What cannot be cloned is said, and nothing that a name could smuggle in is run.
func TestWhatCannotBeCloned(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	for _, c := range []struct{ repo, base, says string }{
		{"/does/not/exist", "", "does not exist"},
		{repository(t), "no-such-branch", "no-such-branch not found"},
		{"ext::sh -c 'touch " + marker + "'", "", "is not a repository"},
		{"--upload-pack=touch " + marker, "", "is not a repository"},
		{"https://me:token@example.invalid/x.git", "", "contains a secret"},
		{"https://token@example.invalid/x.git", "", "contains a secret"},
	} {
		_, err := checkout.Clone(t.Context(), filepath.Join(t.TempDir(), "1"), c.repo, c.base, program.NewOutside(os.Environ(), t.TempDir()))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.repo, err, c.says)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a repository's name was run")
	}
}

// A task may set up filters and hooks in its clone: a checkpoint does not run them.
func TestACheckpointRunsNothingOfTheRepository(t *testing.T) {
	f, err := checkout.Clone(t.Context(), filepath.Join(t.TempDir(), "1"), repository(t), "", program.NewOutside(os.Environ(), t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(t.TempDir(), "ran")
	git(t, f.Dir, "config", "filter.x.clean", "touch "+marker+"; cat")
	git(t, f.Dir, "config", "core.fsmonitor", "touch "+marker)
	write(t, filepath.Join(f.Dir, ".gitattributes"), "* filter=x\n")
	write(t, filepath.Join(f.Dir, "a.txt"), "changed\n")
	if file, err := f.Checkpoint(t.Context()); err != nil || file == "" {
		t.Fatalf("%q, %v", file, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the repository's program ran")
	}
}
