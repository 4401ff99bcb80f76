package git

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// File is a file of a commit, named as the workspace does.
type File struct {
	Path, Object, Mode string
	Size               int64
}

// maxPast bounds how many commits of a file are looked at, and maxPastFile how
// long it may be.
const (
	maxPast     = 200
	maxPastFile = 64 << 20
)

// Past is what a file held in one of its last commits, of which the one that is
// wanted is taken; nil if it is in none.
func Past(ctx context.Context, o Options, path string, wanted func([]byte) bool) ([]byte, error) {
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	name, err := resolve(r.Workspace, path)
	if err != nil {
		return nil, err
	}
	out, err := r.run(ctx, r.Git, command{args: []string{"log", "--all", "--format=%H", "-n", strconv.Itoa(maxPast), "--", name}, limit: maxBlame})
	if err != nil || out.code != 0 {
		return nil, err
	}
	for commit := range strings.FieldsSeq(string(out.stdout)) {
		held, err := r.run(ctx, r.Git, command{args: []string{"cat-file", "blob", commit + ":./" + name}, limit: maxPastFile})
		if err != nil {
			return nil, err
		}
		if held.code == 0 && wanted(held.stdout) {
			return held.stdout, nil
		}
	}
	return nil, nil
}

// At is the commit that was checked out at a time, by git's own log of that; ""
// if it is not known.
func At(ctx context.Context, o Options, when time.Time) (string, error) {
	r, err := open(ctx, o)
	if err != nil {
		return "", err
	}
	out, err := r.run(ctx, r.Git, command{args: []string{"reflog", "show", "--format=%H %gd", "--date=unix", "HEAD"}, limit: maxBlame})
	if err != nil || out.code != 0 {
		return "", err
	}
	return CommitAt(string(out.stdout), when), nil
}

// CommitAt reads git's own log of what was checked out, the newest first, each as
// <commit> HEAD@{<seconds>}.
func CommitAt(log string, when time.Time) (commit string) {
	for line := range strings.Lines(log) {
		found, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(at, "HEAD@{"), "}"), 10, 64)
		if err != nil {
			continue
		}
		if commit = found; seconds <= when.Unix() {
			return commit
		}
	}
	return commit
}

// Tracked are the files of the workspace that a commit has.
func Tracked(ctx context.Context, o Options, commit string) ([]string, error) {
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	out, err := r.run(ctx, r.Git, command{args: []string{"ls-tree", "-r", "-z", "--name-only", commit}, limit: maxBlame})
	if err != nil {
		return nil, err
	}
	if out.code != 0 {
		return nil, failure("ls-tree", out)
	}
	return strings.FieldsFunc(string(out.stdout), func(c rune) bool { return c == 0 }), nil
}

// Since are the files of the workspace that differ between a commit and the one
// that is checked out, as the first has them; those that it does not have are
// without an object.
func Since(ctx context.Context, o Options, commit string) (list []File, err error) {
	r, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	out, err := r.run(ctx, r.Git, command{args: []string{"diff-tree", "-r", "-z", "--no-renames", "--relative", commit, "HEAD"}, limit: maxBlame})
	if err != nil {
		return nil, err
	}
	if out.code != 0 {
		return nil, failure("diff-tree", out)
	}
	fields := strings.Split(string(out.stdout), "\x00")
	for i := 0; i+1 < len(fields); i += 2 { // :<mode> <mode> <object> <object> <letter>, then the path
		about := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(about) < 5 {
			continue
		}
		f := File{Path: fields[i+1], Mode: about[0], Object: about[2]}
		if strings.Trim(f.Object, "0") == "" {
			f.Object = ""
		} else if size, err := r.run(ctx, r.Git, command{args: []string{"cat-file", "-s", f.Object}, limit: 64}); err == nil {
			f.Size, _ = strconv.ParseInt(strings.TrimSpace(string(size.stdout)), 10, 64)
		}
		list = append(list, f)
	}
	return list, nil
}
