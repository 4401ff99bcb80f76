package search_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/search"
)

func inUTF16(text string, order func(b []byte, v uint16) []byte, mark string) string {
	b := []byte(mark)
	for _, v := range utf16.Encode([]rune(text)) {
		b = order(b, v)
	}
	return string(b)
}

func little(b []byte, v uint16) []byte { return append(b, byte(v), byte(v>>8)) }
func big(b []byte, v uint16) []byte    { return append(b, byte(v>>8), byte(v)) }

var mixed = map[string]string{
	"sub/.gitignore":   "secret.txt\n!keep.log\n/anchored\n",
	"sub/secret.txt":   "hello secret\n",
	"sub/keep.log":     "hello keep\n",
	"sub/anchored":     "hello anchored\n",
	"sub/x/anchored":   "hello not anchored\n",
	"ümlaut.txt":       "größe Größe straße ſtark K\nein Wort: größe\nnaïve x2 ٣ ١٢\n日本語 の テスト\nhello\u00a0nbsp\ncombine\u0301d ⓐ\n",
	"kyrillisch.txt":   "привет, мир\r\nПРИВЕТ\r\nпока\r\n",
	"le.txt":           inUTF16("hello größe\r\nzweite\r\n😀 x\n", little, "\xff\xfe"),
	"be.txt":           inUTF16("hello größe\nzweite\n", big, "\xfe\xff"),
	"bom8.txt":         "\ufeffhello bom\n",
	"-dash":            "hello dash\n",
	"a b/c d.txt":      "hello space in name\n",
	"empty":            "",
	"noend":            "hello no end",
	"deep/er/and/er/f": "hello deep\nhello again\n",
	"Makefile":         "hello make\n",
	"script.py":        "hello = 1\n",
	"lib.ts":           "hello ts\nfoo\\bar {,3} a|b <x>\n",
	"tabs.txt":         "\thello\t1\n  \n\n",
}

func bothTrees(t testing.TB) (tools tool.Set, dir string) {
	t.Helper()
	tools, dir = open(t, tree)
	for name, text := range mixed {
		put(t, filepath.Join(dir, name), text)
	}
	if err := errors.Join(os.Remove(dir+"/bin"), os.Symlink("util", dir+"/in")); err != nil {
		t.Fatal(err)
	}
	return tools, dir
}

// ripgrep is what rg answers, file by line; said is what it complains about.
func ripgrep(t testing.TB, dir string, args ...string) (lines []string, said string) {
	t.Helper()
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("rg is not installed")
	}
	cmd := exec.Command(rg, append([]string{
		"--no-config", "--hidden", "--crlf", "--no-require-git", "--no-ignore-dot", "--no-ignore-parent", "--line-number", "--no-heading", "--color=never", "--sort=path",
		"--glob=!.git", "--glob=!node_modules/", "--glob=!.coder/",
	}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 1) {
		return nil, stderr.String()
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "./"), "\r")
		if parts := strings.SplitN(line, ":", 3); len(parts) == 3 {
			line = parts[0] + ":" + parts[1] // how a line is shown is another matter
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines, ""
}

func places(o outcome) (lines []string) {
	for _, m := range o.Matches {
		parts := strings.SplitN(m, ":", 3)
		lines = append(lines, strings.Join(parts[:2], ":"))
	}
	slices.Sort(lines)
	return lines
}

// Random patterns find the lines that ripgrep finds.
func TestRandomPatternsAgreeWithRipgrep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	tools, dir := bothTrees(t)
	rnd := rand.New(rand.NewPCG(3, 5))
	pieces := []string{"h", "e", "hello", ".", `\w`, `\W`, `\d`, `\D`, `\s`, `\S`, `\b`, `\B`, "[a-f]", "[^a-z]", "ß", "größe", "(lo)?", "l+", "o*", "^", "$", "x|h", "(?i:H)", `\.`, `[\w-]`, `[^\W_]`, `[^\s]`, `[\d.]`, "п", "[а-я]+", `\p{L}`, `\P{L}`, "日", "é", "(?i)", "{2}", `\x{e4}`, "[[:alpha:]]", "ſ", "k", "😀", `[\S]`, `[\D]`}
	tried, refused, wrong := 0, 0, 0
	for range 300 {
		var pattern string
		for range 1 + rnd.IntN(4) {
			pattern += pieces[rnd.IntN(len(pieces))]
		}
		fold := rnd.IntN(3) == 0
		args, err := json.Marshal(map[string]any{"pattern": pattern, "ignore_case": fold, "max_matches": 1000})
		if err != nil {
			t.Fatal(err)
		}
		flag := "--case-sensitive"
		if fold {
			flag = "--ignore-case"
		}
		want, said := ripgrep(t, dir, flag, "--regexp="+pattern, "./")
		o, err := call(t, tools, "grep", string(args))
		if err != nil || said != "" || strings.Contains(pattern, "$^") { // which rg gets wrong where lines may end in CR LF
			refused++
			continue
		}
		tried++
		if got := places(o); !slices.Equal(got, want) {
			wrong++
			t.Errorf("grep %s: only here %q, only rg %q", args, missingFrom(got, want), missingFrom(want, got))
		}
	}
	t.Logf("%d patterns compared, %d differ, %d refused by one or both", tried, wrong, refused)
}

func missingFrom(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}

// Random trees with rules here and there are searched as ripgrep does.
func TestRandomTreesAgreeWithRipgrep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	rnd := rand.New(rand.NewPCG(13, 17))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	for range 40 {
		dir := t.TempDir()
		dirs := []string{"."}
		for range rnd.IntN(7) {
			dirs = append(dirs, filepath.Join(dirs[rnd.IntN(len(dirs))], pick("a", "b", "out", "src", "node_modules", "x.d")))
		}
		for _, d := range dirs {
			for _, name := range []string{"f1.go", "f2.go", "x.log", "keep.log", ".hidden"} {
				put(t, filepath.Join(dir, d, name), "hello "+d+"\nnone\n")
			}
			if rnd.IntN(2) == 0 {
				put(t, filepath.Join(dir, d, ".gitignore"), pick("*.log", "out", "/a", "f?.go")+"\n"+pick("!keep.log", "out/", "a/b", "b/**", "**/src", "*.d/", "!src/", "/x.d/*", "!/x.d/f1.go", "# none", "f[12].go", "\\!f", "a/*/f1.go")+"\n")
			}
		}
		want, said := ripgrep(t, dir, "--regexp=hello", "./")
		if said != "" {
			t.Fatal(said)
		}
		if got := places(must(t, openAt(t, dir), "grep", `{"pattern":"hello","max_matches":1000}`)); !slices.Equal(got, want) {
			t.Errorf("only here %q, only rg %q", missingFrom(got, want), missingFrom(want, got))
		}
	}
}

func TestWordsOfAllScripts(t *testing.T) {
	tools, dir := bothTrees(t)
	put(t, dir+"/cr.txt", "one\rhello\r\ntwo\n")
	for pattern, want := range map[string][]string{
		`\bgröße\b`:        {"be.txt:1", "le.txt:1", "ümlaut.txt:1", "ümlaut.txt:2"},
		`\bgr\b`:           {},
		`\bпривет\b`:       {"kyrillisch.txt:1"},
		`(?i)\bпривет\b`:   {"kyrillisch.txt:1", "kyrillisch.txt:2"},
		`^пока$`:           {"kyrillisch.txt:3"},
		`Wort: \w+$`:       {"ümlaut.txt:2"},
		`日本\w\b`:           {"ümlaut.txt:4"},
		`na\wve`:           {"ümlaut.txt:3"},
		`x2 \d`:            {"ümlaut.txt:3"},
		`hello\snbsp`:      {"ümlaut.txt:5"},
		`hello[^\w]nbsp`:   {"ümlaut.txt:5"},
		`\Bß\B`:            {"be.txt:1", "le.txt:1", "ümlaut.txt:1", "ümlaut.txt:2"},
		`😀`:                {"le.txt:3"},
		`zweite$`:          {"be.txt:2", "le.txt:2"},
		`hello\r$`:         {"cr.txt:1", "crlf.txt:2"},
		`\Q\b\E|\Qhello d`: {"-dash:1", "deep/er/and/er/f:1", "lib.ts:2"},
		`[^\n]*no end`:     {"noend:1"},
		`\{,3`:             {"lib.ts:2"},
	} {
		args, err := json.Marshal(map[string]any{"pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		if got := places(must(t, tools, "grep", string(args))); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("grep %s = %q, want %q", pattern, got, want)
		}
	}
}

// What cannot be served is refused in so many words.
func TestPatternsThatAreNotServed(t *testing.T) {
	tools, _ := bothTrees(t)
	for pattern, want := range map[string]string{
		`one\nhello`: "line by line", "one\nhello": "line by line", `a\r?\nb`: "line by line", `x[\r\n]+y`: "line by line", `\x0a`: "line by line",
		`foo(?=bar)`: "lookaround", `foo(?!bar)`: "lookaround", `(?<=a)b`: "lookaround", `(?<!a)b`: "lookaround",
		`(a)\1`: "backreference", `a++b`: "possessive", `(?>a)`: "atomic",
		`\<word\>`: "word boundary", `a{,3}`: "{0,n}", `*.go`: `\*`, `(`: "missing", `[a`: "missing",
		``: "empty", `foo(`: `\(`, `a)`: `\)`, `a[`: `\[`, `\u00e9`: `\x{`, `a\Z`: "$", `a\hb`: `[ \t]`, `\p{Script=Han}`: `\p{Han}`, `(?x)a`: "flags", `[a-z&&[^b]]`: "&&",
	} {
		args, err := json.Marshal(map[string]any{"pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := call(t, tools, "grep", string(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("grep %s: %v", pattern, err)
		}
	}
}

func TestIncludes(t *testing.T) {
	tools, dir := open(t, map[string]string{
		"a.ts": "x\n", "b.tsx": "x\n", "c.go": "x\n", "sub/d.ts": "x\n", "sub/e.go": "x\n", "sub/in/f.ts": "x\n", "app/[slug]/page.tsx": "x\n", "other/sub/g.ts": "x\n", "my file.ts": "x\n",
	})
	all := []string{"a.ts", "app/[slug]/page.tsx", "b.tsx", "c.go", "my file.ts", "other/sub/g.ts", "sub/d.ts", "sub/e.go", "sub/in/f.ts"}
	ts := []string{"a.ts", "my file.ts", "other/sub/g.ts", "sub/d.ts", "sub/in/f.ts"}
	both := []string{"a.ts", "app/[slug]/page.tsx", "b.tsx", "my file.ts", "other/sub/g.ts", "sub/d.ts", "sub/in/f.ts"}
	below := []string{"sub/d.ts", "sub/e.go", "sub/in/f.ts"}
	for _, tc := range []struct {
		path, include string
		want          []string
	}{
		{"", "*.ts", ts}, {"", "**/*.ts", ts}, {"", ".ts", ts}, {"", "*.ts,*.tsx", both}, {"", "*.ts, *.tsx", both}, {"", "*.ts *.tsx", both},
		{"", "*.ts|*.tsx", both}, {"", "*.ts;*.tsx", both}, {"", `"*.ts","*.tsx"`, both}, {"", "'*.ts'", ts}, {"", "{*.ts,*.tsx}", both}, {"", "*.{ts,tsx}", both}, {"", "!*.ts", missingFrom(all, ts)}, {"", "*.ts,!sub/**", []string{"a.ts", "my file.ts", "other/sub/g.ts"}},
		{"", "./sub/*.ts", []string{"sub/d.ts"}}, {"", "sub/*.ts", []string{"sub/d.ts"}}, {"", "/sub/*.ts", []string{"sub/d.ts"}}, {"", `sub\*.ts`, []string{"sub/d.ts"}},
		{"", dir + "/sub/*.ts", []string{"sub/d.ts"}}, {"", dir + "/**/*.go", []string{"c.go", "sub/e.go"}}, {"", dir + "/c.go", []string{"c.go"}},
		{"", "sub/", append([]string{"other/sub/g.ts"}, below...)}, {"", "sub", append([]string{"other/sub/g.ts"}, below...)}, {"", "sub/**", below}, {"", "sub/in", []string{"sub/in/f.ts"}},
		{"sub", "*.go", []string{"sub/e.go"}}, {"sub", "sub/*.ts", []string{"sub/d.ts"}}, {"sub", "in/*.ts", []string{"sub/in/f.ts"}}, {"sub", dir + "/sub/*.ts", []string{"sub/d.ts"}},
		{"", "app/[slug]/*.tsx", []string{"app/[slug]/page.tsx"}}, {"", "[slug]", []string{"app/[slug]/page.tsx"}}, {"", "[ab].ts*", []string{"a.ts", "b.tsx"}}, {"", "my file.ts", []string{"my file.ts"}},
		{"", "!sub", []string{"a.ts", "app/[slug]/page.tsx", "b.tsx", "c.go", "my file.ts"}},
	} {
		args, err := json.Marshal(map[string]any{"pattern": "x", "path": tc.path, "include": tc.include, "output_mode": "files"})
		if err != nil {
			t.Fatal(err)
		}
		o := must(t, tools, "grep", string(args))
		slices.Sort(o.Matches)
		if !slices.Equal(o.Matches, tc.want) || o.Note != "" {
			t.Errorf("grep %s = %q %s\nwant %q", args, o.Matches, o.Note, tc.want)
		}
	}
	for _, include := range []string{"/etc/*.conf", "../*.ts", "[a", dir + "x/*.ts"} {
		args, err := json.Marshal(map[string]any{"pattern": "x", "include": include})
		if err != nil {
			t.Fatal(err)
		}
		if o, err := call(t, tools, "grep", string(args)); err == nil {
			t.Errorf("include %s worked: %+v", include, o)
		}
	}
	for args, want := range map[string]string{
		`{"pattern":"x","include":"*.rs"}`: "names no file", `{"pattern":"x","type":"rust"}`: "type rust", `{"pattern":"q\\|z"}`: "a|b",
	} {
		if o := must(t, tools, "grep", args); !strings.Contains(o.Note, want) {
			t.Errorf("grep %s says %q", args, o.Note)
		}
	}
}

func TestGlobsAsTheyAreMeant(t *testing.T) {
	tools, dir := open(t, map[string]string{
		"[slug]/page.tsx": "", "app/[id]/[...rest]/page.tsx": "", "app/[[...opt]]/x.ts": "", "s/page.tsx": "", "sub/a.ts": "", "sub/b.tsx": "", "sub/c/d.ts": "", "e.ts": "",
	})
	for pattern, want := range map[string]string{
		"[slug]/page.tsx": "[slug]/page.tsx s/page.tsx", "app/[id]/[...rest]/page.tsx": "app/[id]/[...rest]/page.tsx", "app/[[...opt]]/*.ts": "app/[[...opt]]/x.ts", "**/[id]/**": "app/[id]/[...rest]/page.tsx",
		`\[slug\]/*`: "[slug]/page.tsx", "sub/": "sub/a.ts sub/b.tsx sub/c/d.ts", `sub\*.ts`: "sub/a.ts", "sub/*.ts,e.ts": "e.ts sub/a.ts", "sub/**,!*.tsx": "sub/a.ts sub/c/d.ts", "sub/**,!sub/c": "sub/a.ts sub/b.tsx",
		"./sub/*.ts": "sub/a.ts", "!**/*.tsx": "app/[[...opt]]/x.ts e.ts sub/a.ts sub/c/d.ts", "sub/*.{ts,tsx}": "sub/a.ts sub/b.tsx", dir + "/sub/*.ts": "sub/a.ts", "sub": "", "*.tsx": "", "a.ts": "",
	} {
		args, err := json.Marshal(map[string]any{"pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		o := must(t, tools, "glob", string(args))
		slices.Sort(o.Matches)
		if got := strings.Join(o.Matches, " "); got != want || (o.Note != "") != (want == "") {
			t.Errorf("glob %s = %s %s\nwant %s", pattern, got, o.Note, want)
		}
	}
}

func TestBinaryFilesThatMatchAreNamed(t *testing.T) {
	tools, _ := open(t, map[string]string{"a.bin": "hello\x00\n", "b.bin": "\x00other\n", "late.txt": strings.Repeat("x\n", 5000) + "a\x00b\nhello after\n", "latin1.txt": "caf\xe9 hello\n"})
	o := must(t, tools, "grep", `{"pattern":"hello"}`)
	if !slices.Equal(o.Binary, []string{"a.bin"}) || !slices.Equal(places(o), []string{"late.txt:5002", "latin1.txt:1"}) {
		t.Errorf("grep = %+v", o)
	}
	for name, want := range map[string]string{"a.bin": "with a match", "b.bin": "no matching line"} {
		if _, err := call(t, tools, "grep", `{"pattern":"hello","path":"`+name+`"}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTypesAndModes(t *testing.T) {
	tools, _ := bothTrees(t)
	for args, want := range map[string]string{
		`{"pattern":"hello","type":"go"}`:                                      "main.go:4:\thello()|util/hello.go:3:// Hello says hello.",
		`{"pattern":"hello","type":"golang","output_mode":"files"}`:            "main.go|util/hello.go",
		`{"pattern":"hello","path":"deep","output_mode":"count"}`:              "deep/er/and/er/f:2",
		`{"pattern":"hello ts","type":"tsx"}`:                                  "lib.ts:1:hello ts",
		`{"pattern":"hello (ts|make)","type":"ts, make"}`:                      "Makefile:1:hello make|lib.ts:1:hello ts",
		`{"pattern":"hello","type":"makefile"}`:                                "Makefile:1:hello make",
		`{"pattern":"package","type":"go","output_mode":"files_with_matches"}`: "main.go|util/hello.go|util/hello_test.go",
	} {
		if o := must(t, tools, "grep", args); strings.Join(o.Matches, "|") != want {
			t.Errorf("grep %s = %q", args, o.Matches)
		}
	}
	for _, args := range []string{`{"pattern":"x","type":"klingon"}`, `{"pattern":"x","output_mode":"poem"}`} {
		if _, err := call(t, tools, "grep", args); err == nil {
			t.Errorf("grep %s worked", args)
		}
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
	tools, err := tool.NewSet(search.All(ws, search.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	for _, include := range []string{"", "*.go", "d/*.go", real + "/d/*.go", "d"} {
		o := must(t, tools, "grep", fmt.Sprintf(`{"pattern":"needle","path":%q,"include":%q}`, more, include))
		if want := real + "/d/f.go:1:needle"; len(o.Matches) != 1 || o.Matches[0] != want {
			t.Errorf("grep with %q = %q, want %q", include, o.Matches, want)
		}
	}
	o := must(t, tools, "glob", fmt.Sprintf(`{"pattern":"**/*.go","path":%q}`, more))
	if len(o.Matches) != 1 || o.Matches[0] != real+"/d/f.go" {
		t.Errorf("glob = %q", o.Matches)
	}
	if o := must(t, tools, "grep", `{"pattern":"needle"}`); o.Count != 0 {
		t.Errorf("a search of the workspace looked elsewhere: %q", o.Matches)
	}
}

// "Nothing found" is the whole truth, or says what is not.
func TestNothingFoundSaysWhatWasNotLookedAt(t *testing.T) {
	tools, _ := open(t, map[string]string{
		"latin.txt": "caf\xe9 gr\xfc\xdfe\n", "a.go": "func f(a, b int) {\n\treturn x[i]\n}\n", "plain.txt": "other\n", "sub/b.txt": "what? (yes)\n",
	})
	for args, want := range map[string]string{
		`{"pattern":"café"}`:                                 "latin.txt",
		`{"pattern":"caf\\x{e9}","path":"latin.txt"}`:        "not UTF-8",
		`{"pattern":"func f(a, b int)"}`:                     "a.go:1; escape it: func f\\(a, b int\\)",
		`{"pattern":"x[i]","path":"a.go"}`:                   "a.go:2",
		`{"pattern":"what? (yes)"}`:                          "sub/b.txt:1",
		`{"pattern":"func[\\s\\S]*return","path":"a.go"}`:    "line by line",
		`{"pattern":"(?s)func.*return"}`:                     "line by line",
		`{"pattern":"func(.|\\n)*return","include":"*.txt"}`: "line by line",
		`{"pattern":"nowhere (at) all"}`:                     "",
		`{"pattern":"caf"}`:                                  "",
		`{"pattern":"other"}`:                                "",
	} {
		o, err := call(t, tools, "grep", args)
		if err != nil && strings.Contains(err.Error(), "line by line") {
			continue
		}
		if err != nil || (o.Note == "") != (want == "") || !strings.Contains(o.Note, want) {
			t.Errorf("grep %s says %q, %v; want %q", args, o.Note, err, want)
		}
	}
}

func TestGrepInTextWithoutAMark(t *testing.T) {
	tools, _ := open(t, map[string]string{
		"le": inUTF16("Hello größe\r\nzweite\n", little, ""), "be": inUTF16("Hello größe\nzweite\n", big, ""), "odd": "H\x00e\x00l\x00l\x00o", "zeros": strings.Repeat("\x00", 100) + "Hello",
	})
	for pattern, want := range map[string][]string{"größe$": {"be:1", "le:1"}, "zweite": {"be:2", "le:2"}, "Hello": {"be:1", "le:1"}} {
		if got := places(must(t, tools, "grep", fmt.Sprintf(`{"pattern":%q}`, pattern))); !slices.Equal(got, want) {
			t.Errorf("grep %s = %q, want %q", pattern, got, want)
		}
	}
}

func TestALongLineIsShownWhereItMatches(t *testing.T) {
	long := strings.Repeat("ä", 9000)
	tools, _ := open(t, map[string]string{"a": long + "needle" + long + "\n", "b": "needle" + long + "\n", "c": long + "needle\n"})
	o := must(t, tools, "grep", `{"pattern":"ne+dle"}`)
	for _, m := range o.Matches {
		if !strings.Contains(m, "needle") || strings.Contains(m, "\ufffd") || len([]rune(m)) > 600 {
			t.Errorf("%.80s… (%d bytes)", m, len(m))
		}
	}
	if len(o.Matches) != 3 {
		t.Errorf("%d matches", len(o.Matches))
	}
}

func TestCountIsOfLines(t *testing.T) {
	tools, _ := open(t, map[string]string{"a": "x\nx\n", "b": "x\n", "c": "y\n"})
	if o := must(t, tools, "grep", `{"pattern":"x","output_mode":"count"}`); o.Count != 3 || o.Files != 2 {
		t.Errorf("%+v", o)
	}
	if o := must(t, tools, "grep", `{"pattern":"x","output_mode":"count","max_matches":1}`); o.Count != 2 || !o.Truncated {
		t.Errorf("%+v", o)
	}
}
