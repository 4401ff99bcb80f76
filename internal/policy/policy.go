// Package policy decides whether a prepared tool call may run. Everything that
// may object (mode switches, configured rules, risk analysis, user hooks) is a
// [Policy]; [All] joins them so that the strictest opinion wins and every
// reason is kept for the one question the person is asked.
package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/tool"
)

// Verdict is an opinion's weight. The zero Verdict denies, so a forgotten
// return value is safe, and the smaller of two verdicts is the stricter.
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

// ParseVerdict reads what String wrote.
func ParseVerdict(s string) (Verdict, error) {
	for _, v := range []Verdict{Deny, Ask, Allow} {
		if v.String() == s {
			return v, nil
		}
	}
	return Deny, fmt.Errorf("invalid verdict %q: use allow, ask or deny", s)
}

// Case is what a Policy gets to judge: the call as the model wrote it, the
// tool's own name for itself, and what the call would touch.
type Case struct {
	Tool string
	Call chat.ToolCall
	Plan tool.Plan
}

// Opinion is a Verdict and the grounds for it. ReadOnly says that the call is
// known to change nothing, which a plan alone cannot tell of a command.
type Opinion struct {
	Verdict  Verdict
	Reasons  []Reason
	ReadOnly bool
	Unasked  event.Unasked // what was let pass of it
}

// Reason is one ground. A Lasting reason may be waived for good by the person
// ("always allow"); the others must be asked about every time.
type Reason struct {
	By      string
	Text    string
	Lasting bool
	Rule    string // the rule that decided, as its author wrote it; may be empty
}

func (r Reason) String() string { return r.By + ": " + r.Text }

// String is the reasons, parted by a semicolon and a blank. Where a reason quotes
// a command that has these, they are no such mark: what is judged cannot add
// reasons of its own.
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

// Waivable reports whether every reason may be waived for good.
func (o Opinion) Waivable() bool {
	for _, r := range o.Reasons {
		if !r.Lasting {
			return false
		}
	}
	return len(o.Reasons) > 0
}

// A Scope is how far an answer reaches that is remembered.
type Scope string

// The scopes, by the option that a person chooses them with.
const (
	ThisSession Scope = "session"
	ThisProject Scope = "always" // until it is revoked
	BelowFolder Scope = "below"  // edits below a folder, this session
)

// Offer is what saying "always" would remember, in words for the person who is
// asked. Rules reach as far, as a person may write them for another run; there
// are none where no rule can say that.
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

// Func makes a Policy of a function.
type Func func(context.Context, Case) (Opinion, error)

// Judge calls f.
func (f Func) Judge(ctx context.Context, c Case) (Opinion, error) { return f(ctx, c) }

// Judge asks p about c. Whatever is no clear verdict denies: no policy, an error, an unknown
// verdict.
func Judge(ctx context.Context, p Policy, c Case) (Opinion, error) {
	if p == nil {
		return Opinion{Reasons: []Reason{{By: "policy", Text: "none configured"}}}, nil
	}
	o, err := p.Judge(ctx, c)
	if err != nil {
		return Opinion{}, err
	}
	if o.Verdict > Allow {
		return Opinion{}, fmt.Errorf("unknown verdict %d", uint8(o.Verdict))
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
				return Opinion{}, fmt.Errorf("judge %s: %w", c.Tool, err)
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

// Fearless wraps p for places where nothing of value can be harmed, such as a
// container made for one run: whatever p would ask about passes.
func Fearless(p Policy) Policy {
	return letting(p, func(Opinion) bool { return true }, Reason{By: "auto-approve", Text: "allowed without approval, risks included"}, event.RisksUnasked)
}

// Unasked wraps p for runs that were told to go ahead: what p would merely ask
// about passes, as long as every reason may be waived for good. A risk that
// must be asked about every time is still asked about, a denial still denies.
func Unasked(p Policy) Policy {
	return letting(p, Opinion.Waivable, Reason{By: "auto-approve", Text: "allowed without approval", Lasting: true}, event.WaivableUnasked)
}

func letting(p Policy, pass func(Opinion) bool, why Reason, unasked event.Unasked) Policy {
	return Func(func(ctx context.Context, c Case) (Opinion, error) {
		o, err := Judge(ctx, p, c)
		if o.Verdict == Ask && pass(o) {
			o.Verdict, o.Reasons, o.Unasked = Allow, append(slices.Clip(o.Reasons), why), unasked
		}
		return o, err
	})
}
