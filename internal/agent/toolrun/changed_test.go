package toolrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"coder/internal/agent/toolrun"
	"coder/internal/core/uip"
	"coder/internal/policy"
	"coder/internal/tool"
)

// TestArgumentsThatComeWithAYesAreJudgedAgain: what is denied stays so, whoever
// says yes; what would only be asked about is what they said yes to.
func TestArgumentsThatComeWithAYesAreJudgedAgain(t *testing.T) {
	wary := policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		switch {
		case strings.Contains(c.Plan.Title, "secret"):
			return policy.Opinion{Verdict: policy.Deny, Reasons: []policy.Reason{{By: "rule", Text: "never"}}}, nil
		case strings.Contains(c.Plan.Title, "broken"):
			return policy.Opinion{}, errors.New("boom")
		}
		return askWrites.Judge(ctx, c)
	})
	for name, tt := range map[string]struct{ args, ran, told string }{
		"none":               {"", "run write a", `"ok":true`},
		"others":             {`{"x":"b"}`, "run write b", "the user changed the arguments to"},
		"denied":             {`{"x":"secret"}`, "", "denied: rule: never"},
		"policy breaks":      {`{"x":"broken"}`, "", "denied: boom"},
		"not to be planned":  {`{"x":"bad"}`, "", "cannot plan that"},
		"not even arguments": {`{"x":5}`, "", "write: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.add("write", tool.Write, b.fine("write"))
			b.runner.Policy = wary
			b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
				if string(q.Args) != `{"x":"a"}` {
					t.Errorf("asked about %s", q.Args)
				}
				a := uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}
				if tt.args != "" {
					a.Args = json.RawMessage(tt.args)
				}
				return a, nil
			})
			got, err := b.run(t.Context(), "write a")
			if err != nil || lines(got, "run") != tt.ran || !strings.Contains(got, tt.told) {
				t.Errorf("%v; happened:\n%s", err, got)
			}
		})
	}
}

func TestANoMayEndTheTurn(t *testing.T) {
	b := newBench(t)
	b.add("write", tool.Write, b.fine("write"))
	b.runner.Policy = askWrites
	b.round.User = uip.InteractorFunc(func(_ context.Context, q uip.Request) (uip.Response, error) {
		return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionReject, Stop: true}, nil
	})
	if got, err := b.run(t.Context(), "write a"); !errors.Is(err, toolrun.ErrDeniedAndStopped) || lines(got, "run") != "" {
		t.Errorf("%v; happened:\n%s", err, got)
	}
}
