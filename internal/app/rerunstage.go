package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"coder/internal/agent/rerun"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/policy/judge"
	"coder/internal/record/past"
)

// once reruns a take in its own folder, which exists until the functions passed to after have run.
func (a *Workspace) once(ctx context.Context, s staging, try int, after func(do func())) (*rerun.Follower, error) {
	stage, err := a.stage()
	if err != nil {
		return nil, fmt.Errorf("create a folder for the copy: %w", err)
	}
	after(func() { worktree.RemoveAll(stage) })
	root, home := filepath.Join(stage, "work", s.within, filepath.Base(s.take.Root)), filepath.Join(stage, "home")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(home, 0o700)); err != nil {
		return nil, err
	}
	err = errors.Join(s.furnish(ctx, root), a.copyHome(s.take, home, root))
	if gone, ok := errors.AsType[*past.CommitError](err); ok {
		err = inputf("%v", gone)
	}
	if errors.Is(err, program.ErrNotFound) {
		err = inputf("git is not installed, and this golden session needs it")
	}
	if err != nil {
		return nil, err
	}
	files, err := s.world.LayOut(ctx, root, s.kept)
	if err != nil {
		return nil, inputf("session %s: %v", s.take.ID, err)
	}
	after(func() { _ = files.Close() })
	if err := files.Date(s.take.Begun, s.there); err != nil {
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
	f := rerun.Follow(s.take, was, is, files, try)
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
		return b.Open(ctx, b.Supervise(f, Screen{}), which, event.Discard)
	})
	if unfit, ok := errors.AsType[*rerun.UnfitError](err); ok {
		err = inputf("session %s: %v", s.take.ID, unfit)
	}
	return f, err
}

// copyHome copies the user's own files for all projects, and the approvals for this project, to the rerun.
func (a *Workspace) copyHome(take *rerun.Take, home, root string) error {
	if a.Home == "" {
		return nil
	}
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", "windows.json", "agents", "commands", "skills"} {
		if err := worktree.CopyTree(filepath.Join(a.Home, name), filepath.Join(home, name)); err != nil {
			return err
		}
	}
	return judge.Carry(filepath.Join(a.Home, "always"), a.Root, filepath.Join(home, "always"), root, take.Begun)
}
