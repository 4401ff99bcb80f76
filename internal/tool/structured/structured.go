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
	"coder/internal/core/message"
	"coder/internal/tool"

	"github.com/google/jsonschema-go/jsonschema"
)

// Name is the name of the tool.
const Name = "structured_output"

const doc = "Give the final answer. Call this once, when the work is done: its arguments are the answer, in the form that was asked for."

// maxInvalid is how many wrong answers, as calls or text, end a turn.
const maxInvalid = 5

// ErrNoAnswer means that a turn ended without an answer in the requested form.
var ErrNoAnswer = errors.New("the model did not answer in the requested format")

// Answer holds the answer of one turn at a time. It is safe for concurrent use.
type Answer struct {
	schema    json.RawMessage // the schema for the model
	validator *jsonschema.Resolved

	mu           sync.Mutex // guards the fields below
	value        json.RawMessage
	invalidCount int   // mismatching answers in the turn
	lastErr      error // the error of the last call
}

// New parses a schema, which must be an object schema.
func New(text []byte) (*Answer, error) {
	var object map[string]any
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, message.Errorf("the schema is not a JSON object: %w", err)
	}
	if kind, ok := object["type"]; ok && kind != "object" {
		return nil, errors.New("the schema must be an object schema")
	}
	delete(object, "$schema") // the named draft makes no difference here
	delete(object, "$id")
	object["type"] = "object"
	if err := json.Unmarshal(jsonx.MustMarshal(object), &schema); err != nil {
		return nil, message.Errorf("the schema cannot be used: %w", err)
	}
	check, err := schema.Resolve(nil)
	if err != nil {
		return nil, message.Errorf("the schema cannot be used: %w", err)
	}
	if _, ok := object["properties"]; !ok {
		object["properties"] = map[string]any{}
	}
	return &Answer{schema: jsonx.MustMarshal(object), validator: check}, nil
}

// Spec describes the tool to the model.
func (a *Answer) Spec() tool.Spec {
	return tool.Spec{Name: Name, Doc: doc, Class: tool.ClassFinalAnswer, Schema: a.schema,
		Aliases: []tool.Alias{{Name: "StructuredOutput"}}}
}

// Prepare checks an answer.
func (a *Answer) Prepare(_ context.Context, args json.RawMessage) (tool.Call, error) {
	if err := a.validate(args); err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.lastErr = err
		return nil, message.Errorf("%s: %w", Name, err)
	}
	return answerCall{a, bytes.Clone(args)}, nil
}

func (a *Answer) validate(text []byte) error {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return errors.New("the answer must be a JSON object")
	}
	if err := a.validator.Validate(object); err != nil {
		return message.Errorf("the answer does not match its schema: %s", clip.Truncate(err.Error(), 1000))
	}
	return nil
}

// answerCall is a valid answer.
type answerCall struct {
	answer *Answer
	value  json.RawMessage
}

// Plan returns a plan that touches nothing of the user's.
func (g answerCall) Plan() tool.Plan {
	return tool.Plan{Title: "the answer", Effects: []tool.Effect{{Kind: tool.Note, Target: Name}},
		Preview: display.Code{Lang: "json", Source: string(g.value)}}
}

// Run accepts the answer.
func (g answerCall) Run(context.Context, io.Writer) (tool.Result, error) {
	g.answer.mu.Lock()
	defer g.answer.mu.Unlock()
	g.answer.value = g.value
	return tool.Result{Value: map[string]any{"ok": true, "text": "taken; nothing more is needed"}, Summary: "given",
		Show: display.Code{Lang: "json", Source: string(g.value)}}, nil
}

// CheckAnswer checks the answer that a turn would end with. If the model has not given a valid one, Final
// returns a message for the model. A valid text counts as an answer.
func (a *Answer) CheckAnswer(text string) (more string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.value != nil {
		return "", nil
	}
	value := stripFence(text)
	wrong := a.validate(value)
	if wrong == nil {
		a.value = value
		return "", nil
	}
	if err := a.countInvalid(wrong); err != nil {
		return "", err
	}
	return fmt.Sprintf("[schema] The answer is wanted by a call of %s (%v). Make that call now.", Name, wrong), nil
}

// RecordCall processes the result of a tool call. Its error, [ErrNoAnswer],
// ends the turn: the model has given too many invalid answers.
func (a *Answer) RecordCall(tool string, failed bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tool != Name || !failed || a.value != nil {
		return nil
	}
	return a.countInvalid(a.lastErr)
}

// countInvalid counts an invalid answer, and fails at the last allowed one.
func (a *Answer) countInvalid(wrong error) error {
	if a.invalidCount++; a.invalidCount < maxInvalid {
		return nil
	}
	a.invalidCount = 0 // the turn ends here
	if wrong == nil {
		return ErrNoAnswer
	}
	return message.Errorf("%w: %w", ErrNoAnswer, wrong)
}

// Take returns the answer of the turn that ended, or nil, and resets a for the next turn.
func (a *Answer) Take() json.RawMessage {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	value := a.value
	a.value, a.invalidCount, a.lastErr = nil, 0, nil
	return value
}

// stripFence returns text without the code fence that models put around JSON.
func stripFence(text string) []byte {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if _, rest, ok := strings.Cut(inner, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
		}
	}
	return []byte(text)
}
