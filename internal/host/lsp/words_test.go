package lsp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestUnits(t *testing.T) {
	for _, tc := range []struct {
		line         string
		runes, units int
	}{
		{"", 0, 0}, {"abc", 0, 0}, {"abc", 2, 2}, {"abc", 3, 3},
		{"äöü", 2, 2}, {"日本語", 3, 3}, {"😀x", 1, 2}, {"😀x", 2, 3}, {"a😀😀b", 3, 5}, {"e\u0301x", 2, 2},
		{"\xffx", 1, 1}, {"\xf0\x9f\x98x", 3, 3}, // each wrong byte counts as one character, as it is sent
	} {
		if got := UTF16Offset(tc.line, tc.runes); got != tc.units {
			t.Errorf("UnitsAt(%q, %d) = %d, want %d", tc.line, tc.runes, got, tc.units)
		}
		if got := RuneOffset(tc.line, tc.units); got != tc.runes {
			t.Errorf("RunesAt(%q, %d) = %d, want %d", tc.line, tc.units, got, tc.runes)
		}
	}
	if UTF16Offset("😀", 9) != 2 || RuneOffset("😀", 9) != 1 || RuneOffset("😀", 1) != 0 || UTF16Offset("x", -1) != 0 || RuneOffset("x", -1) != 0 {
		t.Error("places beyond the line or in a character are wrong")
	}
}

// TestUnitsAreThoseOfTheProtocol compares with how the standard library encodes.
func TestUnitsAreThoseOfTheProtocol(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "line")
		n := rapid.IntRange(0, utf8.RuneCountInString(line)).Draw(t, "n")
		units := UTF16Offset(line, n)
		if want := len(utf16.Encode([]rune(line)[:n])); units != want {
			t.Fatalf("UnitsAt(%q, %d) = %d, want %d", line, n, units, want)
		}
		if back := RuneOffset(line, units); back != n {
			t.Fatalf("RunesAt(%q, %d) = %d, want %d", line, units, back, n)
		}
		b, err := json.Marshal(line)
		var sent string
		if err != nil || json.Unmarshal(b, &sent) != nil {
			t.Fatal(err)
		}
		if all := UTF16Offset(sent, len(line)); all != UTF16Offset(line, len(line)) {
			t.Fatalf("%q has other units when it is sent: %d", line, all)
		}
	})
}

func TestURI(t *testing.T) {
	for _, path := range []string{"/a/b.go", "/", "/with space/ä#?%25.go", "/a:b@c+d", "/日本/😀"} {
		if got := uriToPath(pathToURI(path)); got != path {
			t.Errorf("%q became %q by way of %q", path, got, pathToURI(path))
		}
	}
	for uri, want := range map[string]string{
		"file:///a/%62.go": "/a/b.go", "file://localhost/a": "/a", "file:///c%3A/x": "/c:/x", "file:///a/../b": "/b",
		"": "", "untitled:x": "", "file:a": "", "http:///a": "", "file://host/a": "", "jdt://x/y": "", "%zz": "",
	} {
		if got := uriToPath(uri); got != want {
			t.Errorf("pathOf(%q) = %q, want %q", uri, got, want)
		}
	}
	for path, want := range map[string]string{"/ws/a/b": "a/b", "/ws": ".", "/ws-evil/a": "/ws-evil/a", "/a": "/a"} {
		if got := displayName("/ws", path); got != want {
			t.Errorf("nameOf(/ws, %q) = %q, want %q", path, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	s := &server{top: "/ws"}
	for _, tc := range []struct{ raw, want string }{
		{`null`, ""}, {``, ""}, {`[]`, ""},
		{`{"uri":"file:///ws/a","range":{"start":{"line":1,"character":2}}}`, "a:1:2"},
		{`[{"uri":"file:///ws/a","range":{"start":{"line":1,"character":2}}},{"uri":"file:///b"}]`, "a:1:2 /b:0:0"},
		{`[{"targetUri":"file:///ws/a","targetRange":{"start":{"line":9}},"targetSelectionRange":{"start":{"line":3,"character":4}}}]`, "a:3:4"},
		{`[{"uri":"jdt://x"}]`, ""},
	} {
		list, err := s.parseLocations(json.RawMessage(tc.raw))
		var got []string
		for _, l := range list {
			b, _ := json.Marshal([]int{l.Range.Start.Line, l.Range.Start.Character})
			got = append(got, l.Path+":"+strings.ReplaceAll(strings.Trim(string(b), "[]"), ",", ":"))
		}
		if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("places(%s) = %v, %v, want %s", tc.raw, got, err, tc.want)
		}
	}
	if _, err := s.parseLocations(json.RawMessage(`"x"`)); err == nil {
		t.Error("a string was taken for places")
	}
}

func TestProse(t *testing.T) {
	for raw, want := range map[string]string{
		`"plain"`: "plain", `{"kind":"markdown","value":"**x**"}`: "**x**", `{"language":"go","value":"var x"}`: "```go\nvar x\n```",
		`["a",{"language":"go","value":"b"},{"value":"c"}]`: "a\n\n```go\nb\n```\n\nc", `7`: "", `null`: "", `[["deep"]]`: "",
	} {
		if got := markupText(json.RawMessage(raw)); got != want {
			t.Errorf("prose(%s) = %q, want %q", raw, got, want)
		}
	}
}

func TestDiagnosticsAreBounded(t *testing.T) {
	sent := make([]wireDiagnostic, 10_000)
	for i := range sent {
		sent[i] = wireDiagnostic{Message: strings.Repeat("ä", 10_000), Code: json.RawMessage(`"C1"`), Severity: Severity(i % 7)}
	}
	got := convertDiagnostics("a", sent)
	if len(got) != maxPerFile || len(got[0].Message) > maxMessage+4 || !utf8.ValidString(got[0].Message) || got[0].Code != "C1" {
		t.Errorf("%d diagnostics of %d bytes, code %q", len(got), len(got[0].Message), got[0].Code)
	}
	if got[0].Severity != Error || got[2].Severity != Warning || got[6].Severity != Error {
		t.Errorf("severities %v %v %v", got[0].Severity, got[2].Severity, got[6].Severity)
	}
	if rawText(json.RawMessage(`42`)) != "42" || rawText(nil) != "" {
		t.Error("numbers are not taken as codes")
	}
}

func TestFilesAreBounded(t *testing.T) {
	s := newServer(Kind{Name: "x"}, "/", "/", &recording{})
	for i := range maxFiles + 100 {
		s.onPublish(json.RawMessage(fmt.Sprintf(`{"uri":"file:///%d","diagnostics":[{"message":"m"}]}`, i)))
	}
	last := s.fileState(fmt.Sprintf("/%d", maxFiles+99)).publication
	if len(s.publications) > maxFiles || len(last.items) != 1 || s.publicationCount() != maxFiles+100 {
		t.Errorf("%d files kept, the last with %v", len(s.publications), last)
	}
}

func TestProjectOf(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"go.work", "m/go.mod", "m/p/x.go", "n/go.mod", "plain/x.py", "r/Cargo.lock", "r/Cargo.toml", "r/c/Cargo.toml", "r/c/src/x.rs"} {
		put(t, filepath.Join(top, name), "")
	}
	inner := filepath.Join(top, "m")
	for _, tc := range []struct{ kind, top, file, want string }{
		{"gopls", top, "m/p/x.go", "."},
		{"gopls", inner, "p/x.go", "."},
		{"gopls", filepath.Join(top, "n"), "x.go", "."},
		{"gopls", filepath.Join(inner, "p"), "x.go", "."}, // markers above the workspace do not count
		{"rust-analyzer", top, "r/c/src/x.rs", "r"},
		{"pyright", top, "plain/x.py", "."},
		{"bash-language-server", top, "plain/x.sh", "."},
	} {
		k := findBuiltin(tc.kind)
		want := filepath.Join(tc.top, tc.want)
		if got := k.projectOf(tc.top, filepath.Join(tc.top, tc.file)); got != want {
			t.Errorf("%s: %s belongs to %s, want %s", tc.kind, tc.file, got, want)
		}
	}
}

func TestKnownServersAreComplete(t *testing.T) {
	for _, k := range builtinKinds {
		if k.Name == "" || k.Language == "" || len(k.Command) == 0 || len(k.Files) == 0 || k.Install == "" {
			t.Errorf("incomplete: %+v", k)
		}
		for ending, id := range k.Files {
			if id == "" || ending == "" || strings.ToLower(ending) != ending {
				t.Errorf("%s: %q is %q", k.Name, ending, id)
			}
		}
		if k.languageID(k.exampleName()) == "" {
			t.Errorf("%s: %s is not for it", k.Name, k.exampleName())
		}
	}
	for name, want := range map[string]string{
		"x.go": "go", "go.mod": "go.mod", "X.GO": "go", "xgo": "", "go": "", "x.go.txt": "", "a.b.go": "go",
	} {
		if got := builtinKinds[0].languageID("/dir.go/" + name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestConfigured(t *testing.T) {
	for _, tc := range []struct{ name, raw, want string }{
		{"go", `{}`, "gopls [gopls] go"},
		{"go", `{"args":["-remote=auto"]}`, "gopls [gopls -remote=auto] go"},
		{"py", `{"command":"my-py"}`, "my-py [my-py] python"},
		{"python", `{"command":["my-py","--stdio"],"args":["-v"]}`, "my-py [my-py --stdio -v] python"},
		{"pylsp", `{}`, "pylsp [pylsp] python"},
		{"sh", `{"disabled":true}`, "bash-language-server [] shellscript"},
		{"zig", `{"command":"zls","files":{".zig":"zig"},"root_markers":["build.zig"]}`, "zls [zls] zig"},
	} {
		k, err := ParseKind(tc.name, json.RawMessage(tc.raw))
		if err != nil {
			t.Errorf("%s %s: %v", tc.name, tc.raw, err)
			continue
		}
		got := strings.Join([]string{k.Name, "[" + strings.Join(k.Command, " ") + "]", k.languageID(k.exampleName())}, " ")
		if got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.name, tc.raw, got, tc.want)
		}
	}
	k, err := ParseKind("go", json.RawMessage(`{"env":{"B":"2","A":"1"}}`))
	if got := strings.Join(k.Env, " "); err != nil || got != "A=1 B=2" {
		t.Errorf("the environment is %q, %v", got, err)
	}
	for _, tc := range []struct{ name, raw, want string }{
		{"zig", `{"command":"zls"}`, "files"}, {"zig", `{"files":{".zig":"zig"}}`, "command"}, {"go", `{"cmd":"x"}`, "cmd"},
		{"go", `{"command":7}`, "language server go"}, {"go", `[]`, "language server go"}, {"go", `{"command":""}`, "empty"},
	} {
		if _, err := ParseKind(tc.name, json.RawMessage(tc.raw)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %s: %v, want one with %q", tc.name, tc.raw, err, tc.want)
		}
	}
	if len(builtinKinds[0].Command) != 1 {
		t.Error("a setting changed what we know")
	}
}
