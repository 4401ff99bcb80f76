package hooks

import (
	"context"
	"strings"
	"testing"

	"coder/internal/agent/toolrun"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// heard is what one hook's output comes to, and what the person is told of it.
func heard(hook Hook, r tool.ShellResult) (sum toolrun.Ruling, told []string) {
	h := &Hooks{warnedTexts: make(map[string]bool)}
	sink := event.SinkFunc(func(_ context.Context, r event.Record) error {
		told = append(told, r.Event.(event.Notice).Text)
		return nil
	})
	for range 2 { // it is told once
		sum = toolrun.Ruling{}
		h.addResult(context.Background(), Origin{Sink: sink}, &sum, hook, r)
	}
	return sum, told
}

func TestWhatOnlyMeansNoRefuses(t *testing.T) {
	for name, r := range map[string]tool.ShellResult{
		"block":                    {Stdout: `{"decision":"block","reason":"no"}`},
		"the word of the other":    {Stdout: `{"decision":"deny","reason":"no"}`},
		"a participle":             {Stdout: `{"hookSpecificOutput":{"permissionDecision":"denied","permissionDecisionReason":"no"}}`},
		"capitals":                 {Stdout: `{"Decision":" Block ","reason":"no"}`},
		"in the wrong place":       {Stdout: `{"permissionDecision":"reject","reason":"no"}`},
		"text after it":            {Stdout: "{\"decision\":\"block\",\"reason\":\"no\"}\nchecked 3 files\n"},
		"text on its line":         {Stdout: `{"decision":"block","reason":"no"} done`},
		"text before it":           {Stdout: "checking\n{\"decision\":\"blocked\",\"reason\":\"no\"}"},
		"a second object":          {Stdout: "{\"systemMessage\":\"m\"}\n{\"decision\":\"block\",\"reason\":\"no\"}"},
		"an approval before it":    {Stdout: "{\"decision\":\"approve\"}\n{\"decision\":\"block\",\"reason\":\"no\"}"},
		"a byte order mark":        {Stdout: "\ufeff{\"decision\":\"block\",\"reason\":\"no\"}"},
		"for another event":        {Stdout: `{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		"a flood after it":         {Stdout: "{\"decision\":\"block\",\"reason\":\"no\"}\nxxxx", Truncated: true},
		"it failed after that":     {Stdout: `{"decision":"block","reason":"no"}`, ExitCode: 1},
		"it hung after that":       {Stdout: `{"decision":"block","reason":"no"}`, ExitCode: -1, TimedOut: true},
		"something else is broken": {Stdout: `{"decision":"block","reason":"no","continue":"perhaps"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if sum, _ := heard(Hook{Event: PreToolUse, Command: "x", FromUser: true}, r); sum.DenyReason != "no" {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// TestExitCode2OfAHookThatTimedOutIsNoVerdict holds that the exit code of a stopped hook decides nothing.
func TestExitCode2OfAHookThatTimedOutIsNoVerdict(t *testing.T) {
	hook := Hook{Event: PreToolUse, Command: "x", FromUser: true}
	for _, late := range []bool{false, true} {
		sum, told := heard(hook, tool.ShellResult{ExitCode: 2, Stderr: "no", TimedOut: late})
		if (sum.DenyReason == "") != late || (len(told) == 1) != late {
			t.Errorf("timed out %v: %+v, %q", late, sum, told)
		}
	}
}

func TestAVerdictNobodyCanReadNeverAllows(t *testing.T) {
	for name, r := range map[string]tool.ShellResult{
		"broken":            {Stdout: `{"decision":"block"`},
		"not JSON at all":   {Stdout: `{decision: block}`},
		"an unknown word":   {Stdout: `{"decision":"perhaps"}`},
		"and an approval":   {Stdout: `{"decision":"approve","hookSpecificOutput":{"permissionDecision":"not now"}}`},
		"a wrong type":      {Stdout: `{"decision":false}`},
		"and after text":    {Stdout: "log\n{\"decision\":[\"block\"]}"},
		"of another event":  {Stdout: `{"hookSpecificOutput":{"hookEventName":"Sneeze","permissionDecision":"allow"}}`},
		"a flood":           {Stdout: "yyyy", Truncated: true},
		"a flood of object": {Stdout: `{"reason":"yyyy`, Truncated: true},
	} {
		t.Run(name, func(t *testing.T) {
			hook := Hook{Event: PreToolUse, Command: "x", FromUser: true}
			if sum, told := heard(hook, r); sum.AskReason == "" || sum.DenyReason != "" || len(told) != 1 || !strings.HasPrefix(told[0], "PreToolUse `x`: ") {
				t.Errorf("%+v, told %q", sum, told)
			}
			hook.DenyOnFailure = true
			if sum, _ := heard(hook, r); !strings.HasPrefix(sum.DenyReason, "PreToolUse `x`: ") {
				t.Errorf("written to block: %+v", sum)
			}
			hook.Event = Stop
			if sum, _ := heard(hook, r); name != "of another event" && sum.DenyReason == "" {
				t.Errorf("of another event: %+v", sum)
			}
		})
	}
	if sum, _ := heard(Hook{Event: UserPromptSubmit, FromUser: true}, tool.ShellResult{Stdout: `{"decision":"nope"}`}); sum.DenyReason == "" {
		t.Errorf("a prompt, about which nobody is asked: %+v", sum)
	}
}

func TestTextThatDecidesNothingHoldsNothingUp(t *testing.T) {
	for _, stdout := range []string{"", "fine", "[1, 2]", "checking\n{not an object}", `{"level":"info"}`, `{"decision":null}`, `{"continue":true}`} {
		if sum, told := heard(Hook{Event: PreToolUse, FromUser: true}, tool.ShellResult{Stdout: stdout}); sum.DenyReason+sum.AskReason+sum.StopReason != "" || len(told) > 0 {
			t.Errorf("%q: %+v, told %q", stdout, sum, told)
		}
	}
	sum, _ := heard(Hook{Event: PreToolUse, FromUser: true, IgnoreDecision: true}, tool.ShellResult{Stdout: `{"decision":"perhaps"}`})
	if sum.DenyReason+sum.AskReason != "" {
		t.Errorf("one that does not count: %+v", sum)
	}
}

func TestItIsSaidWhoseAHookIs(t *testing.T) {
	for whose, hook := range map[string]Hook{"the user's": {FromUser: true}, "the project's": {}, "the plugin demo's": {Plugin: "demo", PluginRoot: "/x"}} {
		hook.Event = UserPromptSubmit
		sum, _ := heard(hook, tool.ShellResult{Stdout: "words"})
		if len(sum.Notes) != 1 || sum.Notes[0].Owner != whose {
			t.Errorf("%s: %+v", whose, sum.Notes)
		}
		sum, _ = heard(hook, tool.ShellResult{ExitCode: 2, Stderr: "no"})
		if want := "a hook of " + whose + ": no"; !hook.FromUser && sum.DenyReason != want || hook.FromUser && sum.DenyReason != "no" {
			t.Errorf("%s: %q", whose, sum.DenyReason)
		}
	}
}
