package plan_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"coder/internal/core/uip"
	"coder/internal/tool/plan"
)

// What the model demands of an answer travels with the question.
func TestAQuestionCanSayWhatItsAnswerMustBe(t *testing.T) {
	for args, want := range map[string]uip.Validation{
		`{"questions":[{"question":"Port?","validation":{"regex":"^[0-9]+$"}}]}`: {Regex: "^[0-9]+$", Required: true},
		`{"questions":[{"question":"Name?","validation":{"optional":true}}]}`:    {},
		`{"questions":[{"question":"Name?"}]}`:                                   {Required: true},
		`{"question":"Which?","options":["a","b"]}`:                              {Required: true},
	} {
		call, err := plan.Question().Prepare(t.Context(), json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		var put uip.Request
		person := uip.Func(func(_ context.Context, q uip.Request) (uip.Response, error) {
			put = q
			return uip.Response{ID: q.ID, Author: "user", Input: "1"}, nil
		})
		if _, err := call.Run(uip.With(t.Context(), person), nil); err != nil {
			t.Fatal(err)
		}
		if put.Validation == nil || *put.Validation != want {
			t.Errorf("%s: %+v", args, put.Validation)
		}
	}
	_, err := plan.Question().Prepare(t.Context(), json.RawMessage(`{"questions":[{"question":"x","validation":{"regex":"(?=a)"}}]}`))
	if err == nil || !strings.Contains(err.Error(), "RE2") {
		t.Errorf("a rule that cannot be read: %v", err)
	}
}
