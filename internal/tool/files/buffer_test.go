package files_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

func TestWhatIsNotSavedInTheEditorIsReadAndNotWrittenOver(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"open.txt": "disk\n", "same.txt": "disk\n", "closed.txt": "disk\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	buffer := files.Buffer(func(_ context.Context, path string) (string, bool) {
		switch filepath.Base(path) {
		case "open.txt":
			return "typed\n", filepath.IsAbs(path)
		case "same.txt":
			return "disk\n", true
		}
		return "", false
	})
	run := func(one tool.Tool, args string) (string, error) {
		c, err := one.Prepare(t.Context(), json.RawMessage(args))
		if err != nil {
			return "", err
		}
		r, err := c.Run(t.Context(), nil)
		text, _ := json.Marshal(r.Value)
		return string(text), err
	}
	seen := &files.SeenFiles{}
	read := files.Read(ws, seen, files.Options{Buffer: buffer})
	for name, want := range map[string]string{"open.txt": `"content":"typed\n"`, "same.txt": `"content":"disk\n"`, "closed.txt": `"content":"disk\n"`} {
		text, err := run(read, `{"path":"`+name+`"}`)
		if err != nil || !strings.Contains(text, want) || strings.Contains(text, "unsaved") != (name == "open.txt") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	edit := files.RefuseUnsaved(files.Edit(ws, seen), ws, buffer)
	for name, ok := range map[string]bool{"open.txt": false, "same.txt": true, "closed.txt": true} {
		text, err := run(edit, `{"path":"`+name+`","old_string":"disk","new_string":"new"}`)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "unsaved") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if _, err := run(files.RefuseUnsaved(files.Write(ws, seen), ws, buffer), `{"path":"fresh.txt","content":"x"}`); err != nil {
		t.Errorf("a new file: %v", err)
	}
}
