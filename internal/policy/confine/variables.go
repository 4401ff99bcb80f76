package confine

import (
	"context"
	"path"
	"slices"
	"strings"

	"coder/internal/core/secret"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// lineVariables returns the withheld variables that a line gets, as NAME=value, and a function that names
// the ones it lacks, given its output. A line gets what its programs need if the user approved it, or
// one of the user's rules names the whole line, and all its other commands only read.
func (c *Confiner) lineVariables(ctx context.Context, line tool.Line) (given []string,
	missing func(output string) string) {
	r, ok := line.(risk.Report)
	if !ok || c.o.WithheldEnv == nil || c.o.Rerun {
		return nil, nil
	}
	var users []string // programs that may need variables
	setsPath := r.MaySet("PATH")
	known := !r.Unknown
	for _, s := range r.Simple {
		switch {
		case path.Base(s.Name) == s.Name && secret.NeedsVariables(s.Name) && !setsPath && !c.isPlanted(s.Name):
			users = append(users, s.Name)
		case !s.ReadOnly && !s.IsWrapper && s.Name != "cd":
			known = false
		}
	}
	vouched := known && (tool.IsApproved(ctx) || c.o.IsVouched != nil && c.o.IsVouched(r))
	withheld := make(map[string][]string) // by variable, the programs that need it
	for _, kv := range c.o.WithheldEnv() {
		name, _, _ := strings.Cut(kv, "=")
		needs := slices.DeleteFunc(slices.Clone(users), func(program string) bool {
			return !secret.NeedsVariable(program,
				name)
		})
		if vouched && len(needs) > 0 {
			given = append(given, kv)
		} else {
			withheld[name] = needs
		}
	}
	return given, func(output string) string {
		var names, programs []string
		for name, needs := range withheld {
			if len(needs) > 0 || mentions(output, name) {
				names, programs = append(names, name), append(programs, needs...)
			}
		}
		if len(names) == 0 {
			return ""
		}
		slices.Sort(names)
		slices.Sort(programs)
		text := "env: " + strings.Join(names, ", ") + " was withheld; "
		if programs = slices.Compact(programs); len(programs) > 0 {
			text += "approve " + strings.Join(programs, ", ") + ", or "
		}
		return text + "safety.env_allow"
	}
}

// mentions reports whether text contains the name of a variable as a word.
func mentions(text, name string) bool {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		if word == name {
			return true
		}
	}
	return false
}
