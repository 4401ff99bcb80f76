package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"

	"coder/internal/agent/hooks"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/core/event"
	"coder/internal/host/sandbox"
	"coder/internal/host/workspace"
	"coder/internal/model/meter"
	"coder/internal/policy/judge"
	"coder/internal/report/telemetry"
	"coder/internal/slash"
)

// Session is what one session has: its judge, its tools, its meter and its checks.
type Session struct {
	*safety
	id      string
	screen  Screen
	kit     *toolkit
	meter   *meter.Meter
	live    *live         // the provider in use
	memory  *judge.Memory // of approvals; nil if nothing is remembered
	checks  *verify.Checks
	changes *slash.Changes
	turn    *tally
	crew    *crew
	start   *sessionStart
	asked   sync.Map // judged calls without anyone to approve them, by id
}

// newSession puts a session together.
func (a *Workspace) newSession(id string, on Screen, spawn supervisor.Spawn) (*Session, error) {
	spending := a.newMeter()
	model, err := a.Provider(spending)
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputf("open the workspace: %v", err)
	}
	ws.UseGitSettings(a.Env.gitSettings())
	journal := new(sandbox.Journal)
	s := &Session{
		safety: a.newSafety(ws, journal), id: id, screen: on, meter: spending, live: &live{meter: spending},
		checks: &verify.Checks{Root: a.Root}, changes: a.newChanges(ws),
	}
	s.live.now.Store(&model)
	s.start = &sessionStart{of: s}
	s.crew = &crew{spawn: spawn}
	s.crew.agents, s.crew.unusable = a.loadAgents()
	if s.kit, err = s.newToolkit(ws, journal, taskTool(s.crew.agents, s.crew.run)); err != nil {
		return nil, err
	}
	s.turn = &tally{meter: spending, kit: s.kit, compare: s.changes}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.kit.close())
	}
	s.crew.settings, s.crew.runner = s.turnSettings(), s.runner()
	return s, nil
}

// prepare makes the judge, with the approvals that it remembers.
func (a *Session) prepare() error {
	if err := a.read(a.kit.set, a.kit.project); err != nil {
		return err
	}
	if err := a.confiner.Check(context.Background()); err != nil {
		return err
	}
	a.judge.SetLogs(a.Store().relative("runs", a.id))
	if a.memory = a.remember(a.judge, a.id); a.memory != nil && a.Store().logged(a.id) == 0 { // a new session
		if err := a.memory.Begin(); err != nil {
			return fmt.Errorf("drop the approvals of another session: %w", err)
		}
	}
	return nil
}

// runner returns what runs the session's calls.
func (a *Session) runner() *toolrun.Runner {
	r := &toolrun.Runner{
		Policy: a.notesAsked(a.asksAboutMemory(asksAboutMarks(a.saysLeftOut(a.inCommands())))), NewID: func() string { return NewID("ui") }, Now: a.Env.Now,
		Keeper: a.kit.keeper, Conceals: a.kit.conceals, Start: a.start.keep,
	}
	if a.Recorded != nil {
		r.Policy, r.Recall = a.Recorded.judged(a.inCommands()), a.Recorded.Recall
	}
	if a.Options.Attended {
		r.Waiver = a.Store().waiver()
	}
	if a.memory != nil {
		r.Memory = a.memory
	}
	return r
}

// ownHooks returns the user's commands on events.
func (a *Session) ownHooks() (*hooks.Hooks, error) {
	return hooks.New(hooks.Options{
		Hooks: a.hooks, Runner: a.crew.runner, Tool: a.kit.hook, NewID: NewID, Holds: a.pluginHolds, Warn: a.warn,
		Facts: func() hooks.Facts {
			m, _ := a.Modes.Current()
			return hooks.Facts{
				Session: a.id, Transcript: filepath.Join(a.data(), "log", a.id, "conversation.jsonl"), Root: a.Root, Mode: m.Name,
			}
		},
	})
}

// engine returns what runs the session.
func (a *Session) engine() (e supervisor.Engine, err error) {
	own, err := a.ownHooks()
	if err != nil {
		return e, err
	}
	kit := a.kit
	ended := kit.ended
	if a.Recorded != nil {
		ended = a.Recorded.Ended
	}
	collector := telemetry.New(telemetry.Options{
		Settings: a.telemetry, Version: Version, Provider: a.telemetryProvider, Transport: http.DefaultTransport,
		Random: func(b []byte) { _, _ = rand.Read(b) }, // never fails
		Now:    a.Env.Now, Warn: a.warn,
	})
	kit.ends = append(kit.ends, collector.Close, a.beside.Close, a.start.close)
	var final orchestrator.Final
	if a.answer != nil {
		final = a.answer
	}
	commands, observe := a.commands()
	a.tellHidden(commands)
	a.tellGuards()
	a.tellForeign()
	return supervisor.Engine{
		Engine: orchestrator.Engine{
			Provider: a.start, Runner: a.crew.runner, Settings: a.crew.settings, Mode: a.Modes, Commands: commands, Counterparts: slash.Counterparts, Todos: kit.todos.List,
			Checked: a.checks.Last, Ended: ended, Declined: a.checks.Declined, Files: kit.project, Library: a.sessionLibrary(), PutAside: a.offload(), Hooks: own, Final: final, Sleep: a.Env.Sleep, Conceals: kit.conceals,
		},
		ModeChosen: a.Options.Mode != "",
		OnInput:    a.judge.Hear,
		Observe: func(r event.Record, when supervisor.When) {
			a.start.observe(r)
			kit.observe(r, when)
			a.judge.Observe(r)
			a.meter.Add(r, when == supervisor.Live)
			observe(r)
			a.checks.Add(r)
			a.turn.add(r, when)
			if when == supervisor.Live {
				collector.Add(r)
			}
		},
		Undo: kit.undo, Redo: kit.redo, Restore: kit.restore, CutOff: kit.history.CutOff, ChangesSince: a.changesSince, Close: kit.close,
	}, nil
}
