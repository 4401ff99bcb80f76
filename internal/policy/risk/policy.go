package risk

import (
	"context"
	"path"
	"strings"

	"coder/internal/policy"
	"coder/internal/tool"
)

// New returns the policy for what a call would do, apart from the user's rules:
// commands by what they would run, writes by where they would go. Every approval it
// asks for is needed each time. It also knows which commands only read.
func New(facts Facts, vouched VouchFunc) policy.Policy { return newPolicy(facts, vouched, true) }

// VouchFunc reports which risks of a line the user's own rules accept:
// only those that send something out, or all that can be approved.
type VouchFunc func(tool string, r Report) (outward, all bool)

// Unchecked returns the policy for a mode without command checks. It
// still judges writes by file tools, and leaving the sandbox.
func Unchecked(facts Facts) policy.Policy { return newPolicy(facts, nil, false) }

func newPolicy(facts Facts, vouched VouchFunc, commands bool) policy.Policy {
	return policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		o := policy.Opinion{Verdict: policy.Allow, ReadOnly: len(c.Plan.Effects) > 0 && !c.Plan.Unconfined}
		for _, e := range c.Plan.Effects {
			o.ReadOnly = judgeEffect(&o, c, e, facts, vouched, commands) && o.ReadOnly
		}
		if c.Plan.Sends != "" && commands {
			addObjection(&o, policy.Ask, "sends "+plainText(c.Plan.Sends)+" to another machine")
		}
		for _, name := range c.Plan.Executable {
			if commands {
				addObjection(&o, policy.Ask, "makes a file executable: "+plainText(name))
			}
		}
		if c.Plan.Unconfined {
			addObjection(&o, policy.Ask, "runs outside the sandbox: only your own permissions limit what it can change")
		}
		o.ReadOnly = o.ReadOnly && o.Verdict == policy.Allow
		return o, nil
	})
}

// judgeEffect adds the objections to an effect and reports whether it only reads.
func judgeEffect(o *policy.Opinion, c policy.Case, e tool.Effect, facts Facts, vouched VouchFunc,
	commands bool) (reads bool) {
	switch e.Kind {
	case tool.Exec:
		r, ok := ReportOf(c.Plan, e.Target)
		if !ok {
			r = Analyse(e.Target, facts)
		}
		var outward, all bool
		if vouched != nil {
			outward, all = vouched(c.Tool, r)
		}
		for _, f := range r.Findings {
			if !commands {
				break
			}
			if f.Level == Approve && all || f.IsOutward() && outward {
				continue
			}
			why := f.String()
			if !strings.HasPrefix(f.Text, policyName) {
				why = policyName + ": " + why
			}
			addObjection(o, [...]policy.Verdict{None: policy.Allow, Approve: policy.Ask, Block: policy.Deny}[f.Level], why)
		}
		return r.ReadOnly
	case tool.Write:
		at := e.Target
		if !path.IsAbs(at) && facts.Cwd != "" {
			at = path.Join(facts.Cwd, at)
		}
		if what := facts.protectedReason(at); what != "" {
			addObjection(o, policy.Ask, "writes to "+what+": "+plainText(e.Target))
		}
	case tool.Read:
		return true
	case tool.Unknown, tool.Net, tool.Note:
	}
	return false
}

// policyName begins the reason for every command that needs approval.
const policyName = "matches dangerous command policy"

func addObjection(o *policy.Opinion, v policy.Verdict, why string) {
	o.Verdict = min(o.Verdict, v)
	o.Reasons = append(o.Reasons, policy.Reason{By: "risk", Text: why})
}

// ReportOf returns the report on a command line from a plan.
func ReportOf(p tool.Plan, command string) (Report, bool) {
	r, ok := p.Line.(Report)
	return r, ok && r.Command == command
}

// Original returns the line as written.
func (r Report) Original() string { return r.Command }
