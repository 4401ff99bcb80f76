package policy_test

import (
	"context"
	"testing"

	"coder/internal/policy"
)

func reads(v policy.Verdict, readOnly bool) policy.Policy {
	return policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: v, ReadOnly: readOnly}, nil
	})
}

func TestWhatIsNoVerdictDenies(t *testing.T) {
	unknown := says(policy.Allow+1, byRule)
	for name, tt := range map[string]struct {
		in     policy.Policy
		failed bool
	}{
		"no policy":              {nil, false},
		"no policy among others": {policy.All(says(policy.Allow), nil), false},
		"an error":               {broken, true},
		"an unknown verdict":     {unknown, true},
		"one among others":       {policy.All(says(policy.Allow), unknown, says(policy.Allow)), true},
		"one let pass":           {policy.AutoApprove(unknown), true},
		"one without fear":       {policy.AutoApproveRisks(unknown), true},
		"none let pass":          {policy.AutoApproveRisks(nil), false},
	} {
		if o, err := policy.Judge(t.Context(), tt.in, policy.Case{}); o.Verdict != policy.Deny || (err != nil) != tt.failed {
			t.Errorf("%s: %v, %v", name, o.Verdict, err)
		}
	}
	if o, err := policy.Judge(t.Context(), says(policy.Ask, byRule), policy.Case{}); err != nil || o.Verdict != policy.Ask || o.String() != "rule: bash asks" {
		t.Errorf("%v, %v", o, err)
	}
	if s := (policy.Allow + 1).String(); s != "deny" {
		t.Errorf("an unknown verdict is called %s", s)
	}
}

// One policy that knows the call to change nothing is enough.
func TestWhatOnlyReadsIsKnownFromAnyPolicy(t *testing.T) {
	for _, first := range []bool{false, true} {
		for _, second := range []bool{false, true} {
			o, err := policy.All(reads(policy.Allow, first), reads(policy.Ask, second)).Judge(t.Context(), policy.Case{})
			if err != nil || o.ReadOnly != (first || second) {
				t.Errorf("%v, %v: %v, %v", first, second, o.ReadOnly, err)
			}
		}
	}
}

func TestNoReasonIsNoneToWaive(t *testing.T) {
	for name, tt := range map[string]struct {
		o    policy.Opinion
		want bool
	}{
		"none": {policy.Opinion{}, false},
		"one":  {policy.Opinion{Reasons: []policy.Reason{byRule}}, true},
		"risk": {policy.Opinion{Reasons: []policy.Reason{byRisk}}, false},
		"both": {policy.Opinion{Reasons: []policy.Reason{byRisk, byRule}}, false},
	} {
		if tt.o.IsWaivable() != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
}
