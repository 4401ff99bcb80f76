package risk

import "coder/internal/tool"

// Of is the report on a command line that a plan carries.
func Of(p tool.Plan, command string) (Report, bool) {
	r, ok := p.Line.(Report)
	return r, ok && r.Command == command
}

// Written is the line as it was given.
func (r Report) Written() string { return r.Command }
