// Package policy decides whether a prepared tool call may run. Everything that may object (modes,
// configured rules, risk analysis, user hooks) is a [Policy]; [All] joins policies so that the
// strictest opinion wins and the one question to the user has every reason.
package policy

import (
	"context"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/tool"
)

// Verdict is the decision of an opinion. The zero Verdict denies, so a forgotten return value is safe.
// The smaller of two verdicts is the stricter one.
type Verdict uint8

// The verdicts, strictest first.
const (
	Deny Verdict = iota
	Ask
	Allow
)

func (v Verdict) String() string {
	switch v {
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	}
	return "deny"
}

// ParseVerdict parses the result of String.
func ParseVerdict(s string) (Verdict, error) {
	for _, v := range []Verdict{Deny, Ask, Allow} {
		if v.String() == s {
			return v, nil
		}
	}
	return Deny, message.Errorf("invalid verdict %q: use allow, ask or deny", s)
}

// Case is what a Policy judges: the call as the model wrote
// it, the tool's own name, and what the call would touch.
type Case struct {
	Tool string
	Call chat.ToolCall
	Plan tool.Plan
}

// Opinion is a Verdict and its reasons. ReadOnly means that the call certainly changes nothing, which
// the plan of a command alone cannot show.
type Opinion struct {
	Verdict  Verdict
	Reasons  []Reason
	ReadOnly bool
	Unasked  event.AutoAllowance // calls allowed without a question
}

// Reason is one reason. The user may waive a Lasting reason for good
// ("always allow"); any other reason needs approval every time.
type Reason struct {
	By      string
	Text    string
	Lasting bool
	Rule    string // the rule that decided, as its author wrote it; may be empty
}

func (r Reason) String() string { return r.By + ": " + r.Text }

// String returns the reasons, separated by a semicolon and a space. A quoted command with these
// characters does not act as a separator: a judged command cannot add reasons of its own.
func (o Opinion) String() string {
	var why []string
	for _, r := range o.Reasons {
		s := r.String()
		for strings.Contains(s, "; ") {
			s = strings.ReplaceAll(s, "; ", ";")
		}
		why = append(why, s)
	}
	return strings.Join(why, "; ")
}

// IsWaivable reports whether every reason may be waived for good.
func (o Opinion) IsWaivable() bool {
	for _, r := range o.Reasons {
		if !r.Lasting {
			return false
		}
	}
	return len(o.Reasons) > 0
}

// A Scope is how far a remembered answer applies.
type Scope string

// The scopes have the ids of the options that select them.
const (
	ThisSession Scope = "session"
	ThisProject Scope = "always" // until it is revoked
	BelowFolder Scope = "below"  // edits below a folder, this session
)

// Offer is what "always" would remember, in words for the user. Rules are equivalent rules that the
// user could write for another run; there are none if no rule can express the offer.
type Offer struct {
	Scope Scope
	What  string
	Each  []string // the parts of What, if it has several
	Rules []string
}

// A Policy gives its opinion on one case. An error counts as a denial.
type Policy interface {
	Judge(ctx context.Context, c Case) (Opinion, error)
}

// Func adapts a function to a Policy.
type Func func(context.Context, Case) (Opinion, error)

// Judge calls f.
func (f Func) Judge(ctx context.Context, c Case) (Opinion, error) { return f(ctx, c) }

// Judge asks p about c. Anything but a clear verdict denies: a nil policy, an error, an unknown verdict.
func Judge(ctx context.Context, p Policy, c Case) (Opinion, error) {
	if p == nil {
		return Opinion{Reasons: []Reason{{By: "policy", Text: "none configured"}}}, nil
	}
	o, err := p.Judge(ctx, c)
	if err != nil {
		return Opinion{}, err
	}
	if o.Verdict > Allow {
		return Opinion{}, message.Errorf("unknown verdict %d", uint8(o.Verdict))
	}
	return o, nil
}

// All asks each policy in turn, stopping at the first denial: the strictest
// verdict wins, every reason is kept. With no policies it denies.
func All(ps ...Policy) Policy {
	return Func(func(ctx context.Context, c Case) (Opinion, error) {
		if len(ps) == 0 {
			return Judge(ctx, nil, c)
		}
		sum := Opinion{Verdict: Allow}
		for _, p := range ps {
			o, err := Judge(ctx, p, c)
			if err != nil {
				return Opinion{}, message.Errorf("judge %s: %w", c.Tool, err)
			}
			sum.Verdict = min(sum.Verdict, o.Verdict)
			sum.ReadOnly = sum.ReadOnly || o.ReadOnly
			if o.Verdict != Allow {
				sum.Reasons = append(sum.Reasons, o.Reasons...)
			}
			if sum.Verdict == Deny {
				break
			}
		}
		return sum, nil
	})
}

// AutoApproveRisks wraps p for places without anything of value, such as a
// container for one run: it allows everything that p would ask about.
func AutoApproveRisks(p Policy) Policy {
	return approveAsks(p, func(Opinion) bool { return true },
		Reason{By: "auto-approve", Text: "allowed without approval, risks included"}, event.AllowanceRisks)
}

// AutoApprove wraps p for runs with approval in advance: it allows what p would ask
// about, as long as every reason may be waived for good. A risk that needs
// approval every time is still asked about, and a denial still denies.
func AutoApprove(p Policy) Policy {
	return approveAsks(p, Opinion.IsWaivable, Reason{By: "auto-approve", Text: "allowed without approval", Lasting: true},
		event.AllowanceWaivable)
}

func approveAsks(p Policy, pass func(Opinion) bool, why Reason, unasked event.AutoAllowance) Policy {
	return Func(func(ctx context.Context, c Case) (Opinion, error) {
		o, err := Judge(ctx, p, c)
		if o.Verdict == Ask && pass(o) {
			o.Verdict, o.Reasons, o.Unasked = Allow, append(slices.Clip(o.Reasons), why), unasked
		}
		return o, err
	})
}
