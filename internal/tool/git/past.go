package git

import (
	"context"
	"strconv"
	"strings"
)

// maxPastCommits limits how many commits of a file are examined, maxPastFile the file's size.
const (
	maxPastCommits = 200
	maxPastFile    = 64 << 20
)

// PastContent returns the content of a file in the latest of its recent commits for which wanted is true, or nil.
func PastContent(ctx context.Context, o Options, path string, wanted func([]byte) bool) ([]byte, error) {
	r, err := openRepository(ctx, o)
	if err != nil {
		return nil, err
	}
	name, err := cleanPath(r.Workspace, path)
	if err != nil {
		return nil, err
	}
	out, err := r.run(ctx, r.Git, command{args: []string{"log", "--all", "--format=%H", "-n", strconv.Itoa(maxPastCommits),
		"--", name}, limit: maxBlame})
	if err != nil || out.exitCode != 0 {
		return nil, err
	}
	for commit := range strings.FieldsSeq(string(out.stdout)) {
		held, err := r.run(ctx, r.Git, command{args: []string{"cat-file", "blob", commit + ":./" + name}, limit: maxPastFile})
		if err != nil {
			return nil, err
		}
		if held.exitCode == 0 && wanted(held.stdout) {
			return held.stdout, nil
		}
	}
	return nil, nil
}
