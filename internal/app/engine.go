package app

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/prompt"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/policy/trust"
	"coder/internal/tool"
)

// Supervise builds what opens and runs the sessions of the workspace. Person is
// asked what has to be asked.
func (a *App) Supervise(person uip.Interactor) *supervisor.Supervisor {
	store := a.Store()
	store.keepOutOfGit()
	c := store.Records.Config
	c.Person, c.Engine = person, a.engine
	return supervisor.New(c)
}

// engine builds what one session runs on.
func (a *App) engine(sessionID string, spawn supervisor.Spawn) (supervisor.Engine, error) {
	model, err := a.Provider()
	if err != nil {
		return supervisor.Engine{}, err
	}
	tools, err := a.newToolkit(sessionID)
	if err != nil {
		return supervisor.Engine{}, err
	}
	a.set = tools.set
	judge, err := a.newJudge(tools.confiner, tools.terrain)
	if err != nil {
		return supervisor.Engine{}, errors.Join(err, tools.close())
	}
	if err := tools.confiner.Check(context.Background()); err != nil {
		return supervisor.Engine{}, errors.Join(err, tools.close())
	}
	a.judge = judge
	var waiver *toolrun.Waiver
	if a.Options.Attended {
		waiver = a.Store().waiver()
	}
	runner := &toolrun.Runner{
		Policy: a.inCommands(judge), NewID: func() string { return NewID("ui") }, Now: a.Env.Now, Keeper: tools.keeper, Conceal: tools.conceals.Text, Waiver: waiver,
	}
	memory := a.remember(judge)
	if memory != nil {
		runner.Memory = memory
	}
	settings := a.settings(tools.set)
	tools.crew.settings, tools.crew.runner, tools.crew.spawn = settings, runner, spawn
	commands, changes, observe := a.commands(sessionID, tools, judge, memory)
	return supervisor.Engine{
		Engine: orchestrator.Engine{
			Provider: model, Runner: runner, Settings: settings, Mode: a.Modes, Commands: commands, Todos: tools.todos.List,
			Files: tools.project, Library: a.loreFor(tools), PutAside: a.putAside(tools, sessionID),
		},
		ModeChosen: a.Options.Mode != "", OnInput: a.hear(judge),
		Observe: func(r event.Record, when supervisor.When) { tools.observe(r, when); observe(r) },
		Undo:    tools.undo, Redo: tools.redo, CutOff: tools.history.CutOff, ChangesSince: a.since(tools, changes), Close: tools.close,
	}, nil
}

// hear lets the judge know what the person said. What was piped in beside a
// prompt is not theirs.
func (a *App) hear(j *judge.Judge) func(string) {
	return func(words string) { j.AddHosts(cmp.Or(a.Options.Typed, words)) }
}

// conceals blots providers' keys out of what is shown and kept.
func (a *App) conceals() *secret.Concealer {
	return secret.Conceal(a.Report.Secrets(a.Env.Environ))
}

// settings are read at the start of each turn: they follow the mode.
func (a *App) settings(set tool.Set) func() orchestrator.Settings {
	system := a.systemPrompt()
	return func() orchestrator.Settings {
		m, _ := a.Modes.Current()
		return orchestrator.Settings{
			Model: a.ModelName(), Mode: m.Name, System: system(m), Tools: set.Without(func(name string) bool { return !m.Has(name) || a.forbidden(name) }),
			MaxSteps: a.Config.Runtime.MaxSteps, ContextLimit: a.contextLimit(),
			StopOnReject: a.Config.Approval.OnReject == "stop", DirectBang: a.Config.Approval.Bang == "direct",
			Compaction: a.compaction(), Verification: a.verification(), TodoForComplex: a.Config.Workflow.RequireTodoForComplex,
		}
	}
}

func (a *App) compaction() orchestrator.Compaction {
	c := a.Config.Compaction
	return orchestrator.Compaction{Auto: c.Auto, Prune: c.Prune, Threshold: c.Threshold, Recent: c.RecentMessages}
}

func (a *App) verification() orchestrator.Verification {
	w := a.Config.Workflow
	return orchestrator.Verification{
		Enabled: w.AutoVerifyAfterEdit, MaxAttempts: w.MaxVerifyAttempts, Commands: w.VerifyCommands, Trusted: a.Trusted == trust.Trusted,
	}
}

// forbidden reports whether this run forbids every use of a tool.
func (a *App) forbidden(name string) bool {
	return slices.ContainsFunc(a.Options.DenyTools, func(s rule.Spec) bool { return s.On == "" && strings.EqualFold(s.Tool, name) })
}

// ModelName is the model in use.
func (a *App) ModelName() string {
	if name := a.chosen.Load(); name != nil {
		return *name
	}
	if a.Config.Provider.Model == "" && a.scripted() {
		return "script"
	}
	return a.Config.Provider.Model
}

func (a *App) scripted() bool { return a.Options.Script != "" || a.Play != nil }

// systemPrompt reads the rules once and writes the system text for a mode.
func (a *App) systemPrompt() func(mode.Mode) string {
	rules := a.rules()
	date := a.Env.Now().Format(time.DateOnly)
	return func(m mode.Mode) string {
		return prompt.System(prompt.Facts{
			Dir: a.Root, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: date,
			Mode: m.Name, ModeText: m.Prompt, Skills: a.skillSummary(m), Rules: rules, Append: a.Options.AppendSystem,
		})
	}
}
