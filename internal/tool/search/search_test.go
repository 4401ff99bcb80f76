package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/search"
	"coder/testkit/tooltest"

	"github.com/bmatcuk/doublestar/v4"
)

func open(t testing.TB, files map[string]string) (tools tool.Set, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return openAt(t, dir), dir
}

func openAt(t testing.TB, dir string) tool.Set {
	t.Helper()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	tools, err := tool.NewSet(search.All(ws, search.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func put(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

type outcome struct {
	OK           bool
	Matches      []string
	Count, Files int
	Truncated    bool
	Large        int `json:"skipped_large"`
	Unreadable   []string
	Binary       []string
	Note         string
}

func call(t testing.TB, tools tool.Set, name, args string) (o outcome, err error) {
	t.Helper()
	tl, _ := tools.Lookup(name)
	c, err := tl.Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		return o, err
	}
	r, err := c.Run(t.Context(), io.Discard)
	if err != nil {
		return o, err
	}
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &o); err != nil || o.Matches == nil {
		t.Fatalf("result %s: %v", b, err)
	}
	return o, nil
}

func must(t testing.TB, tools tool.Set, name, args string) outcome {
	t.Helper()
	o, err := call(t, tools, name, args)
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return o
}

var tree = map[string]string{
	".gitignore":            "*.log\nout/\n",
	"main.go":               "package main\n\nfunc main() {\n\thello()\n}\n",
	"util/hello.go":         "package util\n\n// Hello says hello.\nfunc Hello() {}\n",
	"util/hello_test.go":    "package util\n\nfunc TestHello() {}\n",
	"web/[id]/page.tsx":     "hello page\n",
	"crlf.txt":              "one\r\nhello\r\nthree\r\n",
	"a.log":                 "hello log\n",
	"out/x.go":              "hello out\n",
	"node_modules/m/i.js":   "hello module\n",
	".git/config":           "hello git\n",
	".github/workflows/c.y": "hello: flow\n",
	"bin":                   "hello\x00\n",
	"bom.txt":               "\ufefffirst\n",
}

func TestContract(t *testing.T) {
	for name, f := range map[string]tooltest.Fixture{
		"glob": {Good: []string{`{"pattern":"**/*.go"}`, `{"pattern":"*","path":"util"}`},
			Bad: []string{`{"pattern":""}`, `{"pattern":"[a"}`, `{"pattern":"../*"}`, `{"pattern":"/etc/*"}`, `{"pattern":"**/../x"}`, `{"pattern":"*","path":".."}`, `{"pattern":"*","limit":-1}`, `{"pattern":"{a,{b,{c,{d,{e,f}}}}}"}`}},
		"grep": {Good: []string{`{"pattern":"hello"}`, `{"query":"func \\w+","include":"*.go","context":1}`, `{"regex":"H","-i":true,"path":"main.go"}`},
			Bad: []string{`{"pattern":""}`, `{"pattern":"("}`, `{"pattern":"x","path":"../"}`, `{"pattern":"x","include":"[a"}`, `{"pattern":"x","context":-1}`, `{"pattern":"x","context":999}`, `{"pattern":"(?=x)"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
				tools, dir := open(t, tree)
				f.Dir = dir
				f.Tool, _ = tools.Lookup(name)
				return f
			})
		})
	}
}

func TestGlob(t *testing.T) {
	tools, dir := open(t, tree)
	for _, tc := range []struct{ args, want string }{
		{`{"pattern":"*.go"}`, "main.go"},
		{`{"pattern":"**/*.go"}`, "main.go util/hello.go util/hello_test.go"},
		{`{"pattern":"util/*_test.go"}`, "util/hello_test.go"},
		{`{"pattern":"*.go","path":"util"}`, "util/hello.go util/hello_test.go"},
		{`{"pattern":"{main,util/hello}.go"}`, "main.go util/hello.go"},
		{`{"pattern":"` + dir + `/util/h*o.go"}`, "util/hello.go"},
		{`{"pattern":"*.tsx","path":"web/[id]"}`, "web/[id]/page.tsx"},
		{`{"pattern":"web/\\[id\\]/*"}`, "web/[id]/page.tsx"},
		{`{"pattern":".github/**"}`, ".github/workflows/c.y"},
		{`{"pattern":"out/*.go"}`, "out/x.go"},
		{`{"pattern":"node_modules/**/*.js"}`, "node_modules/m/i.js"},
		{`{"pattern":"**/*.log"}`, ""},
		{`{"pattern":"main.go"}`, "main.go"},
		{`{"pattern":"util"}`, ""},
	} {
		o := must(t, tools, "glob", tc.args)
		slices.Sort(o.Matches)
		if strings.Join(o.Matches, " ") != tc.want || o.Count != len(o.Matches) || o.Truncated {
			t.Errorf("glob %s = %+v, want %s", tc.args, o, tc.want)
		}
	}
	if _, err := call(t, tools, "glob", `{"pattern":"none/*"}`); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("glob in a missing directory: %v", err)
	}
}

func TestGlobNewestFirst(t *testing.T) {
	tools, dir := open(t, map[string]string{"a": "", "b": "", "c": "", "d/e": ""})
	for i, name := range []string{"b", "d/e", "a", "c"} {
		at := time.Unix(1_000_000-int64(i), 0)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if o := must(t, tools, "glob", `{"pattern":"**"}`); strings.Join(o.Matches, " ") != "b d/e a c" {
		t.Errorf("glob = %q", o.Matches)
	}
	if o := must(t, tools, "glob", `{"pattern":"**","limit":2}`); strings.Join(o.Matches, " ") != "b d/e" || !o.Truncated {
		t.Errorf("glob of 2 = %+v", o)
	}
}

func TestGrep(t *testing.T) {
	tools, _ := open(t, tree)
	for _, tc := range []struct {
		args string
		want []string
	}{
		{`{"pattern":"hello","include":"*.go"}`, []string{"main.go:4:\thello()", "util/hello.go:3:// Hello says hello."}},
		{`{"pattern":"HELLO\\(","ignore_case":true,"path":"util"}`, []string{"util/hello.go:4:func Hello() {}", "util/hello_test.go:3:func TestHello() {}"}},
		{`{"pattern":"^func \\w+","include":"util/*"}`, []string{"util/hello.go:4:func Hello() {}", "util/hello_test.go:3:func TestHello() {}"}},
		{`{"pattern":"^hello$"}`, []string{"crlf.txt:2:hello"}},
		{`{"pattern":"e$","path":"crlf.txt"}`, []string{"crlf.txt:1:one", "crlf.txt:3:three"}},
		{`{"pattern":"hello","path":"out"}`, []string{"out/x.go:1:hello out"}},
		{`{"pattern":"hello","path":"a.log"}`, []string{"a.log:1:hello log"}},
		{`{"pattern":"flow"}`, []string{".github/workflows/c.y:1:hello: flow"}},
		{`{"pattern":"hello","include":"*.tsx"}`, []string{"web/[id]/page.tsx:1:hello page"}},
		{`{"pattern":"none at all"}`, []string{}},
		{`{"pattern":"^first"}`, []string{"bom.txt:1:first"}},
		{`{"pattern":"hello (log|out|module|git)"}`, []string{}},
		{`{"pattern":"hello","path":"main.go","context":1}`, []string{"main.go-3-func main() {", "main.go:4:\thello()", "main.go-5-}"}},
		{`{"pattern":"^$","path":"main.go"}`, []string{"main.go:2:"}},
		{`{"pattern":"main\\(\\) \\{\\s+hello"}`, []string{}}, // line by line
	} {
		o := must(t, tools, "grep", tc.args)
		if !slices.Equal(o.Matches, tc.want) || o.Truncated {
			t.Errorf("grep %s = %+v\nwant %q", tc.args, o, tc.want)
		}
	}
	if _, err := call(t, tools, "grep", `{"pattern":"x","path":"bin"}`); err == nil || !strings.Contains(err.Error(), "binary") {
		t.Errorf("grep in a binary file: %v", err)
	}
	if _, err := call(t, tools, "grep", `{"pattern":"x","path":"none"}`); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("grep in a missing file: %v", err)
	}
}

func TestGrepContext(t *testing.T) {
	tools, _ := open(t, map[string]string{"a": "1\nx2\n3\n4\nx5\n6\n7\n8\n9\n10\nx11", "b": "x\n"})
	o := must(t, tools, "grep", `{"pattern":"x","context":1}`)
	want := "a-1-1 a:2:x2 a-3-3 a-4-4 a:5:x5 a-6-6 -- a-10-10 a:11:x11 -- b:1:x"
	if got := strings.Join(o.Matches, " "); got != want || o.Count != 4 || o.Files != 2 {
		t.Errorf("grep = %s, count %d, files %d\nwant   %s", got, o.Count, o.Files, want)
	}
	o = must(t, tools, "grep", `{"pattern":"x","context":3,"path":"a"}`)
	want = "a-1-1 a:2:x2 a-3-3 a-4-4 a:5:x5 a-6-6 a-7-7 a-8-8 a-9-9 a-10-10 a:11:x11"
	if got := strings.Join(o.Matches, " "); got != want {
		t.Errorf("grep = %s\nwant   %s", got, want)
	}
}

func TestGrepIsBounded(t *testing.T) {
	files := map[string]string{
		"0large":   strings.Repeat("needle and more\n", 200_000),
		"longline": "needle" + strings.Repeat("世", 100_000) + "\n",
	}
	for i := range 50 {
		files[fmt.Sprintf("f%02d", i)] = strings.Repeat("needle "+strings.Repeat("x", 200)+"\n", 20)
	}
	tools, _ := open(t, files)
	o := must(t, tools, "grep", `{"pattern":"needle"}`)
	if o.Count != 200 || !o.Truncated || o.Large != 1 || o.Matches[0][:4] != "f00:" {
		t.Errorf("count %d, truncated %v, large %d, first %.20q", o.Count, o.Truncated, o.Large, o.Matches[0])
	}
	o = must(t, tools, "grep", `{"pattern":"needle","max_matches":5}`)
	if o.Count != 5 || !o.Truncated || o.Files != 1 {
		t.Errorf("of 5: %+v", o)
	}
	o = must(t, tools, "grep", `{"pattern":"needle","max_matches":100000}`)
	if size := len(strings.Join(o.Matches, "\n")); size > 66<<10 || !o.Truncated {
		t.Errorf("%d bytes, truncated %v", size, o.Truncated)
	}
	o = must(t, tools, "grep", `{"pattern":"needle","path":"longline"}`)
	if len(o.Matches[0]) > 2100 || !strings.HasSuffix(o.Matches[0], "…") || o.Truncated {
		t.Errorf("long line: %d bytes, truncated %v", len(o.Matches[0]), o.Truncated)
	}
	o = must(t, tools, "grep", `{"pattern":"needle","path":"0large","max_matches":3}`)
	if o.Count != 3 {
		t.Errorf("a large file that is named: %+v", o)
	}
}

func TestGrepSaysTruncatedOnlyIfItIs(t *testing.T) {
	files := map[string]string{"a": "needle\nneedle\n"}
	for i := range 100 {
		files[fmt.Sprintf("b%d", i)] = "hay\n"
	}
	tools, _ := open(t, files)
	for limit, want := range map[int]bool{1: true, 2: false, 3: false} {
		if o := must(t, tools, "grep", fmt.Sprintf(`{"pattern":"needle","max_matches":%d}`, limit)); o.Truncated != want {
			t.Errorf("with %d matches wanted: %+v", limit, o)
		}
	}
}

// The answer is the same however many files are searched at a time.
func TestGrepIsDeterministic(t *testing.T) {
	files := make(map[string]string)
	for i := range 200 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = strings.Repeat("x\n", i%5) + "needle\n"
	}
	tools, _ := open(t, files)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first []string
	for i := range 20 {
		runtime.GOMAXPROCS(1 + i%4)
		o := must(t, tools, "grep", `{"pattern":"needle","max_matches":30}`)
		if i == 0 {
			first = o.Matches
		}
		if !slices.Equal(o.Matches, first) {
			t.Fatalf("run %d: %q\nfirst: %q", i, o.Matches, first)
		}
	}
}

func TestSearchOverLoopsAndHoles(t *testing.T) {
	tools, dir := open(t, map[string]string{"a/x.go": "needle\n", "b/y.go": "needle\n"})
	outside := t.TempDir()
	put(t, outside+"/z.go", "needle\n")
	for from, to := range map[string]string{"a/up": "..", "a/self": ".", "out": outside, "dead": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	if o := must(t, tools, "grep", `{"pattern":"needle"}`); o.Count != 2 {
		t.Errorf("grep = %+v", o)
	}
	if o := must(t, tools, "glob", `{"pattern":"**/*.go"}`); o.Count != 2 {
		t.Errorf("glob = %+v", o)
	}
	for _, name := range []string{"grep", "glob"} {
		if _, err := call(t, tools, name, `{"pattern":"*","path":"out"}`); name == "glob" && !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("%s outside: %v", name, err)
		}
	}
	if os.Getuid() == 0 {
		return // nothing is unreadable to root
	}
	if err := os.Chmod(dir+"/a", 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir+"/a", 0o755)
	if o := must(t, tools, "grep", `{"pattern":"needle"}`); o.Count != 1 || !slices.Equal(o.Unreadable, []string{"a"}) {
		t.Errorf("grep with an unreadable directory = %+v", o)
	}
}

func TestSearchStops(t *testing.T) {
	tools, _ := open(t, map[string]string{"f": strings.Repeat(strings.Repeat("a", 999)+"\n", 16_000)})
	for name, args := range map[string]string{
		"glob": `{"pattern":"**"}`,
		"grep": `{"pattern":"(a?){50}[bc]","path":"f"}`, // would take minutes
	} {
		tl, _ := tools.Lookup(name)
		c, err := tl.Prepare(t.Context(), json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if name == "glob" {
			cancel()
		}
		if _, err := c.Run(ctx, io.Discard); err == nil || !errors.Is(err, ctx.Err()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, p := range []string{"**/*.go", "{a,b}*", "[!a-z]", "\\*", "a/**/b/**/c", "**/{x,y/**}/*", "[", "/**", ".."} {
		f.Add(p, "util/hello.go")
	}
	tools, _ := open(f, tree)
	tl, _ := tools.Lookup("glob")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		args, err := json.Marshal(map[string]string{"pattern": pattern, "path": path})
		if err != nil {
			return
		}
		c, err := tl.Prepare(t.Context(), args)
		if err != nil {
			return
		}
		if !doublestar.ValidatePattern(strings.ToValidUTF8(pattern, "\ufffd")) {
			t.Fatalf("pattern %q was let through", pattern)
		}
		if r, err := c.Run(t.Context(), io.Discard); err == nil && r.Value == nil {
			t.Fatal("no result")
		}
	})
}
