package app

import (
	"context"
	"slices"
	"strings"

	"coder/internal/core/sanitize"
	"coder/internal/policy"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

// withApprovalLog returns p. If nobody can approve calls, it notes the calls that need approval, for [Session.ApprovalHint].
func (a *Session) withApprovalLog(p policy.Policy) policy.Policy {
	if a.Options.HasUser {
		return p
	}
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := p.Judge(ctx, c)
		if err == nil && o.Verdict == policy.Ask {
			a.asked.Store(c.Call.ID, c)
		}
		return o, err
	})
}

// ApprovalHint returns the option that would allow the calls that nobody could approve, tested on these calls, or "".
func (a *Session) ApprovalHint(ctx context.Context, calls []string) string {
	passes := func(p policy.Policy, c policy.Case) bool {
		o, err := p.Judge(ctx, c)
		return err == nil && o.Verdict == policy.Allow
	}
	var waivable int
	var specs []rule.Spec
	for _, id := range calls {
		kept, _ := a.asked.Load(id)
		c, ok := kept.(policy.Case)
		if !ok {
			return ""
		}
		if passes(policy.AutoApprove(a.judge), c) {
			waivable++
		}
		s := narrowestSpec(c)
		if again, err := rule.ParseSpecs(s.String()); err == nil && sanitize.Mask(s.On) == s.On &&
			passes(a.judge.WithAllowed(again), c) && !slices.Contains(specs, s) {
			specs = append(specs, s)
		} else if err != nil || !slices.Contains(specs, s) {
			specs = append(specs, rule.Spec{})
		}
	}
	switch {
	case waivable == len(calls) && waivable > 0:
		return autoApproveFlag
	case len(specs) > 0 && !slices.Contains(specs, rule.Spec{}):
		return "--allowed-tools '" + strings.ReplaceAll(rule.JoinSpecs(specs), "'", `'\''`) + "'"
	case waivable > 0:
		return autoApproveFlag
	}
	return ""
}

const autoApproveFlag = "--auto-approve"

// narrowestSpec returns the narrowest rule that matches a call.
func narrowestSpec(c policy.Case) rule.Spec {
	s := rule.Spec{Tool: c.Tool}
	if len(c.Plan.Effects) == 1 {
		switch e := c.Plan.Effects[0]; e.Kind {
		case tool.Exec, tool.Write, tool.Read:
			s.On = strings.TrimSpace(e.Target)
		case tool.Net:
			s.On = "domain:" + rule.HostOf(e.Target)
		case tool.Note, tool.Unknown:
		}
	}
	return s
}
