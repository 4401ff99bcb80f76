package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/record/undo"
)

// workshop is the program put together over a folder, without a face.
type workshop struct {
	t     *testing.T
	dir   string
	added []string
	errs  bytes.Buffer
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
	exe, err := os.Executable() // which is the helper of commands, too
	if err != nil {
		w.t.Fatal(err)
	}
	env := Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir + ".home"}, Dir: w.dir, Now: time.Now, Exe: exe}
	o := Options{Script: model, AddDirs: w.added, Overrides: Overrides{AutoApprove: true}}
	settings, err := Load(env, o)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := New(env, o, settings, func(s string) { w.errs.WriteString(s + "\n") })
	if err != nil {
		w.t.Fatal(err)
	}
	sup := a.NewSupervisor(uip.NoInteractor, Screen{})
	open := sup.StartSession
	if known, _ := sup.Exists(w.t.Context(), "s1"); known {
		open = sup.ResumeSession
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
	if _, err := s.RunText(w.t.Context(), prompt, event.Discard); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) undo(s *supervisor.Session, c undo.Request) undo.Plan {
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

	r := w.undo(s, undo.Request{})
	w.want(map[string]string{"a.txt": "two\n", "d.txt": "shell\n"})
	if strings.Join(r.NotUndone, " ") != "d.txt" {
		t.Errorf("not undone: %v", r.NotUndone)
	}
	w.undo(s, undo.Request{All: true})
	w.want(map[string]string{"d.txt": ""})
	w.undo(s, undo.Request{})
	w.want(map[string]string{"a.txt": "one\n", "c.txt": "old\n", "sub/b.txt": ""})
	if info, err := os.Stat(filepath.Join(w.dir, "c.txt")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := s.Undo(t.Context(), undo.Request{}, event.Discard); !errors.Is(err, undo.ErrNothingToUndo) {
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
	w.undo(s, undo.Request{})
	w.want(map[string]string{"a.txt": "one\n", "c.txt": "old\n", "sub/b.txt": ""})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = w.open("say nothing")
	if _, err := s.Redo(t.Context(), undo.Request{}, event.Discard); err != nil {
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
	r := w.undo(s, undo.Request{})
	w.want(map[string]string{"a.txt": "mine\n", "c.txt": "old\n", "sub/b.txt": ""})
	if len(r.Unchanged) != 1 || r.Unchanged[0].Path != "a.txt" {
		t.Errorf("kept: %+v", r.Unchanged)
	}
	w.undo(s, undo.Request{Force: true})
	w.want(map[string]string{"a.txt": "one\n"})
}

func TestATurnWithoutCallsKeepsNothing(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	s := w.open("say done")
	w.turn(s, "talk")
	w.wantNothingKept()
}

// The files that a session began with are kept before its first call, so that it can be run
// again, and those after it keep nothing.
func TestATurnThatChangesNothingKeepsTheStartAlone(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	s := w.open("call read {\"path\": \"a.txt\"}\ncall grep {\"pattern\": \"one\"}\n---\ncall bash {\"command\": \"ls && cat a.txt\"}\n---\nwant one\nsay done")
	var kept []string
	if _, err := s.RunText(t.Context(), "look", event.SinkFunc(func(_ context.Context, r event.Record) error {
		if e, ok := r.Event.(event.ToolCallRequested); ok {
			kept = append(kept, fmt.Sprintf("%s %t %t", e.Tool, e.Tree != "", e.Repository != ""))
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if want := []string{"read true true", "grep false false", "bash false false"}; !slices.Equal(kept, want) {
		t.Errorf("kept with calls: %q, want %q", kept, want)
	}
}

func TestCommandsInTheBackgroundEndWithTheSession(t *testing.T) {
	w := newWorkshop(t)
	s := w.open("call bash {\"command\": \"echo $$ > pid; exec sleep 600\", \"background\": true}\n---\nsay started")
	w.turn(s, "start it")
	pid := ""
	for range 90000 {
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
	if _, err := s.RunText(context.Background(), "again", event.Discard); err == nil {
		t.Error("a closed session ran a turn")
	}
}

// Whether a file is what the model knows is told by what is in it: the times of
// files are of another clock than ours, or of one that was set.
func TestAFileReadBeforeARestartIsNotOverwrittenBlindly(t *testing.T) {
	for name, clock := range map[string]time.Duration{
		"changed since":                    time.Hour,
		"our clock was set back since":     -24 * time.Hour,
		"the file server's clock is slow":  -time.Minute,
		"with the time it had when it was": 0,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			at := func(name string, when time.Time) {
				if err := os.Chtimes(filepath.Join(w.dir, name), when, when); err != nil {
					t.Fatal(err)
				}
			}
			now := time.Now()
			w.write("a.txt", "one\n")
			w.write("b.txt", "same\n")
			at("a.txt", now)
			s := w.open("call read {\"path\": \"a.txt\"}\ncall read {\"path\": \"b.txt\"}\n---\nsay read")
			w.turn(s, "read them")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			w.write("a.txt", "two\n")
			at("a.txt", now.Add(clock))
			at("b.txt", now.Add(time.Hour)) // touched, not changed
			s = w.open("call write {\"path\": \"a.txt\", \"content\": \"theirs\"}\ncall write {\"path\": \"b.txt\", \"content\": \"new\"}\n---\nwant changed on disk since it was read\nsay I see")
			w.turn(s, "write them")
			w.want(map[string]string{"a.txt": "two\n", "b.txt": "new"})
		})
	}
}

// A file that a return to an earlier message brought back is not taken for one that others
// changed, in the same process or in a later one.
func TestAFileBroughtBackByARewindMayBeEditedAgain(t *testing.T) {
	const edits = "call read {\"path\": \"a.txt\"}\n---\ncall edit {\"path\": \"a.txt\", \"old_string\": \"one\", \"new_string\": \"two\"}\n---\nsay edited\n---\n" +
		"call edit {\"path\": \"a.txt\", \"old_string\": \"one\", \"new_string\": \"two\"}\n---\nsay edited"
	for _, later := range []bool{false, true} {
		w := newWorkshop(t)
		w.write("a.txt", "one\n")
		s := w.open(edits)
		w.turn(s, "change it")
		w.turn(s, "/rewind 1")
		w.want(map[string]string{"a.txt": "one\n"})
		if later {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, again, _ := strings.Cut(edits, "say edited\n---\n")
			s = w.open(again)
		}
		w.turn(s, "change it")
		w.want(map[string]string{"a.txt": "two\n"})
	}
}

const killedTurn = `
call write {"path": "a", "content": "two"}
call bash {"command": "echo sh > b; echo c1 >> c; sleep 600"}
---
say never
`

// childDir is set in the environment of a child that is to be killed.
const childDir = "CODER_TEST_KILLED_IN"

// TestChildThatIsKilled is not a test of its own: it is what the next one kills.
func TestChildThatIsKilled(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("it is run by TestUndoAfterAKill")
	}
	w := &workshop{t: t, dir: dir}
	w.turn(w.open(killedTurn), "work")
}

func TestUndoAfterAKill(t *testing.T) {
	w := newWorkshop(t)
	w.write("a", "one")
	w.write("c", "c0\n")
	w.kill("c", "c0\nc1\n")
	w.write("c", "c0\nc1\nuser\n")

	s := w.open("say nothing")
	r := w.undo(s, undo.Request{})
	w.want(map[string]string{"a": "one", "b": "sh\n", "c": "c0\nc1\nuser\n"})
	if strings.Join(r.NotUndone, " ") != "b c" {
		t.Errorf("undo: %+v", r)
	}
	r = w.undo(s, undo.Request{All: true})
	w.want(map[string]string{"a": "one", "b": "sh\n", "c": "c0\nc1\nuser\n"})
	if len(r.Unchanged) != 2 || r.Unchanged[0].Path != "b" || r.Unchanged[1].Path != "c" {
		t.Errorf("undo all: %+v", r)
	}
	w.undo(s, undo.Request{All: true, Force: true})
	w.want(map[string]string{"a": "one", "b": "", "c": "c0\n"})
}

// kill runs the turn that is cut off in a process of its own, and ends that
// once a file holds a text.
func (w *workshop) kill(name, text string) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildThatIsKilled$")
	cmd.Env = append(os.Environ(), childDir+"="+w.dir)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	for range 90000 {
		if got, _ := os.ReadFile(filepath.Join(w.dir, name)); string(got) == text {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	w.want(map[string]string{name: text})
}

// Where git has every file, a command that changes nothing costs nothing
// either, and one that does can still be undone.
func TestACommandInACleanRepositoryKeepsNothing(t *testing.T) {
	w := newWorkshop(t)
	w.write("a.txt", "one\n")
	w.write("sub/b.txt", "two\n")
	w.write(".gitignore", ".coder/\n")
	for _, args := range []string{"init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm all"} {
		cmd := exec.Command("git", strings.Fields(args)...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git %s: %v %s", args, err, out)
		}
	}
	s := w.open("call bash {\"command\": \"true; :> /dev/null; sh -c true\"}\n---\nsay done\n---\ncall bash {\"command\": \"echo new > sub/c.txt; echo more >> a.txt\"}\n---\nsay done")
	w.turn(s, "nothing")
	w.wantNothingKept()
	w.turn(s, "something")
	w.want(map[string]string{"a.txt": "one\nmore\n", "sub/c.txt": "new\n"})
	w.undo(s, undo.Request{All: true})
	w.want(map[string]string{"a.txt": "one\n", "sub/c.txt": ""})
}

func (w *workshop) wantNothingKept() {
	w.t.Helper()
	if _, err := os.Stat(filepath.Join(w.dir, ".coder", "undo", "objects")); !errors.Is(err, os.ErrNotExist) {
		w.t.Errorf("something was kept: %v", err)
	}
}

// What happens in a folder that was added is kept and undone like the rest.
func TestAddedFoldersAreUndoneToo(t *testing.T) {
	w, added := newWorkshop(t), newWorkshop(t)
	w.added = []string{added.dir}
	w.write("a", "one")
	added.write("b", "b0")
	added.write("c", "c0\n")
	script := fmt.Sprintf(`
call write {"path": "a", "content": "two"}
call write {"path": %q, "content": "b1"}
call bash {"command": "cd %s && echo c1 >> c && mkdir d && echo e > d/e"}
---
say done
`, filepath.Join(added.dir, "b"), added.dir)
	s := w.open(script)
	w.turn(s, "work")
	added.want(map[string]string{"b": "b1", "c": "c0\nc1\n", "d/e": "e\n"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = w.open("say nothing")
	r := w.undo(s, undo.Request{})
	if len(r.NotUndone) != 3 {
		t.Errorf("undo: %+v", r)
	}
	w.want(map[string]string{"a": "one"})
	added.want(map[string]string{"b": "b0", "c": "c0\nc1\n"})
	w.undo(s, undo.Request{All: true})
	added.want(map[string]string{"b": "b0", "c": "c0\n", "d/e": ""})
	if strings.Contains(w.errs.String(), "undone") {
		t.Errorf("said %q", w.errs.String())
	}
}
