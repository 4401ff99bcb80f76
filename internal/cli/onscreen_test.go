package cli

import (
	"bytes"
	"testing"

	"coder/internal/ui/i18n"
)

// TestATerminalObeysNothingOfAnAnswer: it reaches a file as the model wrote it, and a
// terminal without what that would obey.
func TestATerminalObeysNothingOfAnAnswer(t *testing.T) {
	const answer = "a\x1b]52;c;ZXZpbA==\x07\tb\nc\u009b31m"
	for onScreen, want := range map[bool]string{false: answer + "\n", true: "a^[]52;c;ZXZpbA==^G\tb\nc<U+009B>31m\n"} {
		var out bytes.Buffer
		o := &output{invocation: &invocation{Env: Env{Stdout: &out}, printer: i18n.For("en"), flags: &flags{}, isTerminal: onScreen}, textOutput: true}
		if err := o.endTurn(answer, nil); err != nil || out.String() != want {
			t.Errorf("on screen %v: %q, %v", onScreen, out.String(), err)
		}
	}
}
