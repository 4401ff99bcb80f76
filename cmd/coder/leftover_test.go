package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What is being written in an editor lies where no other program looks for it,
// and goes with the next start if the program is killed meanwhile; what another
// one's editor has open stays.
func TestKilledWhileAnEditorIsOpen(t *testing.T) {
	t.Parallel()
	h := hold(t)
	tmp := t.TempDir()
	h.Env = append(h.Env, "TMPDIR="+tmp, "EDITOR="+editor(t, "echo backup >\"$1~\"\necho $$ >pid\nmv pid begun\nexec sleep 300\n"))
	h.at("xterm", false).until("[build]").write("\x07").made("begun")
	t.Cleanup(func() {
		text, _ := os.ReadFile(filepath.Join(h.ws, "begun"))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the editor
		}
	})
	drafts := func() []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(filepath.Dir(h.ws), ".coder", "drafts", "draft-*"))
		if other, _ := os.ReadDir(tmp); err != nil || len(other) > 0 {
			t.Errorf("%v, and elsewhere %v", err, other)
		}
		return found
	}
	again := func() {
		t.Helper()
		cmd := h.cmd("--script", "model", "-p", "go")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	again()
	if got := drafts(); len(got) != 2 {
		t.Fatalf("of an editor that is open there are %q", got)
	}
	if err := h.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-h.ended
	again()
	if got := drafts(); len(got) != 2 {
		t.Errorf("of what is kept for the session there are %q", got)
	}
	next := &held{program: h.program}
	next.Cmd = h.cmd("--script", "model", "-c")
	next.Stderr, next.Env = &next.said, h.Env
	next.at("xterm", false).until("[build]")
	if got := drafts(); len(got) != 0 {
		t.Errorf("%q were left by a program that was killed", got)
	}
}
