package toolrun_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// TestACallKnowsWhetherAPersonSaidYesToIt: to that very call, not by a rule, not to
// one that it is a part of, and not to hooks or checks that run by themselves.
func TestACallKnowsWhetherAPersonSaidYesToIt(t *testing.T) {
	yes := uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: event.ActorUser, Option: uip.OptionApprove}, nil
	})
	for _, c := range []struct {
		name    string
		verdict policy.Verdict
		direct  bool
		actor   string
		want    bool
	}{
		{"asked about", policy.Ask, false, "main", true},
		{"let pass", policy.Allow, false, "main", false},
		{"typed by the person", policy.Allow, true, event.ActorUser, true},
		{"a hook", policy.Allow, true, "hooks", false},
		{"a check", policy.Allow, true, event.ActorVerifier, false},
	} {
		b := newBench(t)
		b.runner.Policy, b.round.User, b.round.Unjudged, b.round.Actor = judge(c.verdict), yes, c.direct, c.actor
		var approved bool
		b.add("x", tool.Exec, func(ctx context.Context, _ string, _ io.Writer) (tool.Result, error) {
			approved = tool.IsApproved(ctx)
			return tool.Result{Value: map[string]any{"ok": true}}, nil
		})
		if _, err := b.run(tool.WithApproval(t.Context(), !c.want), "x a"); err != nil || approved != c.want {
			t.Errorf("%s: approved is %v: %v", c.name, approved, err)
		}
	}
}

func TestUnaskedTellsWhatWouldRunAndRunsNothing(t *testing.T) {
	set, err := tool.NewSet(tool.Func[struct{}]{
		Name: "look", Plan: func(context.Context, struct{}) (tool.Plan, error) {
			return tool.Plan{Effects: []tool.Effect{{Kind: tool.Read, Target: "a"}}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(v policy.Verdict) *toolrun.Runner {
		return &toolrun.Runner{Policy: policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
			if c.Tool != "look" || len(c.Plan.Effects) != 1 {
				t.Errorf("judged %+v", c)
			}
			return policy.Opinion{Verdict: v}, nil
		})}
	}
	call := chat.ToolCall{ID: "1", Name: "LOOK", Args: []byte("{}")}
	if err := judge(policy.Allow).CheckUnattended(t.Context(), set, call); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if err := judge(policy.Ask).CheckUnattended(t.Context(), set, call); !errors.Is(err, toolrun.ErrNeedsApproval) {
		t.Errorf("to be asked about: %v", err)
	}
	var denied *toolrun.DeniedError
	if err := judge(policy.Deny).CheckUnattended(t.Context(), set, call); !errors.As(err, &denied) {
		t.Errorf("denied: %v", err)
	}
	if err := judge(policy.Allow).CheckUnattended(t.Context(), set, chat.ToolCall{Name: "nope"}); err == nil {
		t.Error("a tool that does not exist would run")
	}
}
