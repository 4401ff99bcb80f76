package app

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"coder/internal/agent/rerun"
	"coder/internal/core/event"
	"coder/internal/host/workspace"
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
	was, is := make(map[string]string), make(map[string]string)
	report, _, err := a.rerunUntilExplained(ctx, rerunInput{
		recordPlaceholders: was, rerunPlaceholders: is, recording: take, world: world, contents: then,
		original: then.Workspace, pathInRepo: a.copySubpath(), hiddenDirs: []string{a.Home},
		prepareCopy: func(ctx context.Context, root string) error {
			return errors.Join(a.copyUserFiles(root), a.copyRepository(ctx, state, root, func(there, here string) {
				was[there], is[here] = "<repository>", "<repository>"
			}))
		},
	})
	if err == nil && report.Difference != nil && report.Difference.MayBeEnvironment() && len(take.Requests) > 0 {
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
	recording *rerun.Recording
	world     *past.FileHistory
	contents  past.ContentSource
	// the workspace's path in its repository
	pathInRepo  string
	prepareCopy func(ctx context.Context, root string) error // adds more than files to the copy
	// may still have the initial files; nil if unavailable
	original   *workspace.Workspace
	hiddenDirs []string // folders that commands cannot see
	// placeholders for words in the record, and in the rerun
	recordPlaceholders, rerunPlaceholders map[string]string
	exceptions                            rerun.Exceptions
	golden                                *golden.Golden // receives the rerun's result; nil to compare only
}

// maxReruns limits how often a differing take is rerun: random numbers may be equal by chance.
const maxReruns = 3

// rerunUntilExplained reruns a take. If the result differs, it reruns more often: what differs between two runs in the
// same world may also differ from the record. It fills s.learn unless the rerun takes another course.
func (a *Workspace) rerunUntilExplained(ctx context.Context, s rerunInput) (report *rerun.Report, learnt *golden.Golden,
	err error) {
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
		if report = runs[0].Compare(s.exceptions, runs[1:]...); report.Difference == nil || !report.Difference.MayBeChance() {
			break
		}
	}
	if s.golden != nil && !runs[0].HasDiverged() {
		learnt, err = runs[0].ToGolden(ctx, *s.golden)
	}
	return report, learnt, err
}

// workspacePlaceholder replaces the workspace's path in comparisons.
const workspacePlaceholder = "<workspace>"

// newRerunApp returns the Workspace for a rerun: with the settings of this one,
// but always confined, offline, and with its own state.
func (a *Workspace) newRerunApp(ctx context.Context, s rerunInput, f *rerun.Replayer, root, home string) (*Workspace,
	error) {
	env, o := a.Env, a.Options
	env.Now, env.WrapStore, env.Disk = f.Now, nil, nil
	o.Mode, o.Script, o.Ephemeral, o.HasUser = cmp.Or(o.Mode, f.Mode()), "", false, false
	o.AddDirs, o.Driver = nil, Driver{}
	if err := o.addRecordedFlags(f.ProcessRun()); err != nil {
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
	c.Storage.Fsync, c.Provider.ToolMode = "never", "native"
	b.Store().Supervisor.Store = f.Store(b.Store().Logs)
	c.Runtime.MaxSteps = s.recording.MaxSteps()
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
