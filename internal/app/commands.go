package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/supervisor"
	"coder/internal/core/event"
	"coder/internal/policy/judge"
	"coder/internal/record/undo"
	"coder/internal/slash"
	"coder/internal/tool/git"
)

// commands are the slash commands of a session, in the order of /help, and who
// has to be told of its records for them.
func (h *house) commands(sessionID string, hs *hands, j *judge.Judge, memory *judge.Memory) (all []slash.Command, changes *slash.Changes, observe func(event.Record)) {
	ledger := &slash.Ledger{Price: func(model string, in, cached, out int) (float64, bool) {
		return h.figures(model).Price.Cost(in, cached, out)
	}}
	changes = &slash.Changes{Git: git.Options{Workspace: hs.project.ws, Env: h.childEnv()}, Kept: h.keptContent}
	var revoke func(string) (string, error)
	if memory != nil {
		revoke = func(which string) (string, error) { return revoked(memory, which) }
	}
	sessions := archive{h}
	status := func(ctx context.Context) [][]string { return h.status(ctx, sessionID, hs) }
	all = slices.Concat(
		[]slash.Command{slash.Help(), slash.Model(modelChoice{h}), slash.Mode()}, slash.Modes(),
		[]slash.Command{
			slash.Permissions(j.Permissions, revoke), slash.Tools(), slash.Skills(h.written().skills), slash.Agents(hs.crew.listing), slash.Todos(hs.todos.List),
			slash.Context(), slash.Cost(ledger), slash.Compact(), slash.Diff(changes), slash.Undo(hs.undo), slash.Redo(hs.redo),
		},
		slash.New(func() string { return newSessionID(h.env.Now()) }),
		[]slash.Command{
			slash.Resume(sessions, sessionID, h.env.Now), slash.Sessions(sessions, sessionID, h.env.Now), slash.Export(sessions, sessionID, h.root, h.data()),
			slash.Init(), slash.Config(h.report), slash.Status(status), slash.Trust(h.trust(), h.root),
		},
		slash.Exit(),
	)
	return all, changes, func(r event.Record) { ledger.Add(r); changes.Add(r) }
}

// keptContent is what a file had that was overwritten, up to a limit.
func (h *house) keptContent(hash string, limit int64) ([]byte, error) {
	f, err := undo.OpenStore(filepath.Join(h.data(), "undo"), undo.StoreOptions{Now: h.env.Now}).Open(hash)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// status tells what a session runs with.
func (h *house) status(ctx context.Context, sessionID string, hs *hands) [][]string {
	kept := "nothing is kept"
	if !h.flags.ephemeral {
		kept = filepath.Join(h.logs(), sessionID)
	}
	rows := [][]string{
		{"version", Version},
		{"session", sessionID},
		{"folder", h.root},
		{"trust", slash.Standing(h.trust(), h.root)},
		{"provider", h.providerWords()},
		{"sandbox", hs.confiner.Words(ctx)},
		{"records", kept},
	}
	if names := h.withheld(); len(names) > 0 {
		rows = append(rows, []string{"withheld from commands", strings.Join(names, ", ")})
	}
	if frozen := h.conf.Permission.Frozen; len(frozen) > 0 {
		rows = append(rows, []string{"frozen", strings.Join(frozen, ", ")})
	}
	return rows
}

func (h *house) providerWords() string {
	switch {
	case h.scripted():
		return "a script"
	case h.conf.Provider.BaseURL == "":
		return "none"
	}
	return h.conf.Provider.Kind + " at " + oneLine(h.conf.Provider.BaseURL)
}

// archive is the sessions kept here.
type archive struct{ *house }

// Free makes sure that there is a session to go to, and that nobody else is
// writing it.
func (a archive) Free(ctx context.Context, id string) error {
	if validSessionID(id) {
		sup, err := a.shelf()
		if err != nil {
			return err
		}
		known, err := sup.Exists(ctx, id)
		if err != nil {
			return err
		}
		if known {
			release, err := sup.Store.Claim(ctx, id)
			if err != nil {
				return errors.New(message(err))
			}
			return release()
		}
	}
	return fmt.Errorf("there is no session %s; /sessions lists them by id", oneLine(id))
}

// shelf is where sessions are kept, without an engine to run them.
func (h *house) shelf() (*supervisor.Supervisor, error) {
	if h.kept != nil {
		return h.kept, nil
	}
	logs, sessions, err := h.stores()
	if err != nil {
		return nil, err
	}
	return supervisor.New(supervisor.Config{Store: logs, Sessions: sessions, Dir: h.root, Now: h.env.Now, Key: h.key}), nil
}
