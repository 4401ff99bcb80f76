package app

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/rerun"
	"coder/internal/core/jsonx"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/record/gitstate"
	"coder/internal/record/past"
	"coder/internal/record/seal"
	"coder/internal/record/undo"
)

// openPast opens what files held, up to a size; 0 stands for what is usual.
func (a *Archive) openPast(maxFile int64) (*past.Store, error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputf("open the workspace: %v", err)
	}
	ws.UseGitSettings(a.Env.gitSettings())
	k := undo.New(ws, a.Store().contents(), undo.Options{Door: a.Door(), Now: a.Env.Now, MaxFile: maxFile})
	return &past.Store{Now: past.Now{Keeper: k, Workspace: ws}, Door: a.Door()}, nil
}

// stageDir is where copies lie: a cache of coder's own, which commands of other sessions
// neither write nor see. Without a home it is a temporary folder.
func (a *Archive) stageDir() string {
	if home := a.Env.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coder")
	}
	return os.TempDir()
}

// stage makes a temporary folder for a copy.
func (a *Archive) stage() (string, error) {
	return worktree.Temporary(a.stageDir(), "again-", a.Env.Now())
}

// copyAuthored gives a copy what people wrote for this project, but for what is left out.
func (a *Archive) copyAuthored(root string, leave ...string) error {
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

// copyRepository creates a copy's repository in the saved state, or in the current
// state if none was saved. It reads objects from the original and writes them to
// the copy. It calls elsewhere with the repository that a worktree is linked to.
func (a *Archive) copyRepository(ctx context.Context, state []byte, root string, elsewhere func(was, is string)) error {
	from, ok := gitstate.Find(a.Root)
	if state != nil && !past.NotesOf(state).Repository {
		return nil // the repository is newer than the session
	}
	if info, err := os.Lstat(filepath.Join(from.Top, ".git")); !ok || err != nil || !info.IsDir() && !from.Linked() {
		return nil // no repository, or a submodule
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

// worldOf is what a session began with: its files, and the state of its repository, nil if
// that was not saved by this user's program on this machine.
func (a *Archive) worldOf(
	ctx context.Context, whole, take *rerun.Take, files past.Kept, then *past.Store,
) (*past.World, []byte, error) {
	name := take.State
	if _, err := then.State(name); errors.Is(err, undo.ErrDamaged) {
		return nil, nil, inputf("session %s: its initial files cannot be read: %v", take.ID, err)
	}
	world, err := rerun.Trace(ctx, whole, take, files) // what comes later may tell what was before
	if err != nil {
		return nil, nil, err
	}
	if !world.Whole && len(take.Requests) > 0 {
		if err := then.Complete(ctx, world, take.Begun); err != nil {
			return nil, nil, inputf("session %s: %v", take.ID, err)
		}
	}
	if name == "" || !seal.New(a.Store().Key(), a.Root, take.ID).Vouches(take.Stated) {
		return world, nil, nil
	}
	if then.Saved, err = then.State(name); err != nil {
		return world, nil, nil
	}
	for _, f := range past.NotesOf(then.Saved).Ignored {
		if _, known := world.Start[f.Path]; !known {
			world.Start[f.Path] = f
		}
	}
	return world, then.Saved, nil
}

// missing is why a rerun may have lacked something that the session began with, "" if
// nothing says that something was lacking.
func (a *Archive) missing(id string, world *past.World, state []byte) string {
	switch _, repository := gitstate.Find(a.Root); {
	case !world.Whole && a.Store().copied(id):
		return "it was imported, and an imported session has only the files that it changed"
	case !world.Whole && world.Tree != "":
		return "the undo store no longer has the state of all files"
	case repository && state == nil:
		return "the state of the git repository was not saved, or no longer exists"
	case a.nests(world):
		return "the state of another git repository inside the workspace was not saved"
	}
	return ""
}

// nests reports whether a folder in the workspace is a repository of its own.
func (a *Archive) nests(world *past.World) bool {
	seen := map[string]bool{".": true, "/": true}
	for name := range world.Start {
		for dir := name; !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if _, err := os.Lstat(filepath.Join(a.Root, filepath.FromSlash(dir), ".git")); err == nil {
				return true
			}
		}
	}
	return false
}

// within is where the copy of the workspace lies below the folder for it: as deep in its
// repository as the workspace, and with as many folders above as a linked work tree needs.
func (a *Archive) within() string {
	r, ok := gitstate.Find(a.Root)
	rel, err := filepath.Rel(r.Top, a.Root)
	if !ok || err != nil {
		return ""
	}
	var above []string
	if r.Linked() {
		out, err := filepath.Rel(r.Top, r.Common)
		if err != nil {
			return ""
		}
		above = slices.Repeat([]string{"linked"}, max(strings.Count(out, "..")-1, 0))
	}
	if rel != "." {
		above = append(above, "repository", filepath.Dir(rel))
	}
	return filepath.Join(above...)
}
