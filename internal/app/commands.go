package app

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/task"
	"coder/internal/host/workspace"
	"coder/internal/slash"
	"coder/internal/tool/git"
)

// newChanges returns the changes to the files of a workspace, as far as records tell them.
func (a *Archive) newChanges(ws *workspace.Workspace) *slash.Changes {
	return &slash.Changes{
		Git: git.Options{Workspace: ws, Launcher: a.Launcher()},
		ReadSaved: func(hash string, limit int64) ([]byte, error) {
			f, err := a.Store().undoStore().Open(hash)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return io.ReadAll(io.LimitReader(f, limit))
		},
	}
}

// ChangedTurns returns the turns that changed files, oldest first.
func (a *Session) ChangedTurns() []slash.Turn { return a.changes.Turns() }

// commands returns the session's slash commands, and the function that passes them its records.
func (a *Session) commands() (all []slash.Command, observe func(event.Record)) {
	kit, clip := a.kit, a.clipboard()
	clip.Terminal = a.screen.Copy
	ledger := &slash.CostTally{WithCost: a.meter.WithCost}
	var revoke func(string) (string, error)
	if a.memory != nil {
		revoke = func(which string) (string, error) { return Revoke(a.memory, which) }
	}
	all = slash.All(slash.Deps{
		Session: a.id, Root: a.Root, DataDir: a.dataDir(), CustomKeys: a.screen.KeyBindings,
		LineMode: a.Config.UI.Plain || a.Env.Getenv("TERM") == "dumb",
		Now:      a.Env.Now, NewID: func() string { return NewSessionID(a.Env.Now()) },
		Records: slash.Records{Archive: a.Store(), Ledger: a.BuildLedger, Trace: a.TraceProvenance, Search: a.SearchSessions,
			ReadDiff: func(ctx context.Context, from, to uint64) (string, error) {
				return a.ReadDiff(ctx, a.id, from, to, func(path string) string {
					return path +
						" changed, but its content was not saved\n"
				})
			}},
		Files: slash.Files{Changes: a.changes, History: &kit.history, Undo: kit.undo, Redo: kit.redo, Restore: a.restore},
		Costs: ledger, Models: modelSwitcher{a.Models, a.live},
		Permissions: a.judge.Permissions, Revoke: revoke, Servers: kit.mcp, Login: a.loginMCP, Skills: a.loadLibrary().skills,
		Agents: a.crew.list,
		Todos:  kit.todos.List, Jobs: kit.backgroundJobs, Copy: clip.Copy,
		Tasks:    func(ctx context.Context) ([]slash.Task, error) { return a.listTasks(ctx, a.id) },
		Settings: sessionSettings{a.Workspace}, Styles: stylesFor{sessionSettings{a.Workspace}}, Status: a.statusRows,
		Trust: a.Trust, PreviewTrust: a.previewTrust, Memory: memoryCommands{a},
	})
	return all, func(r event.Record) { ledger.Add(r); a.changes.Add(r) }
}

// listTasks returns a session's tasks, the newest first.
func (a *Archive) listTasks(ctx context.Context, sessionID string) (rows []slash.Task, err error) {
	var all task.Tasks
	created := make(map[string]time.Time)
	for r, err := range a.Store().Logs.Read(ctx, sessionID, 0, event.LogDomain) {
		if err != nil {
			return nil, message.Errorf("read session %s: %w", sessionID, err)
		}
		if e, ok := r.Event.(event.TaskCreated); ok {
			created[e.TaskID] = r.Time
		}
		if err := all.Add(r); err != nil {
			return nil, message.Errorf("read session %s: %w", sessionID, err)
		}
	}
	for _, t := range all.All() {
		row := slash.Task{Title: t.Title, Status: taskStatusTexts[t.Status], IsSubagent: t.Parent != "",
			Created: created[t.ID]}
		if t.Pending != nil {
			row.Question = display.Cell{Text: t.Pending.Display.Title, Words: t.Pending.HasOwnTitle()}
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows, nil
}

// TaskStatusText returns a task's status for display. A started task is running only while a process works on it.
func TaskStatusText(status string, running bool) string {
	if task.Status(status) == task.StatusInProgress && !running {
		return "interrupted"
	}
	return cmp.Or(taskStatusTexts[task.Status(status)], status)
}

// taskStatusTexts are the statuses for display.
var taskStatusTexts = map[task.Status]string{
	task.StatusOpen: "not started", task.StatusInProgress: "running", task.StatusAwaitingUser: "waiting for you",
	task.StatusDone: "done", task.StatusFailed: "failed", task.StatusCanceled: "stopped",
}

// shortenSandboxText shortens the description of the sandbox to the first items
// of each list, so that a status fits the screen; doctor lists all.
func shortenSandboxText(words string) string {
	const most = 3
	phrases := strings.Split(words, "; ")
	for i, phrase := range phrases {
		if parts := strings.Split(phrase, ", "); len(parts) > most+1 {
			phrases[i] = strings.Join(append(parts[:most], "..."), ", ")
		}
	}
	return strings.Join(phrases, "; ")
}

// statusRows returns the rows of /status.
func (a *Session) statusRows(ctx context.Context) [][]display.Cell {
	kept := display.TextCells("records", "nothing is saved")
	if !a.Options.Ephemeral {
		kept = slash.StatusRow("records", a.Store().Path("log", a.id))
	}
	c := a.endpoint()
	provider := singleLine(c.Address()) + " (" + c.Kind + ")"
	switch {
	case a.isScripted():
		provider = "a script"
	case c.BaseURL == "":
		provider = "none"
	}
	rows := [][]display.Cell{
		slash.StatusRow("version", Version),
		slash.StatusRow("session", a.id),
		slash.StatusRow("folder", a.Root),
		display.TextCells("trust", slash.TrustState(a.Trust, a.Root)),
		display.TextCells("provider", provider),
		display.TextCells("sandbox", shortenSandboxText(a.confiner.Summary(ctx))),
		kept,
		a.spentRow(a.meter),
	}
	profile := a.Config.Profile
	if c := a.profileConfig.Load(); c != nil {
		profile = c.Profile
	}
	if profile != "" {
		rows = append(rows, slash.StatusRow("profile", profile))
	}
	if t := cmp.Or(a.telemetry.Traces, a.telemetry.Metrics); t != nil {
		rows = append(rows, slash.StatusRow("telemetry", t.DisplayURL()))
	}
	if names := a.WithheldVars(); len(names) > 0 {
		rows = append(rows, slash.StatusRow("withheld from commands", strings.Join(names, ", ")))
	}
	if frozen := a.Config.Permission.Frozen; len(frozen) > 0 {
		rows = append(rows, slash.StatusRow("frozen", strings.Join(frozen, ", ")))
	}
	return rows
}
