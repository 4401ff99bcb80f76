// Package search has the tools that find files of the workspace by name and by content.
//
// A search returns a limited result and stops when its context ends. It does not follow links, so it
// always ends. It skips what .gitignore and version control exclude unless the caller names such a
// place, and it reports what it could not read.
package search

import (
	"strings"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// Options configures a search.
type Options struct {
	// Hide, if set, reports files whose content is not shown unless the caller names them.
	Hide func(path string) bool
}

// All returns every tool of this package.
func All(ws *workspace.Workspace, o Options) []tool.Tool { return []tool.Tool{Glob(ws), Grep(ws, o)} }

// maxWalk limits how many files and directories one search visits.
const maxWalk = 1_000_000

// searchPlan returns the plan of a search below dir for what.
func searchPlan(ws *workspace.Workspace, what, dir string) (tool.Plan, error) {
	at, err := ws.Locate(dir)
	title := what
	if at != "." {
		title += " (" + at + ")"
	}
	return tool.Plan{Title: title, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
}

// relativePath returns name relative to dir.
func relativePath(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
