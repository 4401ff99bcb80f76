package golden

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/record/past"
)

// sample is a golden session of two requests and a file.
func sample() *Golden {
	say := func(seq uint64, e event.Event) event.Record {
		return event.Record{Seq: seq, Session: "s", Time: time.Date(2026, 11, 19, 8, 0, 0, 0, time.UTC), Event: e}
	}
	reply := event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "x"), Model: "m"}
	return &Golden{
		Format: Format, Session: "s", Root: "/workspace/x", Platform: "p",
		Start: []event.FileState{{Path: "a", Hash: past.ContentHash([]byte("one"))}}, Files: map[string][]byte{"a": []byte("one")},
		Contents: map[string][]byte{past.ContentHash([]byte("later")): []byte("later")},
		Records: []event.Record{
			say(1, event.TaskCreated{TaskID: "t"}), say(2, reply), say(3, event.ToolCallRequested{CallID: "c"}), say(4, event.ToolCallCompleted{CallID: "c"}), say(5, reply),
		},
	}
}

// TestAGoldenSessionIsReadAsItWasWritten, and never over another one.
func TestAGoldenSessionIsReadAsItWasWritten(t *testing.T) {
	g, dir := sample(), filepath.Join(t.TempDir(), "in", "golden")
	if err := g.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := g.Write(dir); err == nil {
		t.Error("it is written over another one")
	}
	got, err := Read(dir)
	if err != nil || len(got.Records) != 5 || got.Records[2].Seq != 3 || got.Session != "s" || got.Count != 5 {
		t.Errorf("it is read as %+v: %v", got, err)
	}
	for want, s := range map[string]event.FileState{"one": g.Start[0], "later": {Path: "b", Hash: past.ContentHash([]byte("later"))}} {
		if text, err := (StoredFiles{Dir: dir}).Content(t.Context(), s, maxGolden); err != nil || string(text) != want {
			t.Errorf("%s holds %q: %v", s.Path, text, err)
		}
	}
}

// TestWhatTheModelSaysIsAFileOfItsOwn, so that people can read and edit it.
func TestWhatTheModelSaysIsAFileOfItsOwn(t *testing.T) {
	g := sample()
	dir := filepath.Join(t.TempDir(), "golden")
	g.State, g.Pack = []byte("state"), []byte("pack")
	if err := g.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]int{modelFile: 2, expectedFile: 3, stateFile: 0, packFile: 0} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if got := strings.Count(string(text), "\n"); err != nil || got != lines {
			t.Errorf("%s has %d lines, want %d: %v", name, got, lines, err)
		}
	}
}

func TestAFileThatIsNotAsItWasCannotBeHad(t *testing.T) {
	g := sample()
	dir := filepath.Join(t.TempDir(), "golden")
	if err := g.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, filesDir, "a"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range []event.FileState{g.Start[0], {Path: "../" + manifestFile, Hash: "x"}, {Path: "a", Hash: "../" + manifestFile}, {Path: "n", Hash: "x"}} {
		if text, err := (StoredFiles{Dir: dir}).Content(t.Context(), s, maxGolden); err == nil {
			t.Errorf("%s of %s is %q", s.Path, s.Hash, text)
		}
	}
}

// TestAFolderThatIsNoGoldenSessionIsRefused with the part of it that is wrong.
func TestAFolderThatIsNoGoldenSessionIsRefused(t *testing.T) {
	const fine = `{"form":2,"session":"s","root":"/w"}`
	record := `{"type":"TaskCreated"`
	line, err := event.Encode(sample().Records[0])
	if err != nil {
		t.Fatal(err)
	}
	strange := strings.Replace(string(line), "TaskCreated", "Strange", 1)
	for why, tt := range map[string]struct{ manifest, model, expected string }{
		manifestFile:                       {`{`, "", ""},
		"not a golden session":             {`{"form":2,"session":"s"}`, "", ""},
		"not a golden session of format 2": {`{"form":3,"session":"s","root":"/w"}`, "", ""},
		"saved by an earlier version":      {`{"form":1,"session":"s","root":"/w","branch":"main"}`, "", ""},
		modelFile + ":1":                   {fine, record + "\n", ""},
		expectedFile + ":1: unknown kind":  {fine, "", strange + "\n"},
		stateFile + ": ":                   {`{"form":2,"session":"s","root":"/w","within":"."}`, "", ""},
		"not as they were saved":           {fine, "", ""},
		"restore them":                     {`{"form":2,"session":"s","root":"/w","records":2}`, "", string(line) + "\n"},
		"or save the session again":        {`{"form":2,"session":"s","root":"/w","records":1}`, "", string(line) + "\n" + string(line) + "\n"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{manifestFile: tt.manifest, modelFile: tt.model, expectedFile: tt.expected} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	for _, name := range []string{modelFile, expectedFile} {
		dir := t.TempDir()
		for _, part := range []string{manifestFile, modelFile, expectedFile} {
			if err := os.WriteFile(filepath.Join(dir, part), []byte(fine), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, modelFile), nil, 0o644), os.Remove(filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		_, err := Read(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder is one: %v", err)
	}
}

// TestAGoldenSessionLiesInItsRepository: a stranger may write any place into the manifest.
func TestAGoldenSessionLiesInItsRepository(t *testing.T) {
	for within, ok := range map[string]bool{".": true, "part": true, "a/b": true, "..": false, "a/../../..": false, "a/../b": false, "./a": false, "/tmp": false, "a//b": false} {
		dir := t.TempDir()
		text, _ := json.Marshal(map[string]any{"form": 2, "session": "s", "root": "/w", "within": within})
		line, _ := event.Encode(sample().Records[0])
		for name, data := range map[string][]byte{manifestFile: text, stateFile: nil, packFile: nil, modelFile: nil, expectedFile: line} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Read(dir); (err == nil) != ok {
			t.Errorf("%q: %v", within, err)
		}
	}
}

// TestAGoldenSessionHasNoSecretFiles, neither of its start nor of what others left since.
func TestAGoldenSessionHasNoSecretFiles(t *testing.T) {
	at := func(name string) event.FileState { return event.FileState{Path: name, Hash: "h", Size: 1} }
	w := past.NewFileHistory([]event.FileState{at(".env"), at("a")}, map[uint64][]event.FileState{3: {at("b"), at("sub/.env")}, 4: {{Path: "sub/.env"}}})
	left, err := DropSecrets(w)
	if err != nil || !slices.Equal(left, []string{".env", "sub/.env"}) || len(w.Start) != 1 || len(w.LaterChanges[3]) != 1 || len(w.LaterChanges[4]) != 1 {
		t.Errorf("left out %q of %v and %v: %v", left, w.Start, w.LaterChanges, err)
	}
	big := at("big")
	big.Size = maxBytes + 1
	if _, err := DropSecrets(past.NewFileHistory([]event.FileState{big}, nil)); err == nil {
		t.Error("it may be of any size")
	}
}
