// Package search holds the tools that find files of the workspace by name and
// by content.
//
// A search is bounded in what it returns and stops when its context ends. It
// does not follow links, so it always ends, and it passes over what .gitignore
// and version control set aside unless the caller names such a place. What it
// could not look at it says.
package search

import (
	"strings"

	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// Options say what a search may use.
type Options struct {
	// Hide, if set, names files whose content is not shown unless they are
	// asked for by name.
	Hide func(path string) bool
}

// With returns every tool of this package.
func With(ws *workspace.Workspace, o Options) []tool.Tool { return []tool.Tool{Glob(ws), Grep(ws, o)} }

// maxWalk is how many files and directories one search looks at.
const maxWalk = 1_000_000

// reading is the plan of a search below dir for what.
func reading(ws *workspace.Workspace, what, dir string) (tool.Plan, error) {
	at, err := ws.Locate(dir)
	title := what
	if at != "." {
		title += " (" + at + ")"
	}
	return tool.Plan{Title: title, Effects: []tool.Effect{{Kind: tool.Read, Target: at}}}, err
}

// below is name as seen from dir.
func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}
