package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	fs "coder/internal/model/faultserver"
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
	doc, err := os.ReadFile("../../docs/MODELS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode, tools string
		most        int // bytes, beside the tools that belong to the mode where there are few
		count       int // of tools
	}{
		{"build", "full", 16_000, 20}, {"plan", "full", 14_000, 17}, {"default", "full", 18_000, 22},
		{"auto-edit", "full", 18_000, 22}, {"yolo", "full", 17_000, 21},
		{"build", "lean", 6_000, 7}, {"plan", "lean", 6_000, 10}, {"default", "lean", 6_000, 9},
		{"auto-edit", "lean", 6_000, 9}, {"yolo", "lean", 6_000, 8},
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
// before it; another mode has the same system text, the same tools first, and
// the same conversation.
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
		if tools.system != system.system {
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
