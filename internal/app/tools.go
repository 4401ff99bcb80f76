package app

import (
	"net/http"
	"slices"
	"time"

	"coder/internal/core/display"
	"coder/internal/host/lsp"
	"coder/internal/host/workspace"
	"coder/internal/policy/mode"
	"coder/internal/slash"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/codenav"
	"coder/internal/tool/codesearch"
	"coder/internal/tool/files"
	"coder/internal/tool/git"
	"coder/internal/tool/memory"
	"coder/internal/tool/plan"
	"coder/internal/tool/search"
	"coder/internal/tool/skill"
	"coder/internal/tool/web"
)

// allTools returns the session's tools, with those for commands and for git, and with task, the delegation tool.
func (a *Session) allTools(t *toolkit, pool *lsp.Pool, commands, repository []tool.Tool, task tool.Tool) []tool.Tool {
	ws := t.project.ws
	fetch := a.Config.Fetch
	tools := slices.Concat(
		a.fileTools(ws, pool, t),
		search.All(ws, search.Options{Hide: a.hides}), []tool.Tool{codesearch.SearchCode(ws, t.index, a.hides)},
		commands, repository,
		[]tool.Tool{web.Fetch(web.Options{
			Vision: a.acceptsImages(), AllowPrivate: fetch.AllowPrivate, AllowHosts: fetch.AllowHosts,
			SkipTLSVerify: fetch.SkipTLSVerify,
			MaxText:       fetch.MaxTextBytes, MaxImage: fetch.MaxImageBytes,
			Timeout: time.Duration(fetch.TimeoutMS) * time.Millisecond,
			Proxy:   http.ProxyFromEnvironment, UserAgent: "coder/" + Version,
			IsApproved: func(address string) bool { return a.judge.AllowRedirect(address) },
		})},
		[]tool.Tool{codenav.All(ws, pool)}, plan.All(&t.todos),
		[]tool.Tool{plan.Question(), plan.ExitPlan(plan.ExitOptions{
			Modes: a.planExitModes, FromYolo: a.ModeState.FromYolo, Save: a.savePlan,
		})},
		[]tool.Tool{skill.Skill(a.loadLibrary().skills), memory.Memory(a.memoryToolOptions(ws)), task},
	)
	if a.answer != nil {
		tools = append(tools, a.answer)
	}
	if a.Replay != nil {
		tools = a.Replay.withReplacements(tools)
	}
	return tools
}

// inOrder returns the set of tools, first those that every mode has.
func inOrder(tools []tool.Tool) (tool.Set, error) {
	var ranks [3][]tool.Tool
	for _, one := range tools {
		r := 0
		if _, isGroup := one.(tool.Group); !isGroup { // modes do not switch off a group's tools
			r = mode.Rank(one.Spec().Class)
		}
		ranks[r] = append(ranks[r], one)
	}
	return tool.NewSet(slices.Concat(ranks[:]...)...)
}

// hides reports whether searches skip a file.
func (a *Session) hides(file string) bool { return a.judge.SkipsInSearch(file) }

// commandOptions returns how the session runs commands, and git.
func (a *Session) commandOptions(t *toolkit, ws *workspace.Workspace) (running bash.Options, repository git.Options) {
	running = bash.Options{
		Workspace: ws, Shell: a.shell, Env: a.ChildEnv(), RunsDir: a.Store().relativeDir("runs", a.id), Now: a.Env.Now,
		RunsLimit:      int64(a.Config.Storage.RunsSessionBytes),
		CommandTimeout: time.Duration(a.Config.Safety.CommandTimeoutMS) * time.Millisecond,
		OutputLimit:    a.Config.Safety.OutputLimitBytes,
		Analyse:        a.analyzeLine, Confine: a.confiner.Command, DescribeConfinement: a.confiner.Describe,
		Supervised: a.confiner.Supervised, Concealer: t.concealer,
	}
	repository = git.Options{
		Workspace: ws, Launcher: a.Launcher(), Trailer: a.Config.Workflow.CommitTrailer, Confine: a.confiner.Git,
		CanConfine: a.confiner.EnforcesFrozen,
		IsHidden:   a.hides,
	}
	a.withRecordedDates(&running, &repository)
	running.OnJobEnd = func(e bash.JobEnd) {
		if a.screen.OnJobEnded != nil {
			a.screen.OnJobEnded(slash.Job{ID: e.Job, Command: e.Command, State: e.Outcome,
				Elapsed: display.FormatDuration(e.Duration)})
		}
	}
	running.Callback = a.Options.Driver.Callback
	return running, repository
}

// fileTools returns the file tools; those that write report what they broke.
func (a *Session) fileTools(ws *workspace.Workspace, pool *lsp.Pool, t *toolkit) []tool.Tool {
	seen := &t.recollection.files
	diagnose := &codenav.Diagnoser{Workspace: ws, Pool: pool}
	changes := func(one tool.Tool) tool.Tool {
		return codenav.WithDiagnostics(files.RefuseUnsaved(one, ws, a.Options.Driver.Buffer), diagnose)
	}
	return []tool.Tool{
		files.Read(ws, seen, files.Options{Vision: a.acceptsImages(), PDF: a.pdfReader(a.confiner),
			Buffer: a.Options.Driver.Buffer}), files.List(ws),
		changes(files.Write(ws, seen)),
		changes(files.Edit(ws, seen)),
		changes(files.Patch(ws, seen)),
		changes(files.Notebook(ws, seen)),
	}
}
