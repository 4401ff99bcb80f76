package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/secret"
	"coder/internal/host/codeindex"
	"coder/internal/host/lsp"
	"coder/internal/host/repofile"
	"coder/internal/host/sandbox"
	"coder/internal/host/workspace"
	"coder/internal/policy/mode"
	"coder/internal/record/undo"
	"coder/internal/slash"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/git"
	"coder/internal/tool/mcp"
	"coder/internal/tool/plan"
)

// toolkit has a session's tools, the data to undo their work, and what must be closed with them.
type toolkit struct {
	set       tool.Set
	keeper    toolrun.Keeper // nil if nothing is saved
	files     *keeper        // the same, or nil
	history   undo.History
	notOurs   string // why changes on record are not in history; "" if there are none
	todos     plan.Memory
	seen      recollection
	index     *codeindex.Index
	project   project
	hook      tool.Tool         // runs the user's commands on events
	mcp       *mcp.Host         // other programs' tools; nil if there are none
	awaited   sync.Once         // waits for them once
	jobs      *bash.Jobs        // the background commands
	conceals  *secret.Concealer // masks keys in everything shown and saved
	claims    func(ctx context.Context, from, to time.Time) ([]undo.Claim, error)
	git       func() bool // git is available
	servers   func() bool // language servers are available
	notebooks atomic.Bool // the conversation names a notebook

	work     context.Context // ends with close
	marked   string          // marks the environment of this workspace's commands
	running  sync.Once
	note     func() // notes that commands may run
	gone     func() // removes the note; nil before
	sweeping sync.WaitGroup
	ends     []func() error
}

// witness returns the function that reports which files a session's commands touch.
func witness(j *sandbox.Journal) func() func() (func(string) tool.Touch, bool) {
	return func() func() (func(string) tool.Touch, bool) {
		began := j.Mark()
		return func() (func(string) tool.Touch, bool) {
			touched, known := j.Since(began)
			return func(path string) tool.Touch { return tool.Touch(touched.Of(path)) }, known
		}
	}
}

// background lists the background commands, for display.
func (t *toolkit) background() (all []slash.Job) {
	for _, j := range t.jobs.List() {
		job := slash.Job{ID: j.ID, Command: j.Command, State: string(j.State), Exit: j.ExitCode, Log: j.LogPath}
		if j.Running {
			job.Runs = (time.Duration(j.Seconds) * time.Second).String()
		}
		all = append(all, job)
	}
	return all
}

// ended returns a text for the model about ended background
// commands, and the names under which the record keeps that.
func (t *toolkit) ended() (text string, names []string) {
	var lines []string
	for _, e := range t.jobs.Ended() {
		line := fmt.Sprintf("The background command %s (%s) ended after %s: %s.", e.Job, e.Command, display.Duration(e.Took), e.How)
		if last := sanitize.Line(e.Last, 200); last != "" {
			line += fmt.Sprintf(" Its last line: %q", last)
		}
		lines, names = append(lines, line), append(names, event.JobReminder+e.Job)
	}
	return strings.Join(lines, "\n"), names
}

// newToolkit builds the session's tools, including task, the delegation
// tool. It starts nothing yet, but cleans up after killed processes.
func (a *Session) newToolkit(ws *workspace.Workspace, journal *sandbox.Journal, task tool.Tool) (*toolkit, error) {
	store := a.Store()
	work, stop := context.WithCancel(context.Background())
	t := &toolkit{work: work, marked: a.marked(), conceals: a.conceals(), project: project{ws}}
	t.ends = []func() error{
		func() error { store.limitStorage(a.Config.Storage, a.warn); return nil }, ws.Close, t.unmark, func() error { stop(); return nil },
	}
	t.ends = append(t.ends, journal.Close)
	t.claims = func(ctx context.Context, from, to time.Time) ([]undo.Claim, error) {
		return store.claims(ctx, a.id, from, to)
	}
	if !a.Options.Ephemeral {
		ws.KeepScratch(scratch)
		ws.SyncWith(store.names)
		t.files = &keeper{store: store, warn: a.warn, make: func() *undo.Keeper {
			return undo.New(ws, store.contents(), undo.Options{Door: a.Door(), Now: a.Env.Now, Warn: a.warn, GitFiles: a.Env.gitFiles(), Needs: t.history.Needs, Tree: t.history.Tree(), Witness: witness(journal), Many: sync.OnceFunc(collectOften)})
		}}
		t.keeper = t.files
	}
	pool := lsp.New(a.languageServers(work))
	t.servers = sync.OnceValue(pool.Installed)
	t.git = sync.OnceValue(func() bool { _, err := a.door.Find("git"); return err == nil })
	t.index = codeindex.New(ws, codeindex.Options{Now: a.Env.Now})
	running, repository := a.commandOptions(t, ws)
	commands, jobs := bash.All(running)
	t.jobs, t.hook = jobs, bash.Hook(running)
	t.ends = append(t.ends, a.confiner.Close, jobs.Close, pool.Close)
	set, err := inOrder(a.allTools(t, pool, commands, git.All(repository), task))
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.set = set.In(a.Config.Tools.Dialect)
	if t.mcp = a.mcpHost(t); t.mcp != nil {
		t.ends = append(t.ends, t.mcp.Close)
	}
	a.sweepFiles(ws, t)
	a.sweepCommands(ws, t)
	return t, nil
}

// gitSettings returns the files in which the user tells git what to ignore.
func (e Env) gitSettings() workspace.GitSettings {
	home := e.Getenv("HOME")
	config := cmp.Or(e.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if !filepath.IsAbs(config) {
		return workspace.GitSettings{}
	}
	own := []string{filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
	if file := e.Getenv("GIT_CONFIG_GLOBAL"); file != "" {
		own = []string{file}
	}
	return workspace.GitSettings{Home: home, Configs: append([]string{"/etc/gitconfig"}, own...), Ignore: filepath.Join(config, "git", "ignore")}
}

// gitFiles returns the user's own files that git reads; nil if the environment names more.
func (e Env) gitFiles() *undo.GitFiles {
	own := e.gitSettings()
	if own.Ignore == "" || e.Getenv("GIT_CONFIG_SYSTEM")+e.Getenv("GIT_CONFIG_COUNT")+e.Getenv("GIT_CONFIG_PARAMETERS") != "" {
		return nil
	}
	attributes := []string{"/etc/gitattributes", filepath.Join(filepath.Dir(own.Ignore), "attributes")}
	return &undo.GitFiles{Configs: own.Configs, Attributes: attributes}
}

// maxPlans limits the number of plans in a session.
const maxPlans = 1000

// savePlan saves a plan under the next free number. If a
// repeated call saves the same plan again, it reuses the number.
func (a *Session) savePlan(text string) (string, error) {
	text = a.conceals().Text(strings.TrimRight(text, "\n") + "\n")
	if a.Options.Ephemeral {
		return "", nil
	}
	if err := a.Store().barred["plans"]; err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(a.data(), "plans"), 0o700); err != nil {
		return "", err
	}
	for n := 1; n <= maxPlans; n++ {
		name := filepath.Join(".coder", "plans", fmt.Sprintf("%s-%d.md", a.id, n))
		f, err := os.OpenFile(filepath.Join(a.Root, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if kept, err := repofile.Below(a.Root).Read(name, int64(len(text))); err == nil && string(kept) == text {
				return name, nil
			}
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(text)
		return name, errors.Join(err, f.Close())
	}
	return "", fmt.Errorf("this session already has %d plans", maxPlans)
}

// offload returns a function that saves results too long for the conversation
// beside commands' output, each once. It returns nil if nothing is saved.
func (a *Session) offload() func(context.Context, string, string) (string, error) {
	if a.Options.Ephemeral {
		return nil
	}
	return func(_ context.Context, callID, text string) (string, error) {
		sum := sha256.Sum256([]byte(callID)) // a model may use any call id
		name := path.Join(".coder", "runs", a.id, "result-"+hex.EncodeToString(sum[:6])+".txt")
		err := a.kit.project.ws.CreateFile(name, []byte(a.kit.conceals.Value(text)), 0o600)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return name, err
	}
}

// project is the workspace for choosing a check.
type project struct{ ws *workspace.Workspace }

// maxManifest limits the bytes read of a project file.
const maxManifest = 1 << 20

// Exists reports whether a file exists at path.
func (p project) Exists(path string) bool {
	info, err := repofile.Below(p.ws.Root()).Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// maxNames limits the number of names read in a folder.
const maxNames = 2000

// List returns the names in a folder; folders end with a slash.
func (p project) List(dir string) (names []string) {
	list, _, err := p.ws.ReadDir(dir, maxNames)
	if err != nil {
		return nil
	}
	for _, e := range list {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

// Read reads a project file.
func (p project) Read(path string) ([]byte, error) {
	return repofile.Below(p.ws.Root()).Read(path, maxManifest)
}

// observe passes a record to everything that keeps a view of the
// session. The first live call also starts the note that commands run.
func (t *toolkit) observe(r event.Record, when supervisor.When) {
	if r.Vouched {
		t.history.Add(r) // an undo must not restore contents that are not vouched
	} else if e, ok := r.Event.(event.ToolCallRequested); ok && len(e.Before)+len(e.Tree) > 0 && t.notOurs == "" {
		t.notOurs = "coder did not make this session's changes on this machine and in this folder"
		if r.Seal == "" {
			t.notOurs = "an earlier version of coder made this session's changes and did not sign them, so this version cannot tell them from someone else's"
		}
	}
	t.todos.Observe(r)
	if e, ok := r.Event.(event.MessageAdded); ok && e.Message.Role != chat.System && namesNotebook(e.Message) {
		t.notebooks.Store(true)
	}
	if when == supervisor.Replayed {
		t.seen.add(r)
		return
	}
	t.seen.afterwards(r)
	if _, ok := r.Event.(event.ToolCallRequested); ok {
		t.running.Do(t.note)
	}
	if e, ok := r.Event.(event.ToolCallCompleted); ok && len(e.Changes) > 0 {
		t.index.Touched()
	}
}

// unmark removes the note that commands may run, after all have ended.
func (t *toolkit) unmark() error {
	t.sweeping.Wait()
	if t.gone != nil {
		t.gone()
	}
	return nil
}

// close closes what the tools opened, the last first.
func (t *toolkit) close() error {
	var errs []error
	for _, end := range slices.Backward(t.ends) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

func (t *toolkit) undo(ctx context.Context, c undo.Call) (undo.Plan, error) {
	if t.files == nil {
		return undo.Plan{}, undo.ErrNotKept
	}
	c.Others = t.claims
	report, err := undo.Undo(ctx, t.files.get(), &t.history, c)
	err = errors.Join(err, t.files.store.names.Sync())
	if errors.Is(err, undo.ErrNothing) && t.notOurs != "" {
		err = fmt.Errorf("%w: %s", undo.ErrNothing, t.notOurs)
	}
	return report, err
}

func (t *toolkit) redo(ctx context.Context, c undo.Call) (undo.Plan, error) {
	if t.files == nil {
		return undo.Plan{}, undo.ErrNotKept
	}
	report, err := undo.Redo(ctx, t.files.get(), &t.history, c)
	return report, errors.Join(err, t.files.store.names.Sync())
}

// restore sets files to the states in goals; undo reverts it.
func (t *toolkit) restore(ctx context.Context, c undo.Call, goals []undo.Goal) (undo.Plan, error) {
	if t.files == nil {
		return undo.Plan{}, undo.ErrNotKept
	}
	return undo.Restore(ctx, t.files.get(), c, goals)
}

// changesSince returns the changes to files since a call began, as far as their old contents were saved.
func (a *Session) changesSince(ctx context.Context, call event.ToolCallRequested) (s supervisor.Changes) {
	t := a.kit
	if t.files == nil || len(call.Before) == 0 && call.Tree == "" {
		return s
	}
	keeper := t.files.get()
	changes, err := keeper.Changes(ctx, tool.Kept{Before: call.Before, Tree: call.Tree})
	if err != nil {
		a.warn(fmt.Sprintf("could not determine what %s changed: %v", call.Tool, err))
	}
	for _, c := range changes {
		name := cmp.Or(c.Before.Path, c.After.Path)
		var old []byte
		if c.Before.Hash != "" {
			if old, err = keeper.Content(ctx, c.Before, slash.MaxCompared); err != nil {
				s.Files = append(s.Files, slash.NotKept(name).String())
				continue
			}
			if old == nil {
				old = []byte{}
			}
		}
		diff, c := a.changes.Compare(name, old)
		if c == (slash.Change{}) {
			continue
		}
		s.Files = append(s.Files, c.String())
		s.Diff.Unified += diff
	}
	s.Diff = display.Counted(s.Diff.Unified)
	return s
}

// keeper is an [undo.Keeper] created on first use, so that a session without changes costs nothing. A
// call does not overwrite what cannot be saved, unless the user lets the work continue without a record.
type keeper struct {
	make  func() *undo.Keeper
	store *Store
	warn  func(string)

	once sync.Once
	real *undo.Keeper
	told sync.Once
}

func (k *keeper) get() *undo.Keeper {
	k.once.Do(func() { k.real = k.make() })
	return k.real
}

// collectOften limits the garbage of a process with the state of very many files.
func collectOften() {
	debug.SetGCPercent(garbagePercent)
	if debug.SetMemoryLimit(-1) == MemoryOfOne { // the user set no other limit
		debug.SetMemoryLimit(memoryOfMany)
	}
}

// Memory limits above which garbage collection runs more often. A session is small
// compared to the first; only a very long reply or output comes near it, and would
// leave several times its size as garbage. The state of all files may be larger.
const (
	MemoryOfOne  = 48 << 20
	memoryOfMany = 256 << 20
)

// garbagePercent is the garbage percentage in a process with
// the state of very many files, which is large and stays.
const garbagePercent = 50

func (k *keeper) Keep(ctx context.Context, effects []tool.Effect) (tool.Kept, error) {
	kept, err := tool.Kept{}, k.store.barred["undo"]
	if err == nil {
		kept, err = k.get().Keep(ctx, effects)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return kept, err
	case !k.store.waived.Load():
		return tool.Kept{}, &event.UnkeptError{Err: err}
	}
	k.told.Do(func() { k.warn(fmt.Sprintf("changes cannot be undone from now on: %v", err)) })
	return tool.Kept{}, nil
}

func (k *keeper) Changes(ctx context.Context, kept tool.Kept) ([]event.FileChange, error) {
	if len(kept.Effects) == 0 {
		return nil, nil
	}
	return k.get().Changes(ctx, kept)
}

// afterPlan returns the modes in which work can continue after a plan: the
// configured one, the one before planning, and those that edit; never yolo.
func (a *Session) afterPlan() (modes []plan.ExitMode) {
	for _, name := range []string{a.Config.Workflow.PlanExitMode, a.Modes.Toggled(), mode.AutoEdit, mode.Default} {
		m, err := mode.Lookup(name)
		known := slices.ContainsFunc(modes, func(o plan.ExitMode) bool { return o.Name == m.Name })
		if err == nil && !known && m.Name != mode.Plan && m.Name != mode.Yolo {
			modes = append(modes, plan.ExitMode{Name: m.Name, Text: m.Prompt})
		}
	}
	return modes
}
