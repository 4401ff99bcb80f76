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

// openPastStore opens what files held, up to a size; 0 stands for what is usual.
func (a *Archive) openPastStore(maxFile int64) (*past.Store, error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputErrorf("open the workspace: %v", err)
	}
	ws.UseGitSettings(a.Env.gitIgnoreSettings())
	k := undo.New(ws, a.Store().undoStore(), undo.Options{Launcher: a.Launcher(), Now: a.Env.Now, MaxFile: maxFile})
	return &past.Store{CurrentStore: past.CurrentStore{Keeper: k, Workspace: ws}, Launcher: a.Launcher()}, nil
}

// stagingDir is where copies lie: a cache of coder's own, which commands of other sessions
// neither write nor see. Without a home it is a temporary folder.
func (a *Archive) stagingDir() string {
	if home := a.Env.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coder")
	}
	return os.TempDir()
}

// makeStagingDir makes a temporary folder for a copy.
func (a *Archive) makeStagingDir() (string, error) {
	return worktree.MakeTemp(a.stagingDir(), "again-", a.Env.Now())
}

// copyUserFiles gives a copy what people wrote for this project, but for what is left out.
func (a *Archive) copyUserFiles(root string, leave ...string) error {
	entries, _ := os.ReadDir(a.dataDir())
	if info, err := os.Stat(a.dataDir()); err == nil {
		if err := os.MkdirAll(filepath.Join(root, ".coder"), info.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if !slices.Contains(slices.Concat(leave, []string{"tmp", ".gitignore"}, dataDirNames), e.Name()) {
			if err := worktree.CopyTree(a.Store().Path(e.Name()), filepath.Join(root, ".coder", e.Name())); err != nil {
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
	if state != nil && !past.ReadNotes(state).Repository {
		return nil // the repository is newer than the session
	}
	if info, err := os.Lstat(filepath.Join(from.Top, ".git")); !ok || err != nil || !info.IsDir() && !from.IsLinked() {
		return nil // no repository, or a submodule
	}
	rel, err := filepath.Rel(from.Top, a.Root)
	if err != nil {
		return err
	}
	to, err := past.CopyRepository(from, strings.TrimSuffix(root, string(filepath.Separator)+rel))
	if err != nil {
		return err
	}
	if from.IsLinked() {
		elsewhere(from.Common, to.Common)
	}
	if state == nil {
		if state, err = from.Save(jsonx.MustMarshal(past.Notes{Repository: true, Seen: a.unignoredNames(),
			Configs: past.ReadConfigs(from)})); err != nil {
			return err
		}
	}
	if err := past.WriteConfigs(to, past.ReadNotes(state).Configs); err != nil {
		return err
	}
	return past.RestoreRepository(ctx, state, to, rel, a.Launcher(), nil, filepath.Join(from.Common, "objects"))
}

// recordedWorld is what a session began with: its files, and the state of its repository, nil if
// that was not saved by this user's program on this machine.
func (a *Archive) recordedWorld(
	ctx context.Context, whole, take *rerun.Recording, files past.TreeSource, then *past.Store,
) (*past.FileHistory, []byte, error) {
	name := take.RepoState
	if _, err := then.LoadState(name); errors.Is(err, undo.ErrDamaged) {
		return nil, nil, inputErrorf("session %s: its initial files cannot be read: %v", take.ID, err)
	}
	world, err := rerun.TraceFiles(ctx, whole, take, files) // what comes later may tell what was before
	if err != nil {
		return nil, nil, err
	}
	if !world.IsComplete && len(take.Requests) > 0 {
		if err := then.Complete(ctx, world, take.StartTime); err != nil {
			return nil, nil, inputErrorf("session %s: %v", take.ID, err)
		}
	}
	if name == "" || !seal.New(a.Store().SealKey(), a.Root, take.ID).HasValidSeal(take.StateRecord) {
		return world, nil, nil
	}
	if then.RepoState, err = then.LoadState(name); err != nil {
		return world, nil, nil
	}
	for _, f := range past.ReadNotes(then.RepoState).Ignored {
		if _, known := world.Start[f.Path]; !known {
			world.Start[f.Path] = f
		}
	}
	return world, then.RepoState, nil
}

// missingReason is why a rerun may have lacked something that the session began with, "" if
// nothing says that something was lacking.
func (a *Archive) missingReason(id string, world *past.FileHistory, state []byte) string {
	switch _, repository := gitstate.Find(a.Root); {
	case !world.IsComplete && a.Store().isCopied(id):
		return "imported sessions have only the files that the session changed"
	case !world.IsComplete && world.FirstTree != "":
		return "the undo store no longer has the state of all files"
	case repository && state == nil:
		return "the state of the git repository was not saved, or no longer exists"
	case a.nests(world):
		return "the state of another git repository inside the workspace was not saved"
	}
	return ""
}

// nests reports whether a folder in the workspace is a repository of its own.
func (a *Archive) nests(world *past.FileHistory) bool {
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

// copySubpath is where the copy of the workspace lies below the folder for it: as deep in its
// repository as the workspace, and with as many folders above as a linked work tree needs.
func (a *Archive) copySubpath() string {
	r, ok := gitstate.Find(a.Root)
	rel, err := filepath.Rel(r.Top, a.Root)
	if !ok || err != nil {
		return ""
	}
	var above []string
	if r.IsLinked() {
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
