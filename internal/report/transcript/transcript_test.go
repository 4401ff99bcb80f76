package transcript

import (
	"fmt"
	"strings"
	"testing"
)

const claude = `{"type":"summary","summary":"x"}
{"type":"user","cwd":"/w","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"<command-name>/x</command-name>"}}
{"type":"user","cwd":"/w","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"fix  the\nbug"}}
{"type":"assistant","timestamp":"2026-01-02T03:04:06Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Looking."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}
not json
{"type":"user","timestamp":"2026-01-02T03:04:07Z","message":{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"a.go"}]}]}}
{"type":"user","isSidechain":true,"message":{"role":"user","content":"side"}}
{"type":"assistant","timestamp":"2026-01-02T03:04:09Z","message":{"role":"assistant","content":[{"type":"text","text":"Done."}]}}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"thanks"},{"type":"image","source":{}}]}}`

const codex = `{"timestamp":"2026-01-02T03:04:05Z","type":"session_meta","payload":{"id":"u","cwd":"/w"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"fix the bug"}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}]}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}"}}
{"type":"response_item","payload":{"type":"function_call_output","output":"{\"output\":\"a.go\",\"metadata\":{}}"}}
{"type":"event_msg","payload":{"type":"token_count"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}
{"type":"message","role":"user","content":[{"type":"input_text","text":"thanks"}]}`

func TestSessionsOfBothAgents(t *testing.T) {
	for text, want := range map[string]string{
		claude: `1 /w "fix the bug" "Looking.\n\n[called Bash {\"command\":\"ls\"}]\n\n[result]\na.go\n\nDone." "thanks"`,
		codex:  `0 /w "fix the bug" "Looking.\n\n[called shell {\"command\":[\"ls\"]}]\n\n[result]\na.go\n\nDone." "thanks"`,
	} {
		s, err := Read(strings.NewReader(text), 0)
		if err != nil || len(s.Turns) != 2 {
			t.Fatalf("%+v, %v", s, err)
		}
		if got := fmt.Sprintf("%d %s %q %q %q", s.Unreadable, s.Dir, s.Title(), s.Turns[0].Answer, s.Turns[1].Prompt); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestReadingIsBounded(t *testing.T) {
	long := strings.Repeat("x", 2*maxLine)
	text := `{"type":"user","message":{"role":"user","content":"` + long + "\"}}\n" + claude
	s, err := Read(strings.NewReader(text), 0)
	if err != nil || s.Unreadable != 2 || len(s.Turns) != 2 {
		t.Errorf("%d bad, %d turns, %v", s.Unreadable, len(s.Turns), err)
	}
	many := strings.Repeat(`{"type":"user","message":{"role":"user","content":"again"}}`+"\n", maxTurns+5)
	if s, _ = Read(strings.NewReader(many), 0); len(s.Turns) != maxTurns || !s.Truncated {
		t.Errorf("%d turns", len(s.Turns))
	}
	if s, _ = Read(strings.NewReader(many), 1); len(s.Turns) > 2 {
		t.Errorf("%d turns where one is enough", len(s.Turns))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(claude)
	f.Add(codex)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Read(strings.NewReader(text), 0); err != nil {
			t.Error(err)
		}
	})
}
