package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/testkit/lsptest"
)

// said is diagnostics in a few words: line:column severity message.
func said(r Report) string {
	var words []string
	for _, d := range r.Diagnostics {
		words = append(words, fmt.Sprintf("%s:%d:%d %s %s", d.Path, d.Range.Start.Line, d.Range.Start.Character, d.Severity, d.Message))
	}
	if r.Pending {
		words = append(words, "pending")
	}
	return strings.Join(words, ", ")
}

func TestDiagnose(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, how := range []string{"normal", "unversioned", "pull", "pull breaks off", "pull then busy", "empty first", "busy", "asks"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, how)
			fine := "pending" // nobody can tell
			if strings.HasPrefix(how, "pull") {
				fine = ""
			}
			for _, tc := range []struct{ text, want string }{
				{"ok\n😀 BAD one\nBAD two!", "a.fake:1:3 error bad one, a.fake:2:0 warning bad two"},
				{"ok\n😀 BAD one\nBAD two!", "a.fake:1:3 error bad one, a.fake:2:0 warning bad two"},
				{"ok\n", fine},
				{"BAD <again>", "a.fake:0:0 error bad <again>"},
			} {
				r, err := p.Diagnose(t.Context(), "a.fake", []byte(tc.text))
				if err != nil || said(r) != tc.want || r.Server != "fakels" {
					t.Errorf("%q: %s, %v, want %s", tc.text, said(r), err, tc.want)
				}
			}
		})
	}
}

func TestQuestions(t *testing.T) {
	for _, how := range []string{"normal", "links"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, how)
			one, two := "def fun\nuse fun", "fun again"
			if _, err := p.Hover(t.Context(), "one.fake", []byte(one), Position{}); err != nil {
				t.Fatal(err)
			}
			list, err := p.Definition(t.Context(), "sub/two.fake", []byte(two), Position{0, 3})
			if err != nil || len(list) != 1 || list[0].Path != "one.fake" || list[0].Range.Start != (Position{0, 0}) {
				t.Errorf("definition: %+v, %v", list, err)
			}
			uses, err := p.References(t.Context(), "sub/two.fake", []byte(two), Position{0, 3})
			if err != nil || len(uses) != 3 || !has(uses, "one.fake", 1) || !has(uses, "sub/two.fake", 0) {
				t.Errorf("references: %+v, %v", uses, err)
			}
			if words, err := p.Hover(t.Context(), "one.fake", []byte("é😀x"), Position{0, 3}); err != nil || words != "é😀" {
				t.Errorf("hover: %q, %v", words, err)
			}
			if words, err := p.Hover(t.Context(), "one.fake", []byte(one), Position{9, 0}); err != nil || words != "" {
				t.Errorf("hover over nothing: %q, %v", words, err)
			}
			if none, err := p.Definition(t.Context(), "sub/two.fake", []byte("nobody"), Position{0, 6}); err != nil || len(none) != 0 {
				t.Errorf("definition of nothing: %+v, %v", none, err)
			}
		})
	}
}

// told is what the server has heard, by a question only the fake answers.
func told(t *testing.T, p *Pool) string {
	t.Helper()
	log, err := p.Hover(t.Context(), "log.fake", nil, Position{})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestServersQuestionsAreAnswered(t *testing.T) {
	p, _ := open(t, "asks")
	log := told(t, p)
	root, _ := json.Marshal([]map[string]any{{"name": filepath.Base(p.options.Root), "uri": pathToURI(p.options.Root)}})
	for _, want := range []string{
		`answer "q0" [{"colour":"blue"},null]`,
		`answer "q1" null`, `answer "q2" null`,
		`answer "q3" {"applied":false`,
		`answer "q4" ` + string(root),
		`answer "q5" null`,
		`answer "q6" {"success":false}`,
		`answer "q7" -32603`,
		`answer "q8" -32601`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in:\n%s", want, log)
		}
	}
}

func TestDocumentsAreKeptUpToDate(t *testing.T) {
	p, dir := open(t, "normal")
	put(t, filepath.Join(dir, "a.fake"), "one")
	put(t, filepath.Join(dir, "notes.txt"), "one")
	put(t, filepath.Join(dir, "node_modules/x.fake"), "one")
	ask := func(name, text string) {
		t.Helper()
		if _, err := p.Hover(t.Context(), name, []byte(text), Position{}); err != nil {
			t.Fatal(err)
		}
	}
	ask("a.fake", "one")
	ask("a.fake", "one")
	put(t, filepath.Join(dir, "a.fake"), "two words")
	ask("a.fake", "two words")
	if log := told(t, p); strings.Count(log, "didOpen") != 2 || strings.Count(log, "didChange\n") != 1 || strings.Count(log, "didSave") != 1 || strings.Contains(log, "didClose") {
		t.Errorf("one file opened and changed once, and the log:\n%s", log)
	}
	put(t, filepath.Join(dir, "a.fake"), "three words here")
	put(t, filepath.Join(dir, "new.fake"), "new")
	put(t, filepath.Join(dir, "notes.txt"), "changed")
	put(t, filepath.Join(dir, "node_modules/x.fake"), "changed")
	log := told(t, p)
	events := fmt.Sprintf(`[{"type":2,"uri":%q},{"type":1,"uri":%q}]`, pathToURI(p.options.abs("a.fake")), pathToURI(p.options.abs("new.fake")))
	if !strings.Contains(log, "didClose\nworkspace/didChangeWatchedFiles "+events) {
		t.Errorf("a.fake changed behind our back, new.fake was made; want %s in:\n%s", events, log)
	}
	if err := os.Remove(filepath.Join(dir, "new.fake")); err != nil {
		t.Fatal(err)
	}
	if log := told(t, p); !strings.Contains(log, `{"type":3,"uri":"`+pathToURI(p.options.abs("new.fake"))) {
		t.Errorf("new.fake was removed:\n%s", log)
	}
}

func TestOpenDocumentsAreBounded(t *testing.T) {
	p, _ := open(t, "normal")
	for i := range maxOpen + 5 {
		if _, err := p.Hover(t.Context(), fmt.Sprintf("%d.fake", i), []byte("x"), Position{}); err != nil {
			t.Fatal(err)
		}
	}
	if log := told(t, p); strings.Count(log, "didClose") != 6 {
		t.Errorf("closed %d", strings.Count(log, "didClose"))
	}
	if _, err := p.Hover(t.Context(), "a.fake", make([]byte, maxDocument+1), Position{}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a document too large: %v", err)
	}
}

func TestServerDies(t *testing.T) {
	p, _ := open(t, "dies")
	if words, err := p.Hover(t.Context(), "a.fake", []byte("die"), Position{0, 2}); err != nil || words != "di" {
		t.Errorf("the server after the one that died says %q, %v", words, err)
	}
}

func TestServerKeepsDying(t *testing.T) {
	p, _ := open(t, "always dies")
	_, err := p.Hover(t.Context(), "a.fake", []byte("die"), Position{})
	if err == nil || !errors.Is(err, errServerExited) || !strings.Contains(err.Error(), "fakels: language server exited") {
		t.Errorf("error %v", err)
	}
	if words, err := p.Hover(t.Context(), "a.fake", []byte("live"), Position{0, 4}); err != nil || words != "live" {
		t.Errorf("another question: %q, %v", words, err)
	}
}

func TestServerThatDoesNotBegin(t *testing.T) {
	for how, want := range map[string]string{
		"dies at once": "exit status 3: error: no such component",
		"garbage":      `not a header line: "Welcome to the language server!"`,
		"huge":         "message is too large: 67108865 bytes",
		"half":         "unexpected EOF",
		"refuses":      "fakels: no workspace",
		"other units":  "counts characters in utf-8",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, _ := open(t, how)
			if _, err := p.Diagnose(t.Context(), "a.fake", nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
			for range len(restartDelays) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				_, err := p.Diagnose(ctx, "a.fake", nil)
				cancel()
				if err == nil {
					t.Error("a server that does not begin has an answer")
				}
			}
		})
	}
}

func TestLargeAnswer(t *testing.T) {
	p, _ := open(t, "large")
	if words, err := p.Hover(t.Context(), "a.fake", nil, Position{}); err != nil || len(words) != 2<<20 {
		t.Errorf("%d bytes, %v", len(words), err)
	}
}

func TestWrongAnswer(t *testing.T) {
	p, _ := open(t, "wrong")
	if _, err := p.Hover(t.Context(), "a.fake", nil, Position{}); err == nil || !strings.Contains(err.Error(), "fakels: textDocument/hover: read the answer") {
		t.Errorf("error %v", err)
	}
}

func TestCancelledCall(t *testing.T) {
	p, _ := open(t, "patient")
	if _, err := p.Hover(t.Context(), "a.fake", []byte("x"), Position{1, 0}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	asked.Go(func() {
		if _, err := p.Hover(ctx, "a.fake", []byte("x"), Position{}); err != context.Canceled {
			t.Errorf("cancelled: %v", err)
		}
	})
	untilBusy(t, p)
	cancel()
	asked.Wait()
	if _, err := p.Diagnose(ctx, "a.fake", []byte("y")); !errors.Is(err, context.Canceled) {
		t.Errorf("diagnose with a context that has ended: %v", err)
	}
	log, err := p.Hover(t.Context(), "log.fake", []byte("\n"), Position{1, 0})
	if err != nil || !strings.Contains(log, "textDocument/hover\n$/cancelRequest 3\n") {
		t.Errorf("the server was not told, %v:\n%s", err, log)
	}
}

// untilBusy waits until the server returned that it is at work.
func untilBusy(t *testing.T, p *Pool) {
	t.Helper()
	s, err := p.ensureServer(t.Context(), p.options.Servers[0], nil, p.options.Root)
	if err != nil {
		t.Fatal(err)
	}
	for now := s.fileState(""); !now.busy; now = s.fileState("") {
		<-now.changed
	}
}

func TestStubbornServerAndItsChildrenAreEnded(t *testing.T) {
	p, _ := open(t, "stubborn") // the cleanup looks for what is left
	if _, err := p.Diagnose(t.Context(), "a.fake", nil); err != nil {
		t.Fatal(err)
	}
}

func TestClosedPool(t *testing.T) {
	p, _ := open(t, "normal")
	if _, err := p.Diagnose(t.Context(), "a.fake", nil); err != nil || !p.IsRunning("a.fake") {
		t.Fatalf("running %v, %v", p.IsRunning("a.fake"), err)
	}
	p.Close()
	p.Close()
	if _, err := p.Diagnose(t.Context(), "a.fake", nil); !errors.Is(err, ErrClosed) || p.IsRunning("a.fake") {
		t.Errorf("after Close: %v", err)
	}
}

func TestCloseWhileStarting(t *testing.T) {
	p, _ := open(t, "never begins")
	ctx, cancel := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	asked.Go(func() { _, _ = p.Diagnose(t.Context(), "a.fake", nil) })
	asked.Go(func() {
		if _, err := p.Diagnose(ctx, "a.fake", nil); err == nil {
			t.Error("it began")
		}
	})
	cancel()
	p.Close()
	asked.Wait()
}

func TestManyAtOnce(t *testing.T) {
	p, dir := open(t, "normal")
	put(t, filepath.Join(dir, "sub/fake.project"), "")
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			name := fmt.Sprintf("%d.fake", i%8)
			if i%2 == 0 {
				name = "sub/" + name
			}
			r, err := p.Diagnose(t.Context(), name, []byte("x\nBAD"))
			if err != nil || said(r) != name+":1:0 error bad" {
				t.Errorf("%s: %s, %v", name, said(r), err)
			}
		})
	}
	all.Wait()
	if len(p.histories) != 2 {
		t.Errorf("%d servers for two projects", len(p.histories))
	}
}

func TestOnlyProgramsFromOutsideAreRun(t *testing.T) {
	ws, elsewhere := t.TempDir(), t.TempDir()
	for _, file := range []string{ws + "/bin/gopls", elsewhere + "/pylsp", elsewhere + "/plain/clangd"} {
		put(t, file, "#!/bin/sh\n")
		if !strings.Contains(file, "plain") {
			if err := os.Chmod(file, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	link := filepath.Join(elsewhere, "gopls")
	if err := os.Symlink(ws+"/bin/gopls", link); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{"", ".", "bin", ws + "/bin", elsewhere, elsewhere + "/plain"}, ":")
	t.Chdir(ws)
	for _, tc := range []struct {
		file, want string
		servers    []Kind
	}{
		{"x.go", "is inside the workspace", nil},
		{"x.py", "", nil},
		{"x.c", "no language server for C and C++ is installed; to install one: install your system's clangd package", nil},
		{"x.rs", "rustup component add rust-analyzer", nil},
		{"x.unknown", "no known language server for x.unknown", nil},
		{"x", "no known language server for x", nil},
		{"x.go", "", []Kind{{Name: "mine", Language: "Go", Command: []string{ws + "/bin/gopls"}, Files: map[string]string{".go": "go"}}}},
		{"x.py", "disabled", []Kind{{Name: "none", Language: "Python", Files: map[string]string{".py": "python"}}}},
		{"x.go", "is inside", []Kind{{Name: "mine", Language: "Go", Command: []string{"./bin/gopls"}, Files: map[string]string{".go": "go"}}}},
	} {
		p := New(Options{Root: ws, Env: []string{"PATH=/nowhere", "PATH=" + path}, Servers: tc.servers})
		started := false
		p.launch = func(command []string, _ string, _ []string) (transport, error) {
			started = true
			return nil, errors.New("not started here")
		}
		_, err := p.Diagnose(t.Context(), tc.file, nil)
		if started != (tc.want == "") || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: started %v, %v, want %q", tc.file, started, err, tc.want)
		}
		p.Close()
	}
}

func TestAServerHasTheEnvironmentOfItsSetting(t *testing.T) {
	ws, bin := t.TempDir(), t.TempDir()
	put(t, filepath.Join(bin, "zls"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(bin, "zls"), 0o755); err != nil {
		t.Fatal(err)
	}
	k, err := ParseKind("zig", json.RawMessage(`{"command":"zls","args":["-x"],"files":{".zig":"zig"},"env":{"ZIG":"1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Root: ws, Env: []string{"PATH=" + bin}, Servers: []Kind{k}})
	defer p.Close()
	var command, env []string
	p.launch = func(c []string, _ string, e []string) (transport, error) {
		command, env = c, e
		return nil, errors.New("not started here")
	}
	_, _ = p.Diagnose(t.Context(), "x.zig", nil)
	if strings.Join(command, " ") != filepath.Join(bin, "zls")+" -x" || !slices.Contains(env, "PATH="+bin) || env[len(env)-1] != "ZIG=1" {
		t.Errorf("%q with %q", command, env)
	}
}

// TestTypeScriptIsThePersons looks for a TypeScript that can serve: of version 7
// tsc itself, of those before it a tsserver with somebody to speak for it, and
// never the project's.
func TestTypeScriptIsThePersons(t *testing.T) {
	install := func(t *testing.T, dir, version string, programs ...string) {
		pack := filepath.Join(dir, "lib/node_modules/typescript")
		put(t, filepath.Join(pack, "package.json"), `{"name":"typescript","version":"`+version+`"}`)
		put(t, filepath.Join(pack, "lib/tsserver.js"), "")
		for _, name := range programs {
			put(t, filepath.Join(pack, "bin", name), "")
			if err := errors.Join(os.Chmod(filepath.Join(pack, "bin", name), 0o755), os.Symlink(filepath.Join(pack, "bin", name), filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct{ name, version, programs, inside, want string }{
		{name: "nothing", want: "typescript@7, or: npm install -g typescript-language-server typescript@5"},
		{name: "no TypeScript", programs: "typescript-language-server", want: "typescript@5"},
		{name: "five", version: "5.9.3", programs: "typescript-language-server tsc tsserver", want: "typescript-language-server"},
		{name: "five alone", version: "5.9.3", programs: "tsc tsserver", want: "typescript@5"},
		{name: "seven", version: "7.0.2", programs: "tsc", want: "tsc"},
		{name: "seven and the server for five", version: "7.0.2", programs: "tsc typescript-language-server", want: "tsc"},
		{name: "ten", version: "10.0.0-beta", programs: "tsc", want: "tsc"},
		{name: "the project's five", programs: "typescript-language-server", inside: "tsc tsserver", want: "is inside the workspace"},
		{name: "the project's seven", inside: "tsc", want: "is inside the workspace"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ws, bin := t.TempDir(), t.TempDir()
			install(t, bin, tc.version, strings.Fields(tc.programs)...)
			install(t, filepath.Join(ws, "node_modules/.bin"), "7.0.0", strings.Fields(tc.inside)...)
			o := Options{Root: ws, Env: []string{"PATH=" + filepath.Join(ws, "node_modules/.bin") + ":node_modules/.bin:" + bin}}
			k, _, err := o.kindFor("a.ts")
			if got := k.Name; err == nil && got != tc.want || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q, %v, want %q", got, err, tc.want)
			}
			if k.initOptions != nil && !strings.Contains(fmt.Sprint(k.initOptions(o)), "path:"+bin) {
				t.Errorf("options %v", k.initOptions(o))
			}
		})
	}
}

// TestServersDieWithUs kills a process that has started a server, and sees the
// server go.
func TestServersDieWithUs(t *testing.T) {
	if os.Getenv("LSP_TEST_PARENT") != "" {
		p := New(Options{Root: os.Getenv("LSP_TEST_PARENT"), Servers: []Kind{kindOf(t)}, Env: []string{lsptest.Env + "=clings", "LSP_TEST_MARK=" + os.Getenv("LSP_TEST_PARENT")}})
		_, err := p.Diagnose(t.Context(), "a.fake", nil)
		fmt.Fprintln(os.Stderr, "started", err)
		time.Sleep(time.Hour)
	}
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc here")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestServersDieWithUs$")
	cmd.Env = append(os.Environ(), "LSP_TEST_PARENT="+dir)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	n, _ := said.Read(line)
	before := marked("LSP_TEST_MARK=" + dir)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !strings.HasPrefix(string(line[:n]), "started <nil>") || len(before) != 1 {
		t.Fatalf("%s, servers %v", line[:n], before)
	}
	noneLeft(t, "LSP_TEST_MARK="+dir)
}
