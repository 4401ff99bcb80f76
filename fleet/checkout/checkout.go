// Package checkout is the folder that a task works in: a fresh clone of a
// repository, checkpoints of it that another machine can go on from, and what
// became of it as a patch and a branch.
//
// A checkpoint is a commit of everything that git does not ignore, on top of
// whatever the task itself committed, in a bundle that needs only the base. What
// git ignores is not part of it.
package checkout

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/program"
	"coder/internal/host/worktree"
)

// Folder is a clone. Dir is what a task sees; beside it, in the same folder, lies
// what belongs to the checkpoints.
type Folder struct {
	Dir  string
	Base string // the commit that the task began from

	beside string
	tree   string // of the last checkpoint
	head   string

	repo *worktree.Tree
}

// CheckpointRef is what a checkpoint is named in its bundle.
const CheckpointRef = "refs/coder/checkpoint"

// Look makes sure that a task can begin from base in the repository of a folder here,
// and returns the top of it and whether it holds what is not committed.
func Look(ctx context.Context, dir, base string, door program.Launcher) (top string, dirty bool, err error) {
	t, err := worktree.Open(ctx, dir, door)
	if err != nil {
		return "", false, message.Errorf("%s is not a git repository", dir)
	}
	// it changes nothing, not even an index
	ask := func(args ...string) (string, error) { return t.Git(ctx, nil, args...) }
	at := cmp.Or(base, "HEAD")
	if bare, err := ask("rev-parse", "--is-bare-repository"); err != nil {
		return "", false, message.Errorf("%s is not a git repository: %w", dir, err)
	} else if top = dir; bare != "true" {
		if top, err = ask("rev-parse", "--show-toplevel"); err != nil {
			return "", false, message.Errorf("%s is not a git repository: %w", dir, err)
		}
		changes, err := ask("status", "--porcelain")
		dirty = err == nil && changes != ""
	}
	if _, err := ask("rev-parse", "--verify", "--quiet", "--end-of-options", at+"^{commit}"); err != nil {
		return "", false, message.Errorf("%s not found in %s", at, top)
	}
	return top, dirty, nil
}

// About tells whether a task's repository is that of a folder: the one it lies in, or
// one that it was cloned from.
func About(ctx context.Context, dir string, door program.Launcher) func(repo string) bool {
	var remotes []string
	if all, err := door.Remotes(ctx, dir); err == nil {
		for _, r := range all {
			remotes = append(remotes, plain(r))
		}
	}
	return func(repo string) bool {
		path := strings.TrimPrefix(repo, "file://")
		rel, err := filepath.Rel(path, dir)
		return err == nil && filepath.IsLocal(rel) || slices.Contains(remotes, plain(repo))
	}
}

// plain is an address without what makes no difference.
func plain(repo string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(repo, "file://"), "/"), ".git")
}

// Clone makes a folder of repo at base, below dir, which must be new. It runs
// nothing that the repository brings along.
func Clone(ctx context.Context, dir, repo, base string, door program.Launcher) (*Folder, error) {
	into := filepath.Join(dir, "work")
	t, commit, err := worktree.Clone(ctx, into, repo, base, "coder-task", door)
	if err != nil {
		return nil, err
	}
	return &Folder{Dir: into, Base: commit, beside: dir, repo: t}, nil
}

// disarm finds out what the repository configures, so that nothing of it is run.
// What a task did may have changed it.
func (f *Folder) disarm(ctx context.Context) error { return f.repo.InspectConfig(ctx) }

// git runs git in the folder, with nothing of what the repository configures.
func (f *Folder) git(ctx context.Context, args ...string) (string, error) {
	return f.feed(ctx, nil, args...)
}

// feed runs git with something on its standard input.
func (f *Folder) feed(ctx context.Context, in io.Reader, args ...string) (string, error) {
	env := []string{"GIT_ALLOW_PROTOCOL=file"}
	if args[0] != "checkout" && args[0] != "reset" { // these are about the task's own index
		env = append(env, "GIT_INDEX_FILE="+filepath.Join(f.beside, "index"))
	}
	return f.repo.GitWithInput(ctx, env, in, args...)
}

// commit makes a commit of the files as they are, and reports whether they or the
// commits below are other than those of the last one. It moves nothing.
func (f *Folder) commit(ctx context.Context, text string) (commit string, changed bool, err error) {
	head, err := f.git(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", false, err
	}
	if err := f.stage(ctx); err != nil {
		return "", false, err
	}
	tree, err := f.git(ctx, "write-tree")
	if err != nil {
		return "", false, err
	}
	if f.tree == "" { // what was cloned
		f.head = f.Base
		if f.tree, err = f.git(ctx, "rev-parse", f.Base+"^{tree}"); err != nil {
			return "", false, err
		}
	}
	if tree == f.tree && head == f.head {
		return "", false, nil
	}
	commit, err = f.git(ctx, "commit-tree", "-p", head, "-m", text, tree)
	if err == nil {
		f.tree, f.head = tree, head
	}
	return commit, true, err
}

// stage takes all files that git does not ignore into the index of the checkpoints.
// It names them: git add would run git within submodules. A repository that the task
// made within the folder is no part of it.
func (f *Folder) stage(ctx context.Context) error {
	list, err := f.git(ctx, "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	var names strings.Builder
	for name := range strings.SplitSeq(list, "\x00") {
		if name != "" && !strings.HasSuffix(name, "/") {
			names.WriteString(name + "\x00")
		}
	}
	_, err = f.feed(ctx, strings.NewReader(names.String()), "update-index", "--add", "--remove", "--replace", "-z",
		"--stdin")
	return err
}

// Checkpoint writes a bundle of the files as they are. It is "" if they are as
// they were at the last checkpoint.
func (f *Folder) Checkpoint(ctx context.Context) (file string, err error) {
	tree, head := f.tree, f.head
	if err := f.disarm(ctx); err != nil {
		return "", message.Errorf("create a checkpoint: %w", err)
	}
	commit, changed, err := f.commit(ctx, "checkpoint")
	if err == nil && changed {
		file, err = f.bundle(ctx, CheckpointRef, commit)
	}
	if err != nil {
		f.tree, f.head = tree, head
		return "", message.Errorf("create a checkpoint: %w", err)
	}
	return file, nil
}

func (f *Folder) bundle(ctx context.Context, name, commit string) (string, error) {
	if _, err := f.git(ctx, "update-ref", name, commit); err != nil {
		return "", err
	}
	file := filepath.Join(f.beside, "bundle")
	_, err := f.git(ctx, "bundle", "create", "--quiet", file, name, "^"+f.Base)
	return file, err
}

// Restore brings a fresh clone to where a checkpoint was made.
func (f *Folder) Restore(ctx context.Context, file string) error {
	for _, args := range [][]string{
		{"fetch", "--quiet", "--no-tags", "--", file, CheckpointRef + ":" + CheckpointRef},
		{"reset", "--quiet", "--hard", CheckpointRef + "^"},
		{"checkout", "--quiet", "--no-overlay", CheckpointRef, "--", "."},
		{"reset", "--quiet"},
	} {
		if _, err := f.git(ctx, args...); err != nil {
			return message.Errorf("restore a checkpoint: %w", err)
		}
	}
	var err error
	if f.tree, err = f.git(ctx, "rev-parse", CheckpointRef+"^{tree}"); err == nil {
		f.head, err = f.git(ctx, "rev-parse", CheckpointRef+"^")
	}
	return err
}

// Result is what became of a folder.
type Result struct {
	Branch, Commit string // "" if nothing changed
	Bundle, Patch  string // files
}

// Result makes a branch, in a bundle, and a patch of what changed since the base.
// What the task left uncommitted is its last commit.
func (f *Folder) Result(ctx context.Context, branch, text string) (r Result, err error) {
	defer func() {
		if err != nil {
			err = message.Errorf("create the result: %w", err)
		}
	}()
	f.tree, f.head = "", ""
	if err := f.disarm(ctx); err != nil {
		return r, err
	}
	commit, changed, err := f.commit(ctx, text)
	if err != nil || !changed {
		return r, err
	}
	if below, err := f.git(ctx, "rev-parse", f.head+"^{tree}"); err != nil {
		return r, err
	} else if below == f.tree {
		commit = f.head // all of it is committed already
	}
	r.Branch, r.Commit = branch, commit
	if r.Bundle, err = f.bundle(ctx, "refs/heads/"+branch, commit); err != nil {
		return r, err
	}
	r.Patch = filepath.Join(f.beside, "patch")
	_, err = f.git(ctx, "diff", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--output="+r.Patch, f.Base,
		commit)
	return r, err
}
