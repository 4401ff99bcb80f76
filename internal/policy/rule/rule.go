// Package rule is the policy a person writes down: allow, ask or deny, per
// tool or per sort of thing a tool would touch.
//
// A rule under a tool's own name decides for that tool. Every other call is
// judged by its effects, and the strictest of them decides: what only reads by
// the "read" rule, what writes files by "write", what runs commands by "bash",
// what reaches the network by "fetch", what changes only the program's own notes
// by "note", and what nobody can tell by "default".
package rule

import (
	"context"
	"fmt"

	"coder/internal/policy"
	"coder/internal/tool"
)

// Rules maps a tool's name, or one of read, write, bash, fetch, note and
// default, to a verdict. A missing default denies. A missing note allows: such
// calls touch nothing of the user's.
type Rules map[string]policy.Verdict

// Judge gives the verdict of the rule that applies to c.
func (rs Rules) Judge(_ context.Context, c policy.Case) (policy.Opinion, error) {
	key, v := rs.find(c)
	if v == policy.Allow {
		return policy.Opinion{Verdict: policy.Allow}, nil
	}
	why := fmt.Sprintf("%q needs approval", key)
	if v == policy.Deny {
		why = fmt.Sprintf("%q is not allowed", key)
	}
	return policy.Opinion{Verdict: v, Reasons: []policy.Reason{{By: "rule", Text: why, Lasting: true}}}, nil
}

func (rs Rules) find(c policy.Case) (key string, v policy.Verdict) {
	if v, ok := rs[c.Tool]; ok {
		return c.Tool, v
	}
	key, v = "default", rs["default"]
	for i, e := range c.Plan.Effects {
		k, ev := rs.forKind(e.Kind)
		if i == 0 || ev < v {
			key, v = k, ev
		}
	}
	return key, v
}

func (rs Rules) forKind(k tool.Kind) (string, policy.Verdict) {
	class, known := classes[k]
	if v, ok := rs[class]; known && ok {
		return class, v
	}
	if k == tool.Note {
		return class, policy.Allow
	}
	return "default", rs["default"]
}

var classes = map[tool.Kind]string{
	tool.Read: "read", tool.Write: "write", tool.Exec: "bash", tool.Net: "fetch", tool.Note: "note",
}
