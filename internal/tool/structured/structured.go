// Package structured lets the model answer in a form that the caller requested: by calling a tool whose
// arguments are the answer. An answer that does not match the caller's schema goes back to the model.
package structured

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"coder/internal/core/clip"
	"coder/internal/core/display"
	"coder/internal/core/jsonx"
	"coder/internal/tool"

	"github.com/google/jsonschema-go/jsonschema"
)

// Name is the name of the tool.
const Name = "structured_output"

const doc = "Give the final answer. Call this once, when the work is done: its arguments are the answer, in the form that was asked for."

// most is how many wrong answers, as calls or text, end a turn.
const most = 5

// ErrNone means that a turn ended without an answer in the requested form.
var ErrNone = errors.New("the model did not answer in the requested format")

// Answer holds the answer of one turn at a time. It is safe for concurrent use.
type Answer struct {
	shown json.RawMessage // the schema for the model
	check *jsonschema.Resolved

	mu    sync.Mutex // guards the fields below
	value json.RawMessage
	wrong int   // mismatching answers in the turn
	last  error // the error of the last call
}

// New parses a schema, which must be an object schema.
func New(text []byte) (*Answer, error) {
	var object map[string]any
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON object: %w", err)
	}
	if kind, ok := object["type"]; ok && kind != "object" {
		return nil, errors.New("the schema must be an object schema")
	}
	delete(object, "$schema") // the named draft makes no difference here
	delete(object, "$id")
	object["type"] = "object"
	if err := json.Unmarshal(jsonx.Must(object), &schema); err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	check, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	if _, ok := object["properties"]; !ok {
		object["properties"] = map[string]any{}
	}
	return &Answer{shown: jsonx.Must(object), check: check}, nil
}

// Spec describes the tool to the model.
func (a *Answer) Spec() tool.Spec {
	return tool.Spec{Name: Name, Doc: doc, Class: tool.GivesAnswer, Schema: a.shown, Aliases: []tool.Alias{{Name: "StructuredOutput"}}}
}

// Prepare checks an answer.
func (a *Answer) Prepare(_ context.Context, args json.RawMessage) (tool.Call, error) {
	if err := a.validate(args); err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.last = err
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return given{a, bytes.Clone(args)}, nil
}

func (a *Answer) validate(text []byte) error {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return errors.New("the answer must be a JSON object")
	}
	if err := a.check.Validate(object); err != nil {
		return fmt.Errorf("the answer does not match its schema: %s", clip.Text(err.Error(), 1000))
	}
	return nil
}

// given is a valid answer.
type given struct {
	answer *Answer
	value  json.RawMessage
}

// Plan returns a plan that touches nothing of the user's.
func (g given) Plan() tool.Plan {
	return tool.Plan{Title: "the answer", Effects: []tool.Effect{{Kind: tool.Note, Target: Name}}, Preview: display.Code{Lang: "json", Source: string(g.value)}}
}

// Run accepts the answer.
func (g given) Run(context.Context, io.Writer) (tool.Result, error) {
	g.answer.mu.Lock()
	defer g.answer.mu.Unlock()
	g.answer.value = g.value
	return tool.Result{Value: map[string]any{"ok": true, "text": "taken; nothing more is needed"}, Summary: "given", Show: display.Code{Lang: "json", Source: string(g.value)}}, nil
}

// Final checks the answer that a turn would end with. If the model has not given a valid one, Final
// returns a message for the model. A valid text counts as an answer.
func (a *Answer) Final(text string) (more string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.value != nil {
		return "", nil
	}
	value := bare(text)
	wrong := a.validate(value)
	if wrong == nil {
		a.value = value
		return "", nil
	}
	if err := a.miss(wrong); err != nil {
		return "", err
	}
	return fmt.Sprintf("[schema] The answer is wanted by a call of %s (%v). Make that call now.", Name, wrong), nil
}

// Called processes the result of a tool call. Its error, [ErrNone],
// ends the turn: the model has given too many invalid answers.
func (a *Answer) Called(tool string, failed bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tool != Name || !failed || a.value != nil {
		return nil
	}
	return a.miss(a.last)
}

// miss counts an invalid answer, and fails at the last allowed one.
func (a *Answer) miss(wrong error) error {
	if a.wrong++; a.wrong < most {
		return nil
	}
	a.wrong = 0 // the turn ends here
	if wrong == nil {
		return ErrNone
	}
	return fmt.Errorf("%w: %w", ErrNone, wrong)
}

// Take returns the answer of the turn that ended, or nil, and resets a for the next turn.
func (a *Answer) Take() json.RawMessage {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	value := a.value
	a.value, a.wrong, a.last = nil, 0, nil
	return value
}

// bare returns text without the code fence that models put around JSON.
func bare(text string) []byte {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if _, rest, ok := strings.Cut(inner, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
		}
	}
	return []byte(text)
}
