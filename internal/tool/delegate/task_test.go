package delegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/tool/delegate"
	"coder/testkit/tooltest"
)

var builtIn = []delegate.Agent{{Name: "general", Description: "any work"}, {Name: "explore", Description: "only looks", ReadOnly: true}}

// done is a way to have jobs done at once.
func done(jobs *[]delegate.Job) func(context.Context, delegate.Job) (delegate.Report, error) {
	return func(ctx context.Context, j delegate.Job) (delegate.Report, error) {
		if jobs != nil {
			*jobs = append(*jobs, j)
		}
		return delegate.Report{TaskID: "task_1", Summary: "did " + j.Objective, InputTokens: 7, OutputTokens: 3, WrittenFiles: []string{"a"}}, ctx.Err()
	}
}

func TestTool(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		return tooltest.Fixture{
			Tool: delegate.Task(delegate.Options{Agents: builtIn, Default: "general", Spawn: done(nil)}), Dir: t.TempDir(),
			Good: []string{`{"objective":"x"}`, `{"agent":"EXPLORE","prompt":"x"}`, `{"subagent_type":"general-purpose","prompt":"x","description":"y"}`},
			Bad:  []string{`{"objective":" "}`, `{"agent":"nobody","objective":"x"}`, `{"objective":"` + strings.Repeat("x", 65<<10) + `"}`},
		}
	})
}

func prepare(t *testing.T, o delegate.Options, args string) tool.Call {
	t.Helper()
	c, err := delegate.Task(o).Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOnlyAgentsThatLookAreReadOnly(t *testing.T) {
	o := delegate.Options{Agents: append(builtIn, delegate.Agent{Name: "mine", UserDefined: true}), Default: "general", Spawn: done(nil)}
	for args, want := range map[string]struct {
		title    string
		readOnly bool
	}{
		`{"agent":"explore","objective":"where is f\nand g"}`:                 {"explore: where is f", true},
		`{"agent":"general","objective":"x","description":"tidy up"}`:         {"general: tidy up", false},
		`{"agent":"mine","objective":"x"}`:                                    {"mine: x", false},
		`{"objective":"` + strings.Repeat("ü", 200) + `","description":"  "}`: {strings.Repeat("ü", 100) + "…", false},
	} {
		p := prepare(t, o, args).Plan()
		if p.Title != want.title || p.ReadOnly() != want.readOnly || p.Effects[0].Kind != tool.Note && !want.readOnly {
			t.Errorf("%s: %q, effects %v", args, p.Title, p.Effects)
		}
	}
	if doc := delegate.Task(o).Spec().Doc; !strings.HasSuffix(doc, "The agents:\n- general: any work\n- explore: only looks\n- mine") {
		t.Errorf("the description ends with %q", doc[max(0, len(doc)-100):])
	}
}

func value(t *testing.T, r tool.Result) string {
	t.Helper()
	return string(jsonx.MustMarshal(r.Value))
}

func TestWhatBecameOfIt(t *testing.T) {
	var jobs []delegate.Job
	o := delegate.Options{Agents: builtIn, Default: "general", Spawn: done(&jobs)}
	r, err := prepare(t, o, `{"agent":"Explore","objective":"find f","description":"look"}`).Run(t.Context(), io.Discard)
	if err != nil || value(t, r) != `{"ok":true,"agent":"explore","summary":"did find f","task_id":"task_1","tokens":{"input":7,"output":3}}` {
		t.Errorf("%s, %v", value(t, r), err)
	}
	if r.Failed || r.Summary != "10 tokens" || !reflect.DeepEqual(r.Effects, []tool.Effect{{Kind: tool.Write, Target: "a"}}) {
		t.Errorf("result %+v", r)
	}
	if want := (delegate.Job{Agent: "explore", Title: "look", Objective: "find f"}); len(jobs) != 1 || jobs[0] != want {
		t.Errorf("jobs %+v", jobs)
	}
}

func TestAnAgentThatFailsTellsWhatItHad(t *testing.T) {
	o := delegate.Options{Agents: builtIn, Default: "general", Spawn: func(context.Context, delegate.Job) (delegate.Report, error) {
		return delegate.Report{TaskID: "t", Summary: strings.Repeat("x", 60<<10), Err: errors.New("step limit reached (50)")}, nil
	}}
	r, err := prepare(t, o, `{"objective":"x"}`).Run(t.Context(), io.Discard)
	if err != nil || !r.Failed || r.Summary != "the agent general did not finish: step limit reached (50)" {
		t.Fatalf("%+v, %v", r.Summary, err)
	}
	if text := value(t, r); !strings.HasPrefix(text, `{"ok":false,"agent":"general","summary":"xxx`) || len(text) > 50<<10 || !strings.Contains(text, "step limit") {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
}

// TestAnInterruptedAgentTellsWhatItHad and what never began has nothing to tell.
func TestAnInterruptedAgentTellsWhatItHad(t *testing.T) {
	for task, want := range map[string]bool{"t": true, "": false} {
		o := delegate.Options{Agents: builtIn, Default: "general", Spawn: func(context.Context, delegate.Job) (delegate.Report, error) {
			return delegate.Report{TaskID: task, Summary: "half"}, context.Canceled
		}}
		r, err := prepare(t, o, `{"objective":"x"}`).Run(t.Context(), io.Discard)
		if !errors.Is(err, context.Canceled) || (r.Value != nil) != want {
			t.Errorf("task %q: %+v, %v", task, r, err)
		}
	}
}

func TestThePersonChoosesWhereSeveralFit(t *testing.T) {
	own := func(names ...string) (all []delegate.Agent) {
		for _, n := range names {
			all = append(all, delegate.Agent{Name: n, Description: "does " + n, UserDefined: true})
		}
		return append(all, builtIn...)
	}
	answer := func(a uip.Response, err error) uip.Interactor {
		return uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
			if q.Kind != uip.KindSelect || q.Purpose != uip.PurposeAssignSubtask || len(q.Options) != 4 || q.Options[0].ID != "a" || q.Options[0].Label != "a — does a" || !q.Options[2].Default {
				t.Errorf("asked %+v", q)
			}
			return a, err
		})
	}
	never := uip.InteractorFunc(func(context.Context, uip.Request) (uip.Response, error) {
		t.Error("asked where there was nothing to choose")
		return uip.Response{}, nil
	})
	tests := map[string]struct {
		choices []delegate.Agent
		args    string
		person  uip.Interactor
		want    string // the agent, or the beginning of the error
	}{
		"picked":            {own("a", "b"), `{"objective":"x"}`, answer(uip.Response{Option: "b", Author: "user"}, nil), "b"},
		"typed":             {own("a", "b"), `{"objective":"x"}`, answer(uip.Response{Input: " Explore ", Author: "user"}, nil), "explore"},
		"typed nonsense":    {own("a", "b"), `{"objective":"x"}`, answer(uip.Response{Input: "zz", Author: "user"}, nil), "unknown agent"},
		"nobody there":      {own("a", "b"), `{"objective":"x"}`, uip.NoInteractor, "general"},
		"no answer":         {own("a", "b"), `{"objective":"x"}`, answer(uip.Response{Author: "nobody"}, nil), "general"},
		"dismissed":         {own("a", "b"), `{"objective":"x"}`, answer(uip.Response{Dismissed: true, Author: "user"}, nil), "the user chose no agent"},
		"answer comes late": {own("a", "b"), `{"objective":"x"}`, answer(uip.Response{}, uip.ErrAnswerPending), "waiting for an answer"},
		"the model chose":   {own("a", "b"), `{"agent":"a","objective":"x"}`, never, "a"},
		"one of their own":  {own("a"), `{"objective":"x"}`, never, "general"},
		"none":              {builtIn, `{"objective":"x"}`, never, "general"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var jobs []delegate.Job
			o := delegate.Options{Agents: tt.choices, Default: "general", Spawn: done(&jobs)}
			_, err := prepare(t, o, tt.args).Run(uip.WithInteractor(t.Context(), tt.person), io.Discard)
			got := ""
			if len(jobs) == 1 {
				got = jobs[0].Agent
			}
			if err != nil && !strings.HasPrefix(err.Error(), tt.want) || err == nil && got != tt.want {
				t.Errorf("agent %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
