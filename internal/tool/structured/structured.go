// Package structured is how the model gives its answer in a form that the caller
// asked for: by calling a tool whose arguments are the answer. What does not fit
// the caller's schema goes back to the model.
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

// Name is that of the tool.
const Name = "structured_output"

const doc = "Give the final answer. Call this once, when the work is done: its arguments are the answer, in the form that was asked for."

// most is how many wrong answers, calls and texts alike, end a turn.
const most = 5

// ErrNone reports a turn that ended without an answer in the form asked for.
var ErrNone = errors.New("the model did not answer in the requested format")

// Answer is the answer of one turn at a time. It is safe for concurrent use.
type Answer struct {
	shown json.RawMessage // the schema as the model is told it
	check *jsonschema.Resolved

	mu    sync.Mutex // guards the fields below
	value json.RawMessage
	wrong int   // answers of the turn that do not fit
	last  error // what is wrong with the last call
}

// New reads a schema, which must be that of an object.
func New(text []byte) (*Answer, error) {
	var object map[string]any
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON object: %w", err)
	}
	if kind, ok := object["type"]; ok && kind != "object" {
		return nil, errors.New("the schema must be an object schema")
	}
	delete(object, "$schema") // which draft it names makes no difference here
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

// given is an answer that fits.
type given struct {
	answer *Answer
	value  json.RawMessage
}

// Plan says that nothing is touched.
func (g given) Plan() tool.Plan {
	return tool.Plan{Title: "the answer", Effects: []tool.Effect{{Kind: tool.Note, Target: Name}}, Preview: display.Code{Lang: "json", Source: string(g.value)}}
}

// Run takes the answer.
func (g given) Run(context.Context, io.Writer) (tool.Result, error) {
	g.answer.mu.Lock()
	defer g.answer.mu.Unlock()
	g.answer.value = g.value
	return tool.Result{Value: map[string]any{"ok": true, "text": "taken; nothing more is needed"}, Summary: "given", Show: display.Code{Lang: "json", Source: string(g.value)}}, nil
}

// Final looks at the answer that a turn would end with. It returns what the
// model is told if it has not given one in the form asked for: text that fits
// counts as given.
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

// Called hears what came of a call of a tool. Its error, [ErrNone], ends the turn:
// the model has given too many answers that do not fit.
func (a *Answer) Called(tool string, failed bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tool != Name || !failed || a.value != nil {
		return nil
	}
	return a.miss(a.last)
}

// miss counts an answer that does not fit, and gives up at the last that may be.
func (a *Answer) miss(wrong error) error {
	if a.wrong++; a.wrong < most {
		return nil
	}
	a.wrong = 0 // the turn ends with it
	if wrong == nil {
		return ErrNone
	}
	return fmt.Errorf("%w: %w", ErrNone, wrong)
}

// Take is the answer of the turn that ended, nil if there is none. The next turn
// begins without one.
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

// bare is text without the fence that models put around JSON.
func bare(text string) []byte {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if _, rest, ok := strings.Cut(inner, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
		}
	}
	return []byte(text)
}
