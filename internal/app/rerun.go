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
	take := whole.Until(n)
	a, err := a.withSettingsOf(id, take)
	if err != nil {
		return nil, err
	}
	then, err := a.openPast(0)
	if err != nil {
		return nil, err
	}
	defer then.Workspace.Close()
	world, state, err := a.worldOf(ctx, whole, take, then, then)
	if err != nil {
		return nil, err
	}
	was, is := make(map[string]string), make(map[string]string)
	report, _, err := a.again(ctx, staging{
		was: was, is: is, take: take, world: world, kept: then, there: then.Workspace, within: a.within(), hidden: []string{a.Home},
		furnish: func(ctx context.Context, root string) error {
			return errors.Join(a.copyAuthored(root), a.copyRepository(ctx, state, root, func(there, here string) {
				was[there], is[here] = "<repository>", "<repository>"
			}))
		},
	})
	if err == nil && report.Difference != nil && report.Difference.Worldly() && len(take.Requests) > 0 {
		report.Missing = a.missing(id, world, state)
	}
	return report, err
}

// withSettingsOf returns a Workspace with the settings file of the recorded
// session, if its record is vouched and the user names no other file.
func (a *Workspace) withSettingsOf(id string, take *rerun.Take) (*Workspace, error) {
	run := take.Flags
	if run.Config == "" || a.Options.ConfigFile != "" || !seal.New(a.Store().Key(), a.Root, id).Vouches(take.First) {
		return a, nil
	}
	o := a.Options
	o.ConfigFile = run.Config
	settings, err := Load(a.Env, o)
	if err != nil {
		return nil, inputf("session %s ran with the settings of %s: %v; choose others with --config", id, run.Config, err)
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

// staging has the inputs of a rerun.
type staging struct {
	take    *rerun.Take
	world   *past.World
	kept    past.Contents
	within  string                                       // the workspace's path in its repository
	furnish func(ctx context.Context, root string) error // adds more than files to the copy
	there   *workspace.Workspace                         // may still have the initial files; nil if unavailable
	hidden  []string                                     // folders that commands cannot see
	was, is map[string]string                            // placeholders for words in the record, and in the rerun
	except  rerun.Exceptions
	learn   *golden.Golden // receives the rerun's result; nil to compare only
}

// maxAgain limits how often a differing take is rerun: random numbers may be equal by chance.
const maxAgain = 3

// again reruns a take. If the result differs, it reruns more often: what differs between two runs in the
// same world may also differ from the record. It fills s.learn unless the rerun takes another course.
func (a *Workspace) again(ctx context.Context, s staging) (report *rerun.Report, learnt *golden.Golden, err error) {
	var runs []*rerun.Follower
	var after []func()
	defer func() {
		for _, do := range slices.Backward(after) {
			do()
		}
	}()
	for try := range 1 + maxAgain {
		f, err := a.once(ctx, s, try, func(do func()) { after = append(after, do) })
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, f)
		if report = runs[0].Compare(s.except, runs[1:]...); report.Difference == nil || !report.Difference.Chancy() {
			break
		}
	}
	if s.learn != nil && !runs[0].Parted() {
		learnt, err = runs[0].Golden(ctx, *s.learn)
	}
	return report, learnt, err
}

// placeholder replaces the workspace's path in comparisons.
const placeholder = "<workspace>"

// another returns the Workspace for a rerun: with the settings of this one,
// but always confined, offline, and with its own state.
func (a *Workspace) another(ctx context.Context, s staging, f *rerun.Follower, root, home string) (*Workspace, error) {
	env, o := a.Env, a.Options
	env.Now, env.WrapStore, env.Disk = f.Now, nil, nil
	o.Mode, o.Script, o.Ephemeral, o.Attended = cmp.Or(o.Mode, f.Mode()), "", false, false
	o.AddDirs, o.Driver = nil, Driver{}
	if err := o.asThen(f.Run()); err != nil {
		return nil, err
	}
	b, err := New(env, o, a.Settings, func(string) {})
	if err != nil {
		return nil, err
	}
	b.elsewhere = slices.Concat(a.elsewhere, []string{a.Root, a.Project})
	b.Root, b.Project, b.Home, b.Trust.Path = root, root, home, filepath.Join(home, "trust.json")
	b.mcpServers, b.mcpLeft, b.telemetry = nil, nil, telemetry.Settings{}
	b.Play, b.Recorded = f, &Recorded{Follower: f, calls: s.take.Requests, hidden: s.hidden}
	if ws, err := workspace.Open(a.Root); err == nil { // otherwise there is nothing to hide
		b.Recorded.secrets, _ = a.protect(ws).hidden(ctx)
		ws.Close()
	}
	if s.take.Model != "" {
		b.chosen.Store(&s.take.Model)
	}
	c := &b.Config
	c.Safety.Sandbox, c.Safety.Network = "require", nil
	c.Storage.Fsync, c.Provider.ToolMode = "never", "native"
	b.Store().Records.Store = f.Store(b.Store().Logs)
	c.Runtime.MaxSteps = s.take.MaxSteps()
	return b, nil
}

// asThen adds the flags of a recorded run that are not set now.
func (o *Options) asThen(run event.Run) error {
	for list, was := range map[*[]rule.Spec]string{&o.AllowTools: run.Allowed, &o.DenyTools: run.Disallowed} {
		if len(*list) == 0 && was != "" {
			specs, err := rule.ParseSpecs(was)
			if err != nil {
				return inputf("the rules of the recorded run cannot be read: %v", err)
			}
			*list = specs
		}
	}
	if o.SystemPrompt == "" && o.AppendSystem == "" {
		o.SystemPrompt, o.AppendSystem = run.System, run.Appended
	}
	return nil
}
