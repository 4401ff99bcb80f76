package risk

import (
	"slices"
	"strings"
	"sync"

	"coder/internal/host/program"
)

// helpersOff are the options that keep a subcommand of git from running what
// no setting can switch off: what converts text, and git itself within
// submodules.
var helpersOff = sync.OnceValue(func() map[string]string {
	const text, inside = " --no-ext-diff --no-textconv", " --ignore-submodules=dirty"
	m := map[string]string{"blame": " --no-textconv", "status": inside}
	for name := range diffing.all() {
		m[name] = text + inside
	}
	return m
})

// Runs is the line to give to the shell: as it was written, or, if it was
// understood, with its continued lines joined as they were when it was judged.
// Where it reads a repository with git and may run unasked, the helpers of that
// repository are switched off: in a line that does no more, see also
// [Report.Environ]; in one whose other commands may be remembered, for git alone.
func (r Report) Runs() string {
	if r.Unknown || r.line == "" {
		return r.Command
	}
	apart := ""
	if !r.harmless() {
		if shapes, err := Shapes(r); err != nil || len(shapes) == 0 {
			return r.line
		}
		var b strings.Builder
		b.WriteString("env ")
		for _, v := range program.Environment(nil, r.git) {
			b.WriteString(quoted(v) + " ")
		}
		apart = b.String()
	}
	var b strings.Builder
	from := uint(0)
	for _, c := range r.Simple {
		if c.git.name == 0 || c.git.start < from || c.git.sub > uint(len(r.line)) {
			continue
		}
		b.WriteString(r.line[from:c.git.start] + apart + r.line[c.git.start:c.git.name] + " --no-pager" + r.line[c.git.name:c.git.sub] + c.git.off)
		from = c.git.sub
	}
	return b.String() + r.line[from:]
}

// harmless reports whether a line does no more than read, and write down what
// it read.
func (r Report) harmless() bool { return r.ReadOnly || r.OnlyWrites }

// Environ is the environment for the line. In that of one that only reads, git
// runs nothing that a repository configures.
func (r Report) Environ(env []string) []string {
	if !r.harmless() || !slices.ContainsFunc(r.Simple, func(c Command) bool { return c.git.name > 0 }) {
		return env
	}
	return program.Environment(env, r.git)
}
