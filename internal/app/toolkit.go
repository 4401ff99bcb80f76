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
	"coder/internal/core/message"
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
	baseTools       tool.Set
	backup          toolrun.BackupStore // nil if nothing is saved
	fileKeeper      *lazyKeeper         // the same, or nil
	history         undo.History
	unvouchedReason string // why changes on record are not in history; "" if there are none
	todos           plan.TodoList
	recollection    recollection
	index           *codeindex.Index
	project         projectFiles
	hookTool        tool.Tool         // runs the user's commands on events
	mcp             *mcp.Host         // other programs' tools; nil if there are none
	mcpWaitOnce     sync.Once         // waits for them once
	jobs            *bash.Jobs        // the background commands
	concealer       *secret.Concealer // masks keys in everything shown and saved
	claims          func(ctx context.Context, from, to time.Time) ([]undo.Claim, error)
	hasGit          func() bool // git is available
	hasServers      func() bool // language servers are available
	notebooks       atomic.Bool // the conversation names a notebook

	ctx         context.Context // ends with close
	marker      string          // marks the environment of this workspace's commands
	runningOnce sync.Once
	noteRunning func() // notes that commands may run
	removeNote  func() // removes the note; nil before
	sweeps      sync.WaitGroup
	closers     []func() error
}

// touchedFilesFunc returns the function that reports which files a session's commands touch.
func touchedFilesFunc(j *sandbox.Journal) func() func() (func(string) tool.Touch, bool) {
	return func() func() (func(string) tool.Touch, bool) {
		began := j.Mark()
		return func() (func(string) tool.Touch, bool) {
			touched, known := j.Since(began)
			return func(path string) tool.Touch { return tool.Touch(touched.File(path)) }, known
		}
	}
}

// backgroundJobs lists the background commands, for display.
func (t *toolkit) backgroundJobs() (all []slash.Job) {
	for _, j := range t.jobs.List() {
		job := slash.Job{ID: j.ID, Command: j.Command, State: string(j.State), ExitCode: j.ExitCode, Log: j.LogPath}
		if j.Running {
			job.Elapsed = (time.Duration(j.Seconds) * time.Second).String()
		}
		all = append(all, job)
	}
	return all
}

// endedJobs returns a text for the model about ended background
// commands, and the names under which the record keeps that.
func (t *toolkit) endedJobs() (text string, names []string) {
	var lines []string
	for _, e := range t.jobs.TakeEnds() {
		line := fmt.Sprintf("The background command %s (%s) ended after %s: %s.", e.Job, e.Command,
			display.FormatDuration(e.Duration), e.Outcome)
		if last := sanitize.Line(e.LastLine, 200); last != "" {
			line += fmt.Sprintf(" Its last line: %q", last)
		}
		lines, names = append(lines, line), append(names, event.JobReminderPrefix+e.Job)
	}
	return strings.Join(lines, "\n"), names
}

// newToolkit builds the session's tools, including task, the delegation
// tool. It starts nothing yet, but cleans up after killed processes.
func (a *Session) newToolkit(ws *workspace.Workspace, journal *sandbox.Journal, task tool.Tool) (*toolkit, error) {
	store := a.Store()
	work, stop := context.WithCancel(context.Background())
	t := &toolkit{ctx: work, marker: a.markerVar(), concealer: a.newConcealer(), project: projectFiles{ws}}
	t.closers = []func() error{
		func() error { store.limitStorage(a.Config.Storage, a.warn); return nil }, ws.Close, t.removeRunningNote,
		func() error { stop(); return nil },
	}
	t.closers = append(t.closers, journal.Close)
	t.claims = func(ctx context.Context, from, to time.Time) ([]undo.Claim, error) {
		return store.otherClaims(ctx, a.id, from, to)
	}
	if !a.Options.Ephemeral {
		ws.UseScratchDir(scratchDir)
		ws.SyncWith(store.touchedFolders)
		t.fileKeeper = &lazyKeeper{store: store, warn: a.warn, create: func() *undo.Keeper {
			return undo.New(ws, store.undoStore(), undo.Options{Launcher: a.Launcher(), Now: a.Env.Now, Warn: a.warn,
				GitFiles: a.Env.userGitFiles(), IsNeeded: t.history.IsNeeded, LastTree: t.history.Tree(),
				RecordTouched: touchedFilesFunc(journal), OnManyFiles: sync.OnceFunc(tuneGC)})
		}}
		t.backup = t.fileKeeper
	}
	pool := lsp.New(a.languageServers(work))
	t.hasServers = sync.OnceValue(pool.HasServer)
	t.hasGit = sync.OnceValue(func() bool { _, err := a.launcher.Find("git"); return err == nil })
	t.index = codeindex.New(ws, codeindex.Options{Now: a.Env.Now})
	running, repository := a.commandOptions(t, ws)
	commands, jobs := bash.All(running)
	t.jobs, t.hookTool = jobs, bash.Hook(running)
	t.closers = append(t.closers, a.confiner.Close, jobs.Close, pool.Close)
	set, err := inOrder(a.allTools(t, pool, commands, git.All(repository), task))
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.baseTools = set.InDialect(a.Config.Tools.Dialect)
	if t.mcp = a.newSessionMCPHost(t); t.mcp != nil {
		t.closers = append(t.closers, t.mcp.Close)
	}
	a.sweepFiles(ws, t)
	a.sweepCommands(ws, t)
	return t, nil
}

// gitIgnoreSettings returns the files in which the user tells git what to ignore.
func (e Env) gitIgnoreSettings() workspace.GitSettings {
	home := e.Getenv("HOME")
	config := cmp.Or(e.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if !filepath.IsAbs(config) {
		return workspace.GitSettings{}
	}
	own := []string{filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
	if file := e.Getenv("GIT_CONFIG_GLOBAL"); file != "" {
		own = []string{file}
	}
	return workspace.GitSettings{Home: home, Configs: append([]string{"/etc/gitconfig"}, own...),
		Ignore: filepath.Join(config, "git", "ignore")}
}

// userGitFiles returns the user's own files that git reads; nil if the environment names more.
func (e Env) userGitFiles() *undo.GitFiles {
	own := e.gitIgnoreSettings()
	if own.Ignore == "" || e.Getenv("GIT_CONFIG_SYSTEM")+e.Getenv("GIT_CONFIG_COUNT")+
		e.Getenv("GIT_CONFIG_PARAMETERS") != "" {
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
	text = a.newConcealer().Text(strings.TrimRight(text, "\n") + "\n")
	if a.Options.Ephemeral {
		return "", nil
	}
	if err := a.Store().unusableDirs["plans"]; err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(a.dataDir(), "plans"), 0o700); err != nil {
		return "", err
	}
	for n := 1; n <= maxPlans; n++ {
		name := filepath.Join(".coder", "plans", fmt.Sprintf("%s-%d.md", a.id, n))
		f, err := os.OpenFile(filepath.Join(a.Root, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if kept, err := repofile.NewRoot(a.Root).Read(name, int64(len(text))); err == nil && string(kept) == text {
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
	return "", message.Errorf("this session already has %d plans", maxPlans)
}

// resultSaver returns a function that saves results too long for the conversation
// beside commands' output, each once. It returns nil if nothing is saved.
func (a *Session) resultSaver() func(context.Context, string, string) (string, error) {
	if a.Options.Ephemeral {
		return nil
	}
	return func(_ context.Context, callID, text string) (string, error) {
		sum := sha256.Sum256([]byte(callID)) // a model may use any call id
		name := path.Join(".coder", "runs", a.id, "result-"+hex.EncodeToString(sum[:6])+".txt")
		err := a.kit.project.ws.CreateFile(name, []byte(a.kit.concealer.Value(text)), 0o600)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return name, err
	}
}

// projectFiles is the workspace for choosing a check.
type projectFiles struct{ ws *workspace.Workspace }

// maxManifest limits the bytes read of a project file.
const maxManifest = 1 << 20

// Exists reports whether a file exists at path.
func (p projectFiles) Exists(path string) bool {
	info, err := repofile.NewRoot(p.ws.Root()).Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// maxDirNames limits the number of names read in a folder.
const maxDirNames = 2000

// List returns the names in a folder; folders end with a slash.
func (p projectFiles) List(dir string) (names []string) {
	list, _, err := p.ws.ReadDir(dir, maxDirNames)
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
func (p projectFiles) Read(path string) ([]byte, error) {
	return repofile.NewRoot(p.ws.Root()).Read(path, maxManifest)
}

// observe passes a record to everything that keeps a view of the
// session. The first live call also starts the note that commands run.
func (t *toolkit) observe(r event.Record, when supervisor.RecordOrigin) {
	if r.Vouched {
		t.history.Add(r) // an undo must not restore contents that are not vouched
	} else if e, ok := r.Event.(event.ToolCallRequested); ok && len(e.Before)+len(e.Tree) > 0 && t.unvouchedReason == "" {
		t.unvouchedReason = "coder did not make this session's changes on this machine and in this folder"
		if r.Seal == "" {
			t.unvouchedReason = "an earlier version of coder made this session's changes and did not sign them, so this version cannot tell them from someone else's"
		}
	}
	t.todos.Observe(r)
	if e, ok := r.Event.(event.MessageAdded); ok && e.Message.Role != chat.System && namesNotebook(e.Message) {
		t.notebooks.Store(true)
	}
	if when == supervisor.Replayed {
		t.recollection.add(r)
		return
	}
	t.recollection.addLive(r)
	if _, ok := r.Event.(event.ToolCallRequested); ok {
		t.runningOnce.Do(t.noteRunning)
	}
	if e, ok := r.Event.(event.ToolCallCompleted); ok && len(e.Changes) > 0 {
		t.index.MarkChanged()
	}
}

// removeRunningNote removes the note that commands may run, after all have ended.
func (t *toolkit) removeRunningNote() error {
	t.sweeps.Wait()
	if t.removeNote != nil {
		t.removeNote()
	}
	return nil
}

// close closes what the tools opened, the last first.
func (t *toolkit) close() error {
	var errs []error
	for _, end := range slices.Backward(t.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

func (t *toolkit) undo(ctx context.Context, c undo.Request) (undo.Plan, error) {
	if t.fileKeeper == nil {
		return undo.Plan{}, undo.ErrNotSaved
	}
	c.Others = t.claims
	report, err := undo.Undo(ctx, t.fileKeeper.get(), &t.history, c)
	err = errors.Join(err, t.fileKeeper.store.touchedFolders.Sync())
	if errors.Is(err, undo.ErrNothingToUndo) && t.unvouchedReason != "" {
		err = message.Errorf("%w: %s", undo.ErrNothingToUndo, t.unvouchedReason)
	}
	return report, err
}

func (t *toolkit) redo(ctx context.Context, c undo.Request) (undo.Plan, error) {
	if t.fileKeeper == nil {
		return undo.Plan{}, undo.ErrNotSaved
	}
	report, err := undo.Redo(ctx, t.fileKeeper.get(), &t.history, c)
	return report, errors.Join(err, t.fileKeeper.store.touchedFolders.Sync())
}

// restore sets files to the states in goals; undo reverts it.
func (t *toolkit) restore(ctx context.Context, c undo.Request, goals []undo.Goal) (undo.Plan, error) {
	if t.fileKeeper == nil {
		return undo.Plan{}, undo.ErrNotSaved
	}
	return undo.Restore(ctx, t.fileKeeper.get(), c, goals)
}

// changesSince returns the changes to files since a call began, as far as their old contents were saved.
func (a *Session) changesSince(ctx context.Context, call event.ToolCallRequested) (s supervisor.FileChanges) {
	t := a.kit
	if t.fileKeeper == nil || len(call.Before) == 0 && call.Tree == "" {
		return s
	}
	keeper := t.fileKeeper.get()
	changes, err := keeper.ChangesSince(ctx, tool.Snapshot{Before: call.Before, Tree: call.Tree})
	if err != nil {
		a.warn(fmt.Sprintf("could not determine what %s changed: %v", call.Tool, err))
	}
	for _, c := range changes {
		name := cmp.Or(c.Before.Path, c.After.Path)
		var old []byte
		if c.Before.Hash != "" {
			if old, err = keeper.Content(ctx, c.Before, slash.MaxCompareSize); err != nil {
				s.Files = append(s.Files, slash.UnsavedChange(name).String())
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
	s.Diff = display.NewDiff(s.Diff.Unified)
	return s
}

// lazyKeeper is an [undo.Keeper] created on first use, so that a session without changes costs nothing. A
// call does not overwrite what cannot be saved, unless the user lets the work continue without a record.
type lazyKeeper struct {
	create func() *undo.Keeper
	store  *Store
	warn   func(string)

	once     sync.Once
	keeper   *undo.Keeper
	warnOnce sync.Once
}

func (k *lazyKeeper) get() *undo.Keeper {
	k.once.Do(func() { k.keeper = k.create() })
	return k.keeper
}

// tuneGC limits the garbage of a process with the state of very many files.
func tuneGC() {
	debug.SetGCPercent(garbagePercent)
	if debug.SetMemoryLimit(-1) == MaxSessionMemory { // the user set no other limit
		debug.SetMemoryLimit(maxTotalMemory)
	}
}

// Memory limits above which garbage collection runs more often. A session is small
// compared to the first; only a very long reply or output comes near it, and would
// leave several times its size as garbage. The state of all files may be larger.
const (
	MaxSessionMemory = 48 << 20
	maxTotalMemory   = 256 << 20
)

// garbagePercent is the garbage percentage in a process with
// the state of very many files, which is large and stays.
const garbagePercent = 50

func (k *lazyKeeper) SaveOriginals(ctx context.Context, effects []tool.Effect) (tool.Snapshot, error) {
	kept, err := tool.Snapshot{}, k.store.unusableDirs["undo"]
	if err == nil {
		kept, err = k.get().SaveOriginals(ctx, effects)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return kept, err
	case !k.store.recordWaived.Load():
		return tool.Snapshot{}, &event.NotRecordableError{Err: err}
	}
	k.warnOnce.Do(func() { k.warn(fmt.Sprintf("changes cannot be undone from now on: %v", err)) })
	return tool.Snapshot{}, nil
}

func (k *lazyKeeper) ChangesSince(ctx context.Context, kept tool.Snapshot) ([]event.FileChange, error) {
	if len(kept.Effects) == 0 {
		return nil, nil
	}
	return k.get().ChangesSince(ctx, kept)
}

// planExitModes returns the modes in which work can continue after a plan: the
// configured one, the one before planning, and those that edit; never yolo.
func (a *Session) planExitModes() (modes []plan.ExitMode) {
	for _, name := range []string{a.Config.Workflow.PlanExitMode, a.ModeState.ToggleTarget(), mode.AutoEdit,
		mode.Default} {
		m, err := mode.Lookup(name)
		known := slices.ContainsFunc(modes, func(o plan.ExitMode) bool { return o.Name == m.Name })
		if err == nil && !known && m.Name != mode.Plan && m.Name != mode.Yolo {
			modes = append(modes, plan.ExitMode{Name: m.Name, Text: m.Prompt})
		}
	}
	return modes
}
