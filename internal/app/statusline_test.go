package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheStandingNamesTheBranch(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	a, _, err := under(t, func(*Env, *Options) {})
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", a.Root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(a.Root, "a"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stands := func(branch string, dirty bool) {
		t.Helper()
		if name, changed := a.Branch(t.Context()); name != branch || changed != dirty {
			t.Errorf("%q, dirty %t; want %q, %t", name, changed, branch, dirty)
		}
	}
	stands("", false)
	write("one")
	git("init", "-q", "-b", "trunk")
	git("add", "a")
	git("commit", "-qm", "x")
	stands("trunk", false)
	write("two")
	stands("trunk", true)
	git("checkout", "-q", "-f", "--detach")
	if name, dirty := a.Branch(t.Context()); len(name) != 8 || dirty {
		t.Errorf("detached: %q, dirty %t", name, dirty)
	}
}

// TestYourStatusCommandIsBounded in what it prints, where it runs, and which variables it gets.
func TestYourStatusCommandIsBounded(t *testing.T) {
	a, _, err := under(t, func(e *Env, _ *Options) {
		e.Environ = append(e.Environ, "CODER_API_KEY=sk-0123456789", "PATH="+os.Getenv("PATH"))
	})
	if err != nil {
		t.Fatal(err)
	}
	says := func(line string) string {
		t.Helper()
		a.Config.UI.Statusline = []string{"/bin/sh", "-c", line}
		text, err := a.RunStatusLine(t.Context(), "s", "build", SessionState{Jobs: 2})
		if err != nil {
			text = "error: " + err.Error()
		}
		return text
	}
	if text := says(`echo "$PWD $CODER_API_KEY"; echo more`); text != "/" {
		t.Errorf("it runs with %q", text)
	}
	if text := says(`yes abc`); !strings.HasPrefix(text, "abc") || len(text) > 300 {
		t.Errorf("without end: %q", text)
	}
	if text := says(`cat`); !strings.Contains(text, `"background_jobs":2`) {
		t.Errorf("it reads %q", text)
	}
	if text := says(`exit 3`); text != "error: exit status 3" {
		t.Errorf("it fails with %q", text)
	}
}
