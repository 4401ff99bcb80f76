package hooks_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/hooks"
)

func TestReadTakesTheFormPeopleHave(t *testing.T) {
	for name, tt := range map[string]struct {
		in      string
		want    int
		skipped string
		err     string
	}{
		"one":                   {`{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]}`, 1, "", ""},
		"without matcher":       {`{"Stop": [{"hooks": [{"type": "command", "command": "x"}, {"command": "y"}]}]}`, 2, "", ""},
		"an event unknown":      {`{"PreToolUsage": [{"hooks": [{"command": "x"}]}]}`, 0, "did you mean PreToolUse?", ""},
		"an event of others":    {`{"WorktreeCreate": [{"hooks": [{"command": "x"}]}]}`, 0, "PreToolUse, PostToolUse", ""},
		"another type":          {`{"Stop": [{"hooks": [{"type": "prompt", "prompt": "is it good?"}]}]}`, 0, "type prompt are not supported", ""},
		"a condition":           {`{"PreToolUse": [{"hooks": [{"command": "x", "if": "Bash(git *)"}]}]}`, 1, `"if" is ignored`, ""},
		"no list":               {`{"Stop": {"command": "x"}}`, 0, "", "hooks.Stop: expected a list"},
		"a group without hooks": {`{"Stop": [{"command": "x"}]}`, 0, "", "a group has no"},
		"no command":            {`{"Stop": [{"hooks": [{"type": "command"}]}]}`, 0, "", "no command"},
		"a bad expression":      {`{"PreToolUse": [{"matcher": "(", "hooks": [{"command": "x"}]}]}`, 0, "", `matcher "("`},
	} {
		t.Run(name, func(t *testing.T) {
			var by map[string]json.RawMessage
			if err := json.Unmarshal([]byte(tt.in), &by); err != nil {
				t.Fatal(err)
			}
			list, skipped, err := hooks.Parse(by, hooks.Source{})
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("err = %v, want %q", err, tt.err)
			}
			if len(list) != tt.want || !strings.Contains(strings.Join(skipped, "\n"), tt.skipped) {
				t.Errorf("%d hooks, skipped %q; want %d and %q", len(list), skipped, tt.want, tt.skipped)
			}
		})
	}
}

func TestSecondsThatMustBeMillisecondsAreTakenAsSuch(t *testing.T) {
	for seconds, want := range map[string]time.Duration{
		"0": time.Minute, "5": 5 * time.Second, "0.5": 500 * time.Millisecond, "5000": 5 * time.Second, "30000": 30 * time.Second, "999": 10 * time.Minute,
	} {
		by := map[string]json.RawMessage{"Stop": json.RawMessage(`[{"hooks": [{"command": "x", "timeout": ` + seconds + `}]}]`)}
		list, _, err := hooks.Parse(by, hooks.Source{})
		if err != nil || list[0].Timeout != want {
			t.Errorf("timeout %s: %v, %v; want %v", seconds, list, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`[{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "x", "timeout": 5}]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		list, _, err := hooks.Parse(map[string]json.RawMessage{"PreToolUse": json.RawMessage(text)}, hooks.Source{})
		for _, h := range list {
			if err != nil || h.Command == "" || h.Timeout <= 0 || h.Timeout > 10*time.Minute {
				t.Errorf("%q: %+v, %v", text, h, err)
			}
		}
	})
}

func TestCallbacksCountAsThePersonsOwn(t *testing.T) {
	var by map[string][]hooks.CallbackGroup
	text := `{"PreToolUse": [{"matcher": null, "hookCallbackIds": ["a", "b"], "timeout": 5}, {"matcher": "Bash", "hookCallbackIds": ["c"], "onFailure": "block"}],
		"Stop": [{"hookCallbackIds": ["d"], "onFailure": "anything"}, {"hookCallbackIds": ["e"], "onFailure": "continue"}], "Sneeze": [{"hookCallbackIds": ["f"]}]}`
	if err := json.Unmarshal([]byte(text), &by); err != nil {
		t.Fatal(err)
	}
	list, skipped, err := hooks.ParseCallbacks(by)
	if err != nil || len(list) != 5 || len(skipped) != 1 || !strings.Contains(skipped[0], "Sneeze") {
		t.Fatalf("%+v, %q, %v", list, skipped, err)
	}
	for _, h := range list {
		blocks := h.Callback == "c" || h.Callback == "d"
		if !h.FromUser || h.DenyOnFailure != blocks || h.Timeout <= 0 || h.Command != "" {
			t.Errorf("%+v", h)
		}
	}
	by = map[string][]hooks.CallbackGroup{"PreToolUse": {{Matcher: "(", IDs: []string{"a"}}}}
	if _, _, err := hooks.ParseCallbacks(by); err == nil {
		t.Error("a matcher that says nothing was taken")
	}
}
