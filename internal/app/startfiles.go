package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/host/program"
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
	if state != nil && !notesOf(state).Repository {
		return nil // it was made since
	}
	if info, err := os.Lstat(filepath.Join(from.Top, ".git")); !ok || err != nil || !info.IsDir() && !from.Linked() {
		return nil // there is none, or it is a submodule
	}
	rel, err := filepath.Rel(from.Top, a.Root)
	if err != nil {
		return err
	}
	to := gitstate.Repository{Top: strings.TrimSuffix(root, string(filepath.Separator)+rel)}
	to.Common = filepath.Join(to.Top, ".git")
	to.Own = to.Common
	if from.Linked() {
		within, err := filepath.Rel(from.Top, from.Common)
		if err != nil {
			return err
		}
		to.Common = filepath.Join(to.Top, within)
		to.Own = filepath.Join(to.Common, "worktrees", filepath.Base(from.Own))
		if err := link(to); err != nil {
			return err
		}
		elsewhere(from.Common, to.Common)
	}
	if state == nil {
		if state, err = from.Save(jsonx.Must(startNotes{Repository: true, Seen: a.seenByGit(), Configs: configsOf(from)})); err != nil {
			return err
		}
	}
	for name, text := range notesOf(state).Configs {
		file := filepath.Join(to.Common, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o644)); err != nil {
			return err
		}
	}
	return errors.Join(layOutRepository(state, to, rel, filepath.Join(from.Common, "objects")), a.checkRepository(ctx, to, rel))
}

// link makes a folder a work tree of a repository elsewhere.
func link(to gitstate.Repository) error {
	write := func(dir, name, text string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644)
	}
	return errors.Join(os.MkdirAll(to.Own, 0o755), os.MkdirAll(to.Top, 0o755), write(to.Own, "gitdir", filepath.Join(to.Top, ".git")),
		write(to.Own, "commondir", filepath.Join("..", "..")), write(to.Top, ".git", "gitdir: "+to.Own))
}

// layOutRepository lays a saved state out in a copy, in which git overlooks our data.
func layOutRepository(state []byte, to gitstate.Repository, rel string, objects ...string) error {
	if err := to.Borrow(objects...); err != nil {
		return err
	}
	if err := gitstate.LayOut(state, to); err != nil {
		return err
	}
	return to.Ignore(hideData(rel, notesOf(state).Seen)...)
}

// checkRepository makes sure that the copy has the commit that was checked out, and has git
// overlook the files that lie outside of the workspace: the copy has none of them.
func (a *App) checkRepository(ctx context.Context, to gitstate.Repository, rel string) error {
	disarmed, err := a.Door().Git(ctx, to.Top)
	if errors.Is(err, program.ErrNotFound) {
		return nil // there is no git to show where it stands
	}
	if err != nil {
		return err
	}
	head, unborn := disarmed.Command(ctx, "rev-parse", "--verify", "--quiet", "HEAD").Output()
	if unborn == nil && disarmed.Command(ctx, "cat-file", "-e", strings.TrimSpace(string(head))+"^{tree}").Run() != nil {
		return inputf("the commit that the session began with is no longer in the repository: %s", strings.TrimSpace(string(head)))
	}
	if rel == "." {
		return nil
	}
	outside, err := disarmed.Command(ctx, "ls-files", "-z", "--cached", "--full-name", "--", ":/", ":(exclude,top)"+filepath.ToSlash(rel)).Output()
	if err != nil || len(outside) == 0 {
		return err
	}
	skip := disarmed.Command(ctx, "update-index", "-z", "--skip-worktree", "--stdin")
	skip.Stdin = bytes.NewReader(outside)
	return skip.Run()
}
