package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/scripted"
	"coder/internal/ui/i18n"

	"github.com/creack/pty"
)

// moody is a person who refuses one question, counted from 1, and says yes to
// the others.
type moody struct{ refuses, asked int }

func (p *moody) Ask(_ context.Context, q uip.Request) (uip.Response, error) {
	p.asked++
	a := uip.Response{ID: q.ID, Option: uip.OptionApprove, Author: "user"}
	if p.asked == p.refuses {
		a.Option, a.Comment = uip.OptionReject, "not now"
	}
	return a, nil
}

// demoEnv is a world with a home of its own and the Go cache of the machine.
func demoEnv(t *testing.T, path string) Env {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	environ := []string{"PATH=" + path, "HOME=" + t.TempDir(), "LANG=en_US.UTF-8", "TERM=xterm-256color"}
	if out, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
		environ = append(environ, "GOCACHE="+strings.TrimSpace(string(out)))
	}
	return Env{Env: app.Env{Environ: environ, Dir: t.TempDir(), Now: time.Now}, Stderr: io.Discard,
		Terminal: func() (in, out *os.File, ok bool) { return nil, nil, false }}
}

func needGo(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the demo runs the tests of a Go project, and Go is not installed")
	}
}

// playDemo runs the turn of the demo with person and returns the answer and
// what pages.go has become.
func playDemo(t *testing.T, env Env, lang string, person uip.Interactor) (answer, file string) {
	t.Helper()
	dir, err := unpackDemo()
	if err != nil {
		t.Fatal(err)
	}
	env.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	inv := (&invocation{Env: env, flags: &flags{Options: app.Options{Overrides: app.Overrides{Lang: lang}}}}).demoInvocation(dir, false)
	a, err := inv.newDemoApp(func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.NewSupervisor(person, app.Screen{}).StartSession(t.Context(), "s1", event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	done, err := s.RunText(t.Context(), inv.demoPrompt(), event.Discard)
	if err != nil {
		t.Fatal(err)
	}
	answer = done.Text
	text, err := os.ReadFile(filepath.Join(dir, "pages.go"))
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

const (
	asItCame = "return items / size\n"
	tooMuch  = "return items/size + 1\n"
	roundsUp = "return (items + size - 1) / size\n"
)

func TestTheDemoEndsHonestlyWhateverIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	needGo(t)
	env := demoEnv(t, os.Getenv("PATH"))
	for _, tt := range []struct {
		refused, asked int
		file           string
		en, zh         string
	}{
		{0, 4, roundsUp, "`go test ./...` passes", "`go test ./...` 通过"},
		{1, 1, asItCame, "nothing was changed and the bug is still there", "什么都没有变"},
		{2, 2, tooMuch, "You refused the test run", "你拒绝了运行测试"},
		{3, 3, tooMuch, "You refused the second edit", "你拒绝了第二次修改"},
		{4, 4, roundsUp, "You refused the second test run", "你拒绝了第二次运行测试"},
	} {
		for lang, want := range map[string]string{i18n.English: tt.en, i18n.Chinese: tt.zh} {
			t.Run(fmt.Sprint(lang, " no to ", tt.refused), func(t *testing.T) {
				person := &moody{refuses: tt.refused}
				answer, file := playDemo(t, env, lang, person)
				if !strings.Contains(answer, want) || !strings.Contains(file, tt.file) || person.asked != tt.asked {
					t.Errorf("asked %d times, the answer is %q, pages.go is\n%s", person.asked, answer, file)
				}
			})
		}
	}
}

func TestTheDemoEndsHonestlyWithoutGo(t *testing.T) {
	answer, file := playDemo(t, demoEnv(t, t.TempDir()), i18n.English, &moody{})
	if !strings.Contains(answer, "has not been tested") || !strings.Contains(file, tooMuch) {
		t.Errorf("the answer is %q, pages.go is\n%s", answer, file)
	}
}

// Whatever the language, the model does the same.
func TestTheScriptsOfTheDemoDoTheSame(t *testing.T) {
	var deeds [][]string
	for _, name := range []string{"script.txt", "script.zh-CN.txt"} {
		text, err := demoFiles.ReadFile("demo/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scripted.Parse(string(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		deeds = append(deeds, wordless(string(text)))
	}
	if !reflect.DeepEqual(deeds[0], deeds[1]) {
		t.Errorf("the deeds differ:\n%s\nand\n%s", strings.Join(deeds[0], "\n"), strings.Join(deeds[1], "\n"))
	}
}

// wordless is a script without what is only said.
func wordless(script string) []string {
	said := regexp.MustCompile(`^(say|reason) .*`)
	var kept []string
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, strings.TrimSpace(said.ReplaceAllString(line, "$1")))
		}
	}
	return kept
}

// onlooker collects what a terminal is sent and answers each question that
// comes up.
type onlooker struct {
	mu    sync.Mutex
	shown bytes.Buffer
}

func (o *onlooker) watch(tty *os.File, answers []string) {
	buf := make([]byte, 4096)
	for {
		n, err := tty.Read(buf)
		o.mu.Lock()
		o.shown.Write(buf[:n])
		questions := strings.Count(o.shown.String(), "[APPROVAL]")
		o.mu.Unlock()
		for ; questions > 0 && len(answers) > 0 && questions > 4-len(answers); answers = answers[1:] {
			_, _ = tty.WriteString(answers[0])
		}
		if err != nil {
			return
		}
	}
}

func (o *onlooker) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return regexp.MustCompile(`\x1b\[[?0-9;]*[A-Za-z]`).ReplaceAllString(o.shown.String(), "")
}

func TestTheDemoAtATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	needGo(t)
	person, screen, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	defer person.Close()
	if err := pty.Setsize(person, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	env := demoEnv(t, os.Getenv("PATH"))
	env.Terminal = func() (in, out *os.File, ok bool) { return screen, screen, true }
	env.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	var o onlooker
	seen := make(chan struct{})
	go func() { defer close(seen); o.watch(person, []string{"y\r", "y\r", "y\r", "n, enough\r"}) }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err = (&invocation{Env: env, flags: &flags{Options: app.Options{Overrides: app.Overrides{NoColor: true}}}}).runDemo(ctx)
	_ = screen.Close()
	<-seen
	if err != nil {
		t.Errorf("it ended with %v", err)
	}
	expectInOrder(t, o.text(), "is a script", "in advance.\r\nEverything else", "press 1", "model script", "[APPROVAL] edit", "+ 1", "[APPROVAL] bash",
		"FAIL", "[APPROVAL] edit", "[APPROVAL] bash", "enough", "You refused the second test run",
		"== What changed", "size - 1", "== Undo", "restored to before the turn: pages.go", "== Redo", "restored to after the turn: pages.go",
		"== Audit", "edit pages.go", "user", "bash go test", "deny", "undo pages.go", "intact", "== Where it is saved", "coder setup")
}

// expectInOrder checks that parts stand in text one after the other.
func expectInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("%q is missing, or not in its place, in\n%s", p, text)
		}
		rest = after
	}
}

func TestTheDemoTellsWhenTheRecordIsNotWhatItWas(t *testing.T) {
	needGo(t)
	var out bytes.Buffer
	inv := (&invocation{Env: demoEnv(t, ""), flags: &flags{}}).demoInvocation(t.TempDir(), false)
	a, err := inv.newDemoApp(func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	report := demoReport{invocation: inv, app: a, session: "s1", printText: func(text string) error { out.WriteString(text); return nil }}
	line := `{"seq":1,"type":"ToolCallRequested","v":1,"sessionId":"s1","payload":{"toolCallId":"c","toolName":"read","verdict":"allow"},"prev":"0"}` + "\n"
	log := a.Store().Path("log", "s1", "audit.jsonl")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report.showSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "audit.jsonl, line 1") || !strings.Contains(out.String(), "?") {
		t.Errorf("it says %q", out.String())
	}
}
