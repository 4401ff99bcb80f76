package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/record/gitstate"
	"coder/internal/record/past"
	"coder/internal/record/undo"
)

// openPast opens what files held, up to a size; 0 stands for what is usual.
func (a *App) openPast(maxFile int64) (*past.Store, error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputf("open the workspace: %v", err)
	}
	ws.UseGitSettings(a.gitSettings())
	k := undo.New(ws, a.Store().contents(), undo.Options{Door: a.Door(), Now: a.Env.Now, MaxFile: maxFile})
	return &past.Store{Now: past.Now{Keeper: k, Workspace: ws}, Door: a.Door()}, nil
}

// stageDir is where copies lie: a cache of coder's own, which commands of other sessions
// neither write nor see. Without a home it is a temporary folder.
func (a *App) stageDir() string {
	if home := a.Env.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coder")
	}
	return os.TempDir()
}

// stage makes a temporary folder for a copy.
func (a *App) stage() (string, error) {
	return worktree.Temporary(a.stageDir(), "again-", a.Env.Now())
}

// copyAuthored gives a copy what people wrote for this project, but for what is left out.
func (a *App) copyAuthored(root string, leave ...string) error {
	entries, _ := os.ReadDir(a.data())
	if info, err := os.Stat(a.data()); err == nil {
		if err := os.MkdirAll(filepath.Join(root, ".coder"), info.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if !slices.Contains(slices.Concat(leave, []string{"tmp", ".gitignore"}, dataFolders), e.Name()) {
			if err := worktree.CopyTree(a.Store().Dir(e.Name()), filepath.Join(root, ".coder", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyRepository makes a repository for the copy in the state that was saved, or as it
// is now if none was. Objects are read from the one there is and written to the copy's
// own. Elsewhere is told where a repository is that a worktree is linked to.
func (a *App) copyRepository(ctx context.Context, state []byte, root string, elsewhere func(was, is string)) error {
	from, ok := gitstate.Find(a.Root)
	if state != nil && !past.NotesOf(state).Repository {
		return nil // it was made since
	}
	if info, err := os.Lstat(filepath.Join(from.Top, ".git")); !ok || err != nil || !info.IsDir() && !from.Linked() {
		return nil // there is none, or it is a submodule
	}
	rel, err := filepath.Rel(from.Top, a.Root)
	if err != nil {
		return err
	}
	to, err := past.Beside(from, strings.TrimSuffix(root, string(filepath.Separator)+rel))
	if err != nil {
		return err
	}
	if from.Linked() {
		elsewhere(from.Common, to.Common)
	}
	if state == nil {
		if state, err = from.Save(jsonx.Must(past.Notes{Repository: true, Seen: a.seenByGit(), Configs: past.Configs(from)})); err != nil {
			return err
		}
	}
	if err := past.Configure(to, past.NotesOf(state).Configs); err != nil {
		return err
	}
	return past.LayOutRepository(ctx, state, to, rel, a.Door(), nil, filepath.Join(from.Common, "objects"))
}
