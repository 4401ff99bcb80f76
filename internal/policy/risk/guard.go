package risk

import (
	"slices"
	"strings"

	"coder/internal/gitsafe"
)

// helpersOff are the options that keep a subcommand of git from running what
// no setting can switch off: what converts text, and git itself within
// submodules.
var helpersOff = func() map[string]string {
	const text, inside = " --no-ext-diff --no-textconv", " --ignore-submodules=dirty"
	m := map[string]string{"blame": " --no-textconv", "status": inside}
	for name := range diffing {
		m[name] = text + inside
	}
	return m
}()

// Runs is the line to give to the shell: as it was written, or, if it was
// understood, with its continued lines joined as they were when it was judged.
// Of one that only reads the helpers of a repository are switched off wherever
// it reads one with git; see also [Report.Environ].
func (r Report) Runs() string {
	if r.Unknown || r.line == "" {
		return r.Command
	}
	if !r.ReadOnly {
		return r.line
	}
	var b strings.Builder
	from := uint(0)
	for _, c := range r.Simple {
		if c.git.name == 0 || c.git.name < from || c.git.sub > uint(len(r.line)) {
			continue
		}
		b.WriteString(r.line[from:c.git.name] + " --no-pager" + r.line[c.git.name:c.git.sub] + c.git.off)
		from = c.git.sub
	}
	return b.String() + r.line[from:]
}

// Environ is the environment for the line. In that of one that only reads, git
// runs nothing that a repository configures.
func (r Report) Environ(env []string) []string {
	if !r.ReadOnly || !slices.ContainsFunc(r.Simple, func(c Command) bool { return c.git.name > 0 }) {
		return env
	}
	return gitsafe.Environment(env, r.git)
}
