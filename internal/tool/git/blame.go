package git

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/sanitize"
)

// LineBlame is git's information about a line. The zero Blamed means that no commit has the line.
type LineBlame struct {
	Commit, Author, Summary string
	Time                    time.Time
}

// maxBlame limits git's output about the lines of one file.
const maxBlame = 64 << 20

// Blame returns the commit of every line of a file; it returns no lines for a file in no commit, unless a
// commit has the file under a former name. The error is [ErrNoRepository] if no git repository has it.
func Blame(ctx context.Context, o Options, path string, former ...string) ([]LineBlame, error) {
	r, err := openRepository(ctx, o)
	if err != nil {
		return nil, err
	}
	name, err := cleanPath(r.Workspace, path)
	if err != nil {
		return nil, err
	}
	list, err := r.blame(ctx, "--", name)
	for _, earlier := range former {
		if list != nil || err != nil {
			break
		}
		if earlier, wrong := cleanPath(r.Workspace, earlier); wrong == nil {
			list, err = r.blame(ctx, "--contents", name, "--", earlier)
		}
	}
	return list, err
}

func (r *repository) blame(ctx context.Context, args ...string) ([]LineBlame, error) {
	out, err := r.run(ctx, r.Git, command{args: append([]string{"blame", "-w", "--porcelain"}, args...), limit: maxBlame})
	switch {
	case err != nil:
		return nil, err
	case strings.Contains(out.stderr, "no such path") || strings.Contains(out.stderr, "no such ref"):
		return nil, nil // no commit has it
	case out.exitCode != 0:
		return nil, runError("blame", out)
	}
	return parseBlame(string(out.stdout)), nil
}

// NewestCommit returns the newest of the lines' commits, for a file that
// has none of its own; nil if some lines are in no commit.
func NewestCommit(list []LineBlame) []LineBlame {
	if len(list) == 0 || slices.ContainsFunc(list, func(b LineBlame) bool { return b.Commit == "" }) {
		return nil
	}
	return []LineBlame{slices.MaxFunc(list, func(a, b LineBlame) int { return a.Time.Compare(b.Time) })}
}

// maxWorktrees limits git's output about the worktrees of a repository.
const maxWorktrees = 1 << 20

// Worktrees returns the worktrees of the workspace's repository: the
// workspace's own, and all of them. There are none without a repository.
func Worktrees(ctx context.Context, o Options) (own string, all []string) {
	r, err := openRepository(ctx, o)
	if err != nil {
		return "", nil
	}
	out, err := r.run(ctx, r.Git, command{args: []string{"worktree", "list", "--porcelain", "-z"}, limit: maxWorktrees})
	if err != nil || out.exitCode != 0 {
		return "", nil
	}
	for field := range strings.SplitSeq(string(out.stdout), "\x00") {
		if dir, ok := strings.CutPrefix(field, "worktree "); ok {
			all = append(all, dir)
		}
	}
	return r.top, all
}

// parseBlame parses the output of git blame --porcelain: for every line its commit, the commit's
// details at its first occurrence, and the line after a tab.
func parseBlame(text string) (list []LineBlame) {
	commits := make(map[string]*LineBlame)
	var current *LineBlame
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "\t") {
			if current != nil {
				list = append(list, *current)
			}
			current = nil
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		if current == nil {
			if current = commits[key]; current == nil {
				current = &LineBlame{Commit: key}
				if strings.Trim(key, "0") == "" {
					current.Commit = "" // not committed yet
				}
				commits[key] = current
			}
			continue
		}
		if current.Commit == "" {
			continue
		}
		switch key {
		case "author":
			current.Author = sanitize.Line(value, maxTitle)
		case "author-time":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				current.Time = time.Unix(n, 0)
			}
		case "summary":
			current.Summary = sanitize.Line(value, maxTitle)
		}
	}
	return list
}
