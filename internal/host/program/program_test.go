package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// file makes an executable file, and the folders it is in.
func file(t *testing.T, parts ...string) string {
	t.Helper()
	name := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("#!/bin/sh\necho \"$PATH\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// TestProgramsAreFoundWhereNoCommandWrites: whatever way leads from the PATH into
// a folder that commands may write, the next folder counts.
func TestProgramsAreFoundWhereNoCommandWrites(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	good := file(t, top, "good", "tool")
	file(t, top, "ws", "bin", "tool")
	file(t, top, "added", "tool")
	file(t, top, "cache", "x", "tool")
	link(t, at("ws/bin"), at("folder"))                     // a folder outside that is one inside
	link(t, at("ws/bin/tool"), at("file/tool"))             // a program outside that is one inside
	link(t, at("good"), at("ws/lib"))                       // one inside that is outside today
	link(t, at("ws/lib"), at("chain"))                      // the same, by way of another
	link(t, filepath.Join("..", "ws", "bin"), at("up/bin")) // a relative one
	link(t, "round", at("round"))
	door := func(path ...string) Launcher {
		return New([]string{"PATH=" + strings.Join(append(path, at("good")), ":")}, func() UntrustedDirs {
			return UntrustedDirs{Work: []string{at("ws"), at("added")}, Writable: []string{at("cache"), at("none")}}
		})
	}
	for _, dir := range []string{"ws/bin", "ws/lib", "ws/../ws/bin", "added", "cache/x", "folder", "file", "chain", "up/bin", "round", "none/bin"} {
		if found, err := door(at(dir)).Find("tool"); err != nil || found != good {
			t.Errorf("with %s first: %q, %v", dir, found, err)
		}
	}
	t.Chdir(at("ws/bin"))
	for _, dir := range []string{"", ".", "../bin"} {
		if found, err := door(dir).Find("tool"); err != nil || found != good {
			t.Errorf("with %q first: %q, %v", dir, found, err)
		}
	}
	only := NewOutside([]string{"PATH=" + at("ws/bin")}, at("ws"))
	_, err = only.Find("tool")
	if want := "coder does not run " + at("ws/bin/tool") + ", because commands may write to " + at("ws") + ": install tool outside that folder"; err == nil || err.Error() != want || !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestWhatYouNameYourselfIsNotInTheWorkspace: a full path may lead anywhere else,
// into a temporary folder, too.
func TestWhatYouNameYourselfIsNotInTheWorkspace(t *testing.T) {
	top := t.TempDir()
	inside, outside := file(t, top, "ws", "tool"), file(t, top, "tmp", "tool")
	link(t, inside, filepath.Join(top, "tmp", "link"))
	d := New(nil, func() UntrustedDirs {
		return UntrustedDirs{Work: []string{filepath.Join(top, "ws")}, Writable: []string{filepath.Join(top, "tmp")}}
	})
	if found, err := d.Find(outside); found != outside || err != nil {
		t.Errorf("%q, %v", found, err)
	}
	file(t, top, "ws", "sub", "x")
	link(t, filepath.Join(top, "ws", "sub"), filepath.Join(top, "tmp", "sub"))
	above := filepath.Join(top, "tmp", "sub") + "/../tool" // the workspace's, not that of tmp
	for _, name := range []string{inside, filepath.Join(top, "tmp", "link"), above, "./tool", "ws/tool"} {
		if found, err := d.Find(name); err == nil {
			t.Errorf("%s is %s", name, found)
		}
	}
}

// TestTheZeroDoorIsShut, and one that was told of no workspace.
func TestTheZeroDoorIsShut(t *testing.T) {
	for _, d := range []Launcher{{}, Launcher{}.WithEnv(os.Environ()), NewOutside(os.Environ()), NewOutside(os.Environ(), ""), New(os.Environ(), func() UntrustedDirs { return UntrustedDirs{Writable: []string{"/tmp"}} })} {
		g, err := d.Git(t.Context(), "/")
		for _, got := range []error{err, d.Command(t.Context(), "/bin/sh").Run(), d.Query("/").Command(t.Context(), "--version").Run(), g.Command(t.Context(), "status").Run(), d.Unconfine(ConfinedCommand("sh"))} {
			if !errors.Is(got, ErrZeroLauncher) {
				t.Error(got)
			}
		}
	}
	if err := (Git{}).Strict().WithHooks().Command(t.Context(), "status").Run(); !errors.Is(err, ErrZeroLauncher) {
		t.Error(err)
	}
}

// TestGitIsStartedDisarmedOnly: no other name leads to it, and no question runs what
// the repository configures.
func TestGitIsStartedDisarmedOnly(t *testing.T) {
	d := NewOutside(os.Environ(), t.TempDir())
	for _, name := range []string{"git", "/usr/bin/git"} {
		if err := d.Command(t.Context(), name, "status").Run(); err == nil {
			t.Error(name)
		}
	}
	for _, args := range [][]string{{}, {"status"}, {"-c", "x=y", "status"}, {"cat-file", "--filters", "HEAD:a"}, {"cat-file", "--batch", "--textc"}, {"cat-file", "--batch", "--filter"}} {
		err := d.Query(t.TempDir()).Command(t.Context(), args...).Run()
		if exit := (*ExitError)(nil); err == nil || errors.As(err, &exit) {
			t.Errorf("%q ran", args)
		}
	}
}

// TestChildrenGetNothingThatLeadsThere: neither the program nor what it starts finds
// anything where commands may write.
func TestChildrenGetNothingThatLeadsThere(t *testing.T) {
	top := t.TempDir()
	ws := filepath.Join(top, "ws")
	tool := file(t, top, "good", "tool")
	env := []string{
		"PATH=" + ws + "/bin::.:bin:" + top + "/good:/usr/bin", "LD_LIBRARY_PATH=" + ws + "/lib", "PYTHONPATH=" + ws + ":/opt/py", "SSH_ASKPASS=" + ws + "/ask",
		"NODE_OPTIONS=--require " + ws + "/x.js", "RUBYOPT=-r./x", "PERL5OPT=-w", "VIRTUAL_ENV=" + ws + "/venv", "TMPDIR=/tmp",
	}
	want := []string{"PATH=" + top + "/good:/usr/bin", "PYTHONPATH=/opt/py", "PERL5OPT=-w", "VIRTUAL_ENV=" + ws + "/venv", "TMPDIR=/tmp"}
	d := NewOutside([]string{"PATH=" + top + "/good"}, ws).WithEnv(env)
	cmd := d.Command(context.Background(), "tool")
	if cmd.Path != tool || !slices.Equal(cmd.Env, want) {
		t.Errorf("%s with %q, want %q", cmd.Path, cmd.Env, want)
	}
	confined := ConfinedCommand("tool")
	confined.Env = env
	if err := d.Unconfine(confined); err != nil || confined.Path != tool || !slices.Equal(confined.Env, want) {
		t.Errorf("%v: %s with %q, want %q", err, confined.Path, confined.Env, want)
	}
	if cmd := d.WithEnv([]string{"PATH=" + ws + "/bin:."}).Command(context.Background(), "tool"); len(cmd.Env) > 0 {
		t.Errorf("a PATH of which nothing is left stays: %q", cmd.Env)
	}
	if cmd := d.WithEnv(nil).Command(context.Background(), "tool"); cmd.Env == nil {
		t.Error("no environment became that of this process")
	}
}
