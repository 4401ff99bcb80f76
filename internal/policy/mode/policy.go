package mode

import (
	"context"
	"fmt"

	"coder/internal/policy"
	"coder/internal/tool"
)

// Judge is the switch of a mode: what is not there is refused before anyone is
// asked about it. In a read-only mode that is everything that would write, or
// that nobody can tell.
func (m Mode) Judge(_ context.Context, c policy.Case) (policy.Opinion, error) {
	if !m.Has(c.Tool) {
		return refuse("%s is switched off in %s mode", c.Tool, m.Name), nil
	}
	if !m.ReadOnly {
		return policy.Opinion{Verdict: policy.Allow}, nil
	}
	for _, e := range c.Plan.Effects {
		if e.Kind == tool.Write || e.Kind == tool.Unknown {
			return refuse("%s would change something, and %s mode changes nothing", c.Tool, m.Name), nil
		}
	}
	if len(c.Plan.Effects) == 0 {
		return refuse("%s does not say what it would do, and %s mode changes nothing", c.Tool, m.Name), nil
	}
	return policy.Opinion{Verdict: policy.Allow}, nil
}

func refuse(format, tool, mode string) policy.Opinion {
	why := policy.Reason{By: "mode", Text: fmt.Sprintf(format, tool, mode), Rule: "mode " + mode}
	return policy.Opinion{Verdict: policy.Deny, Reasons: []policy.Reason{why}}
}
