package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coder/internal/core/event"
)

// question is the id of the question that the program waits with.
func (h *held) question() string {
	h.t.Helper()
	var id string
	for end := time.Now().Add(patience); id == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("nothing is asked; it said:\n%s", h.said.String())
		}
		rs, _ := readSession(h.ws, "s1") // it may be in the middle of a line
		for _, r := range rs {
			if e, ok := r.Event.(event.InteractionRequested); ok {
				id = e.ID
			}
		}
	}
	return id
}

// answers are all that were put on record.
func (h *held) answers() (all []event.InteractionResponded) {
	h.t.Helper()
	rs, err := readSession(h.ws, "s1")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range rs {
		if e, ok := r.Event.(event.InteractionResponded); ok {
			all = append(all, e)
		}
	}
	return all
}

// over waits for the end of the program.
func (h *held) over(code int) {
	h.t.Helper()
	select {
	case <-h.ended:
	case <-time.After(patience):
		h.t.Fatalf("it does not end; it said:\n%s", h.said.String())
	}
	if got := h.ProcessState.ExitCode(); got != code {
		h.t.Errorf("exit code %d, want %d: %s", got, code, h.said.String())
	}
}

const approvable = "call bash {\"command\": \"touch approved\"}\n---\nsay went on\nrepeat\n"

// waiters are the ways to wait for an answer.
var waiters = map[string]func(t *testing.T) *held{
	"a terminal":      func(t *testing.T) *held { return waiter(t, "go").at("xterm", false).until("No, and tell coder") },
	"a line terminal": func(t *testing.T) *held { return waiter(t, "go").at("dumb", false).until("No, and tell coder") },
	"a headless run":  func(t *testing.T) *held { return waiter(t, "-p", "--on-ask", "wait", "go").start() },
	"piped lines":     func(t *testing.T) *held { return waiter(t, "--on-ask", "wait").start().write("go\n") },
	"a stream of JSON": func(t *testing.T) *held {
		return waiter(t, "-p", "--on-ask", "wait", "--input-format", "stream-json").start().write(userLine)
	},
}

func waiter(t *testing.T, args ...string) *held {
	h := hold(t, args...)
	h.file("model", approvable)
	if !strings.Contains(strings.Join(args, " "), "stream-json") && args[len(args)-1] == "go" {
		h.Stdin = strings.NewReader("")
	}
	return h
}

// TestAnAnswerFromElsewhereReachesWhoWaits answers from a second process,
// wherever the first one waits: the call runs there, the question is withdrawn
// there with a word, and a second answer is told that it is late.
func TestAnAnswerFromElsewhereReachesWhoWaits(t *testing.T) {
	for name, wait := range waiters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := wait(t)
			id := h.question()
			stdout, stderr, code := h.program.run("respond", id, "--option", "approve")
			if code != 0 || !strings.Contains(stdout, "answered; the process that asked continues") {
				t.Fatalf("code %d: %s%s\nit said:\n%s", code, stdout, stderr, h.said.String())
			}
			h.made("approved").until("answered elsewhere: ")
			h.until("coder respond, process ")
			if _, stderr, code := h.program.run("respond", id, "--option", "reject"); code != 42 || !strings.Contains(stderr, "already answered") {
				t.Errorf("a second answer: code %d: %s", code, stderr)
			}
			if all := h.answers(); len(all) != 1 || all[0].Option != "approve" || all[0].Author != "user" {
				t.Errorf("on record: %+v", all)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(h.ws), ".coder/answers/*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestARespondThatCannotCount says why, and the question stays open.
func TestARespondThatCannotCount(t *testing.T) {
	h := waiters["a headless run"](t)
	id := h.question()
	for _, tt := range []struct {
		name, want string
		args       []string
	}{
		{"an option that is not offered", "unknown option", []string{id, "--option", "perhaps"}},
		{"no option", "an option must be chosen", []string{id}},
		{"another question", "no open interaction", []string{"ui_nosuch", "--option", "approve"}},
		{"a path", "no open interaction", []string{"../../key", "--option", "approve"}},
	} {
		if _, stderr, code := h.program.run(append([]string{"respond"}, tt.args...)...); code != 42 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: code %d: %s", tt.name, code, stderr)
		}
	}
	if all := h.answers(); len(all) != 0 {
		t.Errorf("on record: %+v", all)
	}
	if _, stderr, code := h.program.run("respond", id, "--option", "reject", "--comment", "not now"); code != 0 {
		t.Errorf("then: code %d: %s", code, stderr)
	}
	h.over(30)
	if all := h.answers(); len(all) != 1 || all[0].Comment != "not now" {
		t.Errorf("on record: %+v", all)
	}
}

// TestALetterThatIsNotSealedIsNoAnswer puts files where letters go.
func TestALetterThatIsNotSealedIsNoAnswer(t *testing.T) {
	h := waiters["a headless run"](t)
	id := h.question()
	folder := filepath.Join(filepath.Dir(h.ws), ".coder/answers", id)
	waitFor(t, filepath.Join(folder, "place"))
	forged := `{"answer":{"interactionId":"` + id + `","authorActorId":"user","selectedOptionId":"approve"},"from":"nobody","seal":"00"}`
	for name, text := range map[string]string{"a.json": forged, "b.json": "{", "c.json": "null"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		waitFor(t, filepath.Join(folder, strings.TrimSuffix(name, ".json")+".refused"))
	}
	if all := h.answers(); len(all) != 0 {
		t.Errorf("on record: %+v", all)
	}
}

// TestARespondFromAnotherFolder answers a question that waits elsewhere on the machine.
func TestARespondFromAnotherFolder(t *testing.T) {
	h := waiters["a headless run"](t)
	c := h.cmd("respond", h.question(), "--option", "approve")
	c.Dir = t.TempDir()
	waitFor(t, filepath.Join(filepath.Dir(h.ws), ".coder/answers", h.question(), "place"))
	if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("answered")) {
		t.Errorf("%v: %s", err, out)
	}
	h.over(0)
	h.made("approved")
}

// TestAnswersAtTheSameInstant has many answer at once: one counts, and the
// others are told so.
func TestAnswersAtTheSameInstant(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, name := range []string{"a terminal", "a line terminal", "a headless run"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := waiters[name](t)
			id := h.question()
			type outcome struct {
				option string
				code   int
				said   string
			}
			outcomes := make([]outcome, 6)
			var all sync.WaitGroup
			for i := range outcomes {
				all.Go(func() {
					option := []string{"approve", "reject"}[i%2]
					c := h.cmd("respond", id, "--option", option)
					out, _ := c.CombinedOutput()
					outcomes[i] = outcome{option, c.ProcessState.ExitCode(), string(out)}
				})
			}
			if name != "a headless run" {
				h.write("n\r")
			}
			all.Wait()
			answers := h.answers()
			if len(answers) != 1 {
				t.Fatalf("on record: %+v", answers)
			}
			counted := 0
			for _, o := range outcomes {
				switch o.code {
				case 0:
					counted++
					if o.option != answers[0].Option {
						t.Errorf("%s was told that it counts: %s", o.option, o.said)
					}
				case 42:
					if !strings.Contains(o.said, "already answered") {
						t.Errorf("said: %s", o.said)
					}
				default:
					t.Errorf("code %d: %s", o.code, o.said)
				}
			}
			if counted > 1 || counted == 0 && name == "a headless run" {
				t.Errorf("%d count: %+v", counted, outcomes)
			}
		})
	}
}

// TestAnOwnerThatDies while an answer is on its way to it: who answers goes on
// with the session itself.
func TestAnOwnerThatDies(t *testing.T) {
	h := waiters["a headless run"](t)
	id := h.question()
	waitFor(t, filepath.Join(filepath.Dir(h.ws), ".coder/answers", id, "place"))
	if err := h.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c := h.cmd("respond", id, "--option", "approve", "--script", h.file("next", "say went on alone\n"))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pattern := filepath.Join(filepath.Dir(h.ws), ".coder/answers", id, "a_*.json")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if posted, _ := filepath.Glob(pattern); len(posted) > 0 {
			break
		}
	}
	_ = h.Process.Kill()
	if err := c.Wait(); err != nil || !strings.Contains(out.String(), "went on alone") {
		t.Errorf("%v: %s", err, &out)
	}
	h.made("approved")
	if all := h.answers(); len(all) != 1 || all[0].Option != "approve" {
		t.Errorf("on record: %+v", all)
	}
}

// TestAWaitThatIsEndedLeavesItsQuestionOpen until somebody answers.
func TestAWaitThatIsEndedLeavesItsQuestionOpen(t *testing.T) {
	for _, name := range []string{"a headless run", "piped lines", "a stream of JSON"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := waiters[name](t)
			id := h.question()
			waitFor(t, filepath.Join(filepath.Dir(h.ws), ".coder/answers", id, "place"))
			h.until("coder respond " + id)
			if err := h.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			h.over(31)
			c := h.cmd("respond", id, "--option", "approve", "--script", h.file("next", "say later\n"))
			if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("later")) {
				t.Errorf("%v: %s", err, out)
			}
			h.made("approved")
		})
	}
}
