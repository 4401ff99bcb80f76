// Package worktree creates, fills and removes folders with a project's files beside the project: clones,
// git worktrees, and copies without git. It runs git without the repository's configuration.
package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/program"
)

// Tree is a folder in which git works.
type Tree struct {
	Dir string

	launcher program.Launcher
	git      program.Git
}

const maxErrorOutput = 2 << 10 // bytes of git's error output to show

// protocols are those allowed for fetching a repository.
const protocols = "file:git:http:https:ssh"

// Open returns the tree of a folder with a git repository. It inspects the repository's configuration,
// so that [Tree.Git] runs nothing from it.
func Open(ctx context.Context, dir string, door program.Launcher) (*Tree, error) {
	t := &Tree{Dir: dir, launcher: door}
	return t, t.InspectConfig(ctx)
}

// InspectConfig inspects the repository's configuration again, since commands may have changed it.
func (t *Tree) InspectConfig(ctx context.Context) (err error) {
	t.git, err = t.launcher.Git(ctx, t.Dir)
	return err
}

// Git runs git in the folder and returns its output. env is added to its environment.
func (t *Tree) Git(ctx context.Context, env []string, args ...string) (string, error) {
	return t.GitWithInput(ctx, env, nil, args...)
}

// GitWithInput is [Tree.Git] with standard input.
func (t *Tree) GitWithInput(ctx context.Context, env []string, in io.Reader, args ...string) (string, error) {
	out, err := t.GitRaw(ctx, env, in, args...)
	return strings.TrimSuffix(out, "\n"), err
}

// GitRaw is [Tree.GitWithInput] that returns all bytes that git prints.
func (t *Tree) GitRaw(ctx context.Context, env []string, in io.Reader, args ...string) (string, error) {
	cmd := t.git.Command(ctx, args...)
	cmd.Env, cmd.Stdin = append(cmd.Env, env...), in
	return run(ctx, cmd)
}

func run(ctx context.Context, cmd *program.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaint, time.Second
	cmd.Env = append(cmd.Env, "GIT_AUTHOR_NAME=coder", "GIT_AUTHOR_EMAIL=coder@localhost", "GIT_COMMITTER_NAME=coder",
		"GIT_COMMITTER_EMAIL=coder@localhost")
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(complaint.String()); text != "" && ctx.Err() == nil {
			return "", errors.New(sanitize.Line(strings.ReplaceAll(text, "\n", "; "), maxErrorOutput))
		}
		return "", err
	}
	return out.String(), nil
}

// CheckRepo verifies that a repository may be named in a task: no option, no program, no secret.
func CheckRepo(repo string) error {
	if repo == "" || strings.HasPrefix(repo, "-") || strings.ContainsAny(repo, "\x00\n") || strings.Contains(repo, "::") {
		return message.Errorf("%q is not a repository", repo)
	}
	if u, err := url.Parse(repo); err == nil && u.User != nil {
		if _, has := u.User.Password(); has || u.Scheme == "http" || u.Scheme == "https" {
			return errors.New("the repository's address contains a secret, which would be saved with the task; give workers a credential helper or a key instead")
		}
	}
	return nil
}

// Clone clones a repository into a new folder, and checks out base on a new branch. It runs nothing from
// the repository.
func Clone(ctx context.Context, into, repo, base, branch string, door program.Launcher) (t *Tree, commit string,
	err error) {
	if err := CheckRepo(repo); err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(filepath.Dir(into), 0o700); err != nil {
		return nil, "", err
	}
	if _, err := run(ctx, door.Clone(ctx, protocols, repo, into)); err != nil {
		return nil, "", message.Errorf("clone %s: %w", repo, err)
	}
	if t, err = Open(ctx, into, door); err != nil {
		return nil, "", err
	}
	at := "HEAD"
	if base != "" {
		at = base
	}
	if commit, err = t.Commit(ctx, at); err != nil && base != "" {
		commit, err = t.Commit(ctx, "refs/remotes/origin/"+base)
	}
	if err != nil {
		return nil, "", message.Errorf("%s not found in %s", at, repo)
	}
	for _, args := range [][]string{{"remote", "remove", "origin"}, {"checkout", "--quiet", "-B", branch, commit}} {
		if _, err := t.Git(ctx, nil, args...); err != nil {
			return nil, "", message.Errorf("check out %s: %w", at, err)
		}
	}
	return t, commit, nil
}

// Commit returns the commit that a name refers to.
func (t *Tree) Commit(ctx context.Context, name string) (string, error) {
	return t.Git(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
}

// CommitAt returns the commit that was checked out at a time, by git's reflog; without a reflog, the
// current one.
func (t *Tree) CommitAt(ctx context.Context, at time.Time) (string, error) {
	if commit, err := t.Commit(ctx, "HEAD@{"+at.UTC().Format(time.RFC3339)+"}"); err == nil {
		return commit, nil
	}
	return t.Commit(ctx, "HEAD")
}

// Add creates a git worktree of the tree's repository in a new folder, with a new branch at a commit.
func (t *Tree) Add(ctx context.Context, into, branch, commit string) (*Tree, error) {
	if _, err := t.Git(ctx, nil, "worktree", "add", "--quiet", "-b", branch, "--", into, commit); err != nil {
		return nil, message.Errorf("create a git worktree: %w", err)
	}
	return Open(ctx, into, t.launcher)
}

// Remove removes a git worktree, and its branch if it has no new commits; otherwise stays is true.
func (t *Tree) Remove(ctx context.Context, dir, branch, commit string) (stays bool, err error) {
	if _, err := t.Git(ctx, nil, "worktree", "remove", "--force", "--", dir); err != nil {
		if err := os.RemoveAll(dir); err != nil {
			return false, err
		}
		if _, err := t.Git(ctx, nil, "worktree", "prune"); err != nil {
			return false, message.Errorf("remove a git worktree: %w", err)
		}
	}
	now, err := t.Commit(ctx, "refs/heads/"+branch)
	switch {
	case err != nil: // its branch no longer exists
		return false, nil
	case now != commit:
		return true, nil
	}
	_, err = t.Git(ctx, nil, "branch", "--quiet", "-D", "--", branch)
	return err != nil, err
}

// TrackedIgnored returns the files below a folder that git both tracks and ignores, relative to that
// folder: nothing else watches these.
func (t *Tree) TrackedIgnored(ctx context.Context, dir string) ([]string, error) {
	rel, err := filepath.Rel(t.Dir, dir)
	if err != nil {
		return nil, err
	}
	out, err := t.Git(ctx, nil, "ls-files", "-z", "-i", "-c", "--exclude-standard", "--", rel)
	if err != nil {
		return nil, message.Errorf("list files that git tracks: %w", err)
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if rel == "." {
			names = append(names, name)
		} else if below, ok := strings.CutPrefix(name, filepath.ToSlash(rel)+"/"); ok {
			names = append(names, below)
		}
	}
	return names, nil
}
