//go:build unix

package codenav_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/host/lsp"
	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/codenav"
	"coder/internal/tool/files"
	"coder/testkit/lsptest"
	"coder/testkit/tooltest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	lsptest.Main()
	goleak.VerifyTestMain(m)
}

// house is a workspace with tools and a language server for .fake files.
type house struct {
	dir   string
	ws    *workspace.Workspace
	pool  *lsp.Pool
	tools tool.Set
}

// open makes a workspace whose language server behaves as how says, and where
// edits have all the time they need.
func open(t testing.TB, how string) house { return openFor(t, how, time.Minute) }

func openFor(t testing.TB, how string, patience time.Duration) house {
	return openHiding(t, how, patience, nil)
}

func openHiding(t testing.TB, how string, patience time.Duration, hides func(string) bool) house {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, patience, lsp.Options{
		Hides: hides,
		Env:   []string{lsptest.Env + "=" + how, "GORACE=atexit_sleep_ms=0"},
		Servers: []lsp.Kind{{
			Name: "fakels", Language: "Fake", Command: []string{self},
			Files: map[string]string{".fake": "fake"}, Markers: [][]string{{"fake.project"}},
		}},
	})
}

func openWith(t testing.TB, patience time.Duration, o lsp.Options) house {
	t.Helper()
	h := house{dir: t.TempDir()}
	var err error
	if h.ws, err = workspace.Open(h.dir); err != nil {
		t.Fatal(err)
	}
	o.Root = h.dir
	h.pool = lsp.New(o)
	t.Cleanup(func() {
		h.pool.Close()
		h.ws.Close()
	})
	d := &codenav.Diagnoser{Workspace: h.ws, Pool: h.pool, Limit: patience}
	list := []tool.Tool{codenav.All(h.ws, h.pool)}
	for _, w := range files.All(h.ws, files.Options{}) {
		list = append(list, codenav.WithDiagnostics(w, d))
	}
	if h.tools, err = tool.NewSet(list...); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h house) put(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a tool and returns its result as the model reads it.
func (h house) run(t testing.TB, ctx context.Context, name, args string) (string, tool.Result, error) {
	t.Helper()
	tl, ok := h.tools.Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	call, err := tl.Prepare(ctx, json.RawMessage(args))
	if err != nil {
		return "", tool.Result{}, err
	}
	r, err := call.Run(ctx, io.Discard)
	if err != nil {
		return "", r, err
	}
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), r, nil
}

func TestToolsKeepTheContract(t *testing.T) {
	for name, good := range map[string][]string{
		"lsp_diagnostics": {`{"path":"a.fake"}`, `{"file":"a.fake"}`, `{}`, `{"path":"."}`},
		"lsp_definition":  {`{"path":"a.fake","symbol":"fun"}`, `{"path":"a.fake","line":2,"column":1}`},
		"lsp_references":  {`{"path":"a.fake","symbol":"fun","line":2}`},
		"lsp_hover":       {`{"path":"a.fake","symbol":"fun"}`, `{"path":"a.fake","line":1,"column":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
				h := open(t, "pull")
				h.put(t, "a.fake", "def fun\nuse fun BAD")
				h.put(t, "fake.project", "")
				tl, _ := h.tools.Lookup(name)
				bad := []string{`{"path":"../x"}`, `{"path":"/etc/passwd","symbol":"root"}`}
				if name != "lsp_diagnostics" {
					bad = append(bad, `{"path":"a.fake"}`, `{"path":"a.fake","line":1}`, `{"path":"a.fake","symbol":" "}`,
						`{"path":"a.fake","line":-1,"column":1}`, `{"path":"a.fake","symbol":"a\nb"}`)
				}
				return tooltest.Fixture{Tool: tl, Dir: h.dir, Good: good, Bad: bad}
			})
		})
	}
}

func TestWrappedToolKeepsTheContract(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		h := open(t, "pull")
		tl, _ := h.tools.Lookup("write")
		return tooltest.Fixture{
			Tool: tl, Dir: h.dir,
			Good: []string{`{"path":"a.fake","content":"BAD"}`, `{"path":"b.txt","content":"x"}`},
			Bad:  []string{`{"path":"../x","content":""}`},
		}
	})
}

func TestDiagnostics(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	h := open(t, "normal")
	h.put(t, "a.fake", "ok\n  😀 BAD one!\nBAD two\n")
	h.put(t, "sub/b.fake", "BAD three!!!")
	h.put(t, "fake.project", "")
	for _, tc := range []struct{ args, want, summary string }{
		{`{"path":"a.fake"}`, `{"ok":true,"server":"fakels","diagnostics":[` +
			`"a.fake:3:1: error: bad two (fake 7)\n    BAD two","a.fake:2:5: warning: bad one (fake 7)\n    😀 BAD one!"],` +
			`"count":2,"truncated":false}`, "1 error, 1 warning"},
		{`{"path":"sub/b.fake"}`, `{"ok":true,"server":"fakels","diagnostics":[],"count":0,"truncated":false,"pending":true,` +
			`"note":"not known yet: that nothing is listed does not mean that nothing is wrong"}`, "not known yet"},
		{`{"path":"sub"}`, `{"ok":true,"server":"fakels","diagnostics":[],"count":0,"truncated":false,"note":"only what the servers have looked at so far; ask about a file to be sure of it"}`, "nothing found"},
		{`{}`, `{"ok":true,"server":"fakels","diagnostics":[` +
			`"a.fake:3:1: error: bad two (fake 7)\n    BAD two","a.fake:2:5: warning: bad one (fake 7)\n    😀 BAD one!"],` +
			`"count":2,"truncated":false,"note":"only what the servers have looked at so far; ask about a file to be sure of it"}`, "1 error, 1 warning"},
	} {
		got, r, err := h.run(t, t.Context(), "lsp_diagnostics", tc.args)
		if err != nil || got != tc.want || r.Summary != tc.summary {
			t.Errorf("%s: %s (%s), %v\nwant %s", tc.args, got, r.Summary, err, tc.want)
		}
	}
}

func TestNothingIsCalledFineThatIsNotKnownToBe(t *testing.T) {
	for how, want := range map[string]string{"pull": "no problems", "normal": "not known yet", "rests ill": "not known yet"} {
		h := open(t, how)
		h.put(t, "a.fake", "fine\n")
		if _, r, err := h.run(t, t.Context(), "lsp_diagnostics", `{"path":"a.fake"}`); err != nil || r.Summary != want {
			t.Errorf("%s: %s, %v, want %s", how, r.Summary, err, want)
		}
	}
}

// TestServersWaitForTrust asks, and edits, in a folder whose servers may not be
// started.
func TestServersWaitForTrust(t *testing.T) {
	started := false
	h := openWith(t, time.Minute, lsp.Options{
		Env:          []string{"PATH=" + os.Getenv("PATH")},
		CheckAllowed: func() error { return errors.New("trust this folder first") },
		Confine:      func(*exec.Cmd) error { started = true; return errors.New("started") },
		Servers:      []lsp.Kind{{Name: "fakels", Language: "Fake", Command: []string{os.Args[0]}, Files: map[string]string{".fake": "fake"}}},
	})
	h.put(t, "a.fake", "def one\n")
	for name, args := range map[string]string{
		"lsp_diagnostics": `{"path":"a.fake"}`, "lsp_hover": `{"path":"a.fake","line":1,"symbol":"one"}`,
		"lsp_definition": `{"path":"a.fake","line":1,"symbol":"one"}`, "lsp_references": `{"path":"a.fake","line":1,"symbol":"one"}`,
	} {
		if _, _, err := h.run(t, t.Context(), name, args); err == nil || !strings.Contains(err.Error(), "trust this folder first") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := h.run(t, t.Context(), "lsp_diagnostics", `{}`); err == nil || !strings.Contains(err.Error(), "trust this folder first") {
		t.Errorf("of everything: %v", err)
	}
	if _, _, err := h.run(t, t.Context(), "write", `{"path":"b.fake","content":"BAD\n"}`); err != nil {
		t.Errorf("write: %v", err)
	}
	if started {
		t.Error("a server was started")
	}
}

func TestPlaces(t *testing.T) {
	h := open(t, "normal")
	h.put(t, "a.fake", "first\r\n😀 def fun\r\n# fun pkg.fun x->fun more\r\n\tuse fun and funny")
	for _, tc := range []struct{ name, tool, args, want string }{
		{"symbol", "lsp_definition", `"symbol":"fun"`, `{"ok":true,"at":"a.fake:2:7: 😀 def fun","definitions":["a.fake:2:3: 😀 def fun"],"truncated":false}`},
		{"symbol on a line", "lsp_definition", `"symbol":"fun","line":4`, `{"ok":true,"at":"a.fake:4:6: use fun and funny","definitions":["a.fake:2:3: 😀 def fun"],"truncated":false}`},
		{"symbol near a line", "lsp_definition", `"symbol":"funny","line":1`, `{"ok":true,"at":"a.fake:4:14: use fun and funny","definitions":[],"truncated":false}`},
		{"line and column", "lsp_definition", `"line":3,"column":4`, `{"ok":true,"at":"a.fake:3:4: # fun pkg.fun x->fun more","definitions":["a.fake:2:3: 😀 def fun"],"truncated":false}`},
		{"qualified", "lsp_hover", `"symbol":"pkg.fun"`, `{"ok":true,"at":"a.fake:3:11: # fun pkg.fun x->fun more","text":"# fun pkg."}`},
		{"qualified by an arrow", "lsp_hover", `"symbol":"x->fun"`, `{"ok":true,"at":"a.fake:3:18: # fun pkg.fun x->fun more","text":"# fun pkg.fun x->"}`},
		{"qualified otherwise", "lsp_hover", `"symbol":"Other::more"`, `{"ok":true,"at":"a.fake:3:22: # fun pkg.fun x->fun more","text":"# fun pkg.fun x->fun"}`},
		{"nearest to the column", "lsp_hover", `"symbol":"fun","line":3,"column":12`, `{"ok":true,"at":"a.fake:3:11: # fun pkg.fun x->fun more","text":"# fun pkg."}`},
		{"behind a wide character", "lsp_hover", `"symbol":"def"`, `{"ok":true,"at":"a.fake:2:3: 😀 def fun","text":"😀"}`},
		{"nothing to say, the next is asked", "lsp_hover", `"symbol":"first"`, `{"ok":true,"at":"a.fake:1:1: first","text":"","note":"no symbol at this place, or none the language server knows"}`},
		{"references", "lsp_references", `"symbol":"fun","line":2`, `{"ok":true,"at":"a.fake:2:7: 😀 def fun","references":["a.fake:2:7: 😀 def fun","a.fake:3:3: # fun pkg.fun x->fun more","a.fake:4:6: use fun and funny"],"count":3,"truncated":false}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, r, err := h.run(t, t.Context(), tc.tool, `{"path":"a.fake",`+tc.args+`}`)
			var g, w any
			if err != nil || json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(tc.want), &w) != nil || fmt.Sprint(g) != fmt.Sprint(w) || r.Summary == "" {
				t.Errorf("%s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
	for args, want := range map[string]string{
		`"symbol":"absent"`:        `"absent" is not in a.fake`,
		`"symbol":"fu"`:            `"fu" is not in a.fake`,
		`"symbol":"fun","line":40`: `"fun" is not on or near line 40 of a.fake`,
		`"line":5,"column":1`:      `a.fake has only 4 lines`,
		`"line":1,"column":7`:      `line 1 of a.fake has only 5 characters`,
	} {
		if _, _, err := h.run(t, t.Context(), "lsp_hover", `{"path":"a.fake",`+args+`}`); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	h := open(t, "normal")
	h.put(t, "a.fake", strings.Repeat("fun "+strings.Repeat("ä", 1000)+" BAD "+strings.Repeat("x", 1000)+"\n", 300))
	for tool, args := range map[string]string{
		"lsp_references":  `{"path":"a.fake","symbol":"fun"}`,
		"lsp_diagnostics": `{"path":"a.fake"}`,
	} {
		got, _, err := h.run(t, t.Context(), tool, args)
		if err != nil || len(got) > 200<<10 || !strings.Contains(got, `"truncated":true`) {
			t.Errorf("%s: %d bytes, %v", tool, len(got), err)
		}
	}
	h = open(t, "large")
	h.put(t, "a.fake", "x")
	if got, _, err := h.run(t, t.Context(), "lsp_hover", `{"path":"a.fake","symbol":"x"}`); err != nil || len(got) > 20<<10 || !strings.Contains(got, `"truncated":true`) {
		t.Errorf("hover: %d bytes, %v", len(got), err)
	}
}

func TestRefusalsAreNotTheEnd(t *testing.T) {
	h := open(t, "picky")
	h.put(t, "a.fake", "// fun\nsome fun\n")
	if got, _, err := h.run(t, t.Context(), "lsp_hover", `{"path":"a.fake","symbol":"fun"}`); err != nil || !strings.Contains(got, `"text":"some"`) {
		t.Errorf("%s, %v", got, err)
	}
	if _, _, err := h.run(t, t.Context(), "lsp_hover", `{"path":"a.fake","line":1,"column":4}`); err == nil || err.Error() != "fakels: nothing there" {
		t.Errorf("error %v", err)
	}
}

func TestWithoutAServer(t *testing.T) {
	h := openWith(t, 0, lsp.Options{Env: []string{"PATH=/nowhere"}})
	h.put(t, "a.py", "x")
	h.put(t, "a.txt", "x")
	for args, want := range map[string]string{
		`{"path":"a.py"}`:  "no language server for Python is installed; to install one: npm install -g pyright, or: pip install 'python-lsp-server[all]'",
		`{"path":"a.txt"}`: "no known language server for a.txt",
		`{"path":"no.py"}`: "no.py: no such file or directory",
		`{}`:               "no language server is running, and none was found for the workspace root; ask about a file",
	} {
		if _, _, err := h.run(t, t.Context(), "lsp_diagnostics", args); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", args, err, want)
		}
	}
	got, _, err := h.run(t, t.Context(), "write", `{"path":"b.py","content":"x = ("}`)
	if err != nil || strings.Contains(got, "diagnostics") {
		t.Errorf("write: %s, %v", got, err)
	}
}

func TestPlacesElsewhereAreNotRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.fake")
	if err := os.WriteFile(secret, []byte("def password hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := open(t, "points elsewhere "+secret)
	h.put(t, "a.fake", "password")
	got, _, err := h.run(t, t.Context(), "lsp_definition", `{"path":"a.fake","symbol":"password"}`)
	if err != nil || strings.Contains(got, "hunter2") || !strings.Contains(got, secret+`:1:1"`) {
		t.Errorf("%s, %v", got, err)
	}
}

// What is hidden is named by no answer: the line at each place would be shown.
func TestPlacesInHiddenFilesAreLeftOut(t *testing.T) {
	hides := func(name string) bool { return name == "private.fake" }
	h := openHiding(t, "normal", time.Minute, hides)
	h.put(t, "private.fake", "def password hunter2\nBAD hunter2")
	h.put(t, "a.fake", "use password\nBAD own")
	for _, args := range []string{`{"path":"private.fake"}`, `{"path":"a.fake"}`} { // the server knows both
		if _, _, err := h.run(t, t.Context(), "lsp_diagnostics", args); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range map[string]string{
		"lsp_definition": `{"path":"a.fake","symbol":"password"}`, "lsp_references": `{"path":"a.fake","symbol":"password"}`,
		"lsp_diagnostics": `{}`,
	} {
		if got, _, err := h.run(t, t.Context(), name, args); err != nil || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if got, _, err := h.run(t, t.Context(), "lsp_diagnostics", `{"path":"private.fake"}`); err != nil || !strings.Contains(got, "hunter2") {
		t.Errorf("a hidden file that was asked about: %s, %v", got, err)
	}
}

func TestEditTellsWhatItBroke(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, how := range []string{"normal", "pull", "unversioned"} {
		t.Run(how, func(t *testing.T) {
			h := open(t, how)
			h.put(t, "a.fake", "BAD old 1\nBAD older!\nfine\n")
			if _, _, err := h.run(t, t.Context(), "lsp_diagnostics", `{"path":"a.fake"}`); err != nil {
				t.Fatal(err)
			}
			for _, tc := range []struct{ name, tool, args, want string }{
				{"new line above", "edit", `{"path":"a.fake","old_string":"BAD old 1","new_string":"above\nBAD old 2"}`, ""},
				{"one error", "edit", `{"path":"a.fake","old_string":"fine","new_string":"BAD new"}`, `,"diagnostics":["a.fake:4:1: error: bad new (fake 7)\n    BAD new"]}`},
				{"one warning", "edit", `{"path":"a.fake","old_string":"above","new_string":"BAD <more>!"}`, `,"diagnostics":["a.fake:1:1: warning: bad \u003cmore\u003e (fake 7)\n    BAD \u003cmore\u003e!"]}`},
				{"the same once more", "edit", `{"path":"a.fake","old_string":"BAD new","new_string":"BAD new\nBAD new"}`, `,"diagnostics":["a.fake:5:1: error: bad new (fake 7)\n    BAD new"]}`},
				{"fixed", "write", `{"path":"a.fake","content":"fine"}`, ""},
				{"a new file", "write", `{"path":"sub/b.fake","content":"BAD"}`, `,"diagnostics":["sub/b.fake:1:1: error: bad (fake 7)\n    BAD"]}`},
				{"nothing for the server", "write", `{"path":"c.txt","content":"BAD"}`, ""},
			} {
				got, r, err := h.run(t, t.Context(), tc.tool, tc.args)
				if err != nil || !strings.HasPrefix(got, `{"ok":true,"path":`) {
					t.Fatalf("%s: %s, %v", tc.name, got, err)
				}
				if tc.want == "" && strings.Contains(got, "diagnostics") || !strings.HasSuffix(got, tc.want) {
					t.Errorf("%s: %s\nwant %s", tc.name, got, tc.want)
				}
				if strings.Contains(r.Summary, "new problem") != (tc.want != "") {
					t.Errorf("%s: summary %q", tc.name, r.Summary)
				}
			}
		})
	}
}

func TestFirstEditTellsOnlyWhatIsNew(t *testing.T) {
	h := open(t, "pull")
	h.put(t, "a.fake", "BAD old\nfine\n")
	got, _, err := h.run(t, t.Context(), "edit", `{"path":"a.fake","old_string":"fine","new_string":"BAD new"}`)
	if err != nil || strings.Contains(got, "bad old") || !strings.Contains(got, `["a.fake:2:1: error: bad new`) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	h := open(t, "pull")
	h.put(t, "first.fake", "")
	if _, _, err := h.run(t, t.Context(), "lsp_diagnostics", `{"path":"first.fake"}`); err != nil {
		t.Fatal(err)
	}
	got, r, err := h.run(t, t.Context(), "write", fmt.Sprintf(`{"path":"a.fake","content":%q}`, strings.Repeat("BAD\n", 100)))
	if err != nil || strings.Count(got, ": error: ") != 20 || !strings.Contains(got, `"… and 80 more"]`) || !strings.HasSuffix(r.Summary, ", 100 new problems") {
		t.Errorf("%s (%s), %v", got, r.Summary, err)
	}
}

func TestFailedEditIsLeftAlone(t *testing.T) {
	h := open(t, "normal")
	h.put(t, "a.fake", "x")
	if _, _, err := h.run(t, t.Context(), "edit", `{"path":"a.fake","old_string":"absent","new_string":"BAD"}`); err == nil {
		t.Error("an edit of what is not there went well")
	}
}

func TestHungServerDoesNotStopAnEdit(t *testing.T) {
	for _, how := range []string{"never begins", "silent", "mute", "dies at once", "slow"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := openFor(t, how, 200*time.Millisecond)
			for i := range 2 {
				got, _, err := h.run(t, t.Context(), "write", fmt.Sprintf(`{"path":"a.fake","content":"BAD %d"}`, i))
				if err != nil || strings.Contains(got, "diagnostics") {
					t.Errorf("%s, %v", got, err)
				}
			}
		})
	}
}

func TestCancelledEditStillTellsWhatItDid(t *testing.T) {
	h := open(t, "normal")
	ctx, cancel := context.WithCancel(t.Context())
	w := codenav.WithDiagnostics(&writer{h: h, then: cancel}, &codenav.Diagnoser{Workspace: h.ws, Pool: h.pool})
	call, err := w.Prepare(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := call.Run(ctx, io.Discard); err != nil || r.Summary != "written" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestResultsOfAnyShapeAreKept(t *testing.T) {
	for _, tc := range []struct {
		value  any
		failed bool
		want   string
	}{
		{map[string]any{"ok": true}, false, `{"ok":true,"diagnostics":["a.fake:1:1: error: bad (fake 7)\n    BAD"]}`},
		{map[string]any{}, false, `{"diagnostics":["a.fake:1:1: error: bad (fake 7)\n    BAD"]}`},
		{json.RawMessage(` { "ok" : true } `), false, `{"ok":true,"diagnostics":["a.fake:1:1: error: bad (fake 7)\n    BAD"]}`},
		{"text", false, `"text"`},
		{nil, false, `null`},
		{map[string]any{"ok": false}, true, `{"ok":false}`},
	} {
		h := open(t, "pull")
		w := codenav.WithDiagnostics(&writer{h: h, value: tc.value, failed: tc.failed}, &codenav.Diagnoser{Workspace: h.ws, Pool: h.pool, Limit: time.Minute})
		call, err := w.Prepare(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := call.Run(t.Context(), io.Discard)
		b, jerr := json.Marshal(r.Value)
		if err != nil || jerr != nil || string(b) != tc.want || r.Failed != tc.failed {
			t.Errorf("%v: %s, %v %v\nwant %s", tc.value, b, err, jerr, tc.want)
		}
	}
}

// writer is a tool that writes a bad file.
type writer struct {
	h      house
	value  any
	failed bool
	then   func()
}

func (*writer) Spec() tool.Spec { return tool.Spec{Name: "x", Doc: "x"} }

func (w *writer) Prepare(context.Context, json.RawMessage) (tool.Call, error) { return w, nil }

func (*writer) Plan() tool.Plan {
	return tool.Plan{Effects: []tool.Effect{{Kind: tool.Read, Target: "b.fake"}, {Kind: tool.Write, Target: "a.fake"}}}
}

func (w *writer) Run(context.Context, io.Writer) (tool.Result, error) {
	if w.then != nil {
		w.then()
	}
	return tool.Result{Value: w.value, Failed: w.failed, Summary: "written"}, w.h.ws.WriteFile("a.fake", []byte("BAD"))
}

// TestGopls uses the tools as a model would, with a real server.
func TestGopls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("gopls is not installed")
	}
	h := openWith(t, time.Minute, lsp.Options{Env: os.Environ()})
	h.put(t, "go.mod", "module example.test/m\n\ngo 1.21\n")
	h.put(t, "a.go", "package m\n\n// Twice doubles n.\nfunc Twice(n int) int { return 2 * n }\n\nvar old = missing\n")
	h.put(t, "p/b.go", "package p\n\nimport \"example.test/m\"\n\nvar S = \"日本\" + string(rune(m.Twice(1)))\n")
	for _, tc := range []struct{ tool, args, want string }{
		{"lsp_diagnostics", `{"path":"a.go"}`, `a.go:6:11: error: undefined: missing`},
		{"lsp_definition", `{"path":"p/b.go","symbol":"m.Twice"}`, `a.go:4:6: func Twice(n int) int { return 2 * n }`},
		{"lsp_references", `{"path":"a.go","symbol":"Twice","line":3}`, `p/b.go:5:30: var S`},
		{"lsp_hover", `{"path":"p/b.go","symbol":"Twice"}`, `Twice doubles n.`},
		{"lsp_diagnostics", `{}`, `a.go:6:11: error: undefined: missing`},
	} {
		got, _, err := h.run(t, t.Context(), tc.tool, tc.args)
		if err != nil || !strings.Contains(got, tc.want) {
			t.Errorf("%s %s: %s, %v\nwant %s", tc.tool, tc.args, got, err, tc.want)
		}
	}
	got, r, err := h.run(t, t.Context(), "edit", `{"path":"p/b.go","old_string":"m.Twice","new_string":"m.Thrice"}`)
	if err != nil || !strings.Contains(got, "undefined: m.Thrice") {
		t.Errorf("edit: %s (%s), %v", got, r.Summary, err)
	}
	if got, _, err = h.run(t, t.Context(), "edit", `{"path":"a.go","old_string":"2 * n","new_string":"n * 2"}`); err != nil || strings.Contains(got, "diagnostics") {
		t.Errorf("an edit of a file with an old error: %s, %v", got, err)
	}
}
