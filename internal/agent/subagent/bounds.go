package subagent

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/policy"
	"coder/internal/tool"
)

// Narrow returns set without the tools that the agent did not choose or that never excludes for all agents.
func (d Definition) Narrow(set tool.Set, never func(name string) bool) tool.Set {
	chosen, without := own(set, d.Tools), own(set, d.Without)
	all := len(d.Tools) == 0
	return set.Without(func(name string) bool {
		if set.Off(name) || never(name) || without.has(name) {
			return true
		}
		t, _ := set.Lookup(name)
		_, isGroup := t.(tool.Group) // its members are filtered themselves
		return !all && !isGroup && !chosen.has(name) && !chosen.has(set.Group(name))
	})
}

// names are tools as written: by their own name, or by a prefix and a star.
type names struct {
	exact  map[string]bool
	starts []string
}

// own finds the tools that written names mean, by any of their names.
func own(set tool.Set, written []string) names {
	n := names{exact: make(map[string]bool)}
	for _, name := range written {
		if head, ok := strings.CutSuffix(name, "*"); ok {
			n.starts = append(n.starts, head)
		} else if t, ok := set.Lookup(name); ok {
			n.exact[t.Spec().Name] = true
		}
	}
	return n
}

func (n names) has(name string) bool {
	for _, head := range n.starts {
		if strings.HasPrefix(name, head) {
			return true
		}
	}
	return n.exact[name]
}

// Within returns p narrowed for the agent, where set are its tools. It allows nothing that
// p would not. A read-only agent's call passes only if it is known to change nothing.
func (d Definition) Within(p policy.Policy, set tool.Set) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		if set.Off(c.Tool) {
			return d.refuse("the agent %s has no tool %s", d.Name, c.Tool), nil
		}
		o, err := p.Judge(ctx, c)
		if err != nil || !d.ReadOnly || o.Verdict == policy.Deny || c.Plan.ReadOnly() || o.ReadOnly {
			return o, err
		}
		return d.refuse("the agent %s is read-only, and this call may change something", d.Name), nil
	})
}

func (d Definition) refuse(format string, args ...any) policy.Opinion {
	why := policy.Reason{By: "agent", Text: fmt.Sprintf(format, args...), Rule: "agent " + d.Name}
	return policy.Opinion{Verdict: policy.Deny, Reasons: []policy.Reason{why}}
}

// System returns the agent's system text: the delegating agent's, then its own.
func (d Definition) System(base string) string {
	return strings.TrimRight(base, "\n") + fmt.Sprintf(`

# Your part

You are the agent %s. You work for another agent, who sees nothing of what you do but your last reply: put everything it needs into it, with file names and lines, and leave out how you got there.

%s
`, d.Name, d.Prompt)
}
