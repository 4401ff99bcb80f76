package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/tool"
)

// ErrNoRepository is the error for a workspace outside any git repository.
var ErrNoRepository = errors.New("the workspace is not in a git repository")

// repository is the workspace's repository, with its own programs switched off.
type repository struct {
	Options
	program.Git
	top     string   // of the worktree
	gitDirs []string // the directories of git's own files
	dir     string   // the directory of git's own files relative to the workspace; ".git" in a linked worktree, too
}

// openRepository finds the workspace's repository and disarms it.
func openRepository(ctx context.Context, o Options) (*repository, error) {
	r := &repository{Options: o}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := repofile.CheckGit(r.Workspace.Root()); err != nil {
		return nil, message.Errorf("git cannot be run: %w", err)
	}
	limit := cmp.Or(max(o.Timeout, 0), defaultTimeout)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	r.Git, err = o.Launcher.Git(bounded, o.Workspace.Root(), outputSettings...)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case bounded.Err() != nil:
		return nil, message.Errorf("git config: timed out after %v", limit)
	case errors.Is(err, program.ErrNotFound):
		return nil, startError(err)
	case err != nil:
		return nil, err
	}
	if err := r.checkWorktree(); err != nil || o.Confine == nil || o.CanConfine == nil {
		return r, err
	}
	if filtered, any := r.Git.WithFilters(); any && o.CanConfine(ctx) {
		r.Git, r.filterDirs = filtered, r.gitDirs
	}
	return r, nil
}

// inRepository returns a tool function that opens the repository each time it runs.
func inRepository[In any](o Options, do func(*repository, context.Context, In) (tool.Result,
	error)) func(context.Context, In, io.Writer) (tool.Result, error) {
	return func(ctx context.Context, in In, _ io.Writer) (tool.Result, error) {
		r, err := openRepository(ctx, o)
		if err != nil {
			return tool.Result{}, err
		}
		return do(r, ctx, in)
	}
}

// checkWorktree checks that the workspace is in the worktree that git would use.
func (r *repository) checkWorktree() error {
	found, err := r.Repository()
	if none := (*program.NoRepositoryError)(nil); errors.As(err, &none) {
		if strings.Contains(none.Message, "not a git repository") ||
			strings.Contains(none.Message, "must be run in a work tree") {
			return ErrNoRepository
		}
		return runError("rev-parse", output{stderr: none.Message})
	}
	if err != nil || found.Top == "" {
		return cmp.Or(err, ErrNoRepository)
	}
	root, err := filepath.EvalSymlinks(r.Workspace.Root())
	if err != nil {
		return message.Errorf("open repository: %w", err)
	}
	if r.top, err = filepath.EvalSymlinks(found.Top); err != nil {
		return message.Errorf("open repository: %w", err)
	}
	r.gitDirs = []string{found.Dir, found.Common}
	if r.dir, err = filepath.EvalSymlinks(found.Dir); err != nil {
		r.dir = found.Dir
	}
	if r.top == root && isLinkedWorktree(root, r.dir) {
		r.dir = ".git" // the link inside the repository itself that leads there
		return nil
	}
	if rel, err := filepath.Rel(root, r.dir); err == nil {
		r.dir = filepath.ToSlash(rel)
	}
	return nil
}

// isLinkedWorktree reports whether dir has git's files for the linked worktree at root. dir must also name that
// worktree, or a file named .git could make any repository look like the workspace's own.
func isLinkedWorktree(root, dir string) bool {
	text, err := repofile.ReadOwn(filepath.Join(dir, "gitdir"), maxLink)
	if err != nil || filepath.Base(filepath.Dir(dir)) != "worktrees" {
		return false
	}
	back := strings.TrimSpace(string(text))
	if !filepath.IsAbs(back) {
		back = filepath.Join(dir, back)
	}
	at, err := filepath.EvalSymlinks(filepath.Dir(back))
	return err == nil && at == root && filepath.Base(back) == ".git"
}

// maxLink limits the size of a file that names a folder.
const maxLink = 8 << 10

// git runs git in the repository.
func (r *repository) git(ctx context.Context, args ...string) (output, error) {
	return r.run(ctx, r.Git, command{args: args})
}

// mustGit runs git for a command that is not expected to fail.
func (r *repository) mustGit(ctx context.Context, args ...string) (output, error) {
	out, err := r.git(ctx, args...)
	if err == nil && out.exitCode != 0 && !out.truncated {
		err = runError(args[0], out)
	}
	return out, err
}

// disabledNote describes what was switched off, if that may affect the result.
func (r *repository) disabledNote() string {
	if len(r.DisabledFilters) == 0 {
		return ""
	}
	return fmt.Sprintf("the filters this repository configures (%s) are off; files they apply to may look changed",
		r.filterNames())
}

func (r *repository) filterNames() string {
	return sanitize.Line(strings.Join(r.DisabledFilters, ", "), maxTitle)
}
