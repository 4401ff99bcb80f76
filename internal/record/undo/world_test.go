package undo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/record/undo"
	"coder/internal/tool"
)

// tb is what a test and a property have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// world is a workspace with everything that undoing needs, and a log that
// outlives restarts.
type world struct {
	t       tb
	ctx     context.Context
	dir     string
	data    string
	ws      *workspace.Workspace
	store   *undo.Store
	keeper  *undo.Keeper
	history *undo.History
	log     []event.Record
	warned  []string
	ids     int
	added   []string
	clock   func() time.Time // dates requests
	o       undo.Options
	so      undo.StoreOptions
	held    []*os.File // what another program has open
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, ctx: t.Context(), dir: filepath.Join(dir, "ws"), data: filepath.Join(dir, "data")}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close() })
	w.clock = time.Now
	w.so, w.o = quick()
	w.so.Private = filepath.Join(dir, "private")
	w.restart()
	return w
}

// quick are options for tests: nobody pulls the plug.
func quick() (undo.StoreOptions, undo.Options) {
	door := program.NewOutside([]string{"PATH=" + os.Getenv("PATH")}, "/nowhere")
	return undo.StoreOptions{Now: time.Now, NoSync: true}, undo.Options{Now: time.Now, Launcher: door}
}

func (w *world) close() {
	if w.ws != nil {
		w.ws.Close()
		w.store.Close()
	}
}

// restart forgets all but what is on the disk and on record.
func (w *world) restart() {
	w.t.Helper()
	w.close()
	var err error
	if w.ws, err = workspace.Open(w.dir, w.added...); err != nil {
		w.t.Fatal(err)
	}
	w.store = undo.OpenStore(w.data, w.so)
	w.history = new(undo.History)
	for _, r := range w.log {
		w.history.Add(r)
	}
	o := w.o
	o.IsNeeded, o.LastTree = w.history.IsNeeded, w.history.Tree()
	if o.RecordTouched == nil {
		o.RecordTouched = touching(func(string) bool { return true }, true) // the command alone
	}
	o.Warn = func(s string) { w.warned = append(w.warned, s) }
	w.keeper = undo.New(w.ws, w.store, o)
}

// record puts an event on the log, in the form it has on the disk.
func (w *world) record(actor string, e event.Event) {
	w.t.Helper()
	r := event.Record{Seq: uint64(len(w.log) + 1), Time: time.Now(), Session: "s", Actor: actor, Event: e}
	line, err := event.Encode(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if r, _, err = event.Decode(line, event.LogOf(e)); err != nil {
		w.t.Fatal(err)
	}
	w.log = append(w.log, r)
	w.history.Add(r)
}

func (w *world) newID() string {
	w.ids++
	return fmt.Sprintf("call%d", w.ids)
}

// began is a call that has been requested.
type began struct {
	w    *world
	e    event.ToolCallRequested
	kept func() ([]event.FileChange, error)
}

// begin keeps and records what a call is about to do.
func (w *world) begin(task, author string, effects ...tool.Effect) began {
	w.t.Helper()
	kept, err := w.keeper.SaveOriginals(w.ctx, effects)
	if err != nil {
		w.t.Fatalf("Keep: %v", err)
	}
	e := event.ToolCallRequested{
		CallID: w.newID(), Tool: "some", Author: author, TaskID: task, Input: json.RawMessage("{}"),
		Timestamp: w.clock().UnixMilli(), Effects: effects, Before: kept.Before, Tree: kept.Tree,
	}
	w.record(author, e)
	return began{w, e, func() ([]event.FileChange, error) { return w.keeper.ChangesSince(w.ctx, kept) }}
}

// end records what the call did.
func (b began) end() []event.FileChange {
	b.w.t.Helper()
	changes, err := b.kept()
	if err != nil {
		b.w.t.Fatalf("Changes: %v", err)
	}
	b.w.record(b.e.Author, event.ToolCallCompleted{
		CallID: b.e.CallID, Tool: b.e.Tool, Author: b.e.Author, TaskID: b.e.TaskID,
		Output: json.RawMessage("{}"), Timestamp: time.Now().UnixMilli(), Changes: changes,
	})
	return changes
}

// edit is a call of a tool that says which files it changes.
func (w *world) edit(task string, do func(), paths ...string) []event.FileChange {
	w.t.Helper()
	var effects []tool.Effect
	for _, p := range paths {
		effects = append(effects, tool.Effect{Kind: tool.Write, Target: p})
	}
	b := w.begin(task, "main", effects...)
	do()
	return b.end()
}

// shell is a call of a command.
func (w *world) shell(task string, do func()) []event.FileChange {
	w.t.Helper()
	b := w.begin(task, "main", tool.Effect{Kind: tool.Exec, Target: "some command"})
	do()
	return b.end()
}

func (w *world) call() undo.Request {
	return undo.Request{NewID: w.newID, Emit: func(_ context.Context, e event.Event) error {
		w.record("user", e)
		return nil
	}}
}

// undo undoes; how is any of "all", "force", "dry".
func (w *world) undo(how ...string) undo.Plan {
	w.t.Helper()
	return w.undoThis(w.asked(how))
}

// undoTurn undoes a turn of the past.
func (w *world) undoTurn(turn string, how ...string) undo.Plan {
	w.t.Helper()
	c := w.asked(how)
	c.Turns = []string{turn}
	return w.undoThis(c)
}

func (w *world) undoThis(c undo.Request) undo.Plan {
	w.t.Helper()
	r, err := undo.Undo(w.ctx, w.keeper, w.history, c)
	if err != nil {
		w.t.Fatalf("Undo: %v", err)
	}
	return r
}

func (w *world) redo(how ...string) undo.Plan {
	w.t.Helper()
	r, err := undo.Redo(w.ctx, w.keeper, w.history, w.asked(how))
	if err != nil {
		w.t.Fatalf("Redo: %v", err)
	}
	return r
}

func (w *world) asked(how []string) undo.Request {
	c := w.call()
	c.All, c.Force, c.DryRun = slices.Contains(how, "all"), slices.Contains(how, "force"), slices.Contains(how, "dry")
	return c
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// put writes a file as anyone might, making directories.
func (w *world) put(name, text string, mode ...fs.FileMode) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	_ = os.Remove(w.path(name))
	w.must(os.WriteFile(w.path(name), []byte(text), 0o644))
	for _, m := range mode {
		w.must(os.Chmod(w.path(name), m))
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	w.must(os.RemoveAll(w.path(name)))
}

// tree describes everything in the workspace: bytes, modes, links, directories.
func (w *world) tree() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.dir, p)
		if err != nil || rel == "." {
			return err
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		all[rel], err = describe(p)
		return err
	})
	w.must(err)
	return all
}

func describe(p string) (string, error) {
	info, err := os.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch {
	case info.IsDir():
		return "dir " + info.Mode().Perm().String(), nil
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(p)
		return "link " + to, err
	}
	text, err := os.ReadFile(p)
	return fmt.Sprintf("%v %q", info.Mode().Perm(), text), err
}

func (w *world) wantTree(want map[string]string) {
	w.t.Helper()
	got := w.tree()
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if got[p] != want[p] {
			w.t.Errorf("%s = %.80s, want %.80s", p, got[p], want[p])
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			w.t.Errorf("%s = %.80s, want none", p, got[p])
		}
	}
}

// blobs lists what is in the store.
func (w *world) blobs() (list []string) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.data, "objects"), func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() {
			list = append(list, filepath.Base(filepath.Dir(p))+d.Name())
		}
		return err
	})
	w.must(err)
	return list
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a repository of what is there.
func (w *world) commit() {
	w.t.Helper()
	w.git("init", "-q")
	time.Sleep(20 * time.Millisecond) // let the file system's clock tick before the index is written
	w.git("add", "-A")
	w.git("commit", "-qm", "all")
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}
