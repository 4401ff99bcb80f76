package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree is every file below a folder, with its size and time.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			b.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// watching starts coder watch in the workspace of h.
func watching(h *held, args ...string) *held {
	w := &held{program: h.program}
	w.Cmd = h.cmd(append([]string{"watch"}, args...)...)
	w.Stdout, w.Stderr, w.Stdin = &w.said, &w.said, strings.NewReader("")
	return w.start()
}

// TestWatchFollowsASession from its start, while another process works in it,
// to the end of that process, and touches nothing.
func TestWatchFollowsASession(t *testing.T) {
	h := hold(t, "-p", "--yolo", "go")
	h.file("model", `say first words
call write {"path": "a.txt", "content": "new text\n"}
call bash {"command": "echo loud; touch begun; until [ -e go-on ]; do sleep 0.05; done"}
---
say last words
`)
	h.Stdin = strings.NewReader("")
	h.start().made("begun").made("../.coder/listening/*/place") // by the clock: where it takes a stop from elsewhere
	before := tree(t, filepath.Dir(h.ws))
	w := watching(h)
	for _, want := range []string{"> go\n", "[ANSWER]\nfirst words", "[tool] write  a.txt", "+new text", "[bash] echo loud"} {
		w.until(want)
	}
	if after := tree(t, filepath.Dir(h.ws)); after != before {
		t.Errorf("something was touched:\n%s\nwas:\n%s", after, before)
	}
	late := watching(h, "s1", "--from", "7")
	late.until("[bash] echo loud")
	h.file("go-on", "")
	h.over(0)
	for _, f := range []*held{w, late} {
		f.over(0)
		for _, want := range []string{"loud\n", "exit 0", "last words", "no process is working in session s1"} {
			if !strings.Contains(f.said.String(), want) {
				t.Errorf("%q is missing:\n%s", want, f.said.String())
			}
		}
	}
	if strings.Contains(late.said.String(), "first words") {
		t.Errorf("it began too early:\n%s", late.said.String())
	}
	if strings.Contains(w.said.String(), "\x1b") {
		t.Errorf("codes were sent to a pipe: %q", w.said.String())
	}
}

// TestWatchShowsWhatWasAskedAndAnswered, and ends when the process is killed.
func TestWatchShowsWhatWasAskedAndAnswered(t *testing.T) {
	h := waiters["a headless run"](t)
	id := h.question()
	w := watching(h)
	w.until("[APPROVAL] bash touch approved")
	if _, stderr, code := h.program.run("respond", id, "--option", "reject", "--comment", "not this"); code != 0 {
		t.Fatal(stderr)
	}
	w.until("> No; not this").until("went on")
	h.over(30)
	w.over(0)
	k := waiters["a headless run"](t)
	k.question()
	dead := watching(k)
	dead.until("[APPROVAL]")
	_ = k.Process.Kill()
	dead.over(0)
}

func TestWatchOfWhatIsNotThere(t *testing.T) {
	p := newProgram(t)
	for _, args := range [][]string{{"watch"}, {"watch", "nosuch"}, {"watch", "../x"}} {
		if _, stderr, code := p.run(args...); code != 42 && code != 1 || stderr == "" {
			t.Errorf("%q: code %d: %s", args, code, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(p.ws, ".coder")); err == nil {
		t.Error("a folder was made")
	}
}

// TestWatchIsEndedBySignals like every other wait.
func TestWatchIsEndedBySignals(t *testing.T) {
	h := running(t, "touch begun; sleep 300")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		w := watching(h)
		w.until("[bash]")
		if err := w.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		w.over(130)
	}
	if _, err := os.Stat(filepath.Join(h.ws, "begun")); err != nil {
		t.Error(err)
	}
}
