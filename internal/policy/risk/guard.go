package risk

import "strings"

// gitHelpersOff are the options that keep git from running what a repository
// configures, and from writing while it reads.
const (
	gitHelpersOff = " --no-pager --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.pager=cat" +
		" -c core.alternateRefsCommand= -c diff.external= -c diff.autoRefreshIndex=false -c log.showSignature=false" +
		" -c safe.bareRepository=explicit -c submodule.recurse=false -c diff.ignoreSubmodules=dirty"
	diffHelpersOff = " --no-ext-diff --no-textconv"
)

// Guard is the command with the helpers of a repository switched off wherever
// it reads one with git. It is the command to run for a read-only report that
// nobody approved; any other command is returned as it is.
func Guard(command string, r Report) string {
	if !r.ReadOnly {
		return command
	}
	var b strings.Builder
	from := uint(0)
	for _, c := range r.Simple {
		if c.git.name == 0 || c.git.name < from || c.git.sub > uint(len(command)) {
			continue
		}
		b.WriteString(command[from:c.git.name] + gitHelpersOff + command[c.git.name:c.git.sub])
		if from = c.git.sub; c.git.diffs {
			b.WriteString(diffHelpersOff)
		}
	}
	return b.String() + command[from:]
}
