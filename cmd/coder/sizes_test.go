package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	fs "coder/testkit/faultserver"
)

// firstRequest is the body of the first request in a mode, with everything
// there that a tool needs.
func firstRequest(t *testing.T, mode, settings string) []byte {
	t.Helper()
	p, s := connected(t, "")
	p.installed("gopls", "git")
	p.file("settings.json", settings)
	s.Script(say("hello"))
	if _, stderr, code := p.run("-p", "--mode", mode, "--config", "settings.json", "hello"); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	return s.Requests()[0].Body
}

// TestFirstRequestsAreSmall holds how many bytes a request has before anything
// is done, and that the table in the documentation says so.
func TestFirstRequestsAreSmall(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/models.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode, tools string
		most        int // bytes, beside the tools that belong to the mode where there are few
		count       int // of tools
	}{
		{"build", "full", 12_000, 20}, {"plan", "full", 12_000, 17}, {"default", "full", 12_000, 22},
		{"auto-edit", "full", 12_000, 22}, {"yolo", "full", 12_000, 21},
		{"build", "lean", 5_000, 7}, {"plan", "lean", 5_000, 10}, {"default", "lean", 5_000, 9},
		{"auto-edit", "lean", 5_000, 9}, {"yolo", "lean", 5_000, 8},
	} {
		t.Run(tt.mode+" "+tt.tools, func(t *testing.T) {
			t.Parallel()
			body := firstRequest(t, tt.mode, fmt.Sprintf(`{"runtime": {"tools": %q}}`, tt.tools))
			var req struct{ Tools []json.RawMessage }
			if err := json.Unmarshal(body, &req); err != nil {
				t.Fatal(err)
			}
			belongs := 0
			for _, tool := range req.Tools {
				if tt.tools == "lean" && regexp.MustCompile(`"name":"(fetch|todoread|todowrite|question|exit_plan_mode)"`).Match(tool) {
					belongs += len(tool)
				}
			}
			t.Logf("%d bytes, %d tools, %d bytes belong to the mode", len(body), len(req.Tools), belongs)
			if len(body)-belongs > tt.most || len(req.Tools) != tt.count {
				t.Errorf("%d bytes, of which %d belong to the mode, want at most %d; %d tools, want %d", len(body), belongs, tt.most, len(req.Tools), tt.count)
			}
			row := regexp.MustCompile(`(?m)^\| ` + tt.mode + ` \| ` + tt.tools + ` \| (\d+) \| ([\d.]+) KB \|`).FindSubmatch(doc)
			if row == nil {
				t.Fatal("the documentation does not tell")
			}
			kb, _ := strconv.ParseFloat(string(row[2]), 64)
			if string(row[1]) != strconv.Itoa(tt.count) || math.Abs(kb*1000-float64(len(body))) > 0.03*float64(len(body)) {
				t.Errorf("the documentation says %s tools and %s KB", row[1], row[2])
			}
		})
	}
}

// same is how many bytes two bodies have in common at their beginning.
func same(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// TestABodyBeginsLikeTheOneBefore plays a session of many turns, steps,
// processes and modes. Within a mode every request begins with all of the one
// before it; another mode has the same system text (with a line at its end in plan mode), the
// same tools first, and the same conversation.
func TestABodyBeginsLikeTheOneBefore(t *testing.T) {
	p, s := connected(t, "")
	p.installed("gopls", "git")
	read := use("read", `{"path":"a.txt"}`)
	type part struct {
		mode    string
		replies []fs.Reply
		input   string
	}
	parts := []part{
		{"build", []fs.Reply{read, use("bash", `{"command":"cat a.txt"}`), say("one")}, "look at it"},
		{"build", []fs.Reply{read, say("two")}, "again @a.txt"},
		{"build", []fs.Reply{use("edit", `{"path":"a.txt","old_string":"hello","new_string":"hullo"}`), say("three")}, "change it"},
		{"plan", []fs.Reply{read, say("four")}, "plan something"},
		{"plan", []fs.Reply{use("todoread", `{}`), say("five")}, "what is left?"},
		{"default", []fs.Reply{say("six")}, "go on"},
		{"auto-edit", []fs.Reply{read, say("seven")}, "go on"},
		{"build", []fs.Reply{read, say("eight")}, "and now?"},
		{"build", []fs.Reply{say("nine")}, "thanks"},
	}
	var modes []string
	for i, part := range parts {
		s.Script(part.replies...)
		args := []string{"-p", "--auto-approve", "--session-id", "s", part.input}
		if i > 0 {
			if part.mode != parts[i-1].mode {
				p.run("-p", "-r", "s", "/"+part.mode)
			}
			args = []string{"-p", "--auto-approve", "-r", "s", part.input}
		}
		if _, stderr, code := p.run(args...); code != 0 {
			t.Fatalf("%s: code %d: %s", part.input, code, stderr)
		}
		for range part.replies {
			modes = append(modes, part.mode)
		}
	}
	requests := s.Requests()
	if len(requests) != len(modes) {
		t.Fatalf("%d requests, want %d", len(requests), len(modes))
	}
	for i := 1; i < len(requests); i++ {
		before, now := requests[i-1].Body, requests[i].Body
		n := same(before, now)
		if modes[i] == modes[i-1] {
			if n < len(before)-len("]}") {
				t.Errorf("request %d (%s) differs from the one before at byte %d: %s", i+1, modes[i], n, now[n:min(n+80, len(now))])
			}
			continue
		}
		system, tools := headOf(t, before), headOf(t, now)
		t.Logf("%s after %s: %d of %d bytes are the same at the beginning; %d tools are new", modes[i], modes[i-1], n, len(now), len(tools.all)-len(tools.shared(system)))
		text := func(h head, mode string) string {
			var m struct{ Content string }
			if err := json.Unmarshal([]byte(h.system), &m); err != nil {
				t.Fatal(err)
			}
			text, hinted := strings.CutSuffix(m.Content, "\nYou are in plan mode: change nothing.\n")
			if hinted != (mode == "plan") {
				t.Errorf("%s: the system text ends with %q", mode, text[max(0, len(text)-100):])
			}
			return text
		}
		if text(tools, modes[i]) != text(system, modes[i-1]) {
			t.Errorf("%s has another system text than %s", modes[i], modes[i-1])
		}
		if got := len(tools.shared(system)); got < 14 {
			t.Errorf("%s and %s have the first %d tools in common, want all that both have", modes[i], modes[i-1], got)
		}
		if !strings.HasPrefix(string(now[len(now)-tools.said:]), string(before[len(before)-system.said:len(before)-len("]}")])) {
			t.Errorf("what was said before is not the same in %s as in %s", modes[i], modes[i-1])
		}
	}
}

// TestAChangeOfModeKeepsTheRequest changes the mode where the model sees the tools of all modes: a request begins with
// all of the one before, and what the mode forbids is refused.
func TestAChangeOfModeKeepsTheRequest(t *testing.T) {
	for _, tools := range []string{"full", "lean"} {
		p, s := connected(t, "")
		p.installed("gopls", "git")
		p.file("settings.json", fmt.Sprintf(`{"tools": {"list": "all"}, "runtime": {"tools": %q}}`, tools))
		s.Script(say("one"), use("write", `{"path":"new.txt","content":"x"}`), say("two"), say("three"))
		for i, mode := range []string{"build", "plan", "default"} {
			args := []string{"-p", "--config", "settings.json", "--auto-approve", "--mode", mode, "--session-id", "s", "go on"}
			if i > 0 {
				args = append(args[:6:6], "-r", "s", "go on")
			}
			want := map[string]int{"plan": 30}[mode] // a call was refused
			if _, stderr, code := p.run(args...); code != want {
				t.Fatalf("%s: code %d: %s", mode, code, stderr)
			}
		}
		requests := s.Requests()
		for i := 1; i < len(requests); i++ {
			before, now := requests[i-1].Body, requests[i].Body
			if n := same(before, now); n < len(before)-len("]}") {
				t.Errorf("%s: request %d differs from the one before at byte %d of %d: %s", tools, i+1, n, len(before),
					now[n:min(n+80, len(now))])
			}
		}
		if _, err := os.Stat(p.ws + "/new.txt"); err == nil {
			t.Errorf("%s: a call that plan mode forbids ran", tools)
		}
	}
}

// head is a request as a prefix cache sees it.
type head struct {
	system string
	all    []string // tools
	said   int      // bytes of the body from the first message after the system text on
}

func headOf(t *testing.T, body []byte) (h head) {
	t.Helper()
	var req struct {
		Tools    []json.RawMessage
		Messages []json.RawMessage
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	for _, tool := range req.Tools {
		h.all = append(h.all, string(tool))
	}
	h.system = string(req.Messages[0])
	h.said = len(body) - strings.Index(string(body), h.system) - len(h.system)
	return h
}

// shared are the tools with which both lists begin.
func (h head) shared(o head) []string {
	n := 0
	for n < len(h.all) && n < len(o.all) && h.all[n] == o.all[n] {
		n++
	}
	return h.all[:n]
}

// TestASmallWindowIsWorkedIn runs sessions in windows that all tools would
// fill: the model is told of few, large results are made to fit, and nothing
// longer than the window is sent.
func TestASmallWindowIsWorkedIn(t *testing.T) {
	for _, tt := range []struct {
		window int
		known  bool // beforehand
		tools  int
	}{{8192, true, 7}, {4096, true, 7}, {2048, true, 7}, {16 << 10, true, 20}, {16<<10 - 1, true, 7}} {
		t.Run(fmt.Sprint(tt.window), func(t *testing.T) {
			t.Parallel()
			s := fs.Start(t, fs.Options{Window: tt.window, PerToken: 3.6, Answer: func(r fs.Request) fs.Reply {
				switch said := r.Messages(); {
				case !strings.Contains(string(r.Body), `"tools":[`):
					return fs.Stream(fs.Text("The story was read."), fs.Usage(r.Tokens, 20))
				case said[len(said)-1].Role == "tool":
					return fs.Stream(fs.Text("fine"), fs.Usage(r.Tokens, 20))
				}
				return fs.Stream(fs.Call(fmt.Sprint("c", len(r.Body)), "read", `{"path":"story.txt"}`), fs.Usage(r.Tokens, 20))
			}})
			p := newProgram(t)
			p.installed("gopls", "git")
			p.env = append(p.env, "CODER_BASE_URL="+s.Base(""), "CODER_API_KEY=k", "CODER_MODEL=m", "CODER_TEST_FAST=1")
			p.file("story.txt", strings.Repeat("a line of the story that fills the window\n", 1000))
			p.file("settings.json", fmt.Sprintf(`{"provider": {"model_info": {"m": {"context": %d}}}}`, tt.window))
			for i := range 4 {
				args := []string{"-p", "--config", "settings.json", "--session-id", "s", "read the story"}
				if i > 0 {
					args = []string{"-p", "--config", "settings.json", "-c", "again"}
				}
				if out, stderr, code := p.run(args...); code != 0 || out != "fine\n" {
					t.Fatalf("turn %d: %q, code %d: %s", i+1, out, code, stderr)
				}
			}
			for i, r := range s.Requests() {
				if r.Refused {
					t.Errorf("request %d has %d tokens", i+1, r.Tokens)
				}
			}
			if n := len(headOf(t, s.Requests()[0].Body).all); n != tt.tools {
				t.Errorf("%d tools, want %d", n, tt.tools)
			}
		})
	}
}

// TestAWindowTooSmallIsToldAtOnce holds what a person reads where not even the
// first request fits: what fills the window, and what to do.
func TestAWindowTooSmallIsToldAtOnce(t *testing.T) {
	const lean = "or disable tools (agents.MODE.tools)"
	for _, tt := range []struct{ settings, want string }{
		{`{"provider": {"model_info": {"m": {"context": 1000}}}}`, lean},
		{`{"runtime": {"tools": "full"}, "provider": {"model_info": {"m": {"context": 1500}}}}`, "or set runtime.tools to lean"},
		{`{"runtime": {"context_token_limit": 1000}}`, "or set runtime.tools to lean"},
	} {
		p, s := connected(t, "")
		p.file("settings.json", tt.settings)
		_, stderr, code := p.run("-p", "--config", "settings.json", "hello")
		if code != 54 || s.Count("") != 0 || !strings.Contains(stderr, "the system text takes about") || !strings.Contains(stderr, tt.want) ||
			!strings.Contains(stderr, "larger window") || strings.Contains(stderr, "start a new session") {
			t.Errorf("%s: code %d, %d requests: %s", tt.settings, code, s.Count(""), stderr)
		}
	}
}

// TestWhatIsNotOfferedRuns calls tools that the model was not told of, and one
// that the mode has not.
func TestWhatIsNotOfferedRuns(t *testing.T) {
	p, s := connected(t, "")
	p.file("settings.json", `{"runtime": {"tools": "lean"}}`)
	s.Script(
		use("search_code", `{"query":"hello"}`), use("jobs", `{"action":"list"}`), use("jobs_list", `{}`),
		use("patch", `{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-hello\n+hullo\n"}`), use("todowrite", `{"todos":[]}`), say("done"),
	)
	if _, stderr, code := p.run("-p", "--auto-approve", "--config", "settings.json", "--session-id", "s", "go"); code != 0 && code != 30 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	said := s.Requests()[5].Messages()
	var results []string
	for _, m := range said {
		if m.Role == "tool" {
			results = append(results, unquoted(t, m.Content))
		}
	}
	if len(results) != 5 {
		t.Fatalf("%d results", len(results))
	}
	for i, r := range results[:4] {
		if !strings.Contains(r, `"ok":true`) {
			t.Errorf("call %d: %s", i+1, r)
		}
	}
	if !strings.Contains(results[4], "disabled in build mode") {
		t.Errorf("what the mode has not ran: %s", results[4])
	}
	if text, err := os.ReadFile(p.ws + "/a.txt"); err != nil || string(text) != "hullo\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestWhatCannotWorkIsNotOffered leaves git and language servers off the PATH.
func TestWhatCannotWorkIsNotOffered(t *testing.T) {
	p, s := connected(t, "")
	dir := t.TempDir()
	for _, name := range []string{"sh", "bash"} {
		if at, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(at, dir+"/"+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.env = append(p.env, "PATH="+dir)
	s.Script(use("git_status", `{}`), say("done"))
	if _, stderr, code := p.run("-p", "hello"); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	body := string(s.Requests()[0].Body)
	for _, name := range []string{"git_status", "git_commit", "lsp"} {
		if strings.Contains(body, `"name":"`+name+`"`) {
			t.Errorf("%s is offered", name)
		}
	}
	if !strings.Contains(body, `"name":"grep"`) || !strings.Contains(string(s.Requests()[1].Body), "git") {
		t.Error("grep is not offered, or the call of git got no answer")
	}
}

// TestARuleForAGroupHoldsForItsTools forbids all of a group by its name.
func TestARuleForAGroupHoldsForItsTools(t *testing.T) {
	for _, args := range [][]string{{"--disallowed-tools", "jobs"}, {"--config", "deny.json"}, {"--config", "off.json"}, {"--config", "one.json"}} {
		p, s := connected(t, "")
		p.file("deny.json", `{"permission": {"jobs": "deny"}}`)
		p.file("off.json", `{"agents": {"build": {"tools": {"jobs": "off"}}}}`)
		p.file("one.json", `{"permission": {"jobs_list": "deny"}}`)
		s.Script(use("jobs", `{"action":"list"}`), use("jobs_list", `{}`), say("done"))
		p.run(append([]string{"-p", "--session-id", "s"}, append(args, "go")...)...)
		for i, m := range s.Requests()[2].Messages() {
			if m.Role == "tool" && !strings.Contains(unquoted(t, m.Content), `"ok":false`) {
				t.Errorf("%v: message %d: %s", args, i, m.Content)
			}
		}
	}
}

// unquoted is the text of a message.
func unquoted(t *testing.T, raw json.RawMessage) (text string) {
	t.Helper()
	if err := json.Unmarshal(raw, &text); err != nil {
		t.Fatal(err)
	}
	return text
}
