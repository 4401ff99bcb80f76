package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/codeindex"
	"coder/internal/host/lsp"
	"coder/internal/host/repofile"
	"coder/internal/host/workspace"
	"coder/internal/model/catalogue"
	"coder/internal/policy/confine"
	"coder/internal/record/undo"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/codenav"
	"coder/internal/tool/codesearch"
	"coder/internal/tool/files"
	"coder/internal/tool/git"
	"coder/internal/tool/plan"
	"coder/internal/tool/search"
	"coder/internal/tool/skill"
	"coder/internal/tool/web"
)

// toolkit is what a session works with: its tools, what they keep so that their
// work can be undone, and what has to be ended with them.
type toolkit struct {
	set      tool.Set
	keeper   toolrun.Keeper // nil if nothing is kept
	files    *keeper        // the same, or nil
	history  undo.History
	todos    plan.Memory
	seen     recollection
	index    *codeindex.Index
	terrain  *terrain
	confiner *confine.Confiner
	project  project
	crew     *crew
	work     context.Context // ends with close
	marked   string          // what the environment of this workspace's commands holds
	claims   func(ctx context.Context, from, to time.Time) ([]undo.Claim, error)
	running  sync.Once
	note     func() // takes down that commands may run
	gone     func() // takes that back; nil before
	sweeping sync.WaitGroup
	ends     []func() error
	conceals *secret.Concealer // keys
}

// newToolkit builds the tools of one session. Nothing is started yet; what a killed
// program left is looked for.
func (a *App) newToolkit(sessionID string) (*toolkit, error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputf("open the workspace: %v", err)
	}
	ws.UseGitSettings(a.gitSettings())
	work, stop := context.WithCancel(context.Background())
	bound := func() error { a.Store().boundStorage(a.Config.Storage); return nil }
	t := &toolkit{work: work, marked: a.marked(), conceals: a.conceals()}
	t.ends = []func() error{bound, ws.Close, t.leave, func() error { stop(); return nil }}
	t.terrain = a.survey(ws)
	t.confiner, t.project, t.crew = a.confiner(t.terrain), project{ws}, a.newCrew()
	if !a.Options.Ephemeral {
		ws.KeepScratch(scratch)
		t.files = &keeper{history: &t.history, make: func() *undo.Keeper { return a.newKeeper(ws, &t.history) }, store: a.Store(), warn: a.warn}
		t.keeper = t.files
	}
	t.claims = func(ctx context.Context, from, to time.Time) ([]undo.Claim, error) {
		return a.Store().claims(ctx, sessionID, from, to)
	}
	set, err := tool.NewSet(a.toolList(ws, t, sessionID)...)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.set = set.In(a.Config.Tools.Dialect)
	a.sweepScratch(ws, t)
	a.sweepOwn(t)
	a.sweepCommands(ws, t)
	return t, nil
}

func (a *App) toolList(ws *workspace.Workspace, t *toolkit, sessionID string) []tool.Tool {
	env := a.ChildEnv()
	pool := lsp.New(a.languageServers(t))
	runs, cache := a.Store().relative("runs", sessionID), a.Store().relative("cache")
	index := codeindex.New(ws, codeindex.Options{Now: a.Env.Now, CacheDir: cache, Patience: indexPatience})
	t.index = index
	commands, jobs := bash.All(bash.Options{
		Workspace: ws, Shell: a.shell, Env: env, RunsDir: runs, Now: a.Env.Now,
		CommandTimeout: time.Duration(a.Config.Safety.CommandTimeoutMS) * time.Millisecond,
		OutputLimit:    a.Config.Safety.OutputLimitBytes,
		Analyse:        a.analyse, Confine: t.confiner.Command, Holds: t.confiner.Holds, Attended: t.confiner.Attended, Conceals: t.conceals,
	})
	t.ends = append(t.ends, t.confiner.Close, jobs.Close, index.Close, pool.Close)
	return slices.Concat(
		a.fileTools(ws, pool, t), a.searchTools(ws), []tool.Tool{codesearch.SearchCode(ws, index, a.hides)}, commands,
		git.All(git.Options{Workspace: ws, Env: env, Hides: a.hides}),
		[]tool.Tool{a.fetch()}, codenav.All(ws, pool), a.planTools(&t.todos, sessionID), []tool.Tool{skill.Skill(a.library().skills), t.crew.tool()},
	)
}

// sees reports whether the model can be shown pictures: it is known to, or the
// person says so.
func (a *App) sees() bool {
	m, _ := catalogue.Lookup(a.ModelName(), a.own()...)
	return a.Config.Provider.Vision || m.Vision
}

// indexPatience is how long a search waits for the look for changed files.
const indexPatience = 30 * time.Millisecond

// hides reports whether searches pass over a file.
func (a *App) hides(file string) bool { return a.judge != nil && a.judge.Hides(file) }

// fileTools are the tools for files; those that write tell what they broke.
func (a *App) fileTools(ws *workspace.Workspace, pool *lsp.Pool, t *toolkit) []tool.Tool {
	seen := &t.seen.files
	judge := &codenav.Diagnoser{Workspace: ws, Pool: pool}
	return []tool.Tool{
		files.Read(ws, seen, a.readOptions(ws, t)), files.List(ws),
		codenav.WithDiagnostics(files.Write(ws, seen), judge),
		codenav.WithDiagnostics(files.Edit(ws, seen), judge),
		codenav.WithDiagnostics(files.Patch(ws, seen), judge),
	}
}

// gitSettings are where the person tells git what to ignore.
func (a *App) gitSettings() workspace.GitSettings {
	home := a.Env.Getenv("HOME")
	config := cmp.Or(a.Env.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if !filepath.IsAbs(config) {
		return workspace.GitSettings{}
	}
	own := []string{filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
	if file := a.Env.Getenv("GIT_CONFIG_GLOBAL"); file != "" {
		own = []string{file}
	}
	return workspace.GitSettings{Home: home, Configs: append([]string{"/etc/gitconfig"}, own...), Ignore: filepath.Join(config, "git", "ignore")}
}

func (a *App) searchTools(ws *workspace.Workspace) []tool.Tool {
	return search.With(ws, search.Options{Hide: a.hides})
}

func (a *App) fetch() tool.Tool {
	f := a.Config.Fetch
	return web.Fetch(web.Options{
		Vision: a.sees(), AllowPrivate: f.AllowPrivate, AllowHosts: f.AllowHosts, SkipTLSVerify: f.SkipTLSVerify,
		MaxText: f.MaxTextBytes, MaxImage: f.MaxImageBytes, Timeout: time.Duration(f.TimeoutMS) * time.Millisecond,
		Proxy: http.ProxyFromEnvironment, UserAgent: "coder/" + Version,
		Reaches: func(address string) bool { return a.judge != nil && a.judge.Reaches(address) },
	})
}

// planTools are the tools for what is to be done: the list of it, questions
// about it, and plans of it. The mode says which of them are there.
func (a *App) planTools(todos *plan.Memory, sessionID string) []tool.Tool {
	exit := plan.ExitOptions{Mode: a.Config.Workflow.PlanExitMode, Save: func(text string) (string, error) { return a.savePlan(sessionID, text) }}
	return append(plan.All(todos), plan.Question(), plan.ExitPlan(exit))
}

// maxPlans is how many plans one session may keep.
const maxPlans = 1000

// savePlan keeps a plan under the next free number. One that is kept already,
// by a call that is run again, is the same plan still.
func (a *App) savePlan(sessionID, text string) (string, error) {
	text = strings.TrimRight(text, "\n") + "\n"
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
		name := filepath.Join(".coder", "plans", fmt.Sprintf("%s-%d.md", sessionID, n))
		f, err := os.OpenFile(filepath.Join(a.Root, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if holds(filepath.Join(a.Root, name), text) {
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
	return "", fmt.Errorf("this session has %d plans already", maxPlans)
}

// holds reports whether there is a plain file with this content.
func holds(path, text string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(text)) {
		return false
	}
	kept, err := os.ReadFile(path)
	return err == nil && string(kept) == text
}

// project is the workspace as far as choosing a check needs it.
type project struct{ ws *workspace.Workspace }

// maxManifest bounds what is read of a file that describes a project.
const maxManifest = 1 << 20

// Exists reports whether there is a file at path.
func (p project) Exists(path string) bool {
	info, err := repofile.Below(p.ws.Root()).Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Read reads a file that describes the project.
func (p project) Read(path string) ([]byte, error) {
	return repofile.Below(p.ws.Root()).Read(path, maxManifest)
}

// observe tells those who keep a view of the session what is on record. The
// first call of a tool is when work on the code begins, and when the index of
// the code begins to be built, beside it.
func (t *toolkit) observe(r event.Record, when supervisor.When) {
	if r.Vouched {
		t.history.Add(r) // what others say was overwritten is not brought back
	}
	t.todos.Observe(r)
	if when == supervisor.Replayed {
		t.seen.add(r)
		return
	}
	if _, ok := r.Event.(event.ToolCallRequested); ok {
		t.index.Start(t.work)
		t.running.Do(t.note)
	}
	if e, ok := r.Event.(event.ToolCallCompleted); ok && len(e.Changes) > 0 {
		t.index.Touched(t.work)
	}
}

// leave takes back that commands may run: they have all ended.
func (t *toolkit) leave() error {
	t.sweeping.Wait()
	if t.gone != nil {
		t.gone()
	}
	return nil
}

// close ends what the tools started, the last first.
func (t *toolkit) close() error {
	var errs []error
	for _, end := range slices.Backward(t.ends) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// errNoUndo reports a session that keeps nothing.
var errNoUndo = errors.New("nothing is kept in this session, so nothing can be undone")

func (t *toolkit) undo(ctx context.Context, c undo.Call) (undo.Report, error) {
	if t.files == nil {
		return undo.Report{}, errNoUndo
	}
	c.Others = t.claims
	return undo.Undo(ctx, t.files.get(), &t.history, c)
}

func (t *toolkit) redo(ctx context.Context, c undo.Call) (undo.Report, error) {
	if t.files == nil {
		return undo.Report{}, errNoUndo
	}
	return undo.Redo(ctx, t.files.get(), &t.history, c)
}

func (a *App) newKeeper(ws *workspace.Workspace, history *undo.History) *undo.Keeper {
	return undo.New(ws, a.Store().contents(), undo.Options{
		Env: a.ChildEnv(), Now: a.Env.Now, Warn: a.warn, Needs: history.Needs, Tree: history.Tree(),
	})
}

// keeper is an [undo.Keeper] made when first needed, so that a session which
// changes nothing costs nothing. What a call would overwrite and cannot be kept
// is not overwritten, unless the person lets the work go on without a record.
type keeper struct {
	history *undo.History
	make    func() *undo.Keeper
	store   *Store
	warn    func(string)

	once sync.Once
	real *undo.Keeper
	told sync.Once
}

func (k *keeper) get() *undo.Keeper {
	k.once.Do(func() {
		debug.SetGCPercent(garbagePercent)
		k.real = k.make()
	})
	return k.real
}

// garbagePercent is how much garbage there may be for what is in use once the
// state of all files may be: that is large where there are very many, and stays.
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
	k.told.Do(func() { k.warn(fmt.Sprintf("changes cannot be undone from here on: %v", err)) })
	return tool.Kept{}, nil
}

func (k *keeper) Changes(ctx context.Context, kept tool.Kept) ([]event.FileChange, error) {
	if len(kept.Effects) == 0 {
		return nil, nil
	}
	return k.get().Changes(ctx, kept)
}

// recollection learns from the record which files the model knew in earlier
// processes, and with what content, so that they are not overwritten blindly in
// this one.
type recollection struct {
	files files.Seen
	calls map[string][]tool.Effect // of calls under way
}

func (m *recollection) add(r event.Record) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		if m.calls == nil {
			m.calls = make(map[string][]tool.Effect)
		}
		m.calls[e.CallID] = e.Effects
	case event.ToolCallCompleted:
		effects := m.calls[e.CallID]
		delete(m.calls, e.CallID)
		if e.IsError {
			return
		}
		for _, effect := range effects {
			if len(e.Saw) == 0 && (effect.Kind == tool.Read || effect.Kind == tool.Write) {
				m.files.Recall(effect.Target, "") // it may have been shown, nobody knows in what state
			}
		}
		for _, f := range e.Saw {
			m.files.Recall(f.Path, f.Hash)
		}
	}
}
