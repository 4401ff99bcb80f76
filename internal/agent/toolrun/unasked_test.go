package toolrun_test

import (
	"context"
	"errors"
	"testing"

	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/policy"
	"coder/internal/tool"
)

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
	if err := judge(policy.Allow).Unasked(t.Context(), set, call); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if err := judge(policy.Ask).Unasked(t.Context(), set, call); !errors.Is(err, toolrun.ErrNeedsApproval) {
		t.Errorf("to be asked about: %v", err)
	}
	var denied *toolrun.Denied
	if err := judge(policy.Deny).Unasked(t.Context(), set, call); !errors.As(err, &denied) {
		t.Errorf("denied: %v", err)
	}
	if err := judge(policy.Allow).Unasked(t.Context(), set, chat.ToolCall{Name: "nope"}); err == nil {
		t.Error("a tool that does not exist would run")
	}
}
