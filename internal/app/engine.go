package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/bang"
	"coder/internal/agent/hooks"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/prompt"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/authored/skills"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/host/program"
	"coder/internal/policy"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/report/telemetry"
	"coder/internal/tool"
	"coder/internal/tool/delegate"
)

// Supervise returns a supervisor that opens and runs the workspace's sessions. person answers its questions.
func (a *App) Supervise(person uip.Interactor) *supervisor.Supervisor {
	store := a.Store()
	store.keepOutOfGit()
	a.register()
	c := store.Records.Config
	c.Person, c.Engine = person, a.engine
	return supervisor.New(c)
}

// engine builds what one session needs to run.
func (a *App) engine(sessionID string, spawn supervisor.Spawn) (supervisor.Engine, error) {
	spending := a.newMeter()
	model, err := a.Provider(spending)
	if err != nil {
		return supervisor.Engine{}, err
	}
	a.live.meter = spending
	checks := &verify.Checks{Root: a.Root}
	a.checks.Store(checks)
	a.live.now.Store(&model)
	var team *crew // set below, when its parts exist
	agents, unusable := a.loadAgents()
	kit, err := a.newToolkit(sessionID, taskTool(agents, func(ctx context.Context, job delegate.Job) (delegate.Report, error) {
		return team.run(ctx, job)
	}))
	if err != nil {
		return supervisor.Engine{}, err
	}
	a.set = kit.set
	judge, err := a.newJudge(kit.confiner, kit.protected, kit.project)
	if err == nil {
		err = kit.confiner.Check(context.Background())
	}
	if err != nil {
		return supervisor.Engine{}, errors.Join(err, kit.close())
	}
	judge.SetLogs(a.Store().relative("runs", sessionID))
	a.judge = judge
	ended := kit.ended
	runner := &toolrun.Runner{
		Policy: a.notesAsked(a.asksAboutMemory(asksAboutMarks(a.saysLeftOut(a.inCommands(judge))))), NewID: func() string { return NewID("ui") }, Now: a.Env.Now, Keeper: kit.keeper, Conceals: kit.conceals,
	}
	start := &sessionStart{app: a, kit: kit}
	runner.Start = start.keep
	if a.Recorded != nil {
		runner.Policy, runner.Recall = a.Recorded.judged(a.inCommands(judge)), a.Recorded.Recall
		ended = a.Recorded.Ended
	}
	if a.Options.Attended {
		runner.Waiver = a.Store().waiver()
	}
	memory := a.remember(judge, sessionID)
	if memory != nil {
		runner.Memory = memory
		if a.Store().logged(sessionID) == 0 { // a new session
			if err := memory.Begin(); err != nil {
				return supervisor.Engine{}, errors.Join(fmt.Errorf("drop the approvals of another session: %w", err), kit.close())
			}
		}
	}
	own, err := hooks.New(hooks.Options{
		Hooks: a.hooks, Runner: runner, Tool: kit.hook, NewID: NewID, Holds: a.pluginHolds, Warn: a.warn,
		Facts: func() hooks.Facts {
			m, _ := a.Modes.Current()
			return hooks.Facts{
				Session: sessionID, Transcript: filepath.Join(a.data(), "log", sessionID, "conversation.jsonl"), Root: a.Root, Mode: m.Name,
			}
		},
	})
	if err != nil {
		return supervisor.Engine{}, errors.Join(err, kit.close())
	}
	collector := telemetry.New(telemetry.Options{
		Settings: a.telemetry, Version: Version, Provider: a.telemetryProvider, Transport: http.DefaultTransport,
		Random: func(b []byte) { _, _ = rand.Read(b) }, // never fails
		Now:    a.Env.Now, Warn: a.warn,
	})
	kit.ends = append(kit.ends, collector.Close, a.beside.Close, start.close)
	settings := a.turnSettings(kit)
	team = &crew{agents, settings, runner, spawn}
	var final orchestrator.Final
	if a.answer != nil {
		final = a.answer
	}
	commands, changes, observe := a.commands(sessionID, kit, judge, memory, spending, listing(agents, unusable))
	a.tellHidden(commands)
	a.tellGuards()
	a.tellForeign()
	turn := &tally{meter: spending, kit: kit, compare: changes}
	a.turn.Store(turn)
	return supervisor.Engine{
		Engine: orchestrator.Engine{
			Provider: start, Runner: runner, Settings: settings, Mode: a.Modes, Commands: commands, Todos: kit.todos.List,
			Checked: checks.Last, Ended: ended, Declined: checks.Declined, Files: kit.project, Library: a.sessionLibrary(kit), PutAside: a.offload(kit, sessionID), Hooks: own, Final: final, Sleep: a.Env.Sleep, Conceals: kit.conceals,
		},
		ModeChosen: a.Options.Mode != "",
		OnInput:    judge.Hear,
		Observe: func(r event.Record, when supervisor.When) {
			start.observe(r)
			kit.observe(r, when)
			judge.Observe(r)
			spending.Add(r, when == supervisor.Live)
			observe(r)
			checks.Add(r)
			turn.add(r, when)
			if when == supervisor.Live {
				collector.Add(r)
			}
		},
		Undo: kit.undo, Redo: kit.redo, Restore: kit.restore, CutOff: kit.history.CutOff, ChangesSince: a.changesSince(kit, changes), Close: kit.close,
	}, nil
}

// asksAboutMarks returns p, but asks about a call that would write the mark of a
// masked key to a file: the model never saw the key, and the file would lose it.
func asksAboutMarks(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := p.Judge(ctx, c)
		writes := slices.ContainsFunc(c.Plan.Effects, func(e event.Effect) bool { return e.Kind == event.EffectWrite })
		if err == nil && o.Verdict == policy.Allow && writes && secret.Marked(c.Call.Args) {
			o.Verdict = policy.Ask
			o.Reasons = []policy.Reason{{By: "record", Text: "it would write the mark of a masked key into a file: the model never saw the key"}}
		}
		return o, err
	})
}

// turnSettings returns the function for each turn's settings,
// which depend on the mode. The rules for the model are read once.
func (a *App) turnSettings(t *toolkit) func() orchestrator.Settings {
	c, book, date, later := &a.Config, a.rules(), a.Env.Now().Format(time.DateOnly), a.later(t)
	return func() orchestrator.Settings {
		a.trusts() // notes the initial trust before anyone can change it
		m, _ := a.Modes.Current()
		lean := a.lean()
		tools := t.tools().Without(func(name string) bool { return !m.Has(name) || a.forbidden(name) })
		var listed []skills.Skill
		if _, on := tools.First(tool.LoadsSkill); on {
			listed, _ = a.library().skills.List()
		}
		if lean {
			listed = ofPeople(listed)
		}
		facts := prompt.Facts{
			Dir: a.Root, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: date, Rules: slices.Concat(book.Rules, a.remembered()),
			Skills: skills.Summary(listed, prompt.SkillsLimit), Append: a.Options.AppendSystem, Instead: a.Options.SystemPrompt,
			Style: a.outputStyle().Text, Plan: m.Name == mode.Plan,
		}
		return orchestrator.Settings{
			Model: a.ModelName(), Mode: m.Name, ModeText: m.Prompt, System: t.conceals.Text(prompt.System(facts)),
			Tools: tools.Unspoken(a.unspoken(t, m, lean, listed)),
			Later: later, Lean: lean, RulesFor: a.rulesFor(book),
			MaxSteps: c.Runtime.MaxSteps, ContextLimit: a.contextLimit(), Run: a.run(), RaiseWindow: a.raiseWindow(),
			StopOnReject: c.Approval.OnReject == "stop", DirectBang: a.directsBang(),
			ReadOwn: func(line string, forced bool) orchestrator.OwnLine {
				return bang.Read(line, forced, c.Approval.TerminalPrograms)
			},
			Compaction: orchestrator.Compaction{
				Auto: c.Compaction.Auto, Prune: c.Compaction.Prune, Threshold: c.Compaction.Threshold, Recent: c.Compaction.RecentMessages,
			},
			Verification: orchestrator.Verification{
				Enabled: c.Workflow.AutoVerifyAfterEdit, MaxAttempts: c.Workflow.MaxVerifyAttempts,
				Commands: c.Workflow.VerifyCommands, Trusted: a.trusts,
				Installed: program.Has,
			},
			WaitLimit: a.Options.WaitLimit, Attended: a.Options.Attended,
			TodoForComplex: c.Workflow.RequireTodoForComplex,
		}
	}
}

// run returns the run's options that are no settings.
func (a *App) run() event.Run {
	return event.Run{
		Window: a.servedWindow(a.ModelName()), Config: a.configFile,
		Allowed: rule.JoinSpecs(a.Options.AllowTools), Disallowed: rule.JoinSpecs(a.Options.DenyTools),
		System: a.Options.SystemPrompt, Appended: a.Options.AppendSystem,
	}
}

// leftOut reports whether this run's options exclude a tool of coder's own.
func (a *App) leftOut(name string) bool {
	only := a.Options.OnlyTools
	return only != nil && tool.ClassOf(name) != tool.GivesAnswer && !strings.HasPrefix(name, "mcp__") && !slices.ContainsFunc(*only, func(s rule.Spec) bool { return s.Names(name) })
}

// saysLeftOut returns p, but denies a tool that this run excludes
// and whose call is judged by name alone: nobody could approve it.
func (a *App) saysLeftOut(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		if len(c.Plan.Effects) > 0 || !a.leftOut(c.Tool) {
			return p.Judge(ctx, c)
		}
		text := fmt.Sprintf("%s is not available in this session", c.Tool)
		return policy.Opinion{Reasons: []policy.Reason{{By: "rule", Text: text, Rule: "--tools " + rule.JoinSpecs(*a.Options.OnlyTools)}}}, nil
	})
}

// forbidden reports whether this run forbids every use of a tool.
func (a *App) forbidden(name string) bool {
	return a.leftOut(name) || slices.ContainsFunc(a.Options.DenyTools, func(s rule.Spec) bool { return s.On == "" && s.Names(name) })
}

// Checked returns the last check in the most recently opened session, and the changes since, from its record.
func (a *App) Checked() verify.Check {
	if checks := a.checks.Load(); checks != nil {
		return checks.Last()
	}
	return verify.Check{}
}
