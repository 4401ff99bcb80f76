package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"coder/internal/agent/bang"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/prompt"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/verify"
	"coder/internal/authored/skills"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/host/program"
	"coder/internal/policy"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/slash"
	"coder/internal/tool"
)

// Screen is the person's terminal, as far as a session needs it; the zero Screen is none.
type Screen struct {
	Copy        func(bytes string) // sends bytes to the terminal, to copy them; nil if it does not copy
	OnJobEnded  func(slash.Job)    // is called when a background command has ended that no call waits for; may be nil
	KeyBindings [][2]string        // the user's key bindings, each a key and its action
}

// Sessions opens and runs a workspace's sessions, one after the other.
type Sessions struct {
	*supervisor.Supervisor
	workspace *Workspace
	screen    Screen
	open      atomic.Pointer[Session]
}

// NewSupervisor returns what opens and runs the workspace's sessions. person answers their questions.
func (a *Workspace) NewSupervisor(person uip.Interactor, on Screen) *Sessions {
	store := a.Store()
	store.writeGitignore()
	a.registerWorkspace()
	s := &Sessions{workspace: a, screen: on}
	c := store.Supervisor.Config
	c.User, c.Engine = person, s.engine
	s.Supervisor = supervisor.New(c)
	return s
}

// Opened returns the session that was opened last; nil before the first.
func (o *Sessions) Opened() *Session { return o.open.Load() }

// engine builds what one session needs to run.
func (o *Sessions) engine(sessionID string, spawn supervisor.SpawnFunc) (supervisor.Engine, error) {
	s, err := o.workspace.newSession(sessionID, o.screen, spawn)
	if err != nil {
		return supervisor.Engine{}, err
	}
	e, err := s.engine()
	if err != nil {
		return e, errors.Join(err, s.kit.close())
	}
	o.open.Store(s)
	return e, nil
}

// withMaskMarkCheck returns p, but asks about a call that would write the mark of a
// masked key to a file: the model never saw the key, and the file would lose it.
func withMaskMarkCheck(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		o, err := p.Judge(ctx, c)
		writes := slices.ContainsFunc(c.Plan.Effects, func(e event.Effect) bool { return e.Kind == event.EffectWrite })
		if err == nil && o.Verdict == policy.Allow && writes && secret.HasMask(c.Call.Args) {
			o.Verdict = policy.Ask
			o.Reasons = []policy.Reason{{By: "record",
				Text: "would write the mark of a masked key into a file: the model never saw the key"}}
		}
		return o, err
	})
}

// turnSettingsFunc returns the function for each turn's settings,
// which depend on the mode. The rules for the model are read once.
func (a *Session) turnSettingsFunc() func() orchestrator.Settings {
	t, c, book, date, later := a.kit, &a.Config, a.rules(), a.Env.Now().Format(time.DateOnly), a.lateMCPTools()
	return func() orchestrator.Settings {
		a.isTrusted() // notes the initial trust before anyone can change it
		m, _ := a.ModeState.Current()
		lean := a.isLean()
		tools := t.allTools().Without(func(name string) bool { return !m.Has(name) || a.isForbidden(name) })
		var listed []skills.Skill
		if _, on := tools.FirstOfClass(tool.ClassLoadSkill); on {
			listed, _ = a.loadLibrary().skills.List()
		}
		if lean {
			listed = customSkills(listed)
		}
		facts := prompt.Environment{
			Dir: a.Root, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: date,
			Rules:  slices.Concat(book.Rules, a.memoryRules()),
			Skills: skills.FormatList(listed, prompt.MaxSkillsBytes), Append: a.Options.AppendSystem,
			Replacement: a.Options.SystemPrompt,
			Style:       a.outputStyle().Text, PlanMode: m.Name == mode.Plan,
		}
		return orchestrator.Settings{
			Model: a.ModelName(), Mode: m.Name, ModeText: m.Prompt, System: t.concealer.Text(prompt.SystemText(facts)),
			Tools:        tools.Unadvertised(a.unadvertisedFilter(m, lean, listed)),
			RefreshTools: later, ShortToolDocs: lean, RulesFor: a.rulesForFile(book),
			MaxSteps: c.Runtime.MaxSteps, ContextLimit: a.maxRequestTokens(), Run: a.run(), RaiseWindowHint: a.raiseWindowHint(),
			StopOnReject: c.Approval.OnReject == "stop", TrustBang: a.isBangTrusted(),
			ParseBang: func(line string, forced bool) orchestrator.BangLine {
				return bang.Parse(line, forced, c.Approval.TerminalPrograms)
			},
			Compaction: orchestrator.Compaction{
				Auto: c.Compaction.Auto, Prune: c.Compaction.Prune, Threshold: c.Compaction.Threshold,
				Recent: c.Compaction.RecentMessages,
			},
			Verification: orchestrator.Verification{
				Enabled: c.Workflow.AutoVerifyAfterEdit, MaxAttempts: c.Workflow.MaxVerifyAttempts,
				Commands: c.Workflow.VerifyCommands, WorkspaceTrusted: a.isTrusted,
				IsInstalled: program.IsInstalled,
			},
			WaitLimit: a.Options.WaitLimit, HasUser: a.Options.HasUser,
			TodoForComplex: c.Workflow.RequireTodoForComplex,
		}
	}
}

// run returns the run's options that are no settings.
func (a *Models) run() event.RunOptions {
	return event.RunOptions{
		Window: a.servedWindow(a.ModelName()), ConfigFile: a.configFile,
		AllowedTools: rule.JoinSpecs(a.Options.AllowTools), DisallowedTools: rule.JoinSpecs(a.Options.DenyTools),
		SystemPrompt: a.Options.SystemPrompt, AppendSystemPrompt: a.Options.AppendSystem,
	}
}

// isExcluded reports whether this run's options exclude a tool of coder's own.
func (a *Site) isExcluded(name string) bool {
	only := a.Options.OnlyTools
	return only != nil && tool.ClassOf(name) != tool.ClassFinalAnswer && !strings.HasPrefix(name, "mcp__") &&
		!slices.ContainsFunc(*only, func(s rule.Spec) bool { return s.Matches(name) })
}

// withExclusions returns p, but denies a tool that this run excludes
// and whose call is judged by name alone: nobody could approve it.
func (a *Session) withExclusions(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		if len(c.Plan.Effects) > 0 || !a.isExcluded(c.Tool) {
			return p.Judge(ctx, c)
		}
		text := fmt.Sprintf("%s is not available in this session", c.Tool)
		return policy.Opinion{Reasons: []policy.Reason{{By: "rule", Text: text,
			Rule: "--tools " + rule.JoinSpecs(*a.Options.OnlyTools)}}}, nil
	})
}

// isForbidden reports whether this run forbids every use of a tool.
func (a *Site) isForbidden(name string) bool {
	return a.isExcluded(name) || slices.ContainsFunc(a.Options.DenyTools,
		func(s rule.Spec) bool { return s.On == "" && s.Matches(name) })
}

// LastCheck returns the session's last check, and the changes since, from its record.
func (a *Session) LastCheck() verify.LastCheck { return a.checks.Last() }
