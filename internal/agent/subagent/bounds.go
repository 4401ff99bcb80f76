package subagent

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/policy"
	"coder/internal/tool"
)

// NarrowTools returns set without the tools that the agent did not choose or that never excludes for all agents.
func (d Definition) NarrowTools(set tool.Set, never func(name string) bool) tool.Set {
	chosen, without := resolveNames(set, d.Tools), resolveNames(set, d.ExcludedTools)
	all := len(d.Tools) == 0
	return set.Without(func(name string) bool {
		if set.IsOff(name) || never(name) || without.has(name) {
			return true
		}
		t, _ := set.Lookup(name)
		_, isGroup := t.(tool.Group) // its members are filtered themselves
		return !all && !isGroup && !chosen.has(name) && !chosen.has(set.Group(name))
	})
}

// toolNames are tools as written: by their own name, or by a prefix and a star.
type toolNames struct {
	exact    map[string]bool
	prefixes []string
}

// resolveNames finds the tools that written names mean, by any of their names.
func resolveNames(set tool.Set, written []string) toolNames {
	n := toolNames{exact: make(map[string]bool)}
	for _, name := range written {
		if head, ok := strings.CutSuffix(name, "*"); ok {
			n.prefixes = append(n.prefixes, head)
		} else if t, ok := set.Lookup(name); ok {
			n.exact[t.Spec().Name] = true
		}
	}
	return n
}

func (n toolNames) has(name string) bool {
	for _, head := range n.prefixes {
		if strings.HasPrefix(name, head) {
			return true
		}
	}
	return n.exact[name]
}

// NarrowPolicy returns p narrowed for the agent, where set are its tools. It allows nothing that
// p would not. A read-only agent's call passes only if it is known to change nothing.
func (d Definition) NarrowPolicy(p policy.Policy, set tool.Set) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		if set.IsOff(c.Tool) {
			return d.denial("the agent %s has no tool %s", d.Name, c.Tool), nil
		}
		o, err := p.Judge(ctx, c)
		if err != nil || !d.ReadOnly || o.Verdict == policy.Deny || c.Plan.ReadOnly() || o.ReadOnly {
			return o, err
		}
		return d.denial("the agent %s is read-only, and this call may change something", d.Name), nil
	})
}

func (d Definition) denial(format string, args ...any) policy.Opinion {
	why := policy.Reason{By: "agent", Text: fmt.Sprintf(format, args...), Rule: "agent " + d.Name}
	return policy.Opinion{Verdict: policy.Deny, Reasons: []policy.Reason{why}}
}

// SystemText returns the agent's system text: the delegating agent's, then its own.
func (d Definition) SystemText(base string) string {
	return strings.TrimRight(base, "\n") + fmt.Sprintf(`

# Your part

You are the agent %s. You work for another agent, who sees nothing of what you do but your last reply: put everything it needs into it, with file names and lines, and leave out how you got there.

%s
`, d.Name, d.Prompt)
}
