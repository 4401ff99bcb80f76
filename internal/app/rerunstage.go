package app

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"

	"coder/internal/agent/rerun"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/policy/judge"
	"coder/internal/record/past"
)

// once reruns a take in its own folder, which exists until the functions passed to after have run.
func (a *Workspace) once(ctx context.Context, s rerunInput, try int, after func(do func())) (*rerun.Replayer, error) {
	stage, err := a.makeStagingDir()
	if err != nil {
		return nil, message.Errorf("create a folder for the copy: %w", err)
	}
	after(func() { worktree.RemoveAll(stage) })
	root, home := filepath.Join(stage, "work", s.pathInRepo, filepath.Base(s.recording.Root)), filepath.Join(stage, "home")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(home, 0o700)); err != nil {
		return nil, err
	}
	err = errors.Join(s.prepareCopy(ctx, root), a.copyHome(s.recording, home, root))
	if gone, ok := errors.AsType[*past.CommitError](err); ok {
		err = inputErrorf("%v", gone)
	}
	if errors.Is(err, program.ErrNotFound) {
		err = inputErrorf("git is not installed, and this golden session needs it")
	}
	if err != nil {
		return nil, err
	}
	files, err := s.world.Materialize(ctx, root, s.contents)
	if err != nil {
		return nil, inputErrorf("session %s: %v", s.recording.ID, err)
	}
	after(func() { _ = files.Close() })
	if err := files.RestoreTimes(s.recording.StartTime, s.original); err != nil {
		return nil, err
	}
	copied, err := workspace.Open(root)
	if err != nil {
		return nil, err
	}
	after(func() { _ = copied.Close() })
	was := rerun.Side{Paths: map[string]string{s.recording.Root: workspacePlaceholder}, Contents: s.contents}
	is := rerun.Side{Paths: map[string]string{root: workspacePlaceholder, home: a.Home}}
	maps.Copy(was.Paths, s.recordPlaceholders)
	maps.Copy(is.Paths, s.rerunPlaceholders)
	f := rerun.NewReplayer(s.recording, was, is, files, try)
	err = f.Run(ctx, func(ctx context.Context, resume bool) (*supervisor.Session, error) {
		b, err := a.newRerunApp(ctx, s, f, root, home)
		if err != nil {
			return nil, err
		}
		f.SetRerunContents(b.kept(copied))
		which := SessionChoice{NewID: s.recording.ID}
		if resume {
			which = SessionChoice{ResumeID: s.recording.ID}
		}
		return b.OpenSession(ctx, b.NewSupervisor(f, Screen{}), which, event.Discard)
	})
	if unfit, ok := errors.AsType[*rerun.NotRerunnableError](err); ok {
		err = inputErrorf("session %s: %v", s.recording.ID, unfit)
	}
	return f, err
}

// copyHome copies the user's own files for all projects, and the approvals for this project, to the rerun.
func (a *Workspace) copyHome(take *rerun.Recording, home, root string) error {
	if a.Home == "" {
		return nil
	}
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", "windows.json", "agents", "commands", "skills"} {
		if err := worktree.CopyTree(filepath.Join(a.Home, name), filepath.Join(home, name)); err != nil {
			return err
		}
	}
	return judge.CopyGrants(filepath.Join(a.Home, "always"), a.Root, filepath.Join(home, "always"), root, take.StartTime)
}
