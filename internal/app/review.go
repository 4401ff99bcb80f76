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

// maxReviewed limits the size of a file in a review.
const maxReviewed = 64 << 20

// Change returns the diff of a range of commits or, if revisions is empty,
// of uncommitted changes. It warns about files that git does not track.
func (a *Workspace) Change(ctx context.Context, revisions string) (diff string, err error) {
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return "", err
	}
	defer ws.Close()
	o := git.Options{Workspace: ws, Door: a.Door()}
	if diff, err = git.Change(ctx, o, revisions); err != nil {
		return "", inputf("%v", err)
	}
	if revisions == "" {
		if now, err := git.ListChanges(ctx, o, ""); err == nil && len(now.Untracked) > 0 {
			names := oneLine(strings.Join(now.Untracked, ", "))
			a.warn(fmt.Sprintf("not reviewed, since git does not track them (git add -N adds them): %s", names))
		}
	}
	return diff, nil
}

// Shown returns a diff without the files that the model sees only with approval. It warns about them.
func (a *Session) Shown(diff string) string {
	shown, hidden := git.Visible(diff, func(file string) bool { return a.judge.Hides(file) })
	if len(hidden) > 0 {
		a.warn(fmt.Sprintf("not reviewed, since these files usually hold secrets: %s", oneLine(strings.Join(hidden, ", "))))
	}
	return shown
}

// Reviewed returns a file's current content.
func (a *Workspace) Reviewed(name string) ([]byte, error) {
	return repofile.Below(a.Root).Read(name, maxReviewed)
}

// ReadOnly returns the tools with which a model can only read the workspace.
func ReadOnly() (specs []rule.Spec) {
	for _, name := range tool.Names(tool.ReadsFile, tool.ListsFolder, tool.FindsFiles, tool.SearchesText,
		tool.SearchesCode, tool.ReadsGit) {
		specs = append(specs, rule.Spec{Tool: name})
	}
	return Ours(specs)
}
