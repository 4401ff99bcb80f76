package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/app"
)

// A linked worktree, in which the compiler notes no commit, has it from make.
func TestTheCommitOfALinkedWorktreeIsKnown(t *testing.T) {
	for _, program := range []string{"git", "make", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	main, linked := filepath.Join(t.TempDir(), "main"), filepath.Join(t.TempDir(), "linked")
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_COMMITTER_DATE=2026-01-02T03:04:05+02:00",
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run(".", "git", "init", "-q", main)
	if err := os.WriteFile(filepath.Join(main, "Makefile"), makefile, 0o644); err != nil {
		t.Fatal(err)
	}
	run(main, "git", "add", "Makefile")
	run(main, "git", "commit", "-qm", "all")
	run(main, "git", "worktree", "add", "-q", linked)
	commit := run(main, "git", "rev-parse", "HEAD")
	checkout := func(dir string) string {
		t.Helper()
		_, flag, _ := strings.Cut(run(dir, "make", "-n", "build"), "app.WorktreeInfo=")
		flag, _, _ = strings.Cut(flag, "'")
		return flag
	}
	if got := checkout(main); got != "" {
		t.Errorf("in the main worktree make notes %q, which Go does better", got)
	}
	clean := checkout(linked)
	if err := os.WriteFile(filepath.Join(linked, "more"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for noted, want := range map[string]string{clean: " 2026-01-02,", checkout(linked): " 2026-01-02, dirty,"} {
		app.WorktreeInfo = noted
		t.Cleanup(func() { app.WorktreeInfo = "" })
		b := app.ReadBuild()
		if b.Commit != commit || b.Dirty == nil || *b.Dirty != strings.Contains(want, "dirty") || !strings.Contains(b.String(), want) {
			t.Errorf("%q gives %v", noted, b)
		}
	}
}
