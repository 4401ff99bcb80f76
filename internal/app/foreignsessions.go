package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/record/session"
	"coder/internal/report/export"
	"coder/internal/report/transcript"
)

// Limits on reading other agents' sessions.
const (
	maxForeignFiles   = 5000
	maxForeignList    = 200
	maxForeignSession = 256 << 20
)

// ForeignSession is another agent's session in the user's home. coder only reads it.
type ForeignSession struct {
	ID      string
	Agent   string
	Path    string // relative to the home folder
	Session transcript.Session
	updated int64
}

// foreignFolders are the agents' folders for sessions, with the depth of their subfolders.
var foreignFolders = map[string]struct {
	dir   string
	depth int
}{"claude": {".claude/projects", 1}, "codex": {".codex/sessions", 3}}

// foreignFiles lists an agent's sessions, the newest first. It does not follow links.
func (a *App) foreignFiles(agent string) (all []ForeignSession) {
	at, home := foreignFolders[agent], a.Env.Getenv("HOME")
	if home == "" {
		return nil
	}
	looked := 0
	_ = fs.WalkDir(repofile.Below(filepath.Join(home, at.dir)), ".", func(name string, d fs.DirEntry, err error) error {
		if looked++; looked > maxForeignFiles {
			return fs.SkipAll
		}
		base, isLines := strings.CutSuffix(path.Base(name), ".jsonl")
		switch {
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir // an unreadable folder has no sessions
		case err != nil:
			return nil
		case d.IsDir() && name != "." && strings.Count(name, "/")+1 > at.depth:
			return fs.SkipDir
		case !d.Type().IsRegular() || !isLines:
			return nil
		}
		const uuid = 36
		if strings.HasPrefix(base, "rollout-") && len(base) > uuid {
			base = base[len(base)-uuid:]
		}
		info, err := d.Info()
		if err == nil && ValidSessionID(base) {
			all = append(all, ForeignSession{ID: base, Agent: agent, Path: path.Join(at.dir, name), updated: info.ModTime().UnixNano()})
		}
		return nil
	})
	slices.SortStableFunc(all, func(x, y ForeignSession) int { return int(min(1, max(-1, y.updated-x.updated))) })
	return all
}

// load reads a session, up to the given number of turns.
func (a *App) load(f *ForeignSession, turns int) error {
	at := foreignFolders[f.Agent].dir
	name, _ := filepath.Rel(at, f.Path)
	file, err := repofile.Below(filepath.Join(a.Env.Getenv("HOME"), at)).Open(name)
	if err != nil {
		return fmt.Errorf("~/%s: %s", f.Path, repofile.Why(err))
	}
	defer file.Close()
	f.Session, err = transcript.Read(io.LimitReader(file, maxForeignSession), turns)
	return err
}

// ForeignSessions lists another agent's sessions that worked in this folder, or in
// any, the newest first. With words, it lists only sessions that contain all of them.
func (a *App) ForeignSessions(agent string, all bool, words []string) (list []ForeignSession) {
	turns := 1
	if len(words) > 0 {
		turns = 0
	}
	for _, f := range a.foreignFiles(agent) {
		if err := a.load(&f, turns); err != nil {
			a.warn(err.Error())
			continue
		}
		rel, err := filepath.Rel(a.Root, f.Session.Dir)
		if len(f.Session.Turns) == 0 || !all && (err != nil || !filepath.IsLocal(rel)) || !f.has(words) {
			continue
		}
		if list = append(list, f); len(list) == maxForeignList {
			break
		}
	}
	return list
}

// has reports whether a session contains all words, ignoring case.
func (f ForeignSession) has(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool {
		w = strings.ToLower(w)
		return !slices.ContainsFunc(f.Session.Turns, func(t transcript.Turn) bool {
			return strings.Contains(strings.ToLower(t.Said), w) || strings.Contains(strings.ToLower(t.Answer), w)
		})
	})
}

// Foreigner finds another agent's session by its id, and reads it.
func (a *App) Foreigner(id string) (f ForeignSession, found bool, err error) {
	for _, agent := range ForeignAgents() {
		files := a.foreignFiles(agent)
		i := slices.IndexFunc(files, func(f ForeignSession) bool { return f.ID == id })
		if i < 0 {
			continue
		}
		f = files[i]
		if err := a.load(&f, 0); err != nil {
			return f, true, inputf("%v", err)
		}
		if f.Session.Bad > 0 {
			a.warn(fmt.Sprintf("~/%s: unreadable lines skipped: %d", f.Path, f.Session.Bad))
		}
		if f.Session.Cut {
			a.warn(fmt.Sprintf("~/%s is long: some of it was left out", f.Path))
		}
		if len(f.Session.Turns) == 0 {
			return f, true, inputf("~/%s holds no conversation", f.Path)
		}
		return f, true, nil
	}
	return f, false, nil
}

// records returns the session as coder's records, with keys masked.
func (f ForeignSession) records(as string) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		seq := uint64(0)
		for _, t := range f.Session.Turns {
			task, title := NewID("task"), clipped(t.Said)
			at := t.At
			if at.IsZero() {
				at = f.Session.Began
			}
			for _, r := range []event.Record{
				{Actor: event.ActorUser, Event: event.TaskCreated{TaskID: task, Title: title, Intent: title, Priority: event.Foreground, AgentID: orchestrator.ActorAgent, Author: event.ActorUser}},
				{Actor: event.ActorUser, Event: event.MessageAdded{Message: chat.Say(chat.User, secret.Shapes().Text(t.Said))}},
				{Actor: orchestrator.ActorAgent, Event: event.MessageAdded{Message: chat.Say(chat.Assistant, secret.Shapes().Text(t.Answer))}},
				{Actor: orchestrator.ActorAgent, Event: event.TaskCompleted{TaskID: task, Author: orchestrator.ActorAgent}},
			} {
				if m, ok := r.Event.(event.MessageAdded); ok && m.Message.Text() == "" {
					continue
				}
				seq++
				r.Seq, r.Time, r.Session, r.Task = seq, at, as, task
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

func clipped(text string) string {
	return transcript.Session{Turns: []transcript.Turn{{Said: secret.Shapes().Text(text)}}}.Title()
}

// ExportForeign exports another agent's session as md, html or json.
func (a *App) ExportForeign(w io.Writer, f ForeignSession, format string) error {
	head := session.Head{ID: f.ID, Created: f.Session.Began, Updated: f.Session.Updated, Meta: session.Meta{
		Title: clipped(f.Session.Title()), Dir: f.Session.Dir, Turns: len(f.Session.Turns), Agent: f.Agent,
	}}
	if format == "json" {
		talk := struct {
			ID       string         `json:"session_id"`
			Agent    string         `json:"agent"`
			Dir      string         `json:"cwd"`
			Created  time.Time      `json:"created_at"`
			Title    string         `json:"title"`
			Messages []chat.Message `json:"messages"`
		}{f.ID, f.Agent, f.Session.Dir, f.Session.Began, head.Meta.Title, []chat.Message{}}
		for r := range f.records(f.ID) {
			if m, ok := r.Event.(event.MessageAdded); ok {
				talk.Messages = append(talk.Messages, m.Message)
			}
		}
		_, err := fmt.Fprintf(w, "%s\n", jsonx.Must(talk))
		return err
	}
	t, err := export.FromRecords(head, f.records(f.ID))
	switch {
	case err != nil:
		return err
	case format == "html":
		return export.HTML(w, t, a.Store().speech)
	case format == "md":
		return export.Markdown(w, t, a.Store().speech)
	}
	return inputf("a session of another agent is exported as md, html or json")
}

// takeIn imports another agent's session. Like a session from another machine, it allows nothing here.
func (a *App) takeIn(ctx context.Context, f ForeignSession, as string) (string, error) {
	s := a.Store()
	if why := errors.Join(s.barred["log"], s.barred["sessions"]); why != nil {
		return "", why
	}
	if as == "" {
		as = NewSessionID(a.Env.Now())
	}
	if _, err := s.Known(ctx, as); err == nil {
		return "", inputf("session %s already exists here", as)
	}
	s.keepOutOfGit()
	a.register()
	var records []event.Record
	for r := range f.records(as) {
		records = append(records, r)
	}
	return as, a.saveImported(ctx, as, records)
}

// saveImported saves the records of an imported session.
func (a *App) saveImported(ctx context.Context, id string, records []event.Record) error {
	s := a.Store()
	release, err := s.Logs.Claim(ctx, id)
	if err != nil {
		return err
	}
	s.logs.MarkImported(id)
	if err := errors.Join(s.Logs.Append(ctx, 0, records...), release()); err != nil {
		return fmt.Errorf("save the records: %w", err)
	}
	if err := errors.Join(s.Records.Project(ctx, id), s.Unkept()); err != nil {
		return fmt.Errorf("save the session: %w", err)
	}
	return nil
}

// resumeForeign returns the id with which to resume a session.
// It first imports another agent's session that is unknown here.
func (a *App) resumeForeign(ctx context.Context, id string) (string, error) {
	if _, err := a.Store().Known(ctx, id); err == nil || !errors.Is(err, session.ErrNotFound) || a.Options.Ephemeral {
		return id, nil
	}
	f, found, err := a.Foreigner(id)
	if err != nil || !found {
		return id, err
	}
	made, err := a.takeIn(ctx, f, "")
	if err == nil {
		a.warn(fmt.Sprintf("continuing the session %s of %s as %s; its tool results are text", id, f.Agent, made))
	}
	return made, err
}
