package structured_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"coder/internal/tool/structured"
	"coder/testkit/tooltest"
)

const schema = `{"$schema":"x","type":"object","properties":{"n":{"type":"integer","description":"how many"}},"required":["n"],"additionalProperties":false}`

func newAnswer(t *testing.T) *structured.Answer {
	t.Helper()
	a, err := structured.New([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestItIsATool(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		return tooltest.Fixture{Tool: newAnswer(t), Dir: t.TempDir(), Good: []string{`{"n":1}`}, Bad: []string{`{}`, `{"n":"1"}`}}
	})
}

func TestOnlySchemasOfObjectsAreTaken(t *testing.T) {
	for text, why := range map[string]string{
		schema: "", `{}`: "", `[]`: "not a JSON object", `{`: "not a JSON object", `{"type":"array"}`: "an object schema", `{"type":"object","properties":5}`: "cannot be used", `{"$ref":"http://127.0.0.1:1/x"}`: "cannot be used",
	} {
		if _, err := structured.New([]byte(text)); (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", text, err, why)
		}
	}
}

func TestAnAnswerMustFit(t *testing.T) {
	a := newAnswer(t)
	for args, fits := range map[string]bool{`{"n":1}`: true, `{"n":"1"}`: false, `{}`: false, `{"n":1,"m":2}`: false, `[]`: false, `null`: false, ``: false} {
		if _, err := a.Prepare(t.Context(), json.RawMessage(args)); (err == nil) != fits {
			t.Errorf("%s: %v", args, err)
		}
	}
	c, err := a.Prepare(t.Context(), json.RawMessage(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if more, err := a.CheckAnswer("whatever"); more != "" || err != nil {
		t.Errorf("given: %q, %v", more, err)
	}
	if got := a.Take(); string(got) != `{"n":1}` || a.Take() != nil {
		t.Errorf("taken: %s", got)
	}
}

func TestTextThatFitsCountsAndTheRestIsAskedForABoundedNumberOfTimes(t *testing.T) {
	for _, text := range []string{`{"n":2}`, " {\"n\":2}\n", "```json\n{\"n\":2}\n```"} {
		a := newAnswer(t)
		if more, err := a.CheckAnswer(text); more != "" || err != nil || !strings.Contains(string(a.Take()), `"n":2`) {
			t.Errorf("%s: %q, %v", text, more, err)
		}
	}
	a := newAnswer(t)
	times := 0
	for {
		more, err := a.CheckAnswer("two")
		if err != nil {
			if !errors.Is(err, structured.ErrNoAnswer) || times != 4 {
				t.Errorf("after %d times: %v", times, err)
			}
			break
		}
		if !strings.Contains(more, structured.Name) {
			t.Fatalf("the model is told %q", more)
		}
		times++
	}
	_ = a.Take() // which ends the turn
	if more, err := a.CheckAnswer("two"); err != nil || more == "" {
		t.Errorf("the next turn begins with %q, %v", more, err)
	}
}

func TestCallsAreWrongABoundedNumberOfTimesTextsAmongThem(t *testing.T) {
	a := newAnswer(t)
	wrong := func() error {
		_, err := a.Prepare(t.Context(), json.RawMessage(`{"n":"one"}`))
		return a.RecordCall(structured.Name, err != nil)
	}
	if more, err := a.CheckAnswer("two"); more == "" || err != nil {
		t.Fatalf("%q, %v", more, err)
	}
	for range 3 {
		if err := errors.Join(wrong(), a.RecordCall("read", true), a.RecordCall(structured.Name, false)); err != nil {
			t.Fatal(err)
		}
	}
	if err := wrong(); !errors.Is(err, structured.ErrNoAnswer) || !strings.Contains(err.Error(), "does not match its schema") {
		t.Errorf("the fifth: %v", err)
	}
	if err := wrong(); err != nil {
		t.Errorf("the first of the next turn: %v", err)
	}
}
