package app

import (
	"context"
	"fmt"
	"strings"

	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/policy/rule"
	"coder/internal/tool"
	"coder/internal/tool/git"
)

// maxReviewedFile limits the size of a file in a review.
const maxReviewedFile = 64 << 20

// Change returns the diff of a range of commits or, if revisions is empty,
// of uncommitted changes. It warns about files that git does not track.
func (a *Workspace) Change(ctx context.Context, revisions string) (diff string, err error) {
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return "", err
	}
	defer ws.Close()
	o := git.Options{Workspace: ws, Launcher: a.Launcher()}
	if diff, err = git.ReviewDiff(ctx, o, revisions); err != nil {
		return "", inputErrorf("%v", err)
	}
	if revisions == "" {
		if now, err := git.ListChanges(ctx, o, ""); err == nil && len(now.Untracked) > 0 {
			names := singleLine(strings.Join(now.Untracked, ", "))
			a.warn(fmt.Sprintf("not reviewed, since git does not track them (git add -N adds them): %s", names))
		}
	}
	return diff, nil
}

// FilterDiff returns a diff without the files that the model sees only with approval. It warns about them.
func (a *Session) FilterDiff(diff string) string {
	shown, hidden := git.FilterDiff(diff, func(file string) bool { return a.judge.SkipsInSearch(file) })
	if len(hidden) > 0 {
		a.warn(fmt.Sprintf("not reviewed, since these files usually contain secrets: %s",
			singleLine(strings.Join(hidden, ", "))))
	}
	return shown
}

// ReadReviewed returns a file's current content.
func (a *Workspace) ReadReviewed(name string) ([]byte, error) {
	return repofile.NewRoot(a.Root).Read(name, maxReviewedFile)
}

// ReadOnlySpecs returns the tools with which a model can only read the workspace.
func ReadOnlySpecs() (specs []rule.Spec) {
	for _, name := range tool.BuiltinNames(tool.ClassReadFile, tool.ClassListFolder, tool.ClassFindFiles,
		tool.ClassSearchText,
		tool.ClassSearchCode, tool.ClassReadGit) {
		specs = append(specs, rule.Spec{Tool: name})
	}
	return NormalizeSpecs(specs)
}
