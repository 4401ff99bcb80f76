package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/record/session"
	"coder/internal/report/export"
	"coder/internal/report/transcript"
)

// maxForeignSessions limits how many sessions of another agent are listed.
const maxForeignSessions = 200

// ListForeignSessions lists another agent's sessions that worked in this folder, or in
// any, the newest first. With words, it lists only sessions that contain all of them.
func (a *Archive) ListForeignSessions(agent string, all bool, words []string) (list []transcript.File) {
	turns := 1
	if len(words) > 0 {
		turns = 0
	}
	for _, f := range transcript.Files(a.Env.Getenv("HOME"), agent, IsSessionID) {
		if err := f.Load(a.Env.Getenv("HOME"), turns); err != nil {
			a.warn(err.Error())
			continue
		}
		rel, err := filepath.Rel(a.Root, f.Session.Dir)
		if len(f.Session.Turns) == 0 || !all && (err != nil || !filepath.IsLocal(rel)) || !f.Has(words) {
			continue
		}
		if list = append(list, f); len(list) == maxForeignSessions {
			break
		}
	}
	return list
}

// FindForeignSession finds another agent's session by its id, and reads it.
func (a *Archive) FindForeignSession(id string) (f transcript.File, found bool, err error) {
	for _, agent := range ForeignAgents() {
		files := transcript.Files(a.Env.Getenv("HOME"), agent, IsSessionID)
		i := slices.IndexFunc(files, func(f transcript.File) bool { return f.ID == id })
		if i < 0 {
			continue
		}
		f = files[i]
		if err := f.Load(a.Env.Getenv("HOME"), 0); err != nil {
			return f, true, inputErrorf("%v", err)
		}
		if f.Session.Unreadable > 0 {
			a.warn(fmt.Sprintf("~/%s: unreadable lines skipped: %d", f.Path, f.Session.Unreadable))
		}
		if f.Session.Truncated {
			a.warn(fmt.Sprintf("~/%s is long: some of it was left out", f.Path))
		}
		if len(f.Session.Turns) == 0 {
			return f, true, inputErrorf("~/%s has no conversation", f.Path)
		}
		return f, true, nil
	}
	return f, false, nil
}

// ExportForeign exports another agent's session as md, html or json.
func (a *Archive) ExportForeign(w io.Writer, f transcript.File, format string) error {
	head := session.Head{ID: f.ID, Created: f.Session.Started, Updated: f.Session.Updated, Meta: session.Meta{
		Title: transcript.Clipped(f.Session.Title()), Dir: f.Session.Dir, Turns: len(f.Session.Turns), Agent: f.Agent,
	}}
	if format == "json" {
		talk := struct {
			ID       string         `json:"session_id"`
			Agent    string         `json:"agent"`
			Dir      string         `json:"cwd"`
			Created  time.Time      `json:"created_at"`
			Title    string         `json:"title"`
			Messages []chat.Message `json:"messages"`
		}{f.ID, f.Agent, f.Session.Dir, f.Session.Started, head.Meta.Title, []chat.Message{}}
		for r := range f.Records(f.ID, NewID) {
			if m, ok := r.Event.(event.MessageAdded); ok {
				talk.Messages = append(talk.Messages, m.Message)
			}
		}
		_, err := fmt.Fprintf(w, "%s\n", jsonx.MustMarshal(talk))
		return err
	}
	t, err := export.FromRecords(head, f.Records(f.ID, NewID))
	switch {
	case err != nil:
		return err
	case format == "html":
		return export.HTML(w, t, a.Store().language)
	case format == "md":
		return export.Markdown(w, t, a.Store().language)
	}
	return inputErrorf("a session of another agent is exported as md, html or json")
}

// importForeign imports another agent's session. Like a session from another machine, it allows nothing here.
func (a *Workspace) importForeign(ctx context.Context, f transcript.File, as string) (string, error) {
	s := a.Store()
	if why := errors.Join(s.unusableDirs["log"], s.unusableDirs["sessions"]); why != nil {
		return "", why
	}
	if as == "" {
		as = NewSessionID(a.Env.Now())
	}
	if _, err := s.CheckSession(ctx, as); err == nil {
		return "", inputErrorf("session %s already exists here", as)
	}
	s.writeGitignore()
	a.registerWorkspace()
	var records []event.Record
	for r := range f.Records(as, NewID) {
		records = append(records, r)
	}
	return as, a.saveImported(ctx, as, records)
}

// saveImported saves the records of an imported session.
func (a *Workspace) saveImported(ctx context.Context, id string, records []event.Record) error {
	s := a.Store()
	release, err := s.Logs.Claim(ctx, id)
	if err != nil {
		return err
	}
	s.logs.MarkImported(id)
	if err := errors.Join(s.Logs.Append(ctx, 0, records...), release()); err != nil {
		return message.Errorf("save the records: %w", err)
	}
	if err := errors.Join(s.Supervisor.SaveProjection(ctx, id), s.UnsavedReason()); err != nil {
		return message.Errorf("save the session: %w", err)
	}
	return nil
}

// resumeForeign returns the id with which to resume a session.
// It first imports another agent's session that is unknown here.
func (a *Workspace) resumeForeign(ctx context.Context, id string) (string, error) {
	if _, err := a.Store().CheckSession(ctx, id); err == nil || !errors.Is(err, session.ErrNotFound) ||
		a.Options.Ephemeral {
		return id, nil
	}
	f, found, err := a.FindForeignSession(id)
	if err != nil || !found {
		return id, err
	}
	made, err := a.importForeign(ctx, f, "")
	if err == nil {
		a.warn(fmt.Sprintf("continuing the session %s of %s as %s; its tool results are text", id, f.Agent, made))
	}
	return made, err
}
