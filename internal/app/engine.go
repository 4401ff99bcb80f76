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
	Copy     func(bytes string) // sends bytes to the terminal, to copy them; nil if it does not copy
	JobEnded func(slash.Job)    // is called when a background command has ended that no call waits for; may be nil
	OwnKeys  [][2]string        // the user's key bindings, each a key and its action
}

// Sessions opens and runs a workspace's sessions, one after the other.
type Sessions struct {
	*supervisor.Supervisor
	workspace *Workspace
	screen    Screen
	open      atomic.Pointer[Session]
}

// Supervise returns what opens and runs the workspace's sessions. person answers their questions.
func (a *Workspace) Supervise(person uip.Interactor, on Screen) *Sessions {
	store := a.Store()
	store.keepOutOfGit()
	a.register()
	s := &Sessions{workspace: a, screen: on}
	c := store.Records.Config
	c.Person, c.Engine = person, s.engine
	s.Supervisor = supervisor.New(c)
	return s
}

// Opened returns the session that was opened last; nil before the first.
func (o *Sessions) Opened() *Session { return o.open.Load() }

// engine builds what one session needs to run.
func (o *Sessions) engine(sessionID string, spawn supervisor.Spawn) (supervisor.Engine, error) {
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
func (a *Session) turnSettings() func() orchestrator.Settings {
	t, c, book, date, later := a.kit, &a.Config, a.rules(), a.Env.Now().Format(time.DateOnly), a.later()
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
			Tools: tools.Unspoken(a.unspoken(m, lean, listed)),
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
func (a *Models) run() event.Run {
	return event.Run{
		Window: a.servedWindow(a.ModelName()), Config: a.configFile,
		Allowed: rule.JoinSpecs(a.Options.AllowTools), Disallowed: rule.JoinSpecs(a.Options.DenyTools),
		System: a.Options.SystemPrompt, Appended: a.Options.AppendSystem,
	}
}

// leftOut reports whether this run's options exclude a tool of coder's own.
func (a *Site) leftOut(name string) bool {
	only := a.Options.OnlyTools
	return only != nil && tool.ClassOf(name) != tool.GivesAnswer && !strings.HasPrefix(name, "mcp__") && !slices.ContainsFunc(*only, func(s rule.Spec) bool { return s.Names(name) })
}

// saysLeftOut returns p, but denies a tool that this run excludes
// and whose call is judged by name alone: nobody could approve it.
func (a *Session) saysLeftOut(p policy.Policy) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		if len(c.Plan.Effects) > 0 || !a.leftOut(c.Tool) {
			return p.Judge(ctx, c)
		}
		text := fmt.Sprintf("%s is not available in this session", c.Tool)
		return policy.Opinion{Reasons: []policy.Reason{{By: "rule", Text: text, Rule: "--tools " + rule.JoinSpecs(*a.Options.OnlyTools)}}}, nil
	})
}

// forbidden reports whether this run forbids every use of a tool.
func (a *Site) forbidden(name string) bool {
	return a.leftOut(name) || slices.ContainsFunc(a.Options.DenyTools, func(s rule.Spec) bool { return s.On == "" && s.Names(name) })
}

// Checked returns the session's last check, and the changes since, from its record.
func (a *Session) Checked() verify.Check { return a.checks.Last() }
