package codesearch_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/host/codeindex"
	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/codesearch"
	"coder/testkit/tooltest"
)

func open(t *testing.T, files map[string]string) (tool.Tool, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	x := codeindex.New(ws, codeindex.Options{})
	t.Cleanup(func() { ws.Close() })
	return codesearch.SearchCode(ws, x, nil), dir
}

var project = map[string]string{
	"cmd/load.go":   "package cmd\n\n// parseConfig reads settings.\nfunc parseConfig(b []byte) error {\n\treturn nil\n}\n",
	"cmd/serve.go":  "package cmd\n\n// serve listens.\nfunc serve(cfg Config) {}\n",
	"web/config.ts": "export function parseConfig(text: string) {\n  return JSON.parse(text)\n}\n",
}

func TestSearchCodeKeepsTheContract(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		tl, dir := open(t, project)
		return tooltest.Fixture{
			Tool: tl, Dir: dir,
			Good: []string{`{"query":"where do we parse the config"}`, `{"query":"serve","path":"cmd","limit":3}`, `{"query":"zyzzyva"}`},
			Bad: []string{
				`{}`, `{"query":""}`, `{"query":" \n"}`, `{"query":"x","limit":-1}`, `{"query":"x","path":"../y"}`, `{"query":"x","path":"/etc"}`,
				fmt.Sprintf(`{"query":%q}`, strings.Repeat("word ", 1000)),
			},
		}
	})
}

type outcome struct {
	OK      bool
	Results []struct {
		Path, Symbol, Kind, Snippet string
		Line                        int
		EndLine                     int `json:"end_line"`
	}
	Count int
	Files int    `json:"indexed_files"`
	Part  bool   `json:"partial_index"`
	Hint  string `json:"hint"`
}

func run(t *testing.T, tl tool.Tool, args string) (outcome, tool.Result, error) {
	t.Helper()
	call, err := tl.Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	if !call.Plan().ReadOnly() {
		t.Errorf("plan %v is not one of reading", call.Plan())
	}
	r, err := call.Run(t.Context(), io.Discard)
	if err != nil {
		return outcome{}, r, err
	}
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return o, r, nil
}

func TestSearchCode(t *testing.T) {
	tl, _ := open(t, project)
	o, r, err := run(t, tl, `{"query":"where do we parse the config","path":"cmd"}`)
	if err != nil {
		t.Fatal(err)
	}
	if !o.OK || o.Count != len(o.Results) || o.Count == 0 || o.Files != 3 || o.Part || o.Hint != "" {
		t.Fatalf("outcome %+v", o)
	}
	first := o.Results[0]
	if first.Path != "cmd/load.go" || first.Line != 4 || first.EndLine != 6 || first.Symbol != "parseConfig" || first.Kind != "function" {
		t.Errorf("first %+v", first)
	}
	if !strings.Contains(first.Snippet, "4: func parseConfig(b []byte) error {") {
		t.Errorf("snippet %q", first.Snippet)
	}
	if r.Summary != fmt.Sprintf("%d results in 2 files", o.Count) {
		t.Errorf("summary %q", r.Summary)
	}
	if table, ok := r.Show.(display.Table); !ok || len(table.Rows) != o.Count || table.Rows[0][0].Text != "cmd/load.go:4" {
		t.Errorf("shown %v", r.Show)
	}
	for _, p := range o.Results {
		if !strings.HasPrefix(p.Path, "cmd/") {
			t.Errorf("%s is elsewhere", p.Path)
		}
	}
}

func TestSearchCodeFindsNothing(t *testing.T) {
	tl, _ := open(t, project)
	if o, _, err := run(t, tl, `{"query":"zyzzyva"}`); err != nil || o.Count != 0 || o.Hint == "" {
		t.Errorf("outcome %+v, %v", o, err)
	}
	if _, _, err := run(t, tl, `{"query":"parse","path":"nowhere"}`); err == nil {
		t.Error("searched a directory that is not there")
	}
	if _, _, err := run(t, tl, `{"query":"the of and"}`); err == nil || !strings.Contains(err.Error(), "no words") {
		t.Errorf("searched for nothing: %v", err)
	}
}

func TestSearchCodeIsBounded(t *testing.T) {
	files := make(map[string]string)
	for i := range 80 {
		files[fmt.Sprintf("f%d.go", i)] = "package x\n\nfunc widget() {\n" + strings.Repeat("\twidget(\""+strings.Repeat("界", 80)+"\")\n", 30) + "}\n"
	}
	tl, _ := open(t, files)
	o, r, err := run(t, tl, `{"query":"widget","limit":1000}`)
	if err != nil || o.Count != 50 {
		t.Fatalf("%d results, %v", o.Count, err)
	}
	b, _ := json.Marshal(r.Value)
	if len(b) > 64<<10 || o.Results[0].Snippet == "" || o.Results[49].Snippet != "" {
		t.Errorf("%d bytes, first %.40q, last %.40q", len(b), o.Results[0].Snippet, o.Results[49].Snippet)
	}
}

func TestSearchCodeHasItsNames(t *testing.T) {
	tl, _ := open(t, project)
	set, err := tool.NewSet(tl)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"search_code", "searchCode", "codebase_search"} {
		if _, ok := set.Lookup(name); !ok {
			t.Errorf("not known as %s", name)
		}
	}
	for spec := range set.InDialect(tool.CoAuthor).Specs() {
		if spec.Name != "searchCode" {
			t.Errorf("advertised as %s", spec.Name)
		}
	}
}
