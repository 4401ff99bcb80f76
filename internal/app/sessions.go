package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/policy/mode"
	"coder/internal/record/session"
	"coder/internal/record/typed"
	"coder/internal/report/export"
)

// LoggedSessions returns the sessions with logs, the newest first.
func (s *Store) LoggedSessions() []string {
	ids := s.SessionsIn("log")
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// AllSessions returns the sessions with logs or a snapshot, sorted.
func (s *Store) AllSessions() []string {
	ids := slices.Concat(s.SessionsIn("log"), s.SessionsIn("sessions"))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// SessionsIn returns the sessions with data in a folder of the data folder.
func (s *Store) SessionsIn(folder string) (ids []string) {
	entries, err := os.ReadDir(s.Path(folder))
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
		if IsSessionID(name) {
			ids = append(ids, name)
		}
	}
	return ids
}

// CheckSession returns id, or an error if there is no such session.
func (s *Store) CheckSession(ctx context.Context, id string) (string, error) {
	if IsSessionID(id) {
		if known, err := s.Supervisor.Exists(ctx, id); known || err != nil {
			return id, err
		}
	}
	return "", message.Errorf("session %s: %w", singleLine(id), session.ErrNotFound)
}

// LastSession returns the most recently written session, preferring
// sessions in which something was asked or decided.
func (s *Store) LastSession() (string, error) {
	type candidate struct {
		id        string
		writtenAt int64
		used      bool
	}
	var last candidate
	labels, _ := s.readLabels() // changing labels reports the error
	for _, id := range s.AllSessions() {
		if labels[id].Archived {
			continue
		}
		c := candidate{id, s.logTime(id), !s.isIdle(id)} // a snapshot may be much newer than its session
		if c.writtenAt == 0 {
			c.writtenAt = modTime(s.Path("sessions", id+".json"))
		}
		if c.writtenAt > 0 && (c.used && !last.used || c.used == last.used && c.writtenAt >= last.writtenAt) {
			last = c
		}
	}
	if last.id == "" {
		return "", inputErrorf("no session to continue in %s", s.root)
	}
	return last.id, nil
}

// maxIdleBytes limits the length of a conversation that may be idle.
const maxIdleBytes = 4 << 20

// isDecisiveRecord reports whether a record is a command that changes the session for good.
func isDecisiveRecord(line []byte) bool {
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

// isIdle reports whether a session has only commands that looked
// something up, and mode changes at its start or by key.
func (s *Store) isIdle(id string) bool {
	if info, err := os.Stat(s.Path("log", id, event.LogDomain.String()+".jsonl")); err == nil && info.Size() > 0 {
		return false
	}
	text, err := repofile.NewRoot(s.dir).Read(filepath.Join("log", id, event.LogConversation.String()+".jsonl"),
		maxIdleBytes)
	if err != nil {
		return false // only a snapshot, or a long log
	}
	for line := range bytes.Lines(text) {
		looked := bytes.Contains(line, []byte(`"type":"LocalAdded"`)) && !isDecisiveRecord(line)
		if !looked && !bytes.Contains(line, []byte(`"type":"ModeChanged"`)) {
			return false
		}
	}
	return true
}

// IsUnused reports whether nothing was asked or decided in a session with logs.
func (s *Store) IsUnused(id string) bool { return s.logTime(id) == 0 || s.isIdle(id) }

// logTime returns when the logs of session id were last written, or zero
// if they are empty: a full disk accepts file names but no content.
func (s *Store) logTime(id string) int64 {
	var last int64
	for _, l := range event.AllLogs {
		if info, err := os.Stat(s.Path("log", id, l.String()+".jsonl")); err == nil && info.Size() > 0 {
			last = max(last, info.ModTime().UnixNano())
		}
	}
	return last
}

func modTime(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// maxMendedSnapshots limits how many of the newest sessions are checked for outdated snapshots after a crash.
const maxMendedSnapshots = 20

// RepairSnapshots writes the snapshots that crashed processes could not write, except for the
// current session. It opens no session. Call it at the end, so that nobody waits for it.
func (s *Store) RepairSnapshots(ctx context.Context, current string) {
	if s.ephemeral || ctx.Err() != nil {
		return
	}
	s.suppressWarnings(true) // the user did not ask about them
	defer s.suppressWarnings(false)
	ids := s.LoggedSessions()
	for _, id := range ids[:min(len(ids), maxMendedSnapshots)] {
		if id == current || s.logTime(id) <= modTime(s.Path("sessions", id+".json")) && !s.snapshots.IsTorn(id) {
			continue
		}
		_ = s.Supervisor.SaveProjection(ctx, id) // ignore errors: the logs are authoritative
	}
}

// ListHeads lists the saved sessions, the newest first, without archived ones.
func (s *Store) ListHeads(ctx context.Context) ([]session.Head, error) {
	all, err := s.ListAllHeads(ctx)
	return slices.DeleteFunc(all, func(h session.Head) bool { return h.Archived }), err
}

// ListAllHeads lists the saved sessions, the newest first. It reads a
// session from its logs if its process died before it wrote a snapshot.
func (s *Store) ListAllHeads(ctx context.Context) ([]session.Head, error) {
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
		for _, id := range s.LoggedSessions() {
			if saved[id] {
				continue
			}
			snap, err := s.Supervisor.LoadSnapshot(ctx, id)
			if err == nil {
				all = append(all, snap.Head)
			} else if !errors.Is(err, session.ErrNotFound) {
				s.warn(err.Error())
			}
		}
	}
	for i, h := range all { // a crashed session's snapshot ends at an earlier step
		saved, logged := modTime(s.Path("sessions", h.ID+".json")), s.logTime(h.ID)
		if at := time.Unix(0, logged); saved > 0 && logged-saved > int64(maxSnapshotLag) && at.After(h.Updated) {
			all[i].Updated = at
		}
	}
	// empty sessions
	all = slices.DeleteFunc(all, func(h session.Head) bool { return h.Meta.Turns == 0 && h.Meta.Title == "" })
	slices.SortStableFunc(all, func(a, b session.Head) int { return b.Updated.Compare(a.Updated) })
	return s.withLabels(all), ctx.Err()
}

// maxSnapshotLag is how much older than its logs a snapshot may be and still be complete.
const maxSnapshotLag = 2 * time.Second

// CheckFree makes sure that a session exists and that no other process is writing it.
func (s *Store) CheckFree(ctx context.Context, id string) error {
	if _, err := s.CheckSession(ctx, id); errors.Is(err, session.ErrNotFound) {
		return message.Errorf("unknown session %s; /sessions lists sessions by id", singleLine(id))
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

// Export exports a session as json, md or html.
func (s *Store) Export(ctx context.Context, w io.Writer, id, format string) error {
	snap, err := s.Supervisor.LoadSnapshot(ctx, id)
	if err != nil {
		return err
	}
	if format == "json" {
		_, err := w.Write(append(secret.ShapeConcealer().JSON(jsonx.MustMarshal(snap)), '\n'))
		return err
	}
	t, err := export.FromSnapshot(snap)
	for range s.Logs.Read(ctx, id, 0, event.LogConversation) { // its logs have more details
		t, err = export.FromRecords(snap.Head, s.Logs.Read(ctx, id, 0))
		break
	}
	if err != nil {
		return err
	}
	if format == "html" {
		if b, err := s.ledger(ctx, id, 0, func(_ string, u chat.Usage) chat.Usage { return u }); err == nil {
			t.Window = fillingChart(b)
		}
		return export.HTML(w, t, s.language)
	}
	return export.Markdown(w, t, s.language)
}

// SessionChoice selects the session to open: a new one unless it names another.
type SessionChoice struct {
	ResumeID     string // the id of a session to continue
	ContinueLast bool   // continue the last one
	PickSession  bool   // or, in an interactive run, the one that the user picks
	NewID        string // the new session's id, if given
	ForkCopy     bool   // continue a copy, and leave the original unchanged
}

// IsResume reports whether w continues a session.
func (w SessionChoice) IsResume() bool { return w.ContinueLast || w.ResumeID != "" }

// OpenSession opens a session.
func (a *Workspace) OpenSession(ctx context.Context, sup *Sessions, w SessionChoice,
	out event.Sink) (*supervisor.Session, error) {
	if m, _ := a.ModeState.Current(); m.Unchecked {
		a.warn(orchestrator.YoloWarning)
	}
	if w.ContinueLast && w.ResumeID == "" {
		id, err := a.Store().LastSession()
		if err != nil {
			return nil, err
		}
		w.ResumeID = id
	}
	if w.ResumeID != "" {
		id, err := a.resumeForeign(ctx, w.ResumeID)
		if err != nil {
			return nil, err
		}
		w.ResumeID = id
	}
	switch {
	case w.ResumeID != "" && w.ForkCopy:
		id, err := a.copySession(ctx, w.ResumeID, w.NewID)
		if err != nil {
			return nil, err
		}
		return sup.ResumeSession(ctx, id, out)
	case w.ResumeID != "":
		return sup.ResumeSession(ctx, w.ResumeID, out)
	case w.NewID != "":
		if taken, err := sup.Exists(ctx, w.NewID); err != nil {
			return nil, err
		} else if taken {
			return nil, inputErrorf("session %s already exists; continue it with --resume %[1]s", w.NewID)
		}
	}
	return sup.StartSession(ctx, cmp.Or(w.NewID, NewSessionID(a.Env.Now())), out)
}

// SwitchSession opens the session to which the user wants to switch: a new
// one, or an earlier one in its mode. If that fails, nothing changes.
func (a *Workspace) SwitchSession(ctx context.Context, sup *Sessions, to *orchestrator.Destination, from string,
	out event.Sink) (*supervisor.Session, error) {
	if to.New {
		s, err := sup.StartSession(ctx, to.Session, out)
		if err != nil {
			return nil, err
		}
		note := event.LocalAdded{Input: "/new", Output: "new session: " + to.Session + ", after " + from}
		if err := s.RecordLocal(ctx, note); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	was, preset := a.ModeState.Current()
	if err := a.ModeState.Switch(cmp.Or(a.Options.Mode, a.Config.Agents.Default)); err != nil {
		return nil, err
	}
	s, err := sup.ResumeSession(ctx, to.Session, out)
	if err != nil {
		return nil, errors.Join(err, a.ModeState.Switch(was.Name), a.ModeState.SetPreset(preset))
	}
	return s, nil
}

// TypedBook returns the book with the user's input in this project: it
// is in the user's home, because a repository must not influence it.
func (a *Site) TypedBook() typed.InputStore {
	if a.Home == "" || a.Options.Ephemeral {
		return typed.InputStore{}
	}
	of := func(folder string) string {
		sum := sha256.Sum256([]byte(folder))
		return filepath.Join(a.Home, typedDir, hex.EncodeToString(sum[:8]))
	}
	return typed.InputStore{Dir: of(a.Root), Project: of(a.project())}
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

// DraftSession returns the session with an unsent draft, if the
// draft is newer than the last written session; otherwise "".
func (a *Site) DraftSession() string {
	id, when := a.TypedBook().NewestDraft(nil)
	last, err := a.Store().LastSession()
	if err != nil || !slices.Contains(a.Store().AllSessions(), id) || a.Store().IsUnused(id) ||
		when.UnixNano() <= a.Store().logTime(last) {
		return ""
	}
	return id
}

// UnsentDraft returns the unsent draft of a session, or of one that ended before its first prompt, if wanted.
func (a *Site) UnsentDraft(id string, wanted typed.DraftChoice) typed.Draft {
	return a.TypedBook().Draft(id, wanted, a.endedUnpromptedFilter(), a.Env.Now())
}

// RecordSent saves the text sent in a session. An equal draft in an empty session is no longer offered.
func (a *Site) RecordSent(id, text string) {
	_ = a.TypedBook().AddSent(text) // a failure must not stop the user
	left := a.endedUnpromptedFilter()
	a.TypedBook().RemoveDrafts(text, func(other string) bool {
		return other != id && left(other) &&
			!a.Store().IsInUse(other)
	})
}

// endedUnpromptedFilter returns a function that reports whether a session ended before its first prompt.
func (a *Site) endedUnpromptedFilter() func(id string) bool {
	known := a.Store().AllSessions()
	return func(id string) bool {
		return IsSessionID(id) && (!slices.Contains(known, id) || a.Store().IsUnused(id))
	}
}
