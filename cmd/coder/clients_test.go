package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/core/event"
	"coder/testkit/eventtest"

	"github.com/google/jsonschema-go/jsonschema"
)

// spoken is what the program says to programs: its schema, lines of a session, and outputs by command.
type spoken struct {
	schema  string
	lines   []string
	outputs map[string][]string
}

// speak runs a session and every command that prints JSON.
func speak(t *testing.T) (said spoken) {
	t.Helper()
	p := newProgram(t)
	p.file("model", "call read {\"path\": \"a.txt\"}\n---\ncall write {\"path\": \"b.txt\", \"content\": \"x\\n\"}\n---\nsay done\nusage 100 10\n")
	p.file("a.txt", "hello\n")
	run := func(args ...string) []string {
		out, stderr, code := p.run(args...)
		if code != 0 && code != 1 {
			t.Fatalf("%v: code %d: %s", args, code, stderr)
		}
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	said.schema = strings.Join(run("events", "schema"), "\n")
	said.lines = run("-p", "--auto-approve", "--session-id", "s", "--script", "model", "--events", "native", "go")
	said.outputs = make(map[string][]string)
	for name, args := range map[string]string{
		"audit": "audit show s", "blame": "blame b.txt", "config": "config list", "config get": "config get ui.theme", "config set": "config set ui.lang en",
		"context": "context s", "doctor": "doctor", "golden list": "golden list", "mcp": "mcp list", "plugin": "plugin list",
		"policy check": "policy check ls", "policy list": "policy list", "policy test": "policy test --against sessions", "prune": "prune", "replay": "replay s --verify",
		"search": "search done", "sessions": "sessions", "sessions from": "sessions --from claude", "tasks": "tasks", "trust": "trust --yes", "usage": "usage",
		"version": "version", "why": "why b.txt:1", "worktree list": "worktree list",
	} {
		said.outputs[name] = run(append(strings.Fields(args), "--json")...)
	}
	return said
}

// part returns the schema of a part of the document.
func part(t *testing.T, text, ref string) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	s.Ref = ref
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func valid(t *testing.T, s *jsonschema.Resolved, what, line string) {
	t.Helper()
	var v any
	err := json.Unmarshal([]byte(line), &v)
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", what, err, line)
	}
}

// TestTheSchemaHolds holds every line and output against the schema, and the types in clients against both.
func TestTheSchemaHolds(t *testing.T) {
	said := speak(t)
	lines := part(t, said.schema, "#/$defs/Event")
	for _, line := range said.lines {
		var l struct{ Type string }
		_ = json.Unmarshal([]byte(line), &l) // else it has no type
		valid(t, part(t, said.schema, "#/$defs/"+l.Type+"Event"), "a line", line)
	}
	for _, e := range eventtest.Samples() {
		if _, foreign := e.(event.Unknown); foreign {
			continue
		}
		line, err := event.Encode(eventtest.Records("s", 1, e)[0])
		if err != nil {
			t.Fatal(err)
		}
		name, _ := event.WireName(e)
		valid(t, part(t, said.schema, "#/$defs/"+name+"Event"), name, string(line))
	}
	if err := lines.Validate(map[string]any{"type": "Notice", "v": 1}); err == nil {
		t.Error("a line without a payload is taken for one")
	}
	for name, all := range said.outputs {
		s := part(t, said.schema, "#/$defs/Outputs/properties/"+strings.ReplaceAll(name, " ", "%20"))
		for _, line := range all {
			valid(t, s, name, line)
		}
	}
	t.Run("fresh", func(t *testing.T) { clientsAreFresh(t, said) })
	t.Run("python", func(t *testing.T) { pythonReads(t, said) })
	t.Run("typescript", func(t *testing.T) { typescriptReads(t, said) })
}

// clientsAreFresh compares the types in clients with new ones.
func clientsAreFresh(t *testing.T, said spoken) {
	dir := t.TempDir()
	for _, name := range []string{"typescript", "python"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "../../testkit/clients", dir)
	cmd.Stdin = strings.NewReader(said.schema)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"typescript/coder.d.ts", "python/coder_types.py"} {
		want, _ := os.ReadFile(filepath.Join(dir, name))
		if got, err := os.ReadFile(filepath.Join("../../clients", name)); err != nil || string(got) != string(want) {
			t.Errorf("clients/%s is stale: run make clients (%v)", name, err)
		}
	}
}

// pythonReads checks every line and output against the Python types, as far as types say something at run time.
func pythonReads(t *testing.T, said spoken) {
	python, err := exec.LookPath("python3")
	if err != nil || exec.CommandContext(t.Context(), python, "-c", "from typing import NotRequired").Run() != nil {
		t.Skip("Python 3.11 or newer is not there")
	}
	in, _ := json.Marshal(map[string]any{"lines": said.lines, "outputs": said.outputs})
	cmd := exec.CommandContext(t.Context(), python, "testdata/drive/types.py", "../../clients/python")
	cmd.Stdin = strings.NewReader(string(in))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "typed\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// typescriptReads has the compiler check every line and output as a value of its type.
func typescriptReads(t *testing.T, said spoken) {
	tsc := filepath.Join(sdks(t), "node_modules", ".bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		t.Skip("typescript is not there (make tools installs it)")
	}
	var b strings.Builder
	b.WriteString("import type { Event, Outputs } from \"./coder\";\nexport const lines: Event[] = [\n" + strings.Join(said.lines, ",\n") + "];\n")
	for name, all := range said.outputs {
		fmt.Fprintf(&b, "export const %s: NonNullable<Outputs[%q]>[] = [%s];\n", strings.ReplaceAll(name, " ", "_")+"_", name, strings.Join(all, ","))
	}
	dir := t.TempDir()
	types, err := os.ReadFile("../../clients/typescript/coder.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"coder.d.ts": string(types), "said.ts": b.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), tsc, "--strict", "--noEmit", "--target", "es2022", filepath.Join(dir, "said.ts"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
