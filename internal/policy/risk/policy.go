package risk

import (
	"context"

	"coder/internal/policy"
	"coder/internal/tool"
)

// New is the policy of what a call would do, whatever rules a person wrote:
// commands by what they would run, writes by where they would go. What it asks
// about is asked every time.
func New(facts Facts) policy.Policy {
	return policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		o := policy.Opinion{Verdict: policy.Allow}
		for _, e := range c.Plan.Effects {
			judge(&o, e, facts)
		}
		return o, nil
	})
}

func judge(o *policy.Opinion, e tool.Effect, facts Facts) {
	switch e.Kind {
	case tool.Exec:
		r := Analyse(e.Target, facts)
		for _, f := range r.Findings {
			object(o, r.Level.verdict(), f.String())
		}
	case tool.Write:
		if what := Protected(e.Target); what != "" {
			object(o, policy.Ask, "writes to "+what+": "+plain(e.Target))
		}
	}
}

func object(o *policy.Opinion, v policy.Verdict, why string) {
	o.Verdict = min(o.Verdict, v)
	o.Reasons = append(o.Reasons, policy.Reason{By: "risk", Text: why})
}

func (l Level) verdict() policy.Verdict {
	switch l {
	case None:
		return policy.Allow
	case Approve:
		return policy.Ask
	}
	return policy.Deny
}
