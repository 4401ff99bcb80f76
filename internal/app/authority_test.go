package app

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// logs makes the logs of a session below root.
func logs(t *testing.T, root, session string) (dir string) {
	t.Helper()
	dir = filepath.Join(root, ".coder", "log", session)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte("{}\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLogsThatGitTracksAreInDoubt(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	git := func(t *testing.T, dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	for name, tt := range map[string]struct {
		below string // where in the repository the workspace is
		do    [][]string
		want  string
	}{
		"no file added":        {"", nil, ""},
		"another added":        {"", [][]string{{"add", "-f", ".coder/log/other"}}, ""},
		"added":                {"", [][]string{{"add", "-f", ".coder"}}, ".coder/log/s/events.jsonl"},
		"committed":            {"", [][]string{{"add", "-f", ".coder"}, {"commit", "-qm", "x"}}, ".coder/log/s/events.jsonl"},
		"in a short index":     {"", [][]string{{"update-index", "--index-version", "4"}, {"add", "-f", "."}}, ".coder/log/s/events.jsonl"},
		"in a split index":     {"", [][]string{{"add", "-f", "."}, {"update-index", "--split-index"}}, ".coder/log/s/events.jsonl"},
		"below another folder": {"a/b", [][]string{{"add", "-f", "."}}, "a/b/.coder/log/s/events.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := t.TempDir()
			root := filepath.Join(repo, tt.below)
			dir := logs(t, root, "s")
			logs(t, root, "other")
			git(t, repo, "init", "-q")
			for _, args := range tt.do {
				git(t, repo, args...)
			}
			if got := trackedFile(dir); got != tt.want {
				t.Errorf("tracked: %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("in a linked work tree, by a link", func(t *testing.T) {
		repo, other := t.TempDir(), filepath.Join(t.TempDir(), "tree")
		logs(t, repo, "s")
		git(t, repo, "init", "-q")
		git(t, repo, "add", "-f", ".")
		git(t, repo, "commit", "-qm", "x")
		git(t, repo, "worktree", "add", "-q", other)
		if err := os.Symlink(filepath.Join(other, ".coder", "log", "s"), filepath.Join(other, "link")); err != nil {
			t.Fatal(err)
		}
		if got := trackedFile(filepath.Join(other, "link")); got != ".coder/log/s/events.jsonl" {
			t.Errorf("tracked: %q", got)
		}
	})
	t.Run("an index that is a pipe", func(t *testing.T) {
		repo := t.TempDir()
		dir := logs(t, repo, "s")
		if err := errors.Join(os.Mkdir(filepath.Join(repo, ".git"), 0o755), syscall.Mkfifo(filepath.Join(repo, ".git", "index"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if trackedFile(dir) == "" {
			t.Error("what cannot be read was believed")
		}
	})
	t.Run("an index that is no index", func(t *testing.T) {
		repo := t.TempDir()
		dir := logs(t, repo, "s")
		if err := errors.Join(os.Mkdir(filepath.Join(repo, ".git"), 0o755), os.WriteFile(filepath.Join(repo, ".git", "index"), []byte("what is this"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if trackedFile(dir) == "" {
			t.Error("what cannot be read was believed")
		}
	})
}

func TestLogsOfAnotherUserAreInDoubt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to others")
	}
	for _, name := range []string{".", "events.jsonl"} {
		root := t.TempDir()
		s := &Store{root: root, dir: filepath.Join(root, ".coder")}
		dir := logs(t, root, "s")
		if why := s.doubtReason("s"); why != "" {
			t.Errorf("one's own: %s", why)
		}
		if err := os.Chown(filepath.Join(dir, name), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if why := s.doubtReason("s"); !strings.Contains(why, "belongs to another user") {
			t.Errorf("%s: %q", name, why)
		}
	}
}
