package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"coder/internal/tool"
	"coder/internal/toolbox/search"
	"coder/internal/workspace"
)

var mixed = map[string]string{
	"sub/.gitignore":    "secret.txt\n!keep.log\n/anchored\n",
	"sub/secret.txt":    "hello secret\n",
	"sub/keep.log":      "hello keep\n",
	"sub/anchored":      "hello anchored\n",
	"sub/x/anchored":    "hello not anchored\n",
	".ignore":           "main.go\n",
	"latin1.txt":        "caf\xe9 hello\n",
	"nul.txt":           strings.Repeat("x\n", 5000) + "a\x00b\nhello after\n",
	"utf16.txt":         "\xff\xfeh\x00e\x00l\x00l\x00o\x00",
	"ümlaut.txt":        "größe Größe straße ſtark K\n",
	"-dash":             "hello dash\n",
	"a b/c\nd.txt":      "hello newline in name\n",
	"empty":             "",
	"noend":             "hello no end",
	"deep/er/and/er/f":  "hello deep\nhello again\n",
	"Makefile":          "hello make\n",
	"script.py":         "hello = 1\n",
	"lib.ts":            "hello ts\n",
	"sub/.coder/x":      "hello own\n",
	"venv/.venv/hidden": "hello venv\n",
}

func bothTrees(t testing.TB) (alone, with tool.Set, dir string) {
	t.Helper()
	alone, dir = open(t, tree)
	for name, text := range mixed {
		put(t, filepath.Join(dir, name), text)
	}
	outside := t.TempDir()
	put(t, outside+"/out.txt", "hello outside\n")
	for from, to := range map[string]string{"link": outside, "flink": outside + "/out.txt", "in": "util"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	return alone, openRipgrep(t, dir), dir
}

// With rg and without it the answer is the same.
func TestRipgrepChangesNothing(t *testing.T) {
	alone, with, _ := bothTrees(t)
	for _, args := range []string{
		`{"pattern":"hello"}`,
		`{"pattern":"hello","context":2}`,
		`{"pattern":"HELLO","ignore_case":true,"max_matches":3}`,
		`{"pattern":"hello","include":"*.go"}`,
		`{"pattern":"hello","include":"util/*.go"}`,
		`{"pattern":"hello","include":"**/anchored"}`,
		`{"pattern":"hello","type":"go"}`,
		`{"pattern":"hello","type":"py"}`,
		`{"pattern":"hello","type":"make"}`,
		`{"pattern":"hello","output_mode":"files"}`,
		`{"pattern":"hello","output_mode":"count"}`,
		`{"pattern":"hello","output_mode":"files","max_matches":2}`,
		`{"pattern":"hello","path":"sub"}`,
		`{"pattern":"hello","path":"deep"}`,
		`{"pattern":"hello","path":"out"}`,
		`{"pattern":"hello","path":"node_modules"}`,
		`{"pattern":"hello","path":"main.go"}`,
		`{"pattern":"^hello$"}`, `{"pattern":"e$"}`, `{"pattern":"^$"}`, `{"pattern":"^first"}`,
		`{"pattern":"\\bhello\\b"}`, `{"pattern":"\\Bllo"}`, `{"pattern":"\\w+\\s\\d"}`, `{"pattern":"[^a-z\\s]{3}"}`,
		`{"pattern":"größe","ignore_case":true}`, `{"pattern":"STRASSE|STRAßE","ignore_case":true}`, `{"pattern":"k","ignore_case":true}`, `{"pattern":"s","ignore_case":true}`,
		`{"pattern":"caf."}`, `{"pattern":"after"}`, `{"pattern":"\\x{e9}|secret"}`, `{"pattern":"a{2}|(h)(e)"}`, `{"pattern":"\\\\|\\.|\\(\\)"}`,
		`{"pattern":"(?i)HELLO (?-i)dash"}`, `{"pattern":"\\pL{5}"}`, `{"pattern":"\\Qhello\\E d"}`, `{"pattern":"[[:upper:]]"}`, `{"pattern":"-dash"}`, `{"pattern":"--"}`, `{"pattern":"h.*?o"}`, `{"pattern":"\\Apackage"}`, `{"pattern":"no end\\z"}`,
		`{"pattern":"none at all"}`,
	} {
		a, b := must(t, alone, "grep", args), must(t, with, "grep", args)
		a.Large, b.Large = 0, 0 // rg does not say how many it passed over
		if !reflect.DeepEqual(a, b) {
			t.Errorf("grep %s\nalone   %+v\nwith rg %+v", args, a, b)
		}
	}
}

func TestRipgrepPatternsProperty(t *testing.T) {
	alone, with, _ := bothTrees(t)
	pieces := rapid.SampledFrom([]string{"h", "e", "hello", ".", "\\w", "\\W", "\\d", "\\s", "\\S", "\\b", "[a-f]", "[^a-z]", "ß", "(lo)?", "l+", "o*", "^", "$", "x|h", "(?i:H)", "\\.", "\n"})
	rapid.Check(t, func(rt *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(pieces, 1, 5).Draw(rt, "pieces"), "")
		args, _ := json.Marshal(map[string]any{"pattern": pattern, "ignore_case": rapid.Bool().Draw(rt, "fold"), "max_matches": 1000})
		a, errA := call(t, alone, "grep", string(args))
		b, errB := call(t, with, "grep", string(args))
		a.Large, b.Large = 0, 0
		if !reflect.DeepEqual(a, b) || (errA == nil) != (errB == nil) {
			rt.Fatalf("grep %s\nalone   %+v %v\nwith rg %+v %v", args, a, errA, b, errB)
		}
	})
}

// forest draws a tree of files with ignore rules here and there, and names its
// directories.
func forest(rt *rapid.T, dir string, t testing.TB) []string {
	dirs := []string{"."}
	names := rapid.SampledFrom([]string{"a", "b", "out", "src", "node_modules", "x.d"})
	for range rapid.IntRange(0, 6).Draw(rt, "dirs") {
		dirs = append(dirs, filepath.Join(rapid.SampledFrom(dirs).Draw(rt, "in"), names.Draw(rt, "dir")))
	}
	rules := rapid.SampledFrom([]string{"*.log", "!keep.log", "out", "out/", "/a", "a/b", "b/**", "**/src", "*.d/", "!src/", "f?.go", "/x.d/*", "!/x.d/f1.go", "# none", "", "f[12].go", "\\!f", "a/*/f1.go"})
	for _, d := range dirs {
		for _, name := range []string{"f1.go", "f2.go", "x.log", "keep.log", ".hidden"} {
			put(t, filepath.Join(dir, d, name), "hello "+d+"\nnone\n")
		}
		if rapid.IntRange(0, 4).Draw(rt, "repository") == 0 {
			put(t, filepath.Join(dir, d, ".git/HEAD"), "hello\n")
		}
		if rapid.Bool().Draw(rt, "ignores") {
			put(t, filepath.Join(dir, d, ".gitignore"), strings.Join(rapid.SliceOfN(rules, 1, 4).Draw(rt, "rules"), "\n")+"\n")
		}
	}
	return dirs
}

// What is ignored, whichever directory is searched, is the same with rg and
// without it.
func TestRipgrepTreesProperty(t *testing.T) {
	openRipgrep(t, t.TempDir()) // or there is nothing to compare with
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		dirs := forest(rt, dir, t)
		alone, with := openAt(t, dir), openRipgrep(t, dir)
		for _, at := range []string{".", rapid.SampledFrom(dirs).Draw(rt, "searched"), rapid.SampledFrom(dirs).Draw(rt, "also")} {
			args := fmt.Sprintf(`{"pattern":"hello","path":%q,"max_matches":1000}`, at)
			if a, b := must(t, alone, "grep", args), must(t, with, "grep", args); !reflect.DeepEqual(a, b) {
				rt.Fatalf("grep %s\nalone   %q\nwith rg %q", args, a.Matches, b.Matches)
			}
		}
	})
}

func TestTypesAndModes(t *testing.T) {
	alone, _, _ := bothTrees(t)
	for args, want := range map[string]string{
		`{"pattern":"hello","type":"go"}`:                                      "main.go:4:\thello()|util/hello.go:3:// Hello says hello.",
		`{"pattern":"hello","type":"golang","output_mode":"files"}`:            "main.go|util/hello.go",
		`{"pattern":"hello","path":"deep","output_mode":"count"}`:              "deep/er/and/er/f:2",
		`{"pattern":"hello","type":"makefile"}`:                                "Makefile:1:hello make",
		`{"pattern":"package","type":"go","output_mode":"files_with_matches"}`: "main.go|util/hello.go|util/hello_test.go",
	} {
		if o := must(t, alone, "grep", args); strings.Join(o.Matches, "|") != want {
			t.Errorf("grep %s = %q", args, o.Matches)
		}
	}
	for _, args := range []string{`{"pattern":"x","type":"klingon"}`, `{"pattern":"x","output_mode":"poem"}`} {
		if _, err := call(t, alone, "grep", args); err == nil {
			t.Errorf("grep %s worked", args)
		}
	}
}

// A program that is not rg, or breaks, is done without.
func TestBrokenRipgrepIsDoneWithout(t *testing.T) {
	_, dir := open(t, tree)
	want := must(t, openAt(t, dir), "grep", `{"pattern":"hello"}`)
	for name, script := range map[string]string{
		"fails":     "#!/bin/sh\necho 'error: unrecognised flag' >&2; exit 2\n",
		"is absent": "",
	} {
		bin := filepath.Join(t.TempDir(), "rg")
		if script != "" {
			if err := os.WriteFile(bin, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		ws, err := workspace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		tools, err := tool.NewSet(search.With(ws, search.Options{Ripgrep: bin})...)
		if err != nil {
			t.Fatal(err)
		}
		if got := must(t, tools, "grep", `{"pattern":"hello"}`); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, want)
		}
	}
}

// Where nearly every file matches rg is not waited for, and what is told is what
// a walk finds first: the first matches, and that there are more.
func TestRipgrepThatNamesMoreThanEnoughIsStopped(t *testing.T) {
	_, dir := open(t, tree)
	bin := filepath.Join(t.TempDir(), "rg")
	endless := "#!/bin/sh\ni=0\nwhile :; do i=$((i+1)); printf './f%d\\0' $i; done\n"
	if err := os.WriteFile(bin, []byte(endless), 0o755); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	tools, err := tool.NewSet(search.With(ws, search.Options{Ripgrep: bin})...)
	if err != nil {
		t.Fatal(err)
	}
	alone := openAt(t, dir)
	for _, args := range []string{
		`{"pattern":"hello"}`, `{"pattern":"hello","max_matches":1}`, `{"pattern":"hello","output_mode":"files","max_matches":1}`,
		`{"pattern":"hello","output_mode":"count"}`, `{"pattern":"nowhere"}`,
	} {
		got, want := must(t, tools, "grep", args), must(t, alone, "grep", args)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", args, got, want)
		}
	}
	if r := must(t, tools, "grep", `{"pattern":"hello","max_matches":1}`); !r.Truncated || r.Count != 1 {
		t.Errorf("of more than one: %+v", r)
	}
}

func TestRipgrepStops(t *testing.T) {
	files := make(map[string]string)
	for i := range 300 {
		files[fmt.Sprintf("f%d", i)] = "hello\n"
	}
	_, dir := open(t, files)
	tools := openRipgrep(t, dir)
	tl, _ := tools.Lookup("grep")
	c, err := tl.Prepare(t.Context(), json.RawMessage(`{"pattern":"hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Run(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func TestRipgrepOfTheWorkspaceIsNotRun(t *testing.T) {
	_, dir := open(t, tree)
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	other := t.TempDir()
	put(t, dir+"/tools/rg", "#!/bin/sh\n")
	put(t, other+"/rg", "#!/bin/sh\n")
	for _, name := range []string{dir + "/tools/rg", other + "/rg"} {
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	linked := t.TempDir()
	if err := os.Symlink(dir+"/tools/rg", linked+"/rg"); err != nil {
		t.Fatal(err)
	}
	list := strings.Join([]string{".", "tools", dir + "/tools", linked, "/none", other}, string(os.PathListSeparator))
	if got := search.FindRipgrep(list, ws); got != other+"/rg" {
		t.Errorf("FindRipgrep = %q", got)
	}
}

func TestSearchInAnAddedTree(t *testing.T) {
	main, more := t.TempDir(), t.TempDir()
	put(t, more+"/d/f.go", "needle\n")
	put(t, more+"/.gitignore", "*.log\n")
	put(t, more+"/x.log", "needle\n")
	ws, err := workspace.Open(main, more)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	real, err := filepath.EvalSymlinks(more)
	if err != nil {
		t.Fatal(err)
	}
	for _, rg := range []string{"", search.FindRipgrep(os.Getenv("PATH"), ws)} {
		tools, err := tool.NewSet(search.With(ws, search.Options{Ripgrep: rg})...)
		if err != nil {
			t.Fatal(err)
		}
		o := must(t, tools, "grep", fmt.Sprintf(`{"pattern":"needle","path":%q}`, more))
		if want := real + "/d/f.go:1:needle"; len(o.Matches) != 1 || o.Matches[0] != want {
			t.Errorf("grep = %q, want %q", o.Matches, want)
		}
		o = must(t, tools, "glob", fmt.Sprintf(`{"pattern":"**/*.go","path":%q}`, more))
		if len(o.Matches) != 1 || o.Matches[0] != real+"/d/f.go" {
			t.Errorf("glob = %q", o.Matches)
		}
		if o := must(t, tools, "grep", `{"pattern":"needle"}`); o.Count != 0 {
			t.Errorf("a search of the workspace looked elsewhere: %q", o.Matches)
		}
	}
}
