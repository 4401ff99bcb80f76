// Package git holds the tools that look at a repository and record changes in
// it. What they promise:
//
//  1. No program that the repository names is run: not its hooks, file system
//     monitor, filters, diff and merge drivers, signing programs or transports,
//     neither for itself nor for a submodule. What the user's own configuration
//     names, such as a filter for large files, still works.
//  2. Git is given arguments, never a command line, and paths are taken as they
//     are written: no name, whatever it holds, is read as an option or pattern.
//  3. Nothing is written outside the repository's own files, whatever links lead
//     there, so far as this machine can confine git.
//  4. Nothing is sent or fetched, no question is asked, no editor is opened,
//     and nothing that was committed can be lost.
//  5. Output is bounded, valid UTF-8 and free of control characters.
package git

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"coder/internal/core/sanitize"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// Options are what the tools are built from. Workspace is required.
type Options struct {
	Workspace *workspace.Workspace
	// Door finds git and has its environment, without variables that would point
	// git to another repository or program.
	Door program.Door
	// Hides, which may be nil, reports whether the content of a file is not shown
	// where the call does not name it. Git has it in its own store, where
	// nothing else can hide it.
	Hides func(name string) bool
	// Hooks lets a commit run the hooks of the repository. Such a call plans
	// to run commands, not only to write.
	Hooks bool
	// Trailer, if not empty, ends the message of each commit.
	Trailer string
	// Confine, which may be nil, has a git that was not started yet write in some
	// folders only, and fails if it must not be started.
	Confine func(ctx context.Context, cmd *program.Cmd, dirs ...string) error
	// Confines, which may be nil, reports whether Confine really keeps git to the folders.
	// Your filters run only then.
	Confines func(ctx context.Context) bool
	filtered []string // the folders that a git with your filters may write in

	// Timeout is the most time one run of git may take; a minute if zero.
	Timeout time.Duration
}

// All returns every tool of this package.
func All(o Options) []tool.Tool {
	return []tool.Tool{Status(o), Diff(o), Log(o), Add(o), Commit(o)}
}

const (
	defaultTimeout = time.Minute
	maxOutput      = 64 << 10 // bytes of git's output in a result
	maxListed      = 100      // files named in a result or a preview
	maxTitle       = 120
)

// reading is the plan of a call that looks at a path, or at everything.
func reading(o Options, path string) (tool.Plan, error) {
	name, err := resolve(o.Workspace, path)
	return tool.Plan{Title: title(name), Effects: []tool.Effect{{Kind: tool.Read, Target: name}}}, err
}

// resolve makes a clean name of a path; no path stands for the whole workspace.
// A path in a folder that was added to it belongs to another repository, if any.
func resolve(ws *workspace.Workspace, name string) (string, error) {
	if name == "" {
		return ".", nil
	}
	name, err := ws.Resolve(name)
	if err == nil && path.IsAbs(name) {
		err = fmt.Errorf("%w, in a folder added to it: %s", workspace.ErrOutside, title(name))
	}
	return name, err
}

func title(s string) string { return sanitize.Line(s, maxTitle) }

// text is what git printed, safe to show. If the rest was cut off it ends with
// a whole line, where there is one.
func text(out output) string {
	b := out.stdout
	if out.cut {
		if i := strings.LastIndexByte(string(b), '\n'); i >= 0 {
			b = b[:i+1]
		}
	}
	return sanitize.Text(string(b))
}
