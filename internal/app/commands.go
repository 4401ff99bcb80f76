package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/task"
	"coder/internal/host/workspace"
	"coder/internal/slash"
	"coder/internal/tool/git"
)

// newChanges returns the changes to the files of a workspace, as far as records tell them.
func (a *Archive) newChanges(ws *workspace.Workspace) *slash.Changes {
	return &slash.Changes{
		Git: git.Options{Workspace: ws, Door: a.Door()},
		Kept: func(hash string, limit int64) ([]byte, error) {
			f, err := a.Store().contents().Open(hash)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return io.ReadAll(io.LimitReader(f, limit))
		},
	}
}

// commands returns the session's slash commands, and the function that passes them its records.
func (a *Session) commands() (all []slash.Command, observe func(event.Record)) {
	kit, clip := a.kit, a.clipboard()
	clip.Terminal = a.screen.Copy
	ledger := &slash.Ledger{Priced: a.meter.Priced}
	var revoke func(string) (string, error)
	if a.memory != nil {
		revoke = func(which string) (string, error) { return Revoke(a.memory, which) }
	}
	all = slash.All(slash.Work{
		Session: a.id, Root: a.Root, Own: a.data(), OwnKeys: a.screen.OwnKeys, InLines: a.Config.UI.Plain || a.Env.Getenv("TERM") == "dumb",
		Now: a.Env.Now, NewID: func() string { return NewSessionID(a.Env.Now()) },
		Records: slash.Records{Archive: a.Store(), Book: a.Ledger, Trace: a.Provenance, Find: a.Search},
		Files:   slash.Files{Changes: a.changes, Past: &kit.history, Undo: kit.undo, Redo: kit.redo, Restore: a.restore},
		Spent:   ledger, Models: models{a.Models, a.live},
		Permissions: a.judge.Permissions, Revoke: revoke, Servers: kit.mcp, Login: a.loginMCP, Skills: a.library().skills, Agents: a.crew.list,
		Todos: kit.todos.List, Jobs: kit.background, Copy: clip.Copy, Tasks: func(ctx context.Context) ([]slash.Task, error) { return a.tasks(ctx, a.id) },
		Settings: settingsFor{a.Workspace}, Styles: stylesFor{settingsFor{a.Workspace}}, Status: a.status,
		Trust: a.Trust, Entrusts: a.entrusts, Memory: memoryFor{a},
	})
	return all, func(r event.Record) { ledger.Add(r); a.changes.Add(r) }
}

// tasks returns a session's tasks, the newest first.
func (a *Archive) tasks(ctx context.Context, sessionID string) (rows []slash.Task, err error) {
	var all task.Tasks
	created := make(map[string]time.Time)
	for r, err := range a.Store().Logs.Read(ctx, sessionID, 0, event.Domain) {
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", sessionID, err)
		}
		if e, ok := r.Event.(event.TaskCreated); ok {
			created[e.TaskID] = r.Time
		}
		if err := all.Add(r); err != nil {
			return nil, fmt.Errorf("read session %s: %w", sessionID, err)
		}
	}
	for _, t := range all.All() {
		row := slash.Task{Title: t.Title, Status: taskWords[t.Status], Sub: t.Parent != "", Created: created[t.ID]}
		if t.Pending != nil {
			row.Waits = display.Cell{Text: t.Pending.Display.Title, Words: t.Pending.Worded()}
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows, nil
}

// TaskWords returns a task's status for display. A started task is running only while a process works on it.
func TaskWords(status string, running bool) string {
	if task.Status(status) == task.InProgress && !running {
		return "interrupted"
	}
	return cmp.Or(taskWords[task.Status(status)], status)
}

// taskWords are the statuses for display.
var taskWords = map[task.Status]string{
	task.Open: "not started", task.InProgress: "running", task.AwaitingUser: "waiting for you",
	task.Done: "done", task.Failed: "failed", task.Canceled: "stopped",
}

// brief shortens the description of the sandbox to the first items
// of each list, so that a status fits the screen; doctor lists all.
func brief(words string) string {
	const most = 3
	phrases := strings.Split(words, "; ")
	for i, phrase := range phrases {
		if parts := strings.Split(phrase, ", "); len(parts) > most+1 {
			phrases[i] = strings.Join(append(parts[:most], "..."), ", ")
		}
	}
	return strings.Join(phrases, "; ")
}

// status returns the rows of /status.
func (a *Session) status(ctx context.Context) [][]display.Cell {
	kept := display.Words("records", "nothing is saved")
	if !a.Options.Ephemeral {
		kept = slash.StatusRow("records", a.Store().Dir("log", a.id))
	}
	c := a.endpoint()
	provider := oneLine(c.Address()) + " (" + c.Kind + ")"
	switch {
	case a.scripted():
		provider = "a script"
	case c.BaseURL == "":
		provider = "none"
	}
	rows := [][]display.Cell{
		slash.StatusRow("version", Version),
		slash.StatusRow("session", a.id),
		slash.StatusRow("folder", a.Root),
		display.Words("trust", slash.Standing(a.Trust, a.Root)),
		display.Words("provider", provider),
		display.Words("sandbox", brief(a.confiner.Words(ctx))),
		kept,
		a.spent(a.meter),
	}
	profile := a.Config.Profile
	if c := a.switched.Load(); c != nil {
		profile = c.Profile
	}
	if profile != "" {
		rows = append(rows, slash.StatusRow("profile", profile))
	}
	if t := cmp.Or(a.telemetry.Traces, a.telemetry.Metrics); t != nil {
		rows = append(rows, slash.StatusRow("telemetry", t.Host()))
	}
	if names := a.Withheld(); len(names) > 0 {
		rows = append(rows, slash.StatusRow("withheld from commands", strings.Join(names, ", ")))
	}
	if frozen := a.Config.Permission.Frozen; len(frozen) > 0 {
		rows = append(rows, slash.StatusRow("frozen", strings.Join(frozen, ", ")))
	}
	return rows
}
