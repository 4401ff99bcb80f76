package git

import (
	"context"
	"strconv"
	"strings"
)

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
