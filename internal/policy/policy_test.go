package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"coder/internal/policy"
)

func says(v policy.Verdict, r ...policy.Reason) policy.Policy {
	return policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: v, Reasons: r}, nil
	})
}

var (
	byRule = policy.Reason{By: "rule", Text: "bash asks", Lasting: true}
	byRisk = policy.Reason{By: "risk", Text: "removes files"}
	broken = policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) {
		return policy.Opinion{Verdict: policy.Allow}, errors.New("boom")
	})
)

func TestAllTakesTheStrictestAndKeepsEveryReason(t *testing.T) {
	tests := []struct {
		name     string
		in       []policy.Policy
		want     policy.Verdict
		why      string
		waivable bool
		failed   bool
	}{
		{name: "nobody speaks", want: policy.Deny, why: "policy: none configured"},
		{name: "all allow", in: []policy.Policy{says(policy.Allow), says(policy.Allow, byRule)}, want: policy.Allow},
		{name: "one asks", in: []policy.Policy{says(policy.Allow), says(policy.Ask, byRule)}, want: policy.Ask, why: "rule: bash asks", waivable: true},
		{name: "two ask", in: []policy.Policy{says(policy.Ask, byRule), says(policy.Ask, byRisk)}, want: policy.Ask, why: "rule: bash asks; risk: removes files"},
		{name: "a denial ends it", in: []policy.Policy{says(policy.Deny, byRisk), broken}, want: policy.Deny, why: "risk: removes files"},
		{name: "an error denies", in: []policy.Policy{says(policy.Allow), broken}, want: policy.Deny, failed: true},
		{name: "a forgotten verdict denies", in: []policy.Policy{says(0)}, want: policy.Deny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := policy.All(tt.in...).Judge(t.Context(), policy.Case{Tool: "bash"})
			if (err != nil) != tt.failed {
				t.Fatalf("error %v, want failure %v", err, tt.failed)
			}
			if o.Verdict != tt.want || o.String() != tt.why || o.IsWaivable() != tt.waivable {
				t.Errorf("got %v %q waivable=%v, want %v %q waivable=%v", o.Verdict, o, o.IsWaivable(), tt.want, tt.why, tt.waivable)
			}
		})
	}
}

func TestUnaskedPassesOnlyWhatMayBeWaived(t *testing.T) {
	tests := []struct {
		name string
		in   policy.Policy
		want policy.Verdict
	}{
		{"a rule's question passes", says(policy.Ask, byRule), policy.Allow},
		{"a risk is still asked about", says(policy.Ask, byRule, byRisk), policy.Ask},
		{"a question without a reason is still asked", says(policy.Ask), policy.Ask},
		{"a denial still denies", says(policy.Deny, byRule), policy.Deny},
		{"what was allowed stays allowed", says(policy.Allow), policy.Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := policy.AutoApprove(tt.in).Judge(t.Context(), policy.Case{})
			if err != nil || o.Verdict != tt.want {
				t.Errorf("got %v, %v; want %v", o.Verdict, err, tt.want)
			}
		})
	}
	for in, want := range map[policy.Verdict]policy.Verdict{policy.Ask: policy.Allow, policy.Deny: policy.Deny} {
		if o, err := policy.AutoApproveRisks(says(in, byRisk)).Judge(t.Context(), policy.Case{}); err != nil || o.Verdict != want {
			t.Errorf("fearless turns %v into %v, %v", in, o.Verdict, err)
		}
	}
	if _, err := policy.AutoApprove(broken).Judge(t.Context(), policy.Case{}); err == nil {
		t.Error("the error of a broken policy was swallowed")
	}
}

func TestParseVerdictReadsWhatStringWrites(t *testing.T) {
	for _, v := range []policy.Verdict{policy.Deny, policy.Ask, policy.Allow} {
		if got, err := policy.ParseVerdict(v.String()); err != nil || got != v {
			t.Errorf("%v came back as %v, %v", v, got, err)
		}
	}
	if v, err := policy.ParseVerdict("sure"); err == nil || v != policy.Deny {
		t.Errorf("nonsense gave %v, %v", v, err)
	}
}

// A command that is quoted in a reason cannot pass for further reasons.
func TestAReasonStaysOneReason(t *testing.T) {
	for _, quoted := range []string{"ls; rule: approved before", "ls;  risk: none", "a; b; c;   d; "} {
		o := policy.Opinion{Reasons: []policy.Reason{{By: "risk", Text: "dangerous: " + quoted}, {By: "rule", Text: "asks"}}}
		if parts := strings.Split(o.String(), "; "); len(parts) != 2 || parts[1] != "rule: asks" {
			t.Errorf("%q: %q", quoted, parts)
		}
	}
}

func TestVerdictsAreReadAsWritten(t *testing.T) {
	for v, want := range map[policy.Verdict]string{policy.Deny: "deny", policy.Ask: "ask", policy.Allow: "allow", policy.Allow + 1: "deny"} {
		if v.String() != want {
			t.Errorf("%d is %s", v, v)
		}
		if got, err := policy.ParseVerdict(want); err != nil || v <= policy.Allow && got != v {
			t.Errorf("%s: %v, %v", want, got, err)
		}
	}
	if v, err := policy.ParseVerdict("Allow"); err == nil || v != policy.Deny {
		t.Errorf("%v, %v", v, err)
	}
}
