package git

import (
	"context"
	"strconv"
	"strings"
)

// maxPast limits how many commits of a file are examined, maxPastFile the file's size.
const (
	maxPast     = 200
	maxPastFile = 64 << 20
)

// Past returns the content of a file in the latest of its recent commits for which wanted is true, or nil.
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
