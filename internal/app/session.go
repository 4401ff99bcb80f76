package app

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"path/filepath"
	"sync"

	"coder/internal/agent/hooks"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/agent/verify"
	"coder/internal/core/event"
	"coder/internal/core/message"
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
	live    *liveProvider // the provider in use
	memory  *judge.Memory // of approvals; nil if nothing is remembered
	checks  *verify.CheckTracker
	changes *slash.Changes
	turn    *turnTally
	crew    *subagentRunner
	start   *startSaver
	asked   sync.Map // judged calls without anyone to approve them, by id
}

// newSession puts a session together.
func (a *Workspace) newSession(id string, on Screen, spawn supervisor.SpawnFunc) (*Session, error) {
	spending := a.newMeter()
	model, err := a.Provider(spending)
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputErrorf("open the workspace: %v", err)
	}
	ws.UseGitSettings(a.Env.gitIgnoreSettings())
	journal := new(sandbox.Journal)
	s := &Session{
		safety: a.newSafety(ws, journal), id: id, screen: on, meter: spending, live: &liveProvider{meter: spending},
		checks: &verify.CheckTracker{Root: a.Root}, changes: a.newChanges(ws),
	}
	s.live.current.Store(&model)
	s.start = &startSaver{of: s}
	s.crew = &subagentRunner{spawn: spawn}
	s.crew.agents, s.crew.unusable = a.loadAgents()
	if s.kit, err = s.newToolkit(ws, journal, taskTool(s.crew.agents, s.crew.run)); err != nil {
		return nil, err
	}
	s.turn = &turnTally{meter: spending, kit: s.kit, changes: s.changes}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.kit.close())
	}
	s.crew.settings, s.crew.runner = s.turnSettingsFunc(), s.runner()
	return s, nil
}

// prepare makes the judge, with the approvals that it remembers.
func (a *Session) prepare() error {
	if err := a.read(a.kit.baseTools, a.kit.project); err != nil {
		return err
	}
	if err := a.confiner.Check(context.Background()); err != nil {
		return err
	}
	a.judge.SetLogDir(a.Store().relativeDir("runs", a.id))
	if a.memory = a.attachMemory(a.judge, a.id); a.memory != nil && a.Store().logTime(a.id) == 0 { // a new session
		if err := a.memory.ClearSession(); err != nil {
			return message.Errorf("drop the approvals of another session: %w", err)
		}
	}
	return nil
}

// runner returns what runs the session's calls.
func (a *Session) runner() *toolrun.Runner {
	r := &toolrun.Runner{
		Policy: a.withApprovalLog(a.withMemoryApproval(withMaskMarkCheck(a.withExclusions(a.withCommandHeader())))),
		NewID:  func() string { return NewID("ui") }, Now: a.Env.Now,
		Backup: a.kit.backup, Concealer: a.kit.concealer, SaveInitialState: a.start.saveCursor,
	}
	if a.Replay != nil {
		r.Policy, r.KnownResult = a.Replay.withRecordedVerdicts(a.withCommandHeader()), a.Replay.RecordedResult
	}
	if a.Options.HasUser {
		r.Waiver = a.Store().newWaiver()
	}
	if a.memory != nil {
		r.Approvals = a.memory
	}
	return r
}

// ownHooks returns the user's commands on events.
func (a *Session) ownHooks() (*hooks.Hooks, error) {
	return hooks.New(hooks.Options{
		Hooks: a.hooks, Runner: a.crew.runner, Tool: a.kit.hookTool, NewID: NewID, IsTrusted: a.isPluginUnchanged,
		Warn: a.warn,
		SessionInfo: func() hooks.SessionInfo {
			m, _ := a.ModeState.Current()
			return hooks.SessionInfo{
				Session: a.id, Transcript: filepath.Join(a.dataDir(), "log", a.id, "conversation.jsonl"), Root: a.Root,
				Mode: m.Name,
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
	ended := kit.endedJobs
	if a.Replay != nil {
		ended = a.Replay.EndedCommands
	}
	collector := telemetry.New(telemetry.Options{
		Settings: a.telemetry, Version: Version, Provider: a.telemetryProvider, Transport: http.DefaultTransport,
		Random: func(b []byte) { _, _ = rand.Read(b) }, // never fails
		Now:    a.Env.Now, Warn: a.warn,
	})
	kit.closers = append(kit.closers, collector.Close, a.extraRequests.Close, a.start.close)
	var final orchestrator.FinalChecker
	if a.answer != nil {
		final = a.answer
	}
	commands, observe := a.commands()
	a.warnHiddenCommands(commands)
	a.warnRestrictions()
	a.warnForeignSettings()
	return supervisor.Engine{
		Engine: orchestrator.Engine{
			Provider: a.start, Runner: a.crew.runner, Settings: a.crew.settings, Mode: a.ModeState, Commands: commands,
			Counterparts: slash.Counterparts, Todos: kit.todos.List,
			LastCheck: a.checks.Last, EndedCommands: ended, IsCheckDeclined: a.checks.IsDeclined, Files: kit.project,
			Library: a.sessionLibrary(), SaveResult: a.resultSaver(), Hooks: own, FinalCheck: final, Sleep: a.Env.Sleep,
			Concealer: kit.concealer,
		},
		ModeChosen: a.Options.Mode != "",
		OnInput:    a.judge.RecordInput,
		Observe: func(r event.Record, when supervisor.RecordOrigin) {
			a.start.observe(r)
			kit.observe(r, when)
			a.judge.RecordEvent(r)
			a.meter.Add(r, when == supervisor.Live)
			observe(r)
			a.checks.Add(r)
			a.turn.add(r, when)
			if when == supervisor.Live {
				collector.Add(r)
			}
		},
		Undo: kit.undo, Redo: kit.redo, Restore: kit.restore, InterruptedUndos: kit.history.InterruptedCalls,
		ChangesSince: a.changesSince, Close: kit.close,
	}, nil
}
