package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/core/event"
)

// learnt is the golden session of a rerun that a call in it changed files in.
func learnt(t *testing.T) (*rig, *Golden) {
	t.Helper()
	kept := keeper{contents: map[string]string{"h1": "one", "h2": "made in COPY, was /ws", "h3": "by others", "h4": "key"}}
	done := func(hash string) event.Record {
		return of("t", "", event.ToolCallCompleted{CallID: "c", Tool: "bash", Output: []byte(`{"stdout":"in /ws"}`), DurationMs: 7, Changes: []event.FileChange{
			{Before: file("a", "h1"), After: file("a", hash)}, {Before: file("b", "h1"), After: file("b", "h1")}, {After: file(".env", "h4")}, {After: event.FileState{Path: "d", Hash: "dir"}},
		}})
	}
	asked := of("t", "", event.ToolCallRequested{CallID: "c", Tool: "bash", Tree: "tree", Repository: "state", Confined: "x", Before: []event.FileState{file("a", "h1")}})
	later := map[uint64][]event.FileState{4: {file("o", "h3")}}
	take := New("s", "/ws", numbered(created("t"), replied("t", "look at /ws"), asked, done("h2"), replied("t", "end")))
	r := follow(t, take, kept, later, file("a", "h1"), file("b", "h1"))
	kept.contents["h2"] = strings.Replace(kept.contents["h2"], "COPY", r.copy.Dir(), 1)
	here := strings.NewReplacer("/ws", r.copy.Dir())
	for _, rec := range take.Records {
		line, err := event.Encode(rec)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode([]byte(here.Replace(string(line))))
		if err != nil {
			t.Fatal(err)
		}
		again.Seal = "sealed"
		if err := r.make(again); err != nil {
			t.Fatal(err)
		}
	}
	g, err := r.Golden(t.Context(), Golden{Session: "s", Root: "/workspace/x", Platform: "p", Except: []uint64{4, 9}})
	if err != nil {
		t.Fatal(err)
	}
	return r, g
}

// TestAGoldenSessionTellsNothingOfWhereItWasMade, and has all that it takes to be run again.
func TestAGoldenSessionTellsNothingOfWhereItWasMade(t *testing.T) {
	r, g := learnt(t)
	dir := filepath.Join(t.TempDir(), "in", "golden")
	if err := g.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := g.Write(dir); err == nil {
		t.Error("it is written over another one")
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		text, _ := os.ReadFile(name)
		for _, private := range []string{r.dir, `/ws"`, "in /ws", "sealed", "key", `"tree"`, `"state"`} {
			if strings.Contains(string(text), private) {
				t.Errorf("%s tells of %s:\n%s", name, private, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadGolden(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Records) != 5 || read.Records[3].Seq != 4 || read.Except[0] != 4 || read.Except[1] != 9 || read.Form != goldenForm || len(read.Start) != 2 {
		t.Errorf("it is read as %+v", read)
	}
	kept := Kept{Dir: dir}
	content := func(s event.FileState) string {
		text, err := kept.Content(context.Background(), s, maxRead)
		if err != nil {
			t.Errorf("%s: %v", s.Path, err)
		}
		return string(text)
	}
	changes := read.Records[3].Event.(event.ToolCallCompleted).Changes
	if got := content(changes[0].After); got != "made in /workspace/x, was /workspace/x" {
		t.Errorf("a becomes %q", got)
	}
	if got := content(read.Later[4][0]); got != "by others" {
		t.Errorf("others left %q", got)
	}
	if got := content(read.Start[0]) + content(changes[1].After); got != "oneone" {
		t.Errorf("the start holds %q", got)
	}
	if _, err := kept.Content(t.Context(), changes[2].After, maxRead); err == nil {
		t.Error("a secret file is in it")
	}
	if list, err := kept.Expand(t.Context(), changes[0]); len(list) != 1 || err != nil {
		t.Errorf("a change becomes %d: %v", len(list), err)
	}
}

// TestWhatTheModelSaysIsAFileOfItsOwn, so that people can read and edit it.
func TestWhatTheModelSaysIsAFileOfItsOwn(t *testing.T) {
	_, g := learnt(t)
	dir := filepath.Join(t.TempDir(), "golden")
	g.State, g.Pack = []byte("state"), []byte("pack")
	if err := g.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]int{model: 2, expected: 3, stateFile: 0, packFile: 0} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if got := strings.Count(string(text), "\n"); err != nil || got != lines {
			t.Errorf("%s has %d lines, want %d: %v", name, got, lines, err)
		}
	}
}

func TestAFileThatIsNotAsItWasCannotBeHad(t *testing.T) {
	_, g := learnt(t)
	dir := filepath.Join(t.TempDir(), "golden")
	if err := g.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, files, "a"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range []event.FileState{g.Start[0], {Path: "../" + manifest, Hash: "x"}, {Path: "a", Hash: "../" + manifest}, {Path: "n", Hash: "x"}} {
		if text, err := (Kept{Dir: dir}).Content(t.Context(), s, maxRead); err == nil {
			t.Errorf("%s of %s is %q", s.Path, s.Hash, text)
		}
	}
}

// TestAFolderThatIsNoGoldenSessionIsRefused with the part of it that is wrong.
func TestAFolderThatIsNoGoldenSessionIsRefused(t *testing.T) {
	const fine = `{"form":2,"session":"s","root":"/w"}`
	record := `{"type":"TaskCreated"`
	line, err := event.Encode(numbered(created("t"))[0])
	if err != nil {
		t.Fatal(err)
	}
	strange := strings.Replace(string(line), "TaskCreated", "Strange", 1)
	for why, tt := range map[string]struct{ manifest, model, expected string }{
		manifest:                           {`{`, "", ""},
		"not a golden session":             {`{"form":2,"session":"s"}`, "", ""},
		"not a golden session of format 2": {`{"form":3,"session":"s","root":"/w"}`, "", ""},
		"saved by an earlier version":      {`{"form":1,"session":"s","root":"/w","branch":"main"}`, "", ""},
		model + ":1":                       {fine, record + "\n", ""},
		expected + ":1: unknown kind":      {fine, "", strange + "\n"},
		stateFile + ": ":                   {`{"form":2,"session":"s","root":"/w","within":"."}`, "", ""},
		"not as they were saved":           {fine, "", ""},
		"restore them":                     {`{"form":2,"session":"s","root":"/w","records":2}`, "", string(line) + "\n"},
		"or save the session again":        {`{"form":2,"session":"s","root":"/w","records":1}`, "", string(line) + "\n" + string(line) + "\n"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{manifest: tt.manifest, model: tt.model, expected: tt.expected} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadGolden(dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	for _, name := range []string{model, expected} {
		dir := t.TempDir()
		for _, part := range []string{manifest, model, expected} {
			if err := os.WriteFile(filepath.Join(dir, part), []byte(fine), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, model), nil, 0o644), os.Remove(filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		_, err := ReadGolden(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if _, err := ReadGolden(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder is one: %v", err)
	}
}

// TestAGoldenSessionLiesInItsRepository: a stranger may write any place into the manifest.
func TestAGoldenSessionLiesInItsRepository(t *testing.T) {
	for within, ok := range map[string]bool{".": true, "part": true, "a/b": true, "..": false, "a/../../..": false, "a/../b": false, "./a": false, "/tmp": false, "a//b": false} {
		dir := t.TempDir()
		text, _ := json.Marshal(map[string]any{"form": 2, "session": "s", "root": "/w", "within": within})
		line, _ := event.Encode(numbered(created("t"))[0])
		for name, data := range map[string][]byte{manifest: text, stateFile: nil, packFile: nil, model: nil, expected: line} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadGolden(dir); (err == nil) != ok {
			t.Errorf("%q: %v", within, err)
		}
	}
}
