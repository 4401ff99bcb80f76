package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/core/event"
)

// site is coder web, and a browser that was let in.
type site struct {
	*held
	base    string // of all pages
	origin  string
	form    string
	project string
	cookie  *http.Cookie
	client  *http.Client
}

// newSite starts coder web in the workspace of p.
func newSite(p *program, args ...string) *site {
	p.t.Helper()
	h := &held{program: p}
	h.Cmd = h.cmd(append([]string{"web"}, args...)...)
	h.Stdout, h.Stderr, h.Stdin = &h.said, &h.said, strings.NewReader("")
	h.start().until("Ctrl-C")
	address := regexp.MustCompile(`https?://\S+/\?token=\w+`).FindString(h.said.String())
	if address == "" {
		p.t.Fatalf("no address: %s", h.said.String())
	}
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &site{held: h, base: strings.TrimSuffix(address, "/?"+u.RawQuery), origin: u.Scheme + "://" + u.Host}
	s.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its fingerprint is checked by who asks for it
	}}
	p.t.Cleanup(s.client.CloseIdleConnections)
	a, err := s.client.Get(address)
	if err != nil || len(a.Cookies()) != 1 {
		p.t.Fatal(a, err)
	}
	a.Body.Close()
	s.cookie = a.Cookies()[0]
	_, home := s.get("/")
	s.form = found(p.t, `name="form" value="(\w+)"`, home)
	s.project = found(p.t, `<option value="(\w+)"`, home)
	return s
}

func found(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in:\n%s", pattern, text)
	}
	return m[1]
}

func (s *site) do(r *http.Request) (*http.Response, string) {
	s.t.Helper()
	r.AddCookie(s.cookie)
	a, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return a, string(text)
}

func (s *site) get(path string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	a, text := s.do(r)
	return a.StatusCode, text
}

// post sends a form, of pairs of names and values, and gives where it leads.
func (s *site) post(path string, pairs ...string) (status int, text, to string) {
	s.t.Helper()
	form := url.Values{"form": {s.form}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequest(http.MethodPost, s.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.origin)
	a, text := s.do(r)
	return a.StatusCode, text, a.Header.Get("Location")
}

// of is the path of a page about a session.
func (s *site) of(id, what string) string { return "/s/" + s.project + "/" + id + what }

// begin begins a session and gives its id.
func (s *site) begin(prompt string) string {
	s.t.Helper()
	status, text, to := s.post("/begin", "project", s.project, "prompt", prompt)
	if status != 303 {
		s.t.Fatalf("%d\n%s", status, text)
	}
	return to[strings.LastIndex(to, "/")+1:]
}

// stream reads what a page is told, from a record on, until it has a text.
func (s *site) stream(id string, after int, want string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+s.of(id, fmt.Sprintf("/events?after=%d", after)), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.AddCookie(s.cookie)
	a, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	tired := time.AfterFunc(patience, func() { a.Body.Close() })
	defer tired.Stop()
	var all strings.Builder
	in := bufio.NewScanner(a.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		all.WriteString(in.Text() + "\n")
		if strings.Contains(in.Text(), want) {
			return
		}
	}
	s.t.Fatalf("%q was not told:\n%s", want, all.String())
}

// question is the open question of a session: its id and what shows it.
func (s *site) question(id string) (question, shown string) {
	s.t.Helper()
	s.stream(id, 0, `name="shown"`)
	_, page := s.get(s.of(id, ""))
	return found(s.t, `/answer/(\w+)"`, page), found(s.t, `name="shown" value="(\w+)"`, page)
}

func (s *site) answer(id, question, shown, option string) (int, string) {
	s.t.Helper()
	status, text, _ := s.post(s.of(id, "/answer/"+question), "shown", shown, "option", option)
	return status, text
}

// TestWebBeginsApprovesRefusesAndStops a session that runs in it, while a terminal
// follows; every decision says who made it.
func TestWebBeginsApprovesRefusesAndStops(t *testing.T) {
	p := newProgram(t)
	p.file("model", `call write {"path": "a.txt", "content": "made\n"}
---
call bash {"command": "touch refused"}
---
say two questions were answered
---
call bash {"command": "echo begun; sleep 600"}
---
say never
`)
	s := newSite(p, "--script", "model")
	id := s.begin("go")
	q, shown := s.question(id)
	w := watching(s.held, id)
	if _, home := s.get("/"); !strings.Contains(home, id) || !strings.Contains(home, "needs you") {
		t.Errorf("home does not tell what waits:\n%s", home)
	}
	if status, text := s.answer(id, q, shown, "approve"); status != 303 {
		t.Fatalf("%d\n%s", status, text)
	}
	s.stream(id, 0, "touch refused")
	if status, text := s.answer(id, q, shown, "reject"); status != 409 || !strings.Contains(text, "Yes, this once (you web)") {
		t.Errorf("a second answer: %d\n%s", status, text)
	}
	s.stream(id, 0, "/answer/")
	var second string
	for second = q; second == q; second, shown = s.question(id) {
	}
	if status, text := s.answer(id, second, shown, "reject"); status != 303 {
		t.Fatalf("%d\n%s", status, text)
	}
	s.stream(id, 0, "two questions were answered")
	if status, _, _ := s.post(s.of(id, "/say"), "prompt", "and now wait"); status != 303 {
		t.Fatal(status)
	}
	s.stream(id, 0, "data: begun")
	if status, _, _ := s.post(s.of(id, "/stop")); status != 303 {
		t.Fatal(status)
	}
	s.stream(id, 0, "stopped")
	for _, want := range []string{"> go\n", "> Yes, this once", "> No", "and now wait"} {
		w.until(want)
	}
	if _, err := os.Stat(filepath.Join(p.ws, "refused")); err == nil {
		t.Error("what was refused ran")
	}
	rs, err := readSession(p.ws, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if e, ok := r.Event.(event.InteractionResponded); ok && (e.Author != "user" || e.AnsweredBy != "web" || r.Actor != "user") {
			t.Errorf("%+v by %s", e, r.Actor)
		}
	}
	for path, want := range map[string]string{"/changes": "+made", "/window": "tool results", "/cost": "time, by turn", "/audit": "are intact", "/replay?at=3": "as of record 3"} {
		if status, page := s.get(s.of(id, path)); status != 200 || !strings.Contains(page, want) {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
	}
	if _, page := s.get("/search?q=questions"); !strings.Contains(page, id) {
		t.Errorf("it is not found:\n%s", page)
	}
	if status, _, _ := s.post(s.of(id, "/release")); status != 303 {
		t.Error(status)
	}
	if out, text, code := p.run("-p", "--script", "model", "-r", id, "/status"); code != 0 {
		t.Errorf("a terminal cannot go on with it: %s%s", out, text)
	}
	_ = s.Process.Signal(syscall.SIGINT)
	s.over(130)
}

// TestWebAnswersOthers: a question of another process is answered from the page,
// which says who works there and cannot be closed from here.
func TestWebAnswersOthers(t *testing.T) {
	for name, wait := range waiters {
		t.Run(name, func(t *testing.T) {
			h := wait(t)
			h.question()
			s := newSite(h.program, "--script", "model")
			q, shown := s.question("s1")
			if _, page := s.get(s.of("s1", "")); !strings.Contains(page, fmt.Sprintf("process %d", h.Process.Pid)) {
				t.Errorf("it does not say who works:\n%s", page)
			}
			if status, text, _ := s.post(s.of("s1", "/release")); status != 409 {
				t.Errorf("%d\n%s", status, text)
			}
			if status, text := s.answer("s1", q, shown, "approve"); status != 303 {
				t.Fatalf("%d\n%s", status, text)
			}
			h.made("approved")
			if status, text := s.answer("s1", q, shown, "reject"); status != 409 || !strings.Contains(text, "already answered") {
				t.Errorf("a second answer: %d\n%s", status, text)
			}
			if all := h.answers(); len(all) != 1 || all[0].Option != "approve" || all[0].AnsweredBy != "web" {
				t.Errorf("%+v", all)
			}
		})
	}
}

// TestWebTakesSomeHunks of a change, and leaves the others.
func TestWebTakesSomeHunks(t *testing.T) {
	p := newProgram(t)
	lines := strings.Repeat("a line\n", 20)
	p.file("a.txt", "first\n"+lines+"last\n")
	p.file("model", `call write {"path": "a.txt", "content": `+fmt.Sprintf("%q", "FIRST\n"+lines+"LAST\n")+`}
---
say some of it is done
`)
	s := newSite(p, "--script", "model")
	id := s.begin("go")
	q, shown := s.question(id)
	if status, text, _ := s.post(s.of(id, "/answer/"+q), "shown", shown, "option", "some", "hunk", "2"); status != 303 {
		t.Fatalf("%d\n%s", status, text)
	}
	s.stream(id, 0, "some of it is done")
	if text, err := os.ReadFile(filepath.Join(p.ws, "a.txt")); err != nil || string(text) != "first\n"+lines+"LAST\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestWebGoesOnWithWhatWasParked: the answer is on record, and the work goes on in
// the process of the pages.
func TestWebGoesOnWithWhatWasParked(t *testing.T) {
	p := newProgram(t)
	p.file("model", approvable)
	if _, text, code := p.run("-p", "--script", "model", "--session-id", "s1", "--on-ask", "park", "go"); code != 31 {
		t.Fatalf("%d: %s", code, text)
	}
	p.file("rest", "say went on\n")
	s := newSite(p, "--script", "rest")
	q, shown := s.question("s1")
	if status, text := s.answer("s1", q, shown, "approve"); status != 303 {
		t.Fatalf("%d\n%s", status, text)
	}
	s.stream("s1", 0, "went on")
	if _, err := os.Stat(filepath.Join(p.ws, "approved")); err != nil {
		t.Error(err)
	}
}

// TestWebOverWhatIsDamaged: a log that is torn is shown as far as it goes with the
// audit's verdict, one that is gone is not found, and neither is touched.
func TestWebOverWhatIsDamaged(t *testing.T) {
	p := newProgram(t)
	p.file("model", "say the answer\nrepeat\n")
	for _, id := range []string{"s1", "s2"} {
		if _, text, code := p.run("-p", "--script", "model", "--session-id", id, "the question"); code != 0 {
			t.Fatal(text)
		}
	}
	log := filepath.Join(p.ws, ".coder", "log", "s1", "conversation.jsonl")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "the answer", "another one", 1)
	if err := os.WriteFile(log, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(p, "--script", "model")
	if status, page := s.get(s.of("s1", "/audit")); status != 200 || !strings.Contains(page, "The record is not intact.") {
		t.Errorf("%d\n%s", status, page)
	}
	if status, page := s.get(s.of("s1", "")); status != 200 || !strings.Contains(page, "the question") || strings.Contains(page, "another one") {
		t.Errorf("%d\n%s", status, page)
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines[1] = "not a record\n"
	broken = strings.Join(lines, "")
	if err := os.WriteFile(log, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/replay", "/cost", "/window", "/changes"} {
		if status, page := s.get(s.of("s1", path)); status != 200 || !strings.Contains(page, "damaged after record 3") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
	}
	if now, _ := os.ReadFile(log); string(now) != broken {
		t.Error("looking at it changed it")
	}
	if err := os.RemoveAll(filepath.Join(p.ws, ".coder", "log", "s2")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(p.ws, ".coder", "sessions", "s2.json")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/audit", "/replay", "/events?after=0"} {
		if status, page := s.get(s.of("s2", path)); status != 404 || !strings.Contains(page, "may have been removed") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
	}
	if status, _, _ := s.post(s.of("s2", "/say"), "prompt", "x"); status != 404 {
		t.Error(status)
	}
	if _, err := os.Stat(filepath.Join(p.ws, ".coder", "log", "s2")); err == nil {
		t.Error("what was removed is there again")
	}
}

// TestWebElsewhereSpeaksTLS with the certificate whose fingerprint it printed.
func TestWebElsewhereSpeaksTLS(t *testing.T) {
	p := newProgram(t)
	p.file("model", "say ok\nrepeat\n")
	s := newSite(p, "--script", "model", "--listen", "0.0.0.0:0")
	if !strings.HasPrefix(s.base, "https://") || !s.cookie.Secure || !s.cookie.HttpOnly || s.cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("%s %+v", s.base, s.cookie)
	}
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.origin, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sum := sha256.Sum256(c.ConnectionState().PeerCertificates[0].Raw)
	if want := strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":"); !strings.Contains(s.said.String(), want) {
		t.Errorf("%s is not in\n%s", want, s.said.String())
	}
	if a, err := http.Get("http://" + strings.TrimPrefix(s.origin, "https://")); err == nil {
		defer a.Body.Close()
		if a.StatusCode != 400 {
			t.Errorf("without TLS: %d", a.StatusCode)
		}
	}
}

// TestWebIsToldWrongly: each in one line, and nothing is listened on.
func TestWebIsToldWrongly(t *testing.T) {
	p := newProgram(t)
	for args, want := range map[string]string{
		"--listen 8080": "--listen must be an address", "--listen 127.0.0.1": "--listen must be an address", "--listen 127.0.0.1:99999": "--listen must be an address",
		"--listen 203.0.113.1:0": "cannot listen on 203.0.113.1:0", "--no-session-persistence": "it cannot be used with --no-session-persistence", "--listen": "--listen needs a value",
	} {
		out, text, code := p.run(append([]string{"web"}, strings.Fields(args)...)...)
		if out != "" || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 || code == 0 {
			t.Errorf("%s: %d %q %q", args, code, out, text)
		}
	}
}

// TestWebSpeaksToATerminal: what is said, switched and stopped on the page is said,
// switched and stopped where the session is worked in, which says so.
func TestWebSpeaksToATerminal(t *testing.T) {
	h := hold(t)
	h.file("model", "say first\n---\nsay second\n---\ncall bash {\"command\": \"echo begun; sleep 600\"}\n---\nsay never\n")
	h.at("xterm", false).until("> ")
	h.write("one\r").until("first")
	s := newSite(h.program, "--script", "model")
	s.stream("s1", 0, "messages you send here go there") // it listens
	say := func(path string, pairs ...string) {
		t.Helper()
		if status, text, _ := s.post(s.of("s1", path), pairs...); status != 303 {
			t.Fatalf("%s: %d\n%s\n%s", path, status, text, h.said.String())
		}
	}
	for path, form := range map[string][2]string{"/mode": {"mode", "yolo"}, "/say": {"prompt", " /mode  yolo"}, "/say?": {"prompt", "/yolo"}, "/say?x": {"prompt", "/permissions yolo"}} {
		if status, text, _ := s.post(s.of("s1", path), form[0], form[1]); status != 400 {
			t.Errorf("%s %v: %d\n%s", path, form, status, text)
		}
	}
	if status, text, _ := s.post("/begin", "project", s.project, "mode", "yolo", "prompt", "x"); status != 400 {
		t.Errorf("%d\n%s", status, text)
	}
	say("/say", "prompt", "two from the page")
	h.until("sent elsewhere (coder web, process ").until("two from the page").until("second")
	say("/mode", "mode", "auto-edit")
	s.stream("s1", 0, "mode: auto-edit")
	say("/say", "prompt", "three")
	s.stream("s1", 0, "sleep 600")
	s.stream("s1", 0, "/stop")
	say("/stop")
	h.until("stopped elsewhere (coder web, process ")
	s.stream("s1", 0, "stopped: interrupted")
	h.write("\x04")
	s.stream("s1", 0, "not running")
	h.over(0)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(h.ws), ".coder/listening/*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestWebStopsARunWithoutATerminal and says that it takes no words.
func TestWebStopsARunWithoutATerminal(t *testing.T) {
	h := hold(t, "-p", "go")
	h.file("model", "call bash {\"command\": \"echo begun; sleep 600\"}\n---\nsay never\n")
	h.Stdin = strings.NewReader("")
	h.start().made(".coder/log/s1/audit.jsonl")
	s := newSite(h.program, "--script", "model")
	s.stream("s1", 0, "/stop")
	if status, text, _ := s.post(s.of("s1", "/say"), "prompt", "x"); status != 409 || !strings.Contains(text, "accepts only answers from here") {
		t.Errorf("%d\n%s", status, text)
	}
	if status, text, _ := s.post(s.of("s1", "/stop")); status != 303 {
		t.Fatalf("%d\n%s", status, text)
	}
	h.until("stopped elsewhere (coder web, process ")
	h.over(130)
}

// TestASessionThatWasClosedIsNotLive although the process that had it lives.
func TestASessionThatWasClosedIsNotLive(t *testing.T) {
	p := newProgram(t)
	p.file("model", "say all of it\nrepeat\n")
	s := newSite(p, "--script", "model")
	id := s.begin("go")
	s.stream(id, 0, "all of it")
	s.stream(id, 0, "waiting here for your message")
	if _, home := s.get("/"); !strings.Contains(home, id) || !strings.Contains(home, "idle here") {
		t.Errorf("home does not say so:\n%s", home)
	}
	if status, _, _ := s.post(s.of(id, "/release")); status != 303 {
		t.Fatal(status)
	}
	if out, text, code := p.run("watch", id); code != 0 || !strings.Contains(out, "no process is working in session") {
		t.Errorf("%d: %s%s", code, out, text)
	}
	if _, page := s.get(s.of(id, "")); !strings.Contains(page, "not running") {
		t.Errorf("%s", page)
	}
}
