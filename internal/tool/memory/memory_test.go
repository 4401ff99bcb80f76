package memory_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/authored/frontmatter"
	"coder/internal/authored/notes"
	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/memory"
	"coder/testkit/tooltest"
)

func options(t *testing.T) (memory.Options, string) {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, memory.Dir)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "tabs.md"), []byte("Use tabs\nin every file"), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	return memory.Options{
		Workspace: ws, Secret: func(s string) bool { return strings.Contains(s, "sk-") },
		Entries: func() []notes.Entry {
			all, _ := notes.List(frontmatter.Root{Path: memory.Dir, Files: os.DirFS(at)}, frontmatter.Root{})
			return append(all, notes.Entry{Name: "mine", Text: "mine", FromUser: true})
		},
	}, dir
}

func TestMemoryIsATool(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		o, dir := options(t)
		return tooltest.Fixture{
			Tool: memory.Memory(o), Dir: dir,
			Good: []string{`{"name":"tabs"}`, `{"name":"mine"}`},
			Bad:  []string{`{"name":"none"}`, `{"text":"the key is sk-1"}`, `{"name":"../x","text":"a"}`, `{"name":"mine","text":"a"}`, `{"colour":"red"}`},
		}
	})
}

func TestAnEntryIsWrittenOnlyWithAYes(t *testing.T) {
	o, dir := options(t)
	call, err := memory.Memory(o).Prepare(t.Context(), json.RawMessage(`{"text":"Call the Boss: Ada\nalways"}`))
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, memory.Dir, "call-the-boss-ada.md")
	if _, err := call.Run(t.Context(), io.Discard); err == nil {
		t.Error("it ran without an approval")
	}
	if _, err := os.Lstat(at); err == nil {
		t.Error("it wrote without an approval")
	}
	if _, err := call.Run(tool.WithApproval(t.Context(), true), io.Discard); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(at); err != nil || string(text) != "Call the Boss: Ada\nalways\n" {
		t.Errorf("%q, %v", text, err)
	}
	o.ReadOnlyReason = "closed"
	if _, err := memory.Memory(o).Prepare(t.Context(), json.RawMessage(`{"text":"x"}`)); err == nil {
		t.Error("a closed memory takes an entry")
	}
}

func TestALinkIsNoMemory(t *testing.T) {
	o, dir := options(t)
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("rules"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../AGENTS.md", filepath.Join(dir, memory.Dir, "rules.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := memory.Memory(o).Prepare(t.Context(), json.RawMessage(`{"name":"rules","text":"x"}`)); err == nil {
		t.Error("a link was taken for an entry")
	}
}
