// Package git has the tools that inspect a repository and record changes in it. It guarantees:
//
//  1. No program that the repository names is run: not its hooks, file system
//     monitor, filters, diff and merge drivers, signing programs or transports,
//     neither for itself nor for a submodule. Programs in the user's own configuration,
//     such as a filter for large files, still work.
//  2. git gets arguments, never a command line, and paths are literal: no name,
//     whatever its characters, acts as an option or pattern.
//  3. Nothing is written outside the repository's own files, whatever links lead
//     there, as far as this machine can confine git.
//  4. Nothing is sent or fetched, no question is asked, no editor is opened,
//     and nothing committed can be lost.
//  5. Output is limited in size, valid UTF-8 and free of control characters.
package git

import (
	"context"
	"path"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/tool"
)

// Options configures the tools. Workspace is required.
type Options struct {
	Workspace *workspace.Workspace
	// Launcher finds git and has its environment, without variables
	// that would point git to another repository or program.
	Launcher program.Launcher
	// IsHidden, which may be nil, reports whether a file's content is hidden from calls that do not name the
	// file. git has it in its own store, where nothing else can hide it.
	IsHidden func(name string) bool
	// Hooks lets a commit run the repository's hooks. Such a call plans to run commands, not only to write.
	Hooks bool
	// Trailer, if not empty, ends the message of each commit.
	Trailer string
	// Confine, which may be nil, confines a git that has not started yet to
	// write in some folders only. If it fails, git must not be started.
	Confine func(ctx context.Context, cmd *program.Cmd, dirs ...string) error
	// CanConfine, which may be nil, reports whether Confine really
	// keeps git in the folders. The user's filters run only then.
	CanConfine func(ctx context.Context) bool
	filterDirs []string // where a git with the user's filters may write

	// Timeout is the maximum duration of one git run; a minute if zero.
	Timeout time.Duration
}

// All returns every tool of this package.
func All(o Options) []tool.Tool {
	return []tool.Tool{Status(o), Diff(o), Log(o), Add(o), Commit(o)}
}

const (
	defaultTimeout = time.Minute
	maxOutput      = 64 << 10 // bytes of output in a result
	maxListed      = 100      // files in a result or a preview
	maxTitle       = 120
)

// readPlan returns the plan of a call that reads a path, or everything.
func readPlan(o Options, path string) (tool.Plan, error) {
	name, err := cleanPath(o.Workspace, path)
	return tool.Plan{Title: shortTitle(name), Effects: []tool.Effect{{Kind: tool.Read, Target: name}}}, err
}

// cleanPath returns a clean path; an empty one means the whole workspace. A
// path in an added folder belongs to another repository, if any.
func cleanPath(ws *workspace.Workspace, name string) (string, error) {
	if name == "" {
		return ".", nil
	}
	name, err := ws.Resolve(name)
	if err == nil && path.IsAbs(name) {
		err = message.Errorf("%w, in a folder added to it: %s", workspace.ErrOutside, shortTitle(name))
	}
	return name, err
}

func shortTitle(s string) string { return sanitize.Line(s, maxTitle) }

// outputText returns git's output, safe to show. If the output was cut off, text ends with a whole line if it can.
func outputText(out output) string {
	b := out.stdout
	if out.truncated {
		if i := strings.LastIndexByte(string(b), '\n'); i >= 0 {
			b = b[:i+1]
		}
	}
	return sanitize.Text(string(b))
}
