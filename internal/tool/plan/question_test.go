package plan_test

import (
	"context"
	"encoding/json"
	"strconv"
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
		person := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			put = q
			return uip.Response{ID: q.ID, Author: "user", Input: "1"}, nil
		})
		if _, err := call.Run(uip.WithInteractor(t.Context(), person), nil); err != nil {
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

// Options are chosen by their numbers, one or several; anything else is the person's
// own words.
func TestSeveralOptionsCanBeChosen(t *testing.T) {
	for input, want := range map[string]string{
		"1 2": "red, blue", "1,2": "red, blue", "3、1": "green, red", "1 and 3": "red, green", "1 和 3": "red, green", "2 2": "blue", "3": "green",
		"1 4": `1 4 (1 = red)`, "1 or 3": `1 or 3 (1 = red, 3 = green)`, "and": "and", "both": "both", "not 2": "not 2",
		"1 and 3 but darker": `1 and 3 but darker (1 = red, 3 = green)`, "2，浅一点": `2，浅一点 (2 = blue)`,
	} {
		call, err := plan.Question().Prepare(t.Context(), json.RawMessage(`{"questions":[{"question":"Which?","multiSelect":true,"options":["red",{"label":"blue","description":"like the sky"},"green"]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		person := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			if q.Display.Description == "" {
				t.Error("the person is not told that several may be chosen")
			}
			return uip.Response{ID: q.ID, Author: "user", Input: input}, nil
		})
		result, err := call.Run(uip.WithInteractor(t.Context(), person), nil)
		if err != nil || result.Summary != strconv.Quote(want) {
			t.Errorf("%s: %s, %v", input, result.Summary, err)
		}
	}
}

// To go on planning is the person's choice, and no failure.
func TestToKeepPlanningIsNoFailure(t *testing.T) {
	exit := plan.ExitPlan(plan.ExitOptions{
		Save:  func(string) (string, error) { return "plan.md", nil },
		Modes: func() []plan.ExitMode { return []plan.ExitMode{{Name: "build"}} },
	})
	for _, given := range []uip.Response{{Option: plan.KeepPlanning}, {Option: plan.KeepPlanning, Comment: "shorter"}, {Input: "think of the tests"}} {
		call, err := exit.Prepare(t.Context(), json.RawMessage(`{"plan":"do it"}`))
		if err != nil {
			t.Fatal(err)
		}
		person := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			given.ID, given.Author = q.ID, "user"
			return given, nil
		})
		result, err := call.Run(uip.WithInteractor(t.Context(), person), nil)
		if err != nil || result.Failed || result.Rebuild != nil || result.Summary != "keep planning" {
			t.Errorf("%+v: %+v, %v", given, result, err)
		}
	}
}

// What a person says with their yes is told to the model, also where it goes on with
// nothing but the plan.
func TestWordsWithAYesToThePlanAreToldToTheModel(t *testing.T) {
	exit := plan.ExitPlan(plan.ExitOptions{
		Save:  func(string) (string, error) { return "plan.md", nil },
		Modes: func() []plan.ExitMode { return []plan.ExitMode{{Name: "build"}} },
	})
	for _, option := range []string{plan.StartEditing, plan.ClearContext} {
		call, err := exit.Prepare(t.Context(), json.RawMessage(`{"plan":"do it"}`))
		if err != nil {
			t.Fatal(err)
		}
		person := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			return uip.Response{ID: q.ID, Author: "user", Option: option, Comment: "be quick"}, nil
		})
		result, err := call.Run(uip.WithInteractor(t.Context(), person), nil)
		if err != nil || result.Rebuild == nil {
			t.Fatalf("%s: %+v, %v", option, result, err)
		}
		told, _ := json.Marshal(result.Value)
		if !strings.Contains(string(told), "They said: be quick") || option == plan.ClearContext && !strings.HasSuffix(result.Rebuild.Message, "do it\n\nThey said: be quick") {
			t.Errorf("%s: the model is told %s, %q", option, told, result.Rebuild.Message)
		}
	}
}
