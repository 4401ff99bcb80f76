package past

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/internal/record/undo"
)

// traced is what a session began with and what others did, as lines.
func traced(t *testing.T, kept keeper, records ...event.Record) (w *FileHistory, start, later string) {
	t.Helper()
	records = append(records, created("end"))
	w, err := TraceHistory(t.Context(), numbered(records...), uint64(len(records)), kept, never)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(s event.FileState) string { return s.Path + "=" + s.Hash + " " }
	for _, name := range slices.Sorted(maps.Keys(w.Start)) {
		start += lines(w.Start[name])
	}
	for _, seq := range slices.Sorted(maps.Keys(w.LaterChanges)) {
		list := w.LaterChanges[seq]
		slices.SortFunc(list, func(a, b event.FileState) int { return strings.Compare(a.Path, b.Path) })
		for _, s := range list {
			later += string(rune('0'+seq)) + ":" + lines(s)
		}
	}
	return w, strings.TrimSpace(start), strings.TrimSpace(later)
}

// changing are the records of a call that found and left files.
func changing(id string, before []event.FileState, tree string, saw []event.FileState, changes ...event.FileChange) []event.Record {
	return []event.Record{
		of("t", "", event.ToolCallRequested{CallID: id, Tool: "bash", Before: before, Tree: tree}),
		of("t", "", event.ToolCallCompleted{CallID: id, Tool: "bash", SeenFiles: saw, Changes: changes}),
	}
}

func TestTheBeginningIsWhatCallsFoundFirst(t *testing.T) {
	none := func(name string) event.FileState { return event.FileState{Path: name} }
	change := func(before, after event.FileState) event.FileChange {
		return event.FileChange{Before: before, After: after}
	}
	a1, a2, a3 := file("a", "1"), file("a", "2"), file("a", "3")
	trees := map[string][]event.FileState{"first": {a1, file("b", "1")}, "second": {a2}}
	many := map[string][]event.FileChange{"tree:x": {change(a1, a2), change(none("n"), file("n", "1"))}}
	for name, tt := range map[string]struct {
		calls        [][]event.Record
		start, later string
		whole        bool
	}{
		"a file that is read":        {[][]event.Record{changing("c", nil, "", []event.FileState{a1})}, "a=1", "", false},
		"one that is overwritten":    {[][]event.Record{changing("c", []event.FileState{a1}, "", nil, change(a1, a2))}, "a=1", "", false},
		"and then edited by others":  {[][]event.Record{changing("c", nil, "", nil, change(a1, a2)), changing("d", nil, "", []event.FileState{a3})}, "a=1", "2:a=3", false},
		"and then as it was left":    {[][]event.Record{changing("c", nil, "", nil, change(a1, a2)), changing("d", nil, "", []event.FileState{a2})}, "a=1", "", false},
		"one that is made":           {[][]event.Record{changing("c", []event.FileState{none("x/n")}, "", nil)}, "x=dir x/n=", "", false},
		"in a folder that is made":   {[][]event.Record{changing("c", []event.FileState{none("x"), none("x/n")}, "", nil)}, "x= x/n=", "", false},
		"in one of a folder made":    {[][]event.Record{changing("c", []event.FileState{none("x"), none("x/y/n")}, "", nil)}, "x= x/y/n=", "", false},
		"all files":                  {[][]event.Record{changing("c", nil, "first", nil)}, "a=1 b=1", "", true},
		"all files, changed later":   {[][]event.Record{changing("c", nil, "first", nil), changing("d", nil, "second", nil)}, "a=1 b=1", "2:a=2 2:b=", true},
		"a file that nobody had":     {[][]event.Record{changing("c", nil, "first", nil), changing("d", nil, "", []event.FileState{file("z", "1")})}, "a=1 b=1", "2:z=1", true},
		"a state that was not kept":  {[][]event.Record{changing("c", nil, "lost", []event.FileState{a1})}, "a=1", "", false},
		"changes on record as one":   {[][]event.Record{changing("c", nil, "", nil, change(file("a", "tree:x"), file("a", "tree:y")))}, "a=1 n=", "", false},
		"a file and then its mode":   {[][]event.Record{changing("c", nil, "", []event.FileState{{Path: "a", Hash: "1"}}), changing("d", nil, "", []event.FileState{a1})}, "a=1", "", false},
		"the same by another name":   {[][]event.Record{changing("c", nil, "", nil, change(none("a"), file("a", ContentHash([]byte("text"))))), changing("d", nil, "", []event.FileState{file("a", "git:1")})}, "a=", "", false},
		"other words by another one": {[][]event.Record{changing("c", nil, "", nil, change(none("a"), file("a", ContentHash([]byte("text"))))), changing("d", nil, "", []event.FileState{file("a", "git:2")})}, "a=", "2:a=git:2", false},
	} {
		kept := keeper{contents: map[string]string{"git:1": "text", "git:2": "other"}, trees: trees, many: many}
		w, start, later := traced(t, kept, slices.Concat(tt.calls...)...)
		if start != tt.start || later != tt.later || w.IsComplete != tt.whole {
			t.Errorf("%s: begins with %q (whole %v), others did %q", name, start, w.IsComplete, later)
		}
	}
	gone := numbered(changing("c", nil, "", nil, change(file("a", "tree:gone"), a2))...)
	if _, err := TraceHistory(t.Context(), gone, 2, keeper{}, never); err == nil || !strings.Contains(err.Error(), "the content of a was not saved") {
		t.Errorf("changes that were not kept are %v", err)
	}
}

// TestWhatUndoingMet: what others made of a file is not on record, only that they did.
func TestWhatUndoingMet(t *testing.T) {
	made := changing("c", nil, "", nil, event.FileChange{Before: file("a", "1"), After: file("a", "2")}, event.FileChange{Before: file("b", "1"), After: file("b", "2")},
		event.FileChange{Before: event.FileState{Path: "f"}, After: event.FileState{Path: "f", Hash: "dir"}})
	undone := func(tool string, p undo.Plan) []event.Record {
		p.Turn.ID = "t"
		out, _ := json.Marshal(p)
		return []event.Record{of("", "", event.ToolCallRequested{CallID: "u", Tool: tool}), of("", "", event.ToolCallCompleted{CallID: "u", Tool: tool, Output: out})}
	}
	stand := placeholder("a").Hash
	for name, tt := range map[string]struct {
		undone []event.Record
		later  string
	}{
		"left alone":             {undone("undo", undo.Plan{Unchanged: []undo.Note{{Path: "a"}}, Restored: []string{"b"}}), "3:a=" + stand},
		"all is brought back":    {undone("undo", undo.Plan{Restored: []string{"a", "b"}}), ""},
		"a person had done so":   {undone("undo", undo.Plan{Restored: []string{"a"}}), "3:b=1"},
		"what a command made":    {undone("undo", undo.Plan{Restored: []string{"a", "b"}, NotUndone: []string{"n", "d/"}}), "3:d=dir 3:n=" + stand},
		"a folder of the turn":   {undone("undo", undo.Plan{Restored: []string{"a", "b"}, NotUndone: []string{"f/"}}), ""},
		"left, and then read":    {append(undone("undo", undo.Plan{Unchanged: []undo.Note{{Path: "a"}}, Restored: []string{"b"}}), changing("r", nil, "", []event.FileState{file("a", "3")})...), "3:a=3"},
		"redone":                 {undone("redo", undo.Plan{Restored: []string{"a"}}), ""},
		"redone, but left":       {undone("redo", undo.Plan{Unchanged: []undo.Note{{Path: "b"}}}), "3:b=" + stand},
		"it says something else": {[]event.Record{of("", "", event.ToolCallCompleted{CallID: "u", Tool: "undo", Output: []byte(`"no"`)})}, ""},
	} {
		records := append([]event.Record{created("t")}, append(made, tt.undone...)...)
		if _, _, later := traced(t, keeper{}, records...); later != tt.later {
			t.Errorf("%s: others did %q, want %q", name, later, tt.later)
		}
	}
}

// TestWhatASubtaskChangedBelongsToItsTurn: undoing that brings it back, or says what it left.
func TestWhatASubtaskChangedBelongsToItsTurn(t *testing.T) {
	sub := of("u", "", event.TaskCreated{TaskID: "u", ParentID: "t", CallID: "c"})
	done := of("u", "", event.ToolCallCompleted{CallID: "d", Changes: []event.FileChange{{Before: file("a", "1"), After: file("a", "2")}}})
	undone := of("", "", event.ToolCallCompleted{CallID: "x", Tool: "undo", Output: []byte(`{"turn":{"id":"t"}}`)})
	asked := of("", "", event.ToolCallRequested{CallID: "x", Tool: "undo"})
	if _, _, later := traced(t, keeper{}, created("t"), sub, done, asked, undone); later != "3:a=1" {
		t.Errorf("others did %q", later)
	}
}

func TestWhatHappenedAfterATakeDoesNotMatter(t *testing.T) {
	records := numbered(slices.Concat(changing("c", nil, "", nil, event.FileChange{Before: file("a", "1"), After: file("a", "2")}), changing("d", nil, "", []event.FileState{file("a", "3")}))...)
	w, err := TraceHistory(t.Context(), records, 2, keeper{}, never)
	if err != nil || len(w.LaterChanges) != 0 || w.Start["a"].Hash != "1" {
		t.Errorf("others did %v: %v", w.LaterChanges, err)
	}
}

// layOut lays files out in a new folder.
func layOut(t *testing.T, kept keeper, start []event.FileState, later ...event.FileState) (*Copy, error) {
	t.Helper()
	c, err := NewFileHistory(start, map[uint64][]event.FileState{1: later}).Materialize(t.Context(), t.TempDir(), kept)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func TestFilesAreLaidOutAsTheyWere(t *testing.T) {
	kept := keeper{contents: map[string]string{"h": "text", "g": "more"}}
	w, err := layOut(t, kept, []event.FileState{
		file("deep/in/a", "h"), {Path: "run", Hash: "h", Mode: 0o755}, {Path: "empty", Hash: "dir", Mode: 0o750}, {Path: "link", Hash: "link", Link: "run"}, {Path: "none"},
		{Path: "plain", Hash: "h"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"deep/in/a": 0o644, "run": 0o755, "empty": fs.ModeDir | 0o750, "plain": 0o644} {
		if info, err := w.folder.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s is %v: %v", name, info, err)
		}
	}
	if to, err := w.folder.Readlink("link"); err != nil || to != "run" {
		t.Errorf("the link leads to %s: %v", to, err)
	}
	if _, err := w.folder.Lstat("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was not there is: %v", err)
	}
	steps := []event.FileState{{Path: "link", Hash: "g"}, {Path: "run", Hash: "g"}, {Path: "deep/in/a"}, {Path: "empty", Hash: "h"}, {Path: "gone/n"}}
	for _, s := range steps {
		if err := w.ApplyCall(t.Context(), []event.FileChange{{After: s}}); err != nil {
			t.Errorf("%s: %v", s.Path, err)
		}
	}
	for name, want := range map[string]string{"link": "more", "run": "more", "empty": "text"} {
		if got, err := w.folder.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q: %v", name, got, err)
		}
	}
	if info, _ := w.folder.Stat("run"); info.Mode() != 0o755 {
		t.Errorf("without a mode on record a file's becomes %v", info.Mode())
	}
}

func TestWhatGitWouldObeyIsNotLaidOut(t *testing.T) {
	kept := keeper{contents: map[string]string{"h": "text"}}
	for _, s := range []event.FileState{file(".git/config", "h"), file("a/.GIT/hooks/x", "h"), {Path: "x", Hash: "link", Link: ".git/config"}, file("objects/info/alternates", "h")} {
		if _, err := layOut(t, kept, []event.FileState{file("a.txt", "h"), s}); err == nil {
			t.Errorf("%s is laid out at the start", s.Path)
		}
		if _, err := layOut(t, kept, nil, s); err == nil {
			t.Errorf("%s is laid out later", s.Path)
		}
	}
	w, err := layOut(t, kept, []event.FileState{file(".git", "h"), {Path: ".git/gone"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.folder.Lstat(".git"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link of a worktree is overwritten: %v", err)
	}
}

func TestWhatCannotBeHadIsNamed(t *testing.T) {
	_, err := layOut(t, keeper{}, []event.FileState{file("b", "lost"), file("a", "lost"), file("/far/n", "lost")}, file("a", "lost"))
	missing, ok := errors.AsType[*MissingError](err)
	if !ok || !slices.Equal(missing.Files, []string{"/far/n", "a", "b"}) {
		t.Errorf("the error is %v", err)
	}
	w, err := layOut(t, keeper{}, nil, placeholder("x"), placeholder("d/"))
	if err != nil || w.Apply(t.Context(), 1) != nil {
		t.Fatalf("stand-ins cannot be had: %v", err)
	}
	if text, _ := w.folder.ReadFile("x"); string(text) != unknownContent {
		t.Errorf("x holds %q", text)
	}
}

func TestLayingOutIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := NewFileHistory([]event.FileState{file("a", "lost")}, nil).Materialize(ctx, t.TempDir(), keeper{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	for want, files := range map[string][]string{
		"the content of a.txt was not saved":             {"a.txt"},
		"the content of a, b, c, d, e (+1) was":          {"a", "b", "c", "d", "e", "f"},
		"/far/n.txt is outside the workspace, in a fold": {"a.txt", "/far/n.txt"},
	} {
		if got := (&MissingError{files}).Error(); !strings.Contains(got, want) {
			t.Errorf("%v: %s", files, got)
		}
	}
}

// TestAFileIsCalledAsCallsOnRecordCallIt: these are there without keys.
func TestAFileIsCalledAsCallsOnRecordCallIt(t *testing.T) {
	const key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	w, err := layOut(t, keeper{contents: map[string]string{"h": "text"}}, []event.FileState{file(key, "h")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.folder.Lstat(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key is a name: %v", err)
	}
	if text, err := w.folder.ReadFile(CopyName(key)); err != nil || string(text) != "text" {
		t.Errorf("it holds %q: %v", text, err)
	}
}

// keeper has contents by hash, and what stands for many.
type keeper struct {
	contents map[string]string
	many     map[string][]event.FileChange
	trees    map[string][]event.FileState
}

func (k keeper) Content(_ context.Context, s event.FileState, _ int64) ([]byte, error) {
	if text, ok := k.contents[s.Hash]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("not kept")
}

func (k keeper) Expand(_ context.Context, c event.FileChange) ([]event.FileChange, error) {
	if list, ok := k.many[c.Before.Hash]; ok {
		return list, nil
	}
	if len(c.Before.Hash) > 5 && c.Before.Hash[:5] == "tree:" {
		return nil, errors.New("not kept")
	}
	return []event.FileChange{c}, nil
}

func (k keeper) Files(_ context.Context, tree string) ([]event.FileState, error) {
	if list, ok := k.trees[tree]; ok {
		return list, nil
	}
	return nil, errors.New("not kept")
}

// file is a file with a content that the keeper has by its first letters.
func file(name, hash string) event.FileState {
	return event.FileState{Path: name, Hash: hash, Mode: 0o644}
}

// numbered are records in order.
func numbered(rs ...event.Record) []event.Record {
	for i := range rs {
		rs[i].Seq = uint64(i + 1)
	}
	return rs
}

func of(task, actor string, e event.Event) event.Record {
	return event.Record{Task: task, Actor: actor, Event: e}
}

func created(task string) event.Record {
	return of(task, event.ActorUser, event.TaskCreated{TaskID: task})
}

func never(event.Event) bool { return false }
