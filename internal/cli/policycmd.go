package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/app"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/policy"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

// runPolicy shows how the current rules decide about commands, or about past calls.
func (inv *invocation) runPolicy(ctx context.Context, a *app.Workspace) error {
	fl := inv.flags
	what, rest := fl.args[0], fl.args[1:]
	switch {
	case what == "check" && strings.TrimSpace(strings.Join(rest, " ")) != "":
		return inv.policyCheck(ctx, a, strings.Join(rest, " "))
	case what == "check":
		return usageErrorf("coder policy check needs a command, as one argument: coder policy check 'git status'")
	case what == "list" && len(rest) == 0:
		return inv.policyList(a)
	case what == "list":
		return usageErrorf("coder %s takes no arguments", "policy list")
	case what == "revoke" && len(rest) == 1:
		m, err := a.ApprovalMemory()
		if err != nil {
			return err
		}
		text, err := app.Revoke(m, rest[0])
		if err != nil {
			return inputErrorf("%v", err)
		}
		return inv.printWrapped(inv.printer.TranslateText(text))
	case what == "revoke":
		return usageErrorf("coder policy revoke needs a number from coder policy list, or all")
	case what == "test" && fl.compareWith == "sessions":
		return inv.policyTest(ctx, a)
	case what == "test":
		return usageErrorf("coder policy test needs --against sessions")
	}
	return usageErrorf("unknown command: coder policy %s; use check, list, revoke or test", what)
}

// policyList lists the grants in this project and its sessions, with time and reason.
func (inv *invocation) policyList(a *app.Workspace) error {
	m, err := a.ApprovalMemory()
	if err != nil {
		return err
	}
	all, err := m.List()
	if err != nil {
		return err
	}
	if inv.flags.json {
		return inv.printJSON(all)
	}
	words := inv.printer
	if len(all) == 0 {
		return inv.printWrapped(words.T("nothing is always allowed in this project"))
	}
	var lines []string
	for _, g := range all {
		what := words.TranslateText(g.Grant.String())
		if g.Session != "" {
			what = words.T("in session %s: %s", g.Session, what)
		}
		lines = append(lines, fmt.Sprintf("%d. %s", g.Number, sanitize.Line(what, 0)),
			"   "+words.T("since %s, for: %s", g.Time.Local().Format("2006-01-02 15:04"), singleLine(g.Why)))
	}
	return inv.print(append(lines,
		words.T("coder policy revoke N revokes one of them, coder policy revoke all revokes all"))...)
}

// policyVerdict is the output of policy check.
type policyVerdict struct {
	Command       string   `json:"command"`
	Mode          string   `json:"mode"`
	Decision      string   `json:"decision"`
	Risk          string   `json:"risk"`
	ReadOnly      bool     `json:"read_only"`
	Reasons       []string `json:"reasons"`
	Rules         []string `json:"rules"`
	AlwaysRule    *string  `json:"always"`
	AlwaysBlocked string   `json:"always_not,omitempty"` // why always is not possible
	Sandbox       string   `json:"sandbox"`
	Withheld      []string `json:"withheld,omitempty"` // variables hidden from commands
}

func (inv *invocation) policyCheck(ctx context.Context, a *app.Workspace, command string) error {
	j, c, done, err := a.NewJudge()
	if err != nil {
		return err
	}
	defer done()
	m, preset := a.ModeState.Current()
	r := j.Analyse(command)
	call := policy.Case{Tool: rule.ClassCommand, Plan: tool.Plan{Line: r,
		Effects: []tool.Effect{{Kind: tool.Exec, Target: command}}}}
	o, err := j.PolicyFor(m, preset).Judge(ctx, call)
	if err != nil {
		return err
	}
	v := policyVerdict{
		Command: command, Mode: m.Name, Decision: o.Verdict.String(), Risk: r.Level.String(), ReadOnly: r.ReadOnly,
		Reasons: []string{}, Rules: []string{}, Sandbox: c.Summary(ctx), Withheld: a.WithheldVars(),
	}
	for _, why := range o.Reasons {
		v.Reasons = append(v.Reasons, why.String())
		if why.Rule != "" && !slices.Contains(v.Rules, why.Rule) {
			v.Rules = append(v.Rules, why.Rule)
		}
	}
	offers, err := j.Offers(call)
	var each []string // parts that would be remembered
	i := slices.IndexFunc(offers, func(o policy.Offer) bool { return o.Scope == policy.ThisProject })
	switch {
	case o.Verdict == policy.Deny:
		v.AlwaysBlocked = "it is refused"
	case o.Verdict == policy.Ask && !o.IsWaivable():
		v.AlwaysBlocked = "needs approval every time"
	case err != nil:
		v.AlwaysBlocked = err.Error()
	case i >= 0:
		v.AlwaysRule, each = &offers[i].What, offers[i].Each
	}
	if inv.flags.json {
		return inv.printJSON(v)
	}
	words := inv.printer
	verdict := words.T("%s in %s mode, risk %s", words.T(v.Decision), v.Mode, words.T(v.Risk))
	if v.ReadOnly {
		verdict = words.T("%s in %s mode, risk %s, only reads", words.T(v.Decision), v.Mode, words.T(v.Risk))
	}
	lines := []string{verdict}
	for _, why := range v.Reasons {
		lines = append(lines, words.T("  because %s", words.TranslateText(why)))
	}
	for _, rule := range v.Rules {
		lines = append(lines, words.T("  decided by %s", words.TranslateText(rule)))
	}
	if v.AlwaysRule != nil {
		for i, what := range each {
			each[i] = words.TranslateText(what)
		}
		lines = append(lines, words.T("  always would remember %s", strings.Join(each, words.T(", "))))
	} else if v.AlwaysBlocked != "" {
		lines = append(lines, words.T("  always is not available: %s", words.TranslateText(v.AlwaysBlocked)))
	}
	lines = append(lines, words.T("  sandbox: %s", words.TranslateText(v.Sandbox)))
	if len(v.Withheld) > 0 {
		lines = append(lines, words.T("  withheld from commands: %s", strings.Join(v.Withheld, ", ")))
	}
	return inv.printWrapped(lines...)
}

// rejudgedCall is a past call judged again.
type rejudgedCall struct {
	Session string `json:"session"`
	Call    string `json:"toolCallId"`
	Tool    string `json:"toolName"`
	Subject string `json:"what"`
	Mode    string `json:"mode"`
	Before  string `json:"then"`
	After   string `json:"now"`
	Reason  string `json:"why,omitempty"`

	affectedFiles func(say func(string) string) string
}

// policyTestResult is the output of policy test.
type policyTestResult struct {
	Sessions    int            `json:"sessions"`
	Calls       int            `json:"calls"`
	AskedBefore int            `json:"asked_then"`
	AskedNow    int            `json:"asked_now"`
	Changed     []rejudgedCall `json:"changed"`
}

// policyTest judges every recorded call again with the current rules.
func (inv *invocation) policyTest(ctx context.Context, a *app.Workspace) error {
	j, _, done, err := a.NewJudge()
	if err != nil {
		return err
	}
	defer done()
	store := a.Store()
	sum := policyTestResult{Changed: []rejudgedCall{}}
	for _, id := range store.LoggedSessions() {
		if err := sum.rejudgeSession(ctx, j, store.Logs, id, inv.flags.Mode); err != nil {
			inv.warn(fmt.Sprintf("session %s: %v", id, err))
		}
		sum.Sessions++
	}
	if inv.flags.json {
		return inv.printJSON(sum)
	}
	words := inv.printer
	lines := []string{words.T(display.Plural(sum.Sessions,
		"%d calls in %d session: %d needed approval, %d would now (%+d)",
		"%d calls in %d sessions: %d needed approval, %d would now (%+d)"), sum.Calls, sum.Sessions, sum.AskedBefore,
		sum.AskedNow, sum.AskedNow-sum.AskedBefore)}
	for _, c := range sum.Changed {
		lines = append(lines, fmt.Sprintf(words.DisplaySigns("  %s → %s  %s %s  (%s, %s)"), words.T(c.Before),
			words.T(c.After), c.Tool, singleLine(c.affectedFiles(words.TranslateText)), c.Session, c.Mode))
		if c.Reason != "" {
			lines = append(lines, "      "+words.TranslateText(c.Reason))
		}
	}
	return inv.printWrapped(lines...)
}

// rejudgeSession judges the calls of one session, each in the mode it was made in.
func (sum *policyTestResult) rejudgeSession(ctx context.Context, j *judge.Judge, logs event.Store, id,
	fixed string) error {
	now, preset := j.Mode()
	asked := make(map[string]bool)
	for r, err := range logs.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
		switch e := r.Event.(type) {
		case event.ModeChanged:
			if m, err := mode.Lookup(e.Mode); err == nil && fixed == "" {
				now, preset = m, cmp.Or(e.Preset, m.Preset)
			}
		case event.InteractionRequested:
			asked[e.CallID()] = true
			for _, p := range e.Parts {
				asked[p.CallID()] = true
			}
		case event.ToolCallRequested:
			if e.DecidedBy == event.ActorRecovery || len(e.Effects) == 0 {
				continue
			}
			o, err := j.PolicyFor(now, preset).Judge(ctx, policy.Case{Tool: e.Tool, Plan: tool.Plan{Effects: e.Effects}})
			if err != nil {
				o = policy.Opinion{Reasons: []policy.Reason{{By: "policy", Text: err.Error()}}}
			}
			then := string(e.Verdict)
			if asked[e.CallID] {
				then = policy.Ask.String()
				sum.AskedBefore++
			}
			if o.Verdict == policy.Ask {
				sum.AskedNow++
			}
			sum.Calls++
			if then != o.Verdict.String() {
				sum.Changed = append(sum.Changed, rejudgedCall{
					Session: id, Call: e.CallID, Tool: e.Tool, Subject: event.JoinEffects(e.Effects, ", "),
					affectedFiles: e.DescribeEffects, Mode: now.Name, Before: then, After: o.Verdict.String(), Reason: o.String(),
				})
			}
		}
	}
	return nil
}
