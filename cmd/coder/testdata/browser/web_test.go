// Package browsertest drives coder web in a real browser. It is a module of its own,
// so that the program does not depend on what drives the browser.
package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience is how long anything may take on a machine that is busy.
var patience = 2 * time.Minute

// model is what the scripted model does: one edit that is approved, a command that
// is refused, one that runs until it is stopped.
const model = `reason The person wants a greeting.
say I will **greet** the world in ` + "`hello.txt`" + `.
usage 5200 80
call todowrite {"todos":[{"id":"1","content":"write the greeting","status":"in_progress"},{"id":"2","content":"check it","status":"pending"}]}
---
usage 5500 120
call write {"path":"hello.txt","content":"hello, world\nhow are you?\n"}
---
usage 5700 60
call bash {"command":"touch refused-by-me"}
---
usage 5800 40
say The file is there; the command was refused.
---
say Now something that takes long.
call bash {"command":"echo begun; sleep 600"}
---
say never said
`

// built is the program, built once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "coder")
	c := exec.Command("go", "build", "-trimpath", "-o", out, "./cmd/coder")
	c.Dir = filepath.Join("..", "..", "..", "..")
	if text, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return out, nil
})

func TestMain(m *testing.M) {
	if d, err := time.ParseDuration(os.Getenv("CODER_WEB_PATIENCE")); err == nil {
		patience = d
	}
	code := m.Run()
	if path, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// world is a home, a project, and coder web over it.
type world struct {
	t         *testing.T
	home, dir string
	address   string
	output    *buffer
}

type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs coder in the project until the test ends.
func (w *world) start(args ...string) *buffer {
	w.t.Helper()
	coder, err := built()
	if err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command(coder, args...)
	c.Dir, c.Env = w.dir, []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	out := new(buffer)
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		select {
		case <-done:
		case <-time.After(patience):
			_ = c.Process.Kill()
		}
	})
	return out
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come to be", what)
		}
	}
}

func newWorld(t *testing.T, args ...string) *world { return scripted(t, model, args...) }

// scripted is a world with another model.
func scripted(t *testing.T, model string, args ...string) *world {
	t.Helper()
	w := &world{t: t, home: t.TempDir(), dir: t.TempDir()}
	script := filepath.Join(w.home, "model")
	if err := os.WriteFile(script, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	w.output = w.start(append([]string{"web", "--mode", "default", "--script", script}, args...)...)
	until(t, "the address", func() bool {
		return strings.Contains(w.output.String(), "token=") && strings.Contains(w.output.String(), "\n")
	})
	w.address, _ = bufio.NewReader(strings.NewReader(w.output.String())).ReadString('\n')
	w.address = strings.TrimSpace(w.address)
	return w
}

// browser is a real browser; the test is skipped where there is none.
func browser(t *testing.T, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium on the PATH")
	}
	all := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1100, 900), chromedp.Flag("lang", "en"))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(all, options...)...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 4*patience)
	t.Cleanup(stop)
	return ctx
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// sees waits until the page has a text.
func sees(t *testing.T, ctx context.Context, selector, want string) {
	t.Helper()
	var text string
	defer func() {
		if t.Failed() {
			_ = chromedp.Run(ctx, chromedp.Evaluate(`location.href + "\n" + document.body.innerText`, &text))
			t.Log(text)
		}
	}()
	until(t, fmt.Sprintf("%q in %s", want, selector), func() bool {
		_ = chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.textContent).join("\n")`, selector), &text))
		return strings.Contains(text, want)
	})
}

// click presses the button that has these words.
func click(t *testing.T, ctx context.Context, words string) {
	t.Helper()
	run(t, ctx, chromedp.Click(fmt.Sprintf(`//button[contains(., %q)]`, words), chromedp.BySearch))
}

// picture keeps what the page looks like, where somebody wants to look at it.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("CODER_WEB_PICTURES")
	var png []byte
	run(t, ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		var err error
		png, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAWholeSession is begun, approved, refused, stopped and replayed in the page
// while a terminal follows it.
func TestAWholeSession(t *testing.T) {
	w := newWorld(t)
	ctx := browser(t)
	var asked []string // for, elsewhere than here
	var problems []string
	host := regexp.MustCompile(`^(http://127\.0\.0\.1:\d+/|data:|about:)`)
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			if !host.MatchString(e.Request.URL) {
				asked = append(asked, e.Request.URL)
			}
		}
	})
	run(t, ctx, network.Enable(), chromedp.Navigate(w.address))
	var location string
	run(t, ctx, chromedp.Location(&location))
	if strings.Contains(location, "token") {
		t.Errorf("the token stays in the address: %s", location)
	}

	run(t, ctx, chromedp.SendKeys("#prompt", "greet the world"))
	click(t, ctx, "Start a session")
	sees(t, ctx, "#timeline", "greet the world")
	run(t, ctx, chromedp.Location(&location))
	session := location[strings.LastIndex(location, "/")+1:]
	terminal := w.start("watch", session)

	sees(t, ctx, "#questions", "hello.txt")
	sees(t, ctx, "#state", "Todos, 0 of 2 done")
	picture(t, ctx, "question")
	if _, err := os.Stat(filepath.Join(w.dir, "hello.txt")); err == nil {
		t.Error("it was written before anybody agreed")
	}
	click(t, ctx, "Yes, this once")
	sees(t, ctx, "#questions", "touch refused-by-me")
	if text, err := os.ReadFile(filepath.Join(w.dir, "hello.txt")); err != nil || !strings.HasPrefix(string(text), "hello, world") {
		t.Errorf("%q, %v", text, err)
	}
	run(t, ctx, chromedp.SendKeys("#questions input[name=comment]", "not needed"))
	click(t, ctx, "No")
	sees(t, ctx, "#timeline", "The file is there; the command was refused.")
	if _, err := os.Stat(filepath.Join(w.dir, "refused-by-me")); err == nil {
		t.Error("it ran though it was refused")
	}
	picture(t, ctx, "timeline")

	run(t, ctx, chromedp.SendKeys("#prompt", "now wait"))
	click(t, ctx, "Send")
	sees(t, ctx, "#live", "begun")
	run(t, ctx, chromedp.Reload())
	sees(t, ctx, "#live", "begun") // it is seen by who comes late, too
	click(t, ctx, "Stop")
	sees(t, ctx, "#timeline", "stopped")
	sees(t, ctx, "#state", "waiting here for your message")

	for _, want := range []string{"greet the world", "hello.txt", "touch refused-by-me", "not needed", "now wait", "sleep 600"} {
		until(t, want+" at the terminal", func() bool { return strings.Contains(terminal.String(), want) })
	}

	click(t, ctx, "Close it here")
	sees(t, ctx, "#state", "not running")
	for _, p := range []struct{ path, selector, want string }{
		{"/changes", "article", "hello, world"}, {"/window", "main", "tool results"}, {"/cost", "svg", "now wait"}, {"/audit", ".verdict", "hold together"},
	} {
		run(t, ctx, chromedp.Navigate(location+p.path))
		if p.path != "/cost" {
			sees(t, ctx, p.selector, p.want)
		}
		picture(t, ctx, strings.TrimPrefix(p.path, "/"))
	}
	run(t, ctx, chromedp.Navigate(location+"/replay"))
	sees(t, ctx, "#asof", "now wait")
	run(t, ctx, chromedp.Evaluate(`{ const r = document.getElementById("at"); r.value = 6; r.dispatchEvent(new Event("input", {bubbles: true})); }`, nil))
	sees(t, ctx, "#asof", "as of record 6")
	run(t, ctx, chromedp.Location(&location))
	if !strings.HasSuffix(location, "at=6") {
		t.Errorf("the address is %s", location)
	}
	var later bool
	run(t, ctx, chromedp.Evaluate(`document.getElementById("asof").textContent.includes("now wait")`, &later))
	if later {
		t.Error("the past knows what came later")
	}
	picture(t, ctx, "replay")
	if len(asked) > 0 || len(problems) > 0 {
		t.Errorf("asked elsewhere for %q, complained %q", asked, problems)
	}
}

// TestAPageThatSlept has everything when it wakes.
func TestAPageThatSlept(t *testing.T) {
	w := newWorld(t)
	ctx := browser(t)
	run(t, ctx, chromedp.Navigate(w.address), chromedp.SendKeys("#prompt", "greet the world"))
	click(t, ctx, "Start a session")
	sees(t, ctx, "#questions", "hello.txt")
	run(t, ctx, network.Enable(), network.EmulateNetworkConditions(true, 0, -1, -1))
	list := exec.Command(must(built()), "tasks", "--json")
	list.Dir, list.Env = w.dir, []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}
	out, err := list.Output()
	id := regexp.MustCompile(`"interactionId":"(ui_\w+)"`).FindSubmatch(out)
	if err != nil || id == nil {
		t.Fatalf("%v: %s", err, out)
	}
	answered := w.start("respond", string(id[1]), "--option", "approve")
	until(t, "the answer", func() bool { return strings.Contains(answered.String(), "answered") })
	until(t, "the file", func() bool { _, err := os.Stat(filepath.Join(w.dir, "hello.txt")); return err == nil })
	run(t, ctx, network.EmulateNetworkConditions(false, 0, -1, -1))
	sees(t, ctx, "#questions", "touch refused-by-me")
	var numbers []string
	run(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll("#timeline > li")].map(e => e.id)`, &numbers))
	seen := make(map[string]bool)
	for _, n := range numbers {
		if seen[n] {
			t.Errorf("%s is there twice", n)
		}
		seen[n] = true
	}
	sees(t, ctx, "#timeline", "how are you?")
}

func must(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}

// TestLooks: a phone's width, both themes, both languages. Nothing stands out over
// the side of the page, and what is written can be read.
func TestLooks(t *testing.T) {
	w := newWorld(t)
	ctx := browser(t)
	run(t, ctx, chromedp.Navigate(w.address), chromedp.SendKeys("#prompt", "greet the world"))
	click(t, ctx, "Start a session")
	sees(t, ctx, "#questions", "hello.txt")
	var location string
	run(t, ctx, chromedp.Location(&location))
	home := location[:strings.Index(location, "/s/")+1]
	for _, look := range []struct {
		name, button  string
		width, height int64
		scheme        string
	}{
		{"phone-light", "English", 360, 740, "light"}, {"phone-dark", "English", 360, 740, "dark"}, {"phone-zh-dark", "中文", 360, 740, "dark"}, {"desk-dark", "English", 1100, 900, "dark"}, {"desk-zh-light", "中文", 1100, 900, "light"},
	} {
		run(t, ctx, emulation.SetDeviceMetricsOverride(look.width, look.height, 2, look.width < 500),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}))
		if _, err := chromedp.RunResponse(ctx, chromedp.Click(fmt.Sprintf(`//button[contains(., %q)]`, look.button), chromedp.BySearch)); err != nil {
			t.Fatal(err)
		}
		for name, address := range map[string]string{"home": home, "session": location, "changes": location + "/changes", "window": location + "/window", "cost": location + "/cost", "replay": location + "/replay", "audit": location + "/audit", "search": home + "search?q=greet"} {
			run(t, ctx, chromedp.Navigate(address), chromedp.WaitVisible("footer"))
			var wide, room int64
			run(t, ctx, chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide), chromedp.Evaluate(`window.innerWidth`, &room))
			if wide > room {
				t.Errorf("%s, %s: %d wide in %d", look.name, name, wide, room)
			}
			var lowest float64
			run(t, ctx, chromedp.Evaluate(contrast, &lowest))
			if lowest < 4.5 {
				t.Errorf("%s, %s: a contrast of %.1f", look.name, name, lowest)
			}
			picture(t, ctx, look.name+"-"+name)
		}
		run(t, ctx, chromedp.Navigate(location))
	}
}

// contrast is the lowest contrast of letters that are seen with what is behind them.
const contrast = `(() => {
  const rgb = (s) => (s.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = (c) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return rgb(getComputedStyle(document.documentElement).backgroundColor); };
  let lowest = 21;
  for (const e of document.querySelectorAll("main *, header *, footer *")) {
    if (e.closest("svg") || !e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
    lowest = Math.min(lowest, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return lowest;
})()`

// TestTheKeyboardAlone begins a session and answers it.
func TestTheKeyboardAlone(t *testing.T) {
	w := newWorld(t)
	ctx := browser(t)
	run(t, ctx, chromedp.Navigate(w.address), chromedp.WaitVisible("#prompt"))
	run(t, ctx, chromedp.KeyEvent("p"), chromedp.KeyEvent("greet"), chromedp.KeyEvent("\r", chromedp.KeyModifiers(2)))
	sees(t, ctx, "#questions", "hello.txt")
	// Enter in a field answers nothing.
	run(t, ctx, chromedp.Focus("#questions input[name=comment]"), chromedp.KeyEvent("why\r"))
	var open int
	run(t, ctx, chromedp.Evaluate(`document.querySelectorAll("[data-question]").length`, &open))
	if open != 1 {
		t.Errorf("%d questions are open", open)
	}
	run(t, ctx, chromedp.Focus("#questions button.danger"), chromedp.KeyEvent("\r"))
	sees(t, ctx, "#timeline", "No, why (user web)")
}

// seen are the words of the buttons that can be seen in the open questions.
func seen(t *testing.T, ctx context.Context) (words string) {
	t.Helper()
	run(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll("#questions button")].filter((b) => b.checkVisibility()).map((b) => b.textContent).join("|")`, &words))
	return words
}

// TestTicksAndWhatIsTyped: a hunk without its tick leaves no button that would take
// it, and what is being typed outlives an answer, a stop and a reload.
func TestTicksAndWhatIsTyped(t *testing.T) {
	lines := strings.Repeat("a line\n", 20)
	w := scripted(t, "call write {\"path\": \"a.txt\", \"content\": "+fmt.Sprintf("%q", "FIRST\n"+lines+"LAST\n")+"}\n---\nsay taken in part\n---\ncall bash {\"command\": \"echo begun; sleep 600\"}\n")
	if err := os.WriteFile(filepath.Join(w.dir, "a.txt"), []byte("first\n"+lines+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := browser(t)
	run(t, ctx, chromedp.Navigate(w.address), chromedp.SendKeys("#prompt", "go"))
	click(t, ctx, "Start a session")
	sees(t, ctx, "#questions", "hunk 2")
	var title string
	if run(t, ctx, chromedp.Title(&title)); !strings.HasPrefix(title, "(1) ") {
		t.Errorf("the title %q does not say that a question waits", title)
	}
	if all := seen(t, ctx); !strings.Contains(all, "Yes, this once") || !strings.Contains(all, "Always in this project") {
		t.Error(all)
	}
	run(t, ctx, chromedp.Click(".hunk input[value='1']"))
	if some := seen(t, ctx); some != "Yes to the chosen hunks only|No" {
		t.Error(some)
	}
	run(t, ctx, chromedp.SendKeys("#prompt", "half typed"))
	click(t, ctx, "Yes to the chosen hunks only")
	sees(t, ctx, "#timeline", "taken in part")
	if text, err := os.ReadFile(filepath.Join(w.dir, "a.txt")); err != nil || string(text) != "first\n"+lines+"LAST\n" {
		t.Errorf("%q, %v", text, err)
	}
	kept := func() {
		t.Helper()
		var value string
		if run(t, ctx, chromedp.Value("#prompt", &value)); value != "half typed" {
			t.Errorf("what was typed is %q", value)
		}
	}
	sees(t, ctx, "#state", "waiting here for your message")
	noStop := func() {
		t.Helper()
		until(t, "Stop to go", func() bool {
			var there bool
			run(t, ctx, chromedp.Evaluate(`document.getElementById("say").textContent.includes("Stop")`, &there))
			return !there
		})
	}
	noStop()
	kept()
	run(t, ctx, chromedp.Evaluate(`document.getElementById("prompt").value = ""`, nil), chromedp.SendKeys("#prompt", "and now wait"))
	click(t, ctx, "Send")
	sees(t, ctx, "#live", "begun")
	sees(t, ctx, "#say", "Stop")
	run(t, ctx, chromedp.SendKeys("#prompt", "half typed"))
	click(t, ctx, "Stop")
	sees(t, ctx, "#timeline", "stopped")
	sees(t, ctx, "#state", "waiting here for your message")
	kept()
	run(t, ctx, chromedp.Reload())
	kept()
	noStop()
}
