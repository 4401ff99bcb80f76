package orchestrator

import (
	"strings"
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/tool"
)

func TestInputIsSortedByItsFirstCharacter(t *testing.T) {
	tests := map[string]input{
		"hi":                   promptInput("hi"),
		" hi /x !y":            promptInput(" hi /x !y"),
		"":                     promptInput(""),
		"/help":                slashInput{"help", ""},
		"  /HELP  ":            slashInput{"help", ""},
		"/model  gpt x ":       slashInput{"model", "gpt x"},
		"/a:b one\ntwo":        slashInput{"a:b", "one\ntwo"},
		"/usr/bin/env is what": promptInput("/usr/bin/env is what"),
		"/":                    slashInput{"", ""},
		"/ x":                  slashInput{"", "x"},
		"//":                   promptInput("//"),
		"!ls":                  bangInput("ls"),
		" ! ls -l ":            bangInput("ls -l"),
		"!":                    bangInput(""),
	}
	for in, want := range tests {
		if got := parseInput(in); got != want {
			t.Errorf("%q is %#v, want %#v", in, got, want)
		}
	}
}

func FuzzParseInput(f *testing.F) {
	for _, s := range []string{"", "/", "//", "/help", "! ls", "!", "hi /x", "/Model  a b", "/é", " \t/x\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		trimmed := strings.TrimSpace(s)
		switch in := parseInput(s).(type) {
		case slashInput:
			if in.name != strings.ToLower(in.name) || trimmed[0] != '/' {
				t.Errorf("%q: command %q", s, in.name)
			}
		case bangInput:
			if trimmed[0] != '!' || string(in) != strings.TrimSpace(string(in)) {
				t.Errorf("%q: shell command %q", s, in)
			}
		case promptInput:
			if string(in) != s {
				t.Errorf("the prompt changed: %q became %q", s, in)
			}
		}
	})
}

func TestBangRunsThroughTheGateAndJoinsTheConversation(t *testing.T) {
	b := newBench(t, "say I see")
	got, err := b.RunText(t.Context(), "! ls", b)
	if err != nil || !strings.HasPrefix(got.Text, "$ ls\n") {
		t.Fatalf("%q, %v", got.Text, err)
	}
	b.wantLog(`TaskCreated TaskStarted StateChanged MessageAdded:user ToolCallRequested ToolStarted ToolCallCompleted
		ToolFinished MessageAdded:assistant ContextUsed TaskCompleted StateChanged`)
	if len(b.model.Requests()) != 0 {
		t.Error("the model was asked")
	}
	if _, err := b.RunText(t.Context(), "what was that", b); err != nil {
		t.Fatal(err)
	}
	ms := b.model.Requests()[0].Messages
	if ms[0].Text() != "! ls" || ms[1].Role != chat.Assistant {
		t.Errorf("the model was told %q", b.told(0))
	}
	if _, err := b.RunText(t.Context(), "!", b); err == nil {
		t.Error("a bare ! did nothing in silence")
	}
}

func TestCommandBlock(t *testing.T) {
	long := strings.TrimRight(strings.Repeat("line\n", 30), "\n")
	tests := []struct {
		name, json, want string
	}{
		{"both", `{"ok":false,"exit_code":3,"stdout":"a","stderr":"b","duration_ms":5}`, "$ x\nexit=3 duration=5ms\nstdout:\na\nstderr:\nb"},
		{"silent", `{"ok":true,"exit_code":0,"duration_ms":1}`, "$ x\nexit=0 duration=1ms\n(no output)"},
		{"at the terminal", `{"ok":true,"exit_code":0,"duration_ms":1,"terminal":true}`, "$ x\nexit=0 duration=1ms\n(its output went to the terminal and was not captured)"},
		{"out of time", `{"exit_code":124,"duration_ms":5000,"timed_out":true,"error":"timed out after 5s"}`,
			"$ x\nexit=124 duration=5000ms\n(no output)\ntimed out after 5s"},
		{"an error of its own", `{"exit_code":1,"stderr":"b","duration_ms":1,"error":"exit code 1"}`, "$ x\nexit=1 duration=1ms\nstderr:\nb"},
		{"cut by bytes", `{"exit_code":0,"stdout":"a","truncated":true,"duration_ms":1}`, "$ x\nexit=0 duration=1ms (truncated)\nstdout:\na"},
		{"cut for display", `{"exit_code":0,"stdout":"` + strings.ReplaceAll(long, "\n", `\n`) + `","duration_ms":1}`,
			"$ x\nexit=0 duration=1ms\nstdout:\n" + strings.Repeat("line\n", 20) + "...[output truncated for display]"},
		{"refused", `{"ok":false,"error":"denied: no","denied":true}`, "$ x\ndenied: no"},
		{"not JSON", `oops`, "$ x\noops"},
	}
	for _, tt := range tests {
		if got := (display.Blocks{tool.ParseShellResult("x", tt.json).Block().Truncate(maxSectionLines)}).PlainText(); got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, got, tt.want)
		}
	}
}
