package files

import (
	"fmt"
	"path"
	"strings"

	"coder/internal/host/workspace"
)

// maxNames is how many entries of a directory are looked at for a name.
const maxNames = 10_000

// lookalike is the name of what stands beside a file that does not exist and is
// called the same but for case; "" if nothing is. Where the file system does
// not tell cases apart the file does exist.
func lookalike(ws *workspace.Workspace, at string) string {
	list, _, err := ws.ReadDir(path.Dir(at), maxNames)
	if err != nil {
		return ""
	}
	base := path.Base(at)
	for _, d := range list {
		if d.Name() != base && strings.EqualFold(d.Name(), base) {
			return path.Join(path.Dir(at), d.Name())
		}
	}
	return ""
}

// besides is the note on a file made beside one like it; "" if there is none.
func besides(ws *workspace.Workspace, at string) string {
	other := lookalike(ws, at)
	if other == "" {
		return ""
	}
	return fmt.Sprintf("there is also %s, whose name differs only in case; is that the file you meant? On some systems the two cannot exist side by side", other)
}

// noted joins two notes, either of which may be empty.
func noted(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}
