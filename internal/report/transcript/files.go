package transcript

import (
	"io"
	"io/fs"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
)

// Limits on reading other agents' sessions.
const (
	maxFiles = 5000
	maxSize  = 256 << 20 // of a session
)

// File is another agent's session in the user's home. coder only reads it.
type File struct {
	ID      string
	Agent   string
	Path    string // relative to the home folder
	Session Session
	updated int64
}

// folders are the agents' folders for sessions, with the depth of their subfolders.
var folders = map[string]struct {
	dir   string
	depth int
}{"claude": {".claude/projects", 1}, "codex": {".codex/sessions", 3}}

// Files lists an agent's sessions in a home folder whose ids are valid, the newest first. It does not follow links.
func Files(home, agent string, valid func(id string) bool) (all []File) {
	at := folders[agent]
	if home == "" {
		return nil
	}
	looked := 0
	_ = fs.WalkDir(repofile.NewRoot(filepath.Join(home, at.dir)), ".", func(name string, d fs.DirEntry, err error) error {
		if looked++; looked > maxFiles {
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
		if err == nil && valid(base) {
			all = append(all, File{ID: base, Agent: agent, Path: path.Join(at.dir, name), updated: info.ModTime().UnixNano()})
		}
		return nil
	})
	slices.SortStableFunc(all, func(x, y File) int { return int(min(1, max(-1, y.updated-x.updated))) })
	return all
}

// Load reads the session in a home folder, up to the given number of turns; 0 means all.
func (f *File) Load(home string, turns int) error {
	at := folders[f.Agent].dir
	name, _ := filepath.Rel(at, f.Path)
	file, err := repofile.NewRoot(filepath.Join(home, at)).Open(name)
	if err != nil {
		return message.Errorf("~/%s: %s", f.Path, repofile.Reason(err))
	}
	defer file.Close()
	f.Session, err = Read(io.LimitReader(file, maxSize), turns)
	return err
}

// Has reports whether a session contains all words, ignoring case.
func (f File) Has(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool {
		w = strings.ToLower(w)
		return !slices.ContainsFunc(f.Session.Turns, func(t Turn) bool {
			return strings.Contains(strings.ToLower(t.Prompt), w) || strings.Contains(strings.ToLower(t.Answer), w)
		})
	})
}

// Records returns the session as coder's records, with keys masked. newID makes ids.
func (f File) Records(as string, newID func(prefix string) string) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		seq := uint64(0)
		for _, t := range f.Session.Turns {
			task, title := newID("task"), Clipped(t.Prompt)
			at := t.Time
			if at.IsZero() {
				at = f.Session.Started
			}
			for _, r := range []event.Record{
				{Actor: event.ActorUser, Event: event.TaskCreated{TaskID: task, Title: title, Intent: title,
					Priority: event.PriorityForeground, AgentID: orchestrator.ActorAgent, Author: event.ActorUser}},
				{Actor: event.ActorUser, Event: event.MessageAdded{Message: chat.TextMessage(chat.User,
					secret.ShapeConcealer().Text(t.Prompt))}},
				{Actor: orchestrator.ActorAgent, Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant,
					secret.ShapeConcealer().Text(t.Answer))}},
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

// Clipped returns the beginning of a text as a title, with keys masked.
func Clipped(text string) string {
	return Session{Turns: []Turn{{Prompt: secret.ShapeConcealer().Text(text)}}}.Title()
}
