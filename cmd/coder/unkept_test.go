package main

import (
	"strings"
	"testing"
	"time"
)

// TestATerminalAndAPageSayWhatIsNotKept: the program at a terminal ends with the
// code for a session that is not all on disk, and coder web says so at once.
func TestATerminalAndAPageSayWhatIsNotKept(t *testing.T) {
	for disk, code := range map[string]int{"mkdir ENOSPC": 56, "": 0} {
		t.Run("terminal "+disk, func(t *testing.T) {
			h := hold(t)
			h.Stderr = nil
			h.Env = append(h.Env, "CODER_TEST_DISK="+disk)
			h.at("xterm", false).until("[build]").write("hi\r")
			const idle = "\x1b]0;coder" // the title of the window
			for end := time.Now().Add(patience); strings.Count(h.said.String(), idle) < 2; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the turn does not end: %q", h.said.String())
				}
			}
			h.write("\x04").over(code)
		})
	}
	t.Run("web", func(t *testing.T) {
		p := newProgram(t)
		p.file("model", "say ok\nrepeat\n")
		p.env = append(p.env, "CODER_TEST_DISK=mkdir ENOSPC")
		s := newSite(p, "--script", "model")
		s.begin("hi")
		s.until("this session is not being saved")
	})
}

// TestWebTakesAnAnswerThatItCannotContinueWith: without a provider the answer to a
// parked question is saved, and the page says what the session needs. No list calls
// the task running, which no process works on, until one does.
func TestWebTakesAnAnswerThatItCannotContinueWith(t *testing.T) {
	p := newProgram(t)
	p.file("model", approvable)
	p.file("rest", "say went on\nrepeat\n")
	if out, text, code := p.run("-p", "--on-ask", "park", "--session-id", "s1", "--script", "model", "go"); code != 31 {
		t.Fatalf("code %d: %s%s", code, out, text)
	}
	s := newSite(p)
	q, shown := s.question("s1")
	if status, text := s.answer("s1", q, shown, "approve"); status != 202 || !strings.Contains(text, "Your answer is saved") || !strings.Contains(text, "coder -p -r s1") {
		t.Errorf("%d\n%s", status, text)
	}
	if _, home := s.get("/"); strings.Contains(home, "running") || strings.Contains(home, "idle in") || strings.Contains(home, "needs you") {
		t.Errorf("the list of sessions:\n%s", home)
	}
	if out, _, _ := p.run("tasks"); !strings.Contains(out, "interrupted") || strings.Contains(out, "running") || !strings.Contains(out, "continue with: coder -r s1") {
		t.Errorf("tasks: %s", out)
	}
	if out, _, _ := p.run("tasks", "--json"); !strings.Contains(out, `"running":false`) {
		t.Errorf("tasks: %s", out)
	}
	if out, text, code := p.run("-p", "-r", "s1", "--script", "rest"); code != 0 || !strings.Contains(out, "went on") {
		t.Errorf("code %d: %s%s", code, out, text)
	}
	working := &held{program: p}
	working.Cmd = working.cmd("-p", "--on-ask", "wait", "--session-id", "s2", "--auto-approve", "--script", p.file("long", "call bash {\"command\": \"touch begun; sleep 600\"}"), "go")
	working.Stderr, working.Stdin = &working.said, strings.NewReader("")
	working.start().made("begun")
	if out, _, _ := p.run("tasks"); !strings.Contains(out, "running") {
		t.Errorf("tasks: %s", out)
	}
}
