package risk

import (
	"slices"
	"strings"
	"sync"

	"coder/internal/host/program"
)

// helperOptions are the options that keep a git subcommand from running what no setting can switch off:
// text converters, and git itself in submodules.
var helperOptions = sync.OnceValue(func() map[string]string {
	const text, inside = " --no-ext-diff --no-textconv", " --ignore-submodules=dirty"
	m := map[string]string{"blame": " --no-textconv", "status": inside}
	for name := range diffSubcommands.all() {
		m[name] = text + inside
	}
	return m
})

// ShellLine returns the line for the shell: as written or, if it was understood, with the continued lines
// joined as judged. If the line reads a repository with git and may run without approval, the
// repository's helpers are switched off: for a read-only line see also [Report.Environ]; in a line
// whose other commands may be remembered, for git alone.
func (r Report) ShellLine() string {
	if r.Unknown || r.line == "" {
		return r.Command
	}
	apart := ""
	if !r.isHarmless() {
		if shapes, err := Shapes(r); err != nil || len(shapes) == 0 {
			return r.line
		}
		var b strings.Builder
		b.WriteString("env ")
		for _, v := range program.GitEnv(nil, r.git) {
			b.WriteString(quoteWord(v) + " ")
		}
		apart = b.String()
	}
	var b strings.Builder
	from := uint(0)
	for _, c := range r.Simple {
		if c.git.name == 0 || c.git.start < from || c.git.sub > uint(len(r.line)) {
			continue
		}
		b.WriteString(r.line[from:c.git.start] + apart + r.line[c.git.start:c.git.name] + " --no-pager" +
			r.line[c.git.name:c.git.sub] + c.git.offOptions)
		from = c.git.sub
	}
	return b.String() + r.line[from:]
}

// isHarmless reports whether a line only reads, and writes only its output.
func (r Report) isHarmless() bool { return r.ReadOnly || r.OnlyWrites }

// Environ returns the environment for the line. In a read-only
// line, git runs nothing that a repository configures.
func (r Report) Environ(env []string) []string {
	if !r.isHarmless() || !slices.ContainsFunc(r.Simple, func(c Command) bool { return c.git.name > 0 }) {
		return env
	}
	return program.GitEnv(env, r.git)
}
