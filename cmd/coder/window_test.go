package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"coder/testkit/faultserver"
)

// worker is a model that calls the same tools over and over, in the
// conversation of the person and in subtasks.
type worker struct {
	steps int                                // replies with calls, of each conversation
	calls func(step int) []faultserver.Event // what a reply asks for
	sub   bool                               // the first reply hands the work on

	mu        sync.Mutex
	main, kid int
	summaries int
}

// answer plays the model. Which conversation a request is of is told by its
// tools: a subtask cannot hand work on.
func (w *worker) answer(r faultserver.Request) faultserver.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	used := faultserver.Usage(r.Tokens, 20)
	body := string(r.Body)
	if !strings.Contains(body, `"tools":[`) {
		w.summaries++
		return faultserver.Stream(faultserver.Text("Work is under way; nothing is settled yet."), used)
	}
	n := &w.main
	if w.sub && !strings.Contains(body, `"name":"task"`) {
		n = &w.kid
	}
	*n++
	switch {
	case *n > w.steps:
		return faultserver.Stream(faultserver.Text("all done"), used)
	case w.sub && n == &w.main:
		args := `{"description":"the work","prompt":"do the work","agent":"general"}`
		return faultserver.Stream(faultserver.Call(fmt.Sprintf("t%d", *n), "task", args), used)
	}
	return faultserver.Stream(append(w.calls(*n), used)...)
}

// unanswered checks that every call in a request has its result, right after it,
// and every result its call.
func unanswered(r faultserver.Request) error {
	open := map[string]bool{}
	for i, m := range r.Messages() {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %v", i, open)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
			if !json.Valid([]byte(c.Function.Arguments)) {
				return fmt.Errorf("message %d: arguments that are no JSON: %.80s", i, c.Function.Arguments)
			}
		}
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("message %d is the result of no call: %s", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("no result for %v", open)
	}
	return nil
}

func bash(step, i int, command string) faultserver.Event {
	return faultserver.Call(fmt.Sprintf("c%d_%d", step, i), "bash", string(must(json.Marshal(map[string]string{"command": command}))))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestTheConversationAlwaysFits works against a server that counts tokens its
// own way and refuses what is longer than its window. None of the requests is,
// every turn comes to its end, and no call is parted from its result.
func TestTheConversationAlwaysFits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	if _, err := exec.LookPath("seq"); err != nil {
		t.Skip("there is no seq here")
	}
	huge := func(step int) []faultserver.Event {
		return []faultserver.Event{bash(step, 0, fmt.Sprintf("seq %d 90000", step))}
	}
	small := func(step int) []faultserver.Event {
		return []faultserver.Event{bash(step, 0, fmt.Sprintf("seq %d 400", step))}
	}
	parallel := func(step int) (calls []faultserver.Event) {
		for i := range 6 {
			calls = append(calls, bash(step, i, fmt.Sprintf("seq %d 8000", step*10+i)))
		}
		return calls
	}
	writes := func(step int) []faultserver.Event {
		args := string(must(json.Marshal(map[string]string{"path": fmt.Sprintf("f%d.txt", step), "content": strings.Repeat("a line of text\n", 1500)})))
		return []faultserver.Event{faultserver.Call(fmt.Sprintf("w%d", step), "write", args)}
	}
	tests := []struct {
		name   string
		worker *worker
		prompt string
	}{
		{"huge results", &worker{steps: 6, calls: huge}, "go"},
		{"many small results", &worker{steps: 24, calls: small}, "go"},
		{"results side by side", &worker{steps: 6, calls: parallel}, "go"},
		{"large arguments", &worker{steps: 8, calls: writes}, "go"},
		{"a long prompt", &worker{steps: 3, calls: huge}, "remember the word tulip. " + strings.Repeat("a line that somebody pasted\n", 9000)},
		{"subtasks", &worker{steps: 4, calls: huge, sub: true}, "go"},
	}
	for _, window := range []int{8192, 16384, 32768, 131072} {
		for i := range tests {
			tt := tests[i]
			for _, perToken := range map[int][]float64{8192: {3.3, 2.6}, 16384: {2.6}, 32768: {3.3}, 131072: {2.6}}[window] {
				t.Run(fmt.Sprintf("%s in %d at %.1f", tt.name, window, perToken), func(t *testing.T) {
					t.Parallel()
					w := &worker{steps: tt.worker.steps, calls: tt.worker.calls, sub: tt.worker.sub}
					server := faultserver.Start(t, faultserver.Options{Window: window, PerToken: perToken, Answer: w.answer})
					run := atWindow(t, server, window, tt.prompt)
					run("--session-id", "s")
					w.mu.Lock()
					w.main, w.kid = 0, 0
					w.mu.Unlock()
					run("-r", "s")
					for i, r := range server.Requests() {
						if r.Refused {
							t.Errorf("request %d has %d tokens", i, r.Tokens)
						}
						if err := unanswered(r); err != nil {
							t.Errorf("request %d: %v", i, err)
						}
					}
					if turns := 2 * (1 + w.steps); w.summaries > 4*turns {
						t.Errorf("%d summaries were asked for", w.summaries)
					}
				})
			}
		}
	}
}

// atWindow returns a way to run prompt against a server, with settings that say
// how large its window is.
func atWindow(t *testing.T, server *faultserver.Server, window int, prompt string) (run func(args ...string)) {
	t.Helper()
	p := newProgram(t)
	p.env = append(p.env, "CODER_BASE_URL="+server.Base(""), "CODER_API_KEY=sk-1234567890", "CODER_MODEL=small", "CODER_TEST_FAST=1")
	settings := p.file("../settings.json", `{"runtime":{"context_token_limit":`+strconv.Itoa(window)+`},
		"permission":{"bash":"allow","write":"allow","task":"allow"},"workflow":{"auto_verify_after_edit":false}}`)
	words := p.file("../prompt", prompt)
	return func(args ...string) {
		t.Helper()
		c := p.cmd(append([]string{"-p", "--config", settings}, args...)...)
		c.Stdin = must(os.Open(words))
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "all done") {
			t.Fatalf("%v: %s", err, out[max(0, len(out)-2000):])
		}
	}
}

// TestAWindowSmallerThanWeThinkIsLearnt has settings that promise far more than
// the server takes.
func TestAWindowSmallerThanWeThinkIsLearnt(t *testing.T) {
	for _, window := range []int{12_000, 30_000} {
		t.Run(strconv.Itoa(window), func(t *testing.T) {
			t.Parallel()
			w := &worker{steps: 12, calls: func(step int) []faultserver.Event {
				return []faultserver.Event{bash(step, 0, fmt.Sprintf("seq %d 6000", step))}
			}}
			server := faultserver.Start(t, faultserver.Options{Window: window, Answer: w.answer})
			atWindow(t, server, 1_000_000, "go")("--session-id", "s")
			refused := 0
			for i, r := range server.Requests() {
				if r.Refused {
					refused++
				}
				if err := unanswered(r); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
			if refused == 0 || refused > 3 {
				t.Errorf("%d requests were refused", refused)
			}
		})
	}
}

// TestNoRequestIsSentThatCannotFit has a window that the system text alone is
// too long for.
func TestNoRequestIsSentThatCannotFit(t *testing.T) {
	server := faultserver.Start(t, faultserver.Options{})
	p := newProgram(t)
	p.env = append(p.env, "CODER_BASE_URL="+server.Base(""), "CODER_API_KEY=sk-1234567890", "CODER_MODEL=small")
	_, stderr, code := p.run("-p", "--config", p.file("../settings.json", `{"runtime":{"context_token_limit":900}}`), "go")
	if code != 54 || !strings.Contains(stderr, "is too small: the system text takes about") || len(server.Requests()) != 0 {
		t.Errorf("exit %d after %d requests: %s", code, len(server.Requests()), stderr)
	}
}

// TestASessionInASmallWindowComesToTheSameAgain has windows that no settings tell
// of: what the server said of them, before or by refusing more, is on record.
func TestASessionInASmallWindowComesToTheSameAgain(t *testing.T) {
	for name, window := range map[string]int{"12288": 12_288, "16384": 16_384, "32768": 32_768, "refuses 12288": 12_288, "refuses 14336": 14_336, "refuses 32768": 32_768} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &worker{steps: 10, calls: func(step int) []faultserver.Event {
				return []faultserver.Event{bash(step, 0, fmt.Sprintf("seq %d 4000", step))}
			}}
			server := faultserver.Start(t, faultserver.Options{Window: window, Answer: w.answer})
			p := newProgram(t)
			p.env = append(p.env, "CODER_BASE_URL="+server.Base(""), "CODER_API_KEY=sk-1234567890", "CODER_MODEL=small", "CODER_TEST_FAST=1")
			if err := os.Mkdir(filepath.Join(p.ws, "..", ".coder"), 0o700); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(name, "refuses") {
				p.file("../.coder/windows.json", fmt.Sprintf(`{"%s small": %d}`, server.Base(""), window))
			}
			if out, stderr, code := p.run("-p", "--session-id", "s", "--auto-approve", "go"); code != 0 || !strings.Contains(out, "all done") {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			log, err := os.ReadFile(filepath.Join(p.ws, ".coder", "log", "s", "conversation.jsonl"))
			if err != nil || !strings.Contains(string(log), `"type":"ContextReplaced"`) {
				t.Fatalf("nothing was made shorter: %v", err)
			}
			stdout, stderr, code := p.run("replay", "s", "--verify")
			if code == 44 {
				t.Skip("nothing here confines commands")
			}
			if code != 0 || !strings.Contains(stdout, "s agrees") {
				t.Errorf("exit %d: %.4000s%s", code, stdout, stderr)
			}
		})
	}
}
