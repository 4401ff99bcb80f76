package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/rerun"
	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/policy"
	"coder/internal/policy/judge"
	"coder/internal/policy/rule"
	"coder/internal/record/gitstate"
	"coder/internal/record/seal"
	"coder/internal/record/telemetry"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/mcp"
)

// Recorded stands in for what a session that is run again must not reach: it is
// taken from the record.
type Recorded struct {
	*rerun.Follower
	calls   []event.ToolCallRequested // on record
	hidden  []string                  // folders that commands do not see
	secrets []string                  // secret files of the workspace that the copy stands for
}

// judged is p, but for what was let pass unasked for reasons that are not there
// any more.
func (r *Recorded) judged(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := p.Judge(ctx, c)
		if err == nil && o.Verdict == policy.Ask && r.LetPass(c.Call.ID, !o.Waivable()) {
			return policy.Fearless(policy.Func(func(context.Context, policy.Case) (policy.Opinion, error) { return o, nil })).Judge(ctx, c)
		}
		return o, err
	})
}

// dated has git date what a rerun commits as it was dated then, so that its history is in the
// same order.
func (a *App) dated(confine func(context.Context, tool.Line) (bash.Confinement, error)) func(context.Context, tool.Line) (bash.Confinement, error) {
	if a.Recorded == nil {
		return confine
	}
	return func(ctx context.Context, read tool.Line) (bash.Confinement, error) {
		c, err := confine(ctx, read)
		then := a.Recorded.Now().Format("2006-01-02T15:04:05-07:00")
		c.Env = append(slices.Clip(c.Env), "GIT_AUTHOR_DATE="+then, "GIT_COMMITTER_DATE="+then)
		return c, err
	}
}

// with adds stand-ins for the tools of other programs, and lets calls be prepared that
// are on record without their keys.
func (r *Recorded) with(tools []tool.Tool) []tool.Tool {
	names := make(map[string]bool)
	for _, c := range r.calls {
		names[c.Tool] = names[c.Tool] || rerun.Keyed(c)
	}
	for i, t := range tools {
		if name := t.Spec().Name; names[name] {
			tools[i] = recordedTool{t, name, r}
		}
	}
	for name := range names {
		if rerun.OfOthers(name) && name != mcp.ResourceTool { // which is not the model's
			tools = append(tools, recordedTool{nil, name, r})
		}
	}
	return tools
}

// List are the prompts of other programs: none is known before it is used.
func (r *Recorded) List() []orchestrator.Command { return nil }

// Find is what another program wrote for a command.
func (r *Recorded) Find(_ context.Context, name string) (func(context.Context, string) (string, error), bool) {
	text, ok := r.Written(name)
	return func(context.Context, string) (string, error) { return text, nil }, ok && rerun.OfOthers(name)
}

// resources are what messages named of other programs.
func (r *Recorded) resources() *orchestrator.Resources {
	set, err := tool.NewSet(recordedTool{nil, mcp.ResourceTool, r})
	if err != nil {
		panic(err) // one tool cannot be there twice
	}
	return &orchestrator.Resources{Set: set, Tool: mcp.ResourceTool, Args: func(name string) (json.RawMessage, bool) {
		for _, c := range r.calls {
			var args mcp.ResourceArgs
			named := c.Tool == mcp.ResourceTool && json.Unmarshal(c.Input, &args) == nil
			if named && (name == args.Server+":"+args.URI || name == mcp.Clean(args.Server)+":"+args.URI) {
				return jsonx.Must(args), true
			}
		}
		return nil, false
	}}
}

// recordedTool is a tool some of whose calls cannot be prepared: they were made with keys that
// are not on record, or it is one of another program, which is not asked and not here.
type recordedTool struct {
	tool.Tool
	name   string
	record *Recorded
}

func (t recordedTool) Spec() tool.Spec {
	if t.Tool != nil {
		return t.Tool.Spec()
	}
	return tool.Spec{Name: t.name, Schema: json.RawMessage(`{"type":"object"}`), Unlisted: true}
}

// Prepare takes from the record what such a call was to do. It is not run.
func (t recordedTool) Prepare(ctx context.Context, args json.RawMessage) (call tool.Call, err error) {
	err = errNotAsked
	if t.Tool != nil {
		if call, err = t.Tool.Prepare(ctx, args); err == nil {
			return call, nil
		}
	}
	asked, ok := t.record.Planned(ctx, t.name)
	if !ok || t.Tool != nil && (asked.Verdict == event.Invalid || !rerun.Keyed(asked)) {
		return nil, err
	}
	return recordedCall{Title: asked.Title, Effects: asked.Effects}, nil
}

var errNotAsked = errors.New("this tool is not asked again")

type recordedCall tool.Plan

func (c recordedCall) Plan() tool.Plan { return tool.Plan(c) }

func (c recordedCall) Run(context.Context, io.Writer) (tool.Result, error) {
	return tool.Result{}, errNotAsked
}

// Verify runs the first n of the records of a session again in a copy of the files
// that it began with, with what came from outside taken from the record. Nothing
// outside of the copy is changed, and no network is used.
func (a *App) Verify(ctx context.Context, id string, records []event.Record, n int) (*rerun.Report, error) {
	whole := rerun.New(id, a.recordedRoot(ctx, id), records)
	take := whole.Until(n)
	a, err := a.withSettingsOf(id, take)
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return nil, inputf("open the workspace: %v", err)
	}
	defer ws.Close()
	past := &past{contents: a.kept(ws), app: a}
	world, state, err := a.worldOf(ctx, whole, take, past, past)
	if err != nil {
		return nil, err
	}
	was, is := hosts(), hosts()
	report, _, err := a.again(ctx, staging{
		was: was, is: is, take: take, world: world, kept: past, there: ws, within: a.within(), hidden: []string{a.Home},
		furnish: func(ctx context.Context, root string) error {
			return a.copySettings(ctx, state, root, func(there, here string) {
				was[there], is[here] = "<repository>", "<repository>"
			})
		},
	})
	if err == nil && report.Difference != nil && report.Difference.Worldly() && len(take.Requests()) > 0 {
		report.Missing = a.missing(id, world, state)
	}
	return report, err
}

// worldOf is what a session began with: its files, and the state of its repository, nil if
// that was not saved by this user's program on this machine.
func (a *App) worldOf(ctx context.Context, whole, take *rerun.Take, files rerun.Files, past *past) (*rerun.World, []byte, error) {
	world, err := rerun.Trace(ctx, whole, take, files) // what comes later may tell what was before
	if err == nil && !world.Whole && len(take.Requests()) > 0 {
		err = a.completeStart(ctx, take, world, past)
	}
	if err != nil {
		return nil, nil, err
	}
	r, name := take.Repository()
	if name == "" || !seal.New(a.Store().Key(), a.Root, take.ID).Vouches(r) {
		return world, nil, nil
	}
	if past.state, err = past.State(name); err != nil {
		return world, nil, nil
	}
	for _, f := range notesOf(past.state).Ignored {
		if _, known := world.Start[f.Path]; !known {
			world.Start[f.Path] = f
		}
	}
	return world, past.state, nil
}

// hosts is what stands for the name of this machine.
func hosts() map[string]string {
	name, err := os.Hostname()
	if err != nil || len(name) < leastHost || name == "localhost" {
		return make(map[string]string)
	}
	return map[string]string{name: "<host>"}
}

// leastHost is how long the name of a machine is at least, for it to be told from a word.
const leastHost = 4

// missing is why a rerun may have lacked something that the session began with, "" if
// nothing says that something was lacking.
func (a *App) missing(id string, world *rerun.World, state []byte) string {
	switch _, repository := gitstate.Find(a.Root); {
	case !world.Whole && a.Store().copied(id):
		return "it was imported, and with a session come only the files that it changed"
	case !world.Whole && world.Tree != "":
		return "the undo store does not have the state of all files any more"
	case repository && state == nil:
		return "the state of the git repository was not saved, or is not kept any more"
	}
	return ""
}

// withSettingsOf is the program with the settings file that a session was run
// with, if that was this user's own doing and none is named now.
func (a *App) withSettingsOf(id string, take *rerun.Take) (*App, error) {
	begun, run := take.FirstRun()
	if run.Config == "" || a.Options.ConfigFile != "" || !seal.New(a.Store().Key(), a.Root, id).Vouches(begun) {
		return a, nil
	}
	o := a.Options
	o.ConfigFile = run.Config
	settings, err := Load(a.Env, o)
	if err != nil {
		return nil, inputf("session %s was run with the settings of %s: %v; --config names others", id, run.Config, err)
	}
	return New(a.Env, o, settings, a.warn)
}

// recordedRoot is where the workspace was when a session was recorded.
func (a *App) recordedRoot(ctx context.Context, id string) string {
	if snap, err := a.Store().Sessions.Load(ctx, id); err == nil {
		return cmp.Or(snap.Meta.Dir, a.Root)
	}
	return a.Root
}

// staging is what a take is run again with.
type staging struct {
	take    *rerun.Take
	world   *rerun.World
	kept    rerun.Contents
	within  string                                       // where the workspace lies in its repository
	furnish func(ctx context.Context, root string) error // puts more into the copy than its files
	there   *workspace.Workspace                         // where the files of then may be still; nil if nowhere
	hidden  []string                                     // folders that commands do not see
	was, is map[string]string                            // what stands for words of the record, and of the rerun
	except  rerun.Exceptions
	learn   *rerun.Golden // becomes what the rerun comes to; nil to compare only
}

// maxAgain is how often a take is run again where it differs: a number made by chance may
// come out the same twice.
const maxAgain = 3

// again runs a take again. Where it does not come to the same it is run more often: what
// differs between two runs in the same world may differ from the record. What is to be learnt
// is learnt unless the rerun takes another course.
func (a *App) again(ctx context.Context, s staging) (report *rerun.Report, learnt *rerun.Golden, err error) {
	var runs []*rerun.Follower
	for range 1 + maxAgain {
		f, gone, err := a.once(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		defer gone()
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

// once runs a take again in a folder of its own, which stays until gone is called.
func (a *App) once(ctx context.Context, s staging) (f *rerun.Follower, gone func(), err error) {
	stage, err := a.stage()
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the copy: %w", err)
	}
	var open []io.Closer
	clean := func() {
		for _, c := range open {
			_ = c.Close()
		}
		removeAll(stage)
	}
	defer func() {
		if err != nil {
			clean()
		}
	}()
	root, home := filepath.Join(stage, "work", s.within, filepath.Base(s.take.Root)), filepath.Join(stage, "home")
	if err = errors.Join(os.MkdirAll(root, 0o755), os.MkdirAll(home, 0o700)); err != nil {
		return nil, nil, err
	}
	if err = errors.Join(s.furnish(ctx, root), a.copyHome(s.take, home, root)); err != nil {
		return nil, nil, err
	}
	files, err := os.OpenRoot(root)
	if err != nil {
		return nil, nil, err
	}
	open = append(open, files)
	world, err := s.world.LayOut(ctx, files, s.kept)
	if err != nil {
		return nil, nil, inputf("session %s: %v", s.take.ID, err)
	}
	copied, err := workspace.Open(root)
	if err != nil {
		return nil, nil, err
	}
	open = append(open, copied)
	if err = s.date(files); err != nil {
		return nil, nil, err
	}
	was := rerun.Side{Paths: map[string]string{s.take.Root: placeholder}, Kept: s.kept}
	is := rerun.Side{Paths: map[string]string{root: placeholder, home: a.Home}}
	maps.Copy(was.Paths, s.was)
	maps.Copy(is.Paths, s.is)
	f = rerun.Follow(s.take, was, is, world)
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
	return f, clean, err
}

// placeholder stands for the workspace in what is compared.
const placeholder = "<workspace>"

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

// another is the program for a rerun: with the settings of this one, but always
// confined, offline, and with a state of its own.
func (a *App) another(ctx context.Context, s staging, f *rerun.Follower, root, home string) (*App, error) {
	env, o := a.Env, a.Options
	env.Now, env.WrapStore, env.Disk = f.Now, nil, nil
	o.Mode, o.Script, o.Ephemeral, o.Attended, o.AddDirs, o.Driver = cmp.Or(o.Mode, f.Mode()), "", false, false, nil, Driver{}
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
	b.Play, b.Recorded = f, &Recorded{Follower: f, calls: s.take.Requests(), hidden: s.hidden}
	if ws, err := workspace.Open(a.Root); err == nil { // else there is nothing to hide
		b.Recorded.secrets, _ = a.protect(ws).hidden(ctx)
		ws.Close()
	}
	if model := s.take.Model(); model != "" {
		b.chosen.Store(&model)
	}
	c := &b.Config
	c.Safety.Sandbox, c.Safety.Network = "require", nil
	c.Storage.Fsync, c.Provider.ToolMode = "never", "native"
	b.Store().Records.Store = f.Store(b.Store().Logs)
	c.Runtime.MaxSteps = s.take.MaxSteps(c.Runtime.MaxSteps)
	return b, nil
}

// asThen adds the flags of a run that are not given now.
func (o *Options) asThen(run event.Run) error {
	for list, was := range map[*[]rule.Spec]string{&o.AllowTools: run.Allowed, &o.DenyTools: run.Disallowed} {
		if len(*list) == 0 && was != "" {
			specs, err := rule.ParseSpecs(was)
			if err != nil {
				return inputf("the rules of the run on record cannot be read: %v", err)
			}
			*list = specs
		}
	}
	if o.SystemPrompt == "" && o.AppendSystem == "" {
		o.SystemPrompt, o.AppendSystem = run.System, run.Appended
	}
	return nil
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
