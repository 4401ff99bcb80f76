package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/supervisor"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/policy/mode"
	"coder/internal/record/session"
	"coder/internal/record/typed"
	"coder/internal/report/export"
)

// IDs returns the sessions with logs, the newest first.
func (s *Store) IDs() []string {
	ids := s.SessionsIn("log")
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// All returns the sessions with logs or a snapshot, sorted.
func (s *Store) All() []string {
	ids := slices.Concat(s.SessionsIn("log"), s.SessionsIn("sessions"))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// SessionsIn returns the sessions with data in a folder of the data folder.
func (s *Store) SessionsIn(folder string) (ids []string) {
	entries, err := os.ReadDir(s.Dir(folder))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if folder == "sessions" {
			var ok bool
			if name, ok = strings.CutSuffix(name, ".json"); !ok {
				continue
			}
		}
		if ValidSessionID(name) {
			ids = append(ids, name)
		}
	}
	return ids
}

// Known returns id, or an error if there is no such session.
func (s *Store) Known(ctx context.Context, id string) (string, error) {
	if ValidSessionID(id) {
		if known, err := s.Records.Exists(ctx, id); known || err != nil {
			return id, err
		}
	}
	return "", fmt.Errorf("session %s: %w", oneLine(id), session.ErrNotFound)
}

// Last returns the most recently written session, preferring
// sessions in which something was asked or decided.
func (s *Store) Last() (string, error) {
	type candidate struct {
		id   string
		when int64
		used bool
	}
	var last candidate
	labels, _ := s.labels() // changing labels reports the error
	for _, id := range s.All() {
		if labels[id].Archived {
			continue
		}
		c := candidate{id, s.logged(id), !s.idle(id)} // a snapshot may be much newer than its session
		if c.when == 0 {
			c.when = modified(s.Dir("sessions", id+".json"))
		}
		if c.when > 0 && (c.used && !last.used || c.used == last.used && c.when >= last.when) {
			last = c
		}
	}
	if last.id == "" {
		return "", inputf("no session to continue in %s", s.root)
	}
	return last.id, nil
}

// maxIdle limits the length of a conversation that may be idle.
const maxIdle = 4 << 20

// decides reports whether a record is a command that changes the session for good.
func decides(line []byte) bool {
	_, rest, _ := bytes.Cut(line, []byte(`"input":"/`))
	input, _, _ := bytes.Cut(rest, []byte(`"`))
	command, args, _ := strings.Cut(string(input), " ")
	switch command {
	case "new", "clear":
		return true
	case "mode", "permissions":
		return strings.TrimSpace(args) != ""
	}
	return slices.Contains(mode.Names(), command)
}

// idle reports whether a session has only commands that looked
// something up, and mode changes at its start or by key.
func (s *Store) idle(id string) bool {
	if info, err := os.Stat(s.Dir("log", id, event.Domain.String()+".jsonl")); err == nil && info.Size() > 0 {
		return false
	}
	text, err := repofile.Below(s.dir).Read(filepath.Join("log", id, event.Conversation.String()+".jsonl"), maxIdle)
	if err != nil {
		return false // only a snapshot, or a long log
	}
	for line := range bytes.Lines(text) {
		looked := bytes.Contains(line, []byte(`"type":"LocalAdded"`)) && !decides(line)
		if !looked && !bytes.Contains(line, []byte(`"type":"ModeChanged"`)) {
			return false
		}
	}
	return true
}

// Unused reports whether nothing was asked or decided in a session with logs.
func (s *Store) Unused(id string) bool { return s.logged(id) == 0 || s.idle(id) }

// logged returns when the logs of session id were last written, or zero
// if they are empty: a full disk accepts file names but no content.
func (s *Store) logged(id string) int64 {
	var last int64
	for _, l := range event.Logs {
		if info, err := os.Stat(s.Dir("log", id, l.String()+".jsonl")); err == nil && info.Size() > 0 {
			last = max(last, info.ModTime().UnixNano())
		}
	}
	return last
}

func modified(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// mendLimit limits how many of the newest sessions are checked for outdated snapshots after a crash.
const mendLimit = 20

// MendSnapshots writes the snapshots that crashed processes could not write, except for the
// current session. It opens no session. Call it at the end, so that nobody waits for it.
func (s *Store) MendSnapshots(ctx context.Context, current string) {
	if s.ephemeral || ctx.Err() != nil {
		return
	}
	s.hush(true) // the user did not ask about them
	defer s.hush(false)
	ids := s.IDs()
	for _, id := range ids[:min(len(ids), mendLimit)] {
		if id == current || s.logged(id) <= modified(s.Dir("sessions", id+".json")) && !s.snapshots.Torn(id) {
			continue
		}
		_ = s.Records.Project(ctx, id) // ignore errors: the logs are authoritative
	}
}

// Heads lists the saved sessions, the newest first, without archived ones.
func (s *Store) Heads(ctx context.Context) ([]session.Head, error) {
	all, err := s.AllHeads(ctx)
	return slices.DeleteFunc(all, func(h session.Head) bool { return h.Archived }), err
}

// AllHeads lists the saved sessions, the newest first. It reads a
// session from its logs if its process died before it wrote a snapshot.
func (s *Store) AllHeads(ctx context.Context) ([]session.Head, error) {
	all := []session.Head{}
	saved := make(map[string]bool)
	for head, err := range s.Sessions.List(ctx) {
		if err != nil {
			s.warn(err.Error())
			continue
		}
		all, saved[head.ID] = append(all, head), true
	}
	if !s.ephemeral {
		for _, id := range s.IDs() {
			if saved[id] {
				continue
			}
			snap, err := s.Records.Snapshot(ctx, id)
			if err == nil {
				all = append(all, snap.Head)
			} else if !errors.Is(err, session.ErrNotFound) {
				s.warn(err.Error())
			}
		}
	}
	for i, h := range all { // a crashed session's snapshot ends at an earlier step
		saved, logged := modified(s.Dir("sessions", h.ID+".json")), s.logged(h.ID)
		if at := time.Unix(0, logged); saved > 0 && logged-saved > int64(stale) && at.After(h.Updated) {
			all[i].Updated = at
		}
	}
	all = slices.DeleteFunc(all, func(h session.Head) bool { return h.Meta.Turns == 0 && h.Meta.Title == "" }) // empty sessions
	slices.SortStableFunc(all, func(a, b session.Head) int { return b.Updated.Compare(a.Updated) })
	return s.labelled(all), ctx.Err()
}

// stale is how much older than its logs a snapshot may be and still be complete.
const stale = 2 * time.Second

// Free makes sure that a session exists and that no other process is writing it.
func (s *Store) Free(ctx context.Context, id string) error {
	if _, err := s.Known(ctx, id); errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("unknown session %s; /sessions lists sessions by id", oneLine(id))
	} else if err != nil {
		return err
	}
	release, err := s.Logs.Claim(ctx, id)
	if claimed := (*event.ClaimedError)(nil); errors.As(err, &claimed) {
		return errors.New(claimed.Error() + "; wait for it, or start another session")
	}
	if err != nil {
		return err
	}
	return release()
}

// Write exports a session as json, md or html.
func (s *Store) Write(ctx context.Context, w io.Writer, id, format string) error {
	snap, err := s.Records.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if format == "json" {
		_, err := w.Write(append(secret.Shapes().JSON(jsonx.Must(snap)), '\n'))
		return err
	}
	t, err := export.FromSnapshot(snap)
	for range s.Logs.Read(ctx, id, 0, event.Conversation) { // its logs have more details
		t, err = export.FromRecords(snap.Head, s.Logs.Read(ctx, id, 0))
		break
	}
	if err != nil {
		return err
	}
	if format == "html" {
		if b, err := s.ledger(ctx, id, 0, func(_ string, u chat.Usage) chat.Usage { return u }); err == nil {
			t.Filling = filling(b)
		}
		return export.HTML(w, t, s.speech)
	}
	return export.Markdown(w, t, s.speech)
}

// Which selects the session to open: a new one unless it names another.
type Which struct {
	Resume string // the id of a session to continue
	Last   bool   // continue the last one
	Pick   bool   // or, in an interactive run, the one that the user picks
	ID     string // the new session's id, if given
	Fork   bool   // continue a copy, and leave the original unchanged
}

// Resumes reports whether w continues a session.
func (w Which) Resumes() bool { return w.Last || w.Resume != "" }

// Open opens a session.
func (a *Workspace) Open(ctx context.Context, sup *Sessions, w Which, out event.Sink) (*supervisor.Session, error) {
	if m, _ := a.Modes.Current(); m.Unchecked {
		a.warn(orchestrator.YoloWarning)
	}
	if w.Last && w.Resume == "" {
		id, err := a.Store().Last()
		if err != nil {
			return nil, err
		}
		w.Resume = id
	}
	if w.Resume != "" {
		id, err := a.resumeForeign(ctx, w.Resume)
		if err != nil {
			return nil, err
		}
		w.Resume = id
	}
	switch {
	case w.Resume != "" && w.Fork:
		id, err := a.fork(ctx, w.Resume, w.ID)
		if err != nil {
			return nil, err
		}
		return sup.Resume(ctx, id, out)
	case w.Resume != "":
		return sup.Resume(ctx, w.Resume, out)
	case w.ID != "":
		if taken, err := sup.Exists(ctx, w.ID); err != nil {
			return nil, err
		} else if taken {
			return nil, inputf("session %s already exists; continue it with --resume %[1]s", w.ID)
		}
	}
	return sup.Start(ctx, cmp.Or(w.ID, NewSessionID(a.Env.Now())), out)
}

// Move opens the session to which the user wants to switch: a new
// one, or an earlier one in its mode. If that fails, nothing changes.
func (a *Workspace) Move(ctx context.Context, sup *Sessions, to *orchestrator.Next, from string, out event.Sink) (*supervisor.Session, error) {
	if to.New {
		s, err := sup.Start(ctx, to.Session, out)
		if err != nil {
			return nil, err
		}
		note := event.LocalAdded{Input: "/new", Output: "new session: " + to.Session + ", after " + from}
		if err := s.Note(ctx, note); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	was, preset := a.Modes.Current()
	if err := a.Modes.Switch(cmp.Or(a.Options.Mode, a.Config.Agents.Default)); err != nil {
		return nil, err
	}
	s, err := sup.Resume(ctx, to.Session, out)
	if err != nil {
		return nil, errors.Join(err, a.Modes.Switch(was.Name), a.Modes.Preset(preset))
	}
	return s, nil
}

// Typed returns the book with the user's input in this project: it
// is in the user's home, because a repository must not influence it.
func (a *Site) Typed() typed.Book {
	if a.Home == "" || a.Options.Ephemeral {
		return typed.Book{}
	}
	of := func(folder string) string {
		sum := sha256.Sum256([]byte(folder))
		return filepath.Join(a.Home, typedDir, hex.EncodeToString(sum[:8]))
	}
	return typed.Book{Dir: of(a.Root), Project: of(a.project())}
}

const typedDir = "typed"

// project returns the repository around the workspace, unless
// that is the user's whole home folder; otherwise the workspace.
func (a *Site) project() string {
	for dir := a.Root; dir != filepath.Dir(dir) && dir != a.Env.Getenv("HOME"); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
	}
	return a.Root
}

// LeftTyping returns the session with an unsent draft, if the
// draft is newer than the last written session; otherwise "".
func (a *Site) LeftTyping() string {
	id, when := a.Typed().Unsent(nil)
	last, err := a.Store().Last()
	if err != nil || !slices.Contains(a.Store().All(), id) || a.Store().Unused(id) || when.UnixNano() <= a.Store().logged(last) {
		return ""
	}
	return id
}

// Unsent returns the unsent draft of a session, or of one that ended before its first prompt, if wanted.
func (a *Site) Unsent(id string, wanted typed.Wanted) typed.Draft {
	return a.Typed().Draft(id, wanted, a.leftUnasked(), a.Env.Now())
}

// Sent saves the text sent in a session. An equal draft in an empty session is no longer offered.
func (a *Site) Sent(id, text string) {
	_ = a.Typed().Add(text) // a failure must not stop the user
	left := a.leftUnasked()
	a.Typed().Forget(text, func(other string) bool { return other != id && left(other) && !a.Store().InUse(other) })
}

// leftUnasked returns a function that reports whether a session ended before its first prompt.
func (a *Site) leftUnasked() func(id string) bool {
	known := a.Store().All()
	return func(id string) bool {
		return ValidSessionID(id) && (!slices.Contains(known, id) || a.Store().Unused(id))
	}
}
