package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	fs "coder/testkit/faultserver"
)

// say and use are replies of the model behind the wire.
func say(text string) fs.Reply { return fs.Stream(fs.Text(text), fs.Finish("stop")) }

func use(name, args string) fs.Reply {
	return fs.Stream(fs.Call("call_"+name, name, args), fs.Finish("tool_calls"))
}

// TestWhatTheModelSees holds, as golden files, every request that crosses the
// wire in the situations in which a conversation changes shape.
func TestWhatTheModelSees(t *testing.T) {
	long := strings.Repeat("a line of the story that fills the window\n", 600)
	tests := []struct {
		name    string
		replies []fs.Reply
		run     func(p *program)
	}{
		{"first_turn", []fs.Reply{use("read", `{"path":"a.txt"}`), say("It says hello.")}, func(p *program) {
			p.file("AGENTS.md", "Be brief.\n")
			p.run("-p", "--session-id", "s", "what is in @a.txt ?")
		}},
		{"resume", []fs.Reply{say("Hello Ada."), say("Ada.")}, func(p *program) {
			p.run("-p", "--session-id", "s", "my name is Ada")
			p.run("-p", "-c", "/mode default")
			p.run("-p", "-c", "what is my name?")
		}},
		{"compaction", []fs.Reply{use("read", `{"path":"story.txt"}`), say("read"), say("The colour is TEAL-7 and the story is long."), say("TEAL-7")}, func(p *program) {
			p.file("story.txt", long)
			p.file("large.json", `{"runtime": {"context_token_limit": 40000}}`)
			p.file("small.json", `{"runtime": {"context_token_limit": 9000}, "compaction": {"recent_messages": 1, "prune": false}}`)
			p.run("-p", "--config", "large.json", "--session-id", "s", "remember that the colour is TEAL-7, then read the story")
			p.run("-p", "--config", "small.json", "-c", "which colour?")
		}},
		{"plan_to_work", []fs.Reply{use("exit_plan_mode", `{"plan":"# Plan\n\n1. write b.txt"}`), say("On it.")}, func(p *program) {
			p.run("-p", "--mode", "plan", "--on-ask", "park", "--session-id", "s", "plan it")
			p.respond("s", "--option", "startEditing")
		}},
		{"plan_to_work_afresh", []fs.Reply{use("exit_plan_mode", `{"plan":"# Plan\n\n1. write b.txt"}`), say("On it.")}, func(p *program) {
			p.run("-p", "--mode", "plan", "--on-ask", "park", "--session-id", "s", "plan it")
			p.respond("s", "--option", "clearContextAndStart")
		}},
		{"subagent", []fs.Reply{use("task", `{"agent":"explore","objective":"find the greeting"}`), say("It is in a.txt."), say("The greeting is in a.txt.")}, func(p *program) {
			p.run("-p", "--session-id", "s", "where is the greeting?")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, s := connected(t, "")
			p.installed("gopls", "git")
			s.Script(tt.replies...)
			tt.run(p)
			var b strings.Builder
			for i, r := range s.Requests() {
				fmt.Fprintf(&b, "=== request %d\n%s", i+1, transcript(t, r.Body))
			}
			got := steady(b.String(), p.ws)
			path := filepath.Join("testdata", "transcripts", tt.name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v\ngot:\n%s\nwant:\n%s", err, got, want)
			}
		})
	}
}

// installed has programs of these names on the PATH, which do nothing where
// there are none of that name.
func (p *program) installed(names ...string) {
	p.t.Helper()
	dir := p.t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	p.env = append(p.env, "PATH="+os.Getenv("PATH")+string(os.PathListSeparator)+dir)
}

// respond answers the question that session is parked on.
func (p *program) respond(session string, args ...string) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.ws, ".coder", "log", session, "events.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	asked := interactionID.FindAllSubmatch(text, -1)
	if asked == nil {
		p.t.Fatal("nothing was asked")
	}
	p.run(append([]string{"respond", string(asked[len(asked)-1][1])}, args...)...)
}

// transcript is a request as a person reads it: who said what, and which tools
// there were.
func transcript(t *testing.T, body []byte) string {
	t.Helper()
	var req struct {
		Tools    []struct{ Function struct{ Name string } }
		Messages []struct {
			Role, Name string
			Content    any
			ToolCalls  []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, tool := range req.Tools {
		b.WriteString(tool.Function.Name + " ")
	}
	b.WriteString("\n")
	for _, m := range req.Messages {
		text := ""
		switch c := m.Content.(type) {
		case string:
			text = c
		case []any:
			for _, part := range c {
				if p, ok := part.(map[string]any); ok {
					text += fmt.Sprint(p["text"])
				}
			}
		}
		if m.Role == "system" {
			_, text, _ = strings.Cut(text, "# Environment")
		}
		fmt.Fprintf(&b, "--- %s %s\n%s\n", m.Role, m.Name, shortened(strings.TrimSpace(text)))
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "call %s %s\n", c.Function.Name, c.Function.Arguments)
		}
	}
	return b.String()
}

// shortened is a text without its middle, if it is long.
func shortened(s string) string {
	const most = 1500
	if len(s) <= most {
		return s
	}
	return s[:most/2] + "\n[…]\n" + s[len(s)-most/2:]
}

var changing = regexp.MustCompile(`Date: [\d-]+|Platform: \S+|task_[a-z0-9]{12}|"duration_ms":\d+`)

// steady is a text without what differs from run to run.
func steady(s, ws string) string {
	s = strings.ReplaceAll(s, ws, "/w")
	return changing.ReplaceAllStringFunc(s, func(m string) string {
		name, _, _ := strings.Cut(m, ":")
		name, _, _ = strings.Cut(name, "_")
		return "<" + strings.Trim(name, `"`) + ">"
	})
}
