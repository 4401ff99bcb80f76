package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/event"
	"coder/internal/supervisor"
	"coder/internal/uip"
	"coder/internal/undo"
)

// workshop is the program put together over a folder, without a face.
type workshop struct {
	t    *testing.T
	dir  string
	errs bytes.Buffer
}

func newWorkshop(t *testing.T) *workshop { return &workshop{t: t, dir: t.TempDir()} }

func (w *workshop) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// want holds files against what they should be; "" says that there is none.
func (w *workshop) want(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(w.dir, name))
		if text == "" && !errors.Is(err, os.ErrNotExist) || text != "" && string(got) != text {
			w.t.Errorf("%s holds %q (%v), want %q", name, got, err, text)
		}
	}
}

// open starts or resumes session "s1" with a script for a model.
func (w *workshop) open(script string) *supervisor.Session {
	w.t.Helper()
	model := filepath.Join(w.t.TempDir(), "model")
	if err := os.WriteFile(model, []byte(script), 0o644); err != nil {
		w.t.Fatal(err)
	}
	env := Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.t.TempDir()}, Dir: w.dir, Stderr: &w.errs, Now: time.Now}
	h, err := newHouse(env, &flags{script: model, autoApprove: true}, func(s string) { w.errs.WriteString(s + "\n") })
	if err != nil {
		w.t.Fatal(err)
	}
	sup, err := h.supervise(uip.Nobody)
	if err != nil {
		w.t.Fatal(err)
	}
	open := sup.Start
	if known, _ := sup.Exists(w.t.Context(), "s1"); known {
		open = sup.Resume
	}
	s, err := open(w.t.Context(), "s1", event.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *workshop) turn(s *supervisor.Session, prompt string) {
	w.t.Helper()
	if _, err := s.Run(w.t.Context(), prompt, event.Discard); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) undo(s *supervisor.Session, c undo.Call) undo.Report {
	w.t.Helper()
	r, err := s.Undo(w.t.Context(), c, event.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

const editingTurns = `
call edit {"path": "a.txt", "old_string": "one", "new_string": "two"}
call write {"path": "sub/b.txt", "content": "made"}
call patch {"patch": "--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-old\n+new\n"}
---
say first
---
call write {"path": "a.txt", "content": "three\n"}
call bash {"command": "echo shell > d.txt"}
---
say second
`

func TestATurnIsTakenBackAsAWhole(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	w.write("c.txt", "old\n")
	if err := os.Chmod(filepath.Join(w.dir, "c.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := w.open(editingTurns)
	w.turn(s, "first")
	w.want(map[string]string{"a.txt": "two\n", "sub/b.txt": "made", "c.txt": "new\n"})
	w.turn(s, "second")
	w.want(map[string]string{"a.txt": "three\n", "d.txt": "shell\n"})

	r := w.undo(s, undo.Call{})
	w.want(map[string]string{"a.txt": "two\n", "d.txt": "shell\n"})
	if strings.Join(r.NotUndone, " ") != "d.txt" {
		t.Errorf("not undone: %v", r.NotUndone)
	}
	w.undo(s, undo.Call{All: true})
	w.want(map[string]string{"d.txt": ""})
	w.undo(s, undo.Call{})
	w.want(map[string]string{"a.txt": "one\n", "c.txt": "old\n", "sub/b.txt": ""})
	if info, err := os.Stat(filepath.Join(w.dir, "c.txt")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := s.Undo(t.Context(), undo.Call{}, event.Discard); !errors.Is(err, undo.ErrNothing) {
		t.Errorf("a third undo: %v", err)
	}
}

func TestUndoSurvivesARestart(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	w.write("c.txt", "old\n")
	s := w.open(editingTurns)
	w.turn(s, "first")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = w.open("say nothing")
	w.undo(s, undo.Call{})
	w.want(map[string]string{"a.txt": "one\n", "c.txt": "old\n", "sub/b.txt": ""})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = w.open("say nothing")
	if _, err := s.Redo(t.Context(), undo.Call{}, event.Discard); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]string{"a.txt": "two\n", "c.txt": "new\n", "sub/b.txt": "made"})
}

func TestUndoLeavesAloneWhatThePersonChanged(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	w.write("c.txt", "old\n")
	s := w.open(editingTurns)
	w.turn(s, "first")
	w.write("a.txt", "mine\n")
	r := w.undo(s, undo.Call{})
	w.want(map[string]string{"a.txt": "mine\n", "c.txt": "old\n", "sub/b.txt": ""})
	if len(r.Kept) != 1 || r.Kept[0].Path != "a.txt" {
		t.Errorf("kept: %+v", r.Kept)
	}
	w.undo(s, undo.Call{Force: true})
	w.want(map[string]string{"a.txt": "one\n"})
}

func TestATurnThatChangesNothingKeepsNothing(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	s := w.open("call read {\"path\": \"a.txt\"}\ncall grep {\"pattern\": \"one\"}\n---\nsay done")
	w.turn(s, "look")
	if _, err := os.Stat(filepath.Join(w.dir, ".coder", "undo")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was kept: %v", err)
	}
}

func TestCommandsInTheBackgroundEndWithTheSession(t *testing.T) {
	w := newWorkshop(t)
	s := w.open("call bash {\"command\": \"echo $$ > pid; exec sleep 600\", \"background\": true}\n---\nsay started")
	w.turn(s, "start it")
	pid := ""
	for range 500 {
		text, _ := os.ReadFile(filepath.Join(w.dir, "pid"))
		if pid = strings.TrimSpace(string(text)); pid != "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if pid == "" {
		t.Fatal("it never started")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(text), "sleep") {
		t.Errorf("process %s is still there", pid)
	}
}

func TestToolsCloseWhatTheyOpened(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.go", "package a\n\nfunc ParseConfig() {}\n")
	s := w.open("call search_code {\"query\": \"where do we parse the config\"}\n---\nwant ParseConfig\nsay found")
	w.turn(s, "find it")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Run(context.Background(), "again", event.Discard); err == nil {
		t.Error("a closed session ran a turn")
	}
}

func TestAFileReadBeforeARestartIsNotOverwrittenBlindly(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	w.write("b.txt", "same\n")
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.Chtimes(filepath.Join(w.dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	s := w.open("call read {\"path\": \"a.txt\"}\ncall read {\"path\": \"b.txt\"}\n---\nsay read")
	w.turn(s, "read them")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	w.write("a.txt", "one\nmine\n")
	if err := os.Chtimes(filepath.Join(w.dir, "a.txt"), later, later); err != nil {
		t.Fatal(err)
	}
	s = w.open("call write {\"path\": \"a.txt\", \"content\": \"theirs\"}\ncall write {\"path\": \"b.txt\", \"content\": \"new\"}\n---\nwant changed on disk since it was read\nsay I see")
	w.turn(s, "write them")
	w.want(map[string]string{"a.txt": "one\nmine\n", "b.txt": "new"})
}
