package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"coder/internal/agent/rerun"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
	"coder/internal/policy/judge"
	"coder/internal/policy/rule"
	"coder/internal/record/golden"
	"coder/internal/record/past"
	"coder/internal/record/seal"
	"coder/internal/report/telemetry"
)

// Verify reruns the first n records of a session in a copy of its initial files, with all
// outside input from the record. It changes nothing outside the copy, and uses no network.
func (a *Workspace) Verify(ctx context.Context, id string, records []event.Record, n int) (*rerun.Report, error) {
	whole := rerun.New(id, a.recordedRoot(ctx, id), records)
	take := whole.Prefix(n)
	a, err := a.withRecordedSettings(id, take)
	if err != nil {
		return nil, err
	}
	then, err := a.openPastStore(0)
	if err != nil {
		return nil, err
	}
	defer then.Workspace.Close()
	world, state, err := a.recordedWorld(ctx, whole, take, then, then)
	if err != nil {
		return nil, err
	}
	s := rerunInput{
		recording: take, world: world, contents: then, was: make(map[string]string), is: make(map[string]string),
		original: then.Workspace, pathInRepo: a.copySubpath(), hiddenDirs: []string{a.Home},
	}
	s.prepareCopy = func(ctx context.Context, root string) error {
		return errors.Join(a.copyUserFiles(root), a.copyRepository(ctx, state, root, func(there, here string) {
			s.was[there], s.is[here] = "<repository>", "<repository>"
		}))
	}
	report, _, err := a.rerunUntilExplained(ctx, s)
	if err == nil && report.Difference != nil && report.Difference.MayBeChance() && len(take.Requests) > 0 {
		report.Missing = a.missingReason(id, world, state)
	}
	return report, err
}

// withRecordedSettings returns a Workspace with the settings file of the recorded
// session, if its record is vouched and the user names no other file.
func (a *Workspace) withRecordedSettings(id string, take *rerun.Recording) (*Workspace, error) {
	run := take.FirstRun
	if run.ConfigFile == "" || a.Options.ConfigFile != "" ||
		!seal.New(a.Store().SealKey(), a.Root, id).HasValidSeal(take.FirstTurn) {
		return a, nil
	}
	o := a.Options
	o.ConfigFile = run.ConfigFile
	settings, err := Load(a.Env, o)
	if err != nil {
		return nil, inputErrorf("session %s ran with the settings of %s: %v; choose others with --config", id,
			run.ConfigFile, err)
	}
	return New(a.Env, o, settings, a.warn)
}

// recordedRoot returns the workspace's path when a session was recorded.
func (a *Archive) recordedRoot(ctx context.Context, id string) string {
	if snap, err := a.Store().Sessions.Load(ctx, id); err == nil {
		return cmp.Or(snap.Meta.Dir, a.Root)
	}
	return a.Root
}

// rerunInput has the inputs of a rerun.
type rerunInput struct {
	recording   *rerun.Recording
	world       *past.FileHistory
	contents    past.ContentSource
	was, is     map[string]string                            // placeholders for words in the record, and in the rerun
	pathInRepo  string                                       // the workspace's path in its repository
	prepareCopy func(ctx context.Context, root string) error // adds more than files to the copy
	original    *workspace.Workspace                         // may still have the initial files; nil if unavailable
	hiddenDirs  []string                                     // folders that commands cannot see
	exceptions  rerun.Exceptions
	golden      *golden.Golden // receives the rerun's result; nil to compare only
}

// maxReruns limits how often a differing recording is rerun: random numbers may be equal by chance.
const maxReruns = 3

// rerunUntilExplained reruns a recording. If the result differs, it reruns more often: what differs between two runs in
// the same world may also differ from the record. It returns s.golden with the result, nil if that took another course.
func (a *Workspace) rerunUntilExplained(ctx context.Context, s rerunInput) (*rerun.Report, *golden.Golden, error) {
	var runs []*rerun.Replayer
	var after []func()
	defer func() {
		for _, do := range slices.Backward(after) {
			do()
		}
	}()
	for try := range 1 + maxReruns {
		f, err := a.once(ctx, s, try, func(do func()) { after = append(after, do) })
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, f)
		report := runs[0].Compare(s.exceptions, runs[1:]...)
		if d := report.Difference; d != nil && d.MayBeChance() && try < maxReruns {
			continue
		}
		if s.golden == nil {
			return report, nil, nil
		}
		learnt, err := runs[0].ToGolden(ctx, *s.golden)
		return report, learnt, err
	}
	panic("unreachable: the last try returns")
}

// workspacePlaceholder replaces the workspace's path in comparisons.
const workspacePlaceholder = "<workspace>"

// once reruns a recording in its own folder, which exists until the functions passed to after have run.
func (a *Workspace) once(ctx context.Context, s rerunInput, try int, after func(do func())) (*rerun.Replayer, error) {
	take := s.recording
	stage, err := a.makeStagingDir()
	if err != nil {
		return nil, message.Errorf("create a folder for the copy: %w", err)
	}
	after(func() { worktree.RemoveAll(stage) })
	root, home := filepath.Join(stage, "work", s.pathInRepo, filepath.Base(take.Root)), filepath.Join(stage, "home")
	if err := errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(home, 0o700)); err != nil {
		return nil, err
	}
	if err := errors.Join(s.prepareCopy(ctx, root), a.copyHome(take, home, root)); err != nil {
		if gone, ok := errors.AsType[*past.CommitError](err); ok {
			return nil, inputErrorf("%v", gone)
		}
		if errors.Is(err, program.ErrNotFound) {
			return nil, inputErrorf("git is not installed, and this golden session needs it")
		}
		return nil, err
	}
	files, err := s.world.Materialize(ctx, root, s.contents)
	if err != nil {
		return nil, inputErrorf("session %s: %v", take.ID, err)
	}
	after(func() { _ = files.Close() })
	copied, err := workspace.Open(root)
	if err != nil {
		return nil, err
	}
	after(func() { _ = copied.Close() })
	if err := files.RestoreTimes(take.StartTime, s.original); err != nil {
		return nil, err
	}
	was := rerun.Side{Paths: map[string]string{take.Root: workspacePlaceholder}, Contents: s.contents}
	is := rerun.Side{Paths: map[string]string{root: workspacePlaceholder, home: a.Home}}
	maps.Copy(was.Paths, s.was)
	maps.Copy(is.Paths, s.is)
	f := rerun.NewReplayer(take, was, is, files, try)
	err = f.Run(ctx, func(ctx context.Context, resume bool) (*supervisor.Session, error) {
		b, err := a.newRerunApp(ctx, s, f, root, home)
		if err != nil {
			return nil, err
		}
		f.RerunSide.Contents = b.kept(copied)
		which := SessionChoice{NewID: take.ID}
		if resume {
			which = SessionChoice{ResumeID: take.ID}
		}
		return b.OpenSession(ctx, b.NewSupervisor(f, Screen{}), which, event.Discard)
	})
	if unfit, ok := errors.AsType[*rerun.NotRerunnableError](err); ok {
		err = inputErrorf("session %s: %v", take.ID, unfit)
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

// newRerunApp returns the Workspace for a rerun: with the settings of this one,
// but always confined, offline, and with its own state.
func (a *Workspace) newRerunApp(ctx context.Context, s rerunInput, f *rerun.Replayer, root, home string) (*Workspace,
	error) {
	env, o := a.Env, a.Options
	env.Now, env.WrapStore, env.Disk = f.Now, nil, nil
	mode, run := f.ProcessStart()
	o.Mode, o.Script, o.Ephemeral, o.HasUser = cmp.Or(o.Mode, mode), "", false, false
	o.AddDirs, o.Driver = nil, Driver{}
	if err := o.addRecordedFlags(run); err != nil {
		return nil, err
	}
	b, err := New(env, o, a.Settings, func(string) {})
	if err != nil {
		return nil, err
	}
	b.originWorkspaces = slices.Concat(a.originWorkspaces, []string{a.Root, a.Project})
	b.Root, b.Project, b.Home, b.Trust.Path = root, root, home, filepath.Join(home, "trust.json")
	b.mcpServers, b.mcpSkipped, b.telemetry = nil, nil, telemetry.Settings{}
	b.ScriptedProvider, b.Replay = f, &Replay{Replayer: f, calls: s.recording.Requests, hiddenDirs: s.hiddenDirs}
	if ws, err := workspace.Open(a.Root); err == nil { // otherwise there is nothing to hide
		b.Replay.secretFiles, _ = a.newProtectedFiles(ws).hiddenFiles(ctx)
		ws.Close()
	}
	if s.recording.Model != "" {
		b.chosenModel.Store(&s.recording.Model)
	}
	c := &b.Config
	c.Safety.Sandbox, c.Safety.Network = "require", nil
	c.Storage.Fsync, c.Provider.ToolMode, c.Runtime.MaxSteps = "never", "native", s.recording.MaxSteps
	b.Store().Supervisor.Store = f.Store(b.Store().Logs)
	return b, nil
}

// addRecordedFlags adds the flags of a recorded run that are not set now.
func (o *Options) addRecordedFlags(run event.RunOptions) error {
	for list, was := range map[*[]rule.Spec]string{&o.AllowTools: run.AllowedTools, &o.DenyTools: run.DisallowedTools} {
		if len(*list) == 0 && was != "" {
			specs, err := rule.ParseSpecs(was)
			if err != nil {
				return inputErrorf("the rules of the recorded run cannot be read: %v", err)
			}
			*list = specs
		}
	}
	if o.SystemPrompt == "" && o.AppendSystem == "" {
		o.SystemPrompt, o.AppendSystem = run.SystemPrompt, run.AppendSystemPrompt
	}
	return nil
}
