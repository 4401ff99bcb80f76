package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/rerun"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/policy/judge"
	"coder/internal/record/gitstate"
)

// stages begins the names of folders that sessions are run again in.
const stages = "again-"

// stageDir is where those folders lie: a cache of coder's own, which commands of other
// sessions neither write nor see. Without a home it is a temporary folder.
func (a *App) stageDir() string {
	if home := a.Env.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coder")
	}
	return os.TempDir()
}

// stage makes a folder to run a session again in, and removes those that a killed program left.
func (a *App) stage() (string, error) {
	if err := os.MkdirAll(a.stageDir(), 0o700); err != nil {
		return "", err
	}
	left, _ := filepath.Glob(filepath.Join(a.stageDir(), stages+"*"))
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && a.Env.Now().Sub(info.ModTime()) > stageAge {
			removeAll(dir)
		}
	}
	dir, err := os.MkdirTemp(a.stageDir(), stages)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// stageAge is how old a folder must be for nobody to work in it any more.
const stageAge = 24 * time.Hour

// once runs a take again in a folder of its own, which is there until what is handed to after
// is done.
func (a *App) once(ctx context.Context, s staging, after func(do func())) (*rerun.Follower, error) {
	stage, err := a.stage()
	if err != nil {
		return nil, fmt.Errorf("create a folder for the copy: %w", err)
	}
	after(func() { removeAll(stage) })
	root, home := filepath.Join(stage, "work", s.within, filepath.Base(s.take.Root)), filepath.Join(stage, "home")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(home, 0o700)); err != nil {
		return nil, err
	}
	if err := errors.Join(s.furnish(ctx, root), a.copyHome(s.take, home, root)); err != nil {
		return nil, err
	}
	files, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	after(func() { _ = files.Close() })
	world, err := s.world.LayOut(ctx, files, s.kept)
	if err != nil {
		return nil, inputf("session %s: %v", s.take.ID, err)
	}
	if err := s.date(files); err != nil {
		return nil, err
	}
	copied, err := workspace.Open(root)
	if err != nil {
		return nil, err
	}
	after(func() { _ = copied.Close() })
	was := rerun.Side{Paths: map[string]string{s.take.Root: placeholder}, Kept: s.kept}
	is := rerun.Side{Paths: map[string]string{root: placeholder, home: a.Home}}
	maps.Copy(was.Paths, s.was)
	maps.Copy(is.Paths, s.is)
	f := rerun.Follow(s.take, was, is, world)
	err = f.Again(ctx, func(ctx context.Context, resume bool) (*supervisor.Session, error) {
		b, err := a.another(ctx, s, f, root, home)
		if err != nil {
			return nil, err
		}
		f.LookUp(b.kept(copied))
		which := Which{ID: s.take.ID}
		if resume {
			which = Which{Resume: s.take.ID}
		}
		return b.Open(ctx, b.Supervise(f), which, event.Discard)
	})
	if unfit, ok := errors.AsType[*rerun.UnfitError](err); ok {
		err = inputf("session %s: %v", s.take.ID, unfit)
	}
	return f, err
}

// date gives files of the copy the times of then: those that they still have, or one
// before the session.
func (s staging) date(files *os.Root) error {
	for name, state := range s.world.Start {
		if state.Link != "" || state.Hash == "" || state.Hash == "dir" {
			continue
		}
		then := s.take.Start().Add(-time.Hour)
		if s.there != nil {
			if info, err := s.there.Lstat(name); err == nil && info.ModTime().Before(s.take.Start()) {
				then = info.ModTime()
			}
		}
		if err := files.Chtimes(filepath.FromSlash(name), then, then); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// within is where the copy of the workspace lies below the folder for it: as deep in its
// repository as the workspace, and with as many folders above as a linked work tree needs.
func (a *App) within() string {
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

// copyHome gives the rerun what the person wrote for all projects, and what they
// had always allowed in this one.
func (a *App) copyHome(take *rerun.Take, home, root string) error {
	if a.Home == "" {
		return nil
	}
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", "windows.json", "agents", "commands", "skills"} {
		if err := copyTree(filepath.Join(a.Home, name), filepath.Join(home, name)); err != nil {
			return err
		}
	}
	return judge.Carry(filepath.Join(a.Home, "always"), a.Root, filepath.Join(home, "always"), root, take.Start())
}

// maxCopied bounds the files that are copied with a workspace.
const maxCopied = 64 << 20

// copyTree copies a file, or a folder of files. Links and what cannot be read are
// passed over.
func copyTree(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if d.IsDir() {
			return os.MkdirAll(target, info.Mode().Perm()|0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := repofile.Own(path, maxCopied)
		if err != nil {
			return nil
		}
		return os.WriteFile(target, text, info.Mode().Perm()|0o600)
	})
}

// removeAll removes a folder, also what commands left read-only in it.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
