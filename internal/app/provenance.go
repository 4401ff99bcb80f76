package app

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"coder/internal/agent/conversation"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/host/patch"
	"coder/internal/host/workspace"
	"coder/internal/record/past"
	"coder/internal/record/seal"
	"coder/internal/record/session"
	"coder/internal/record/undo"
	"coder/internal/report/asof"
	"coder/internal/report/export"
	"coder/internal/report/provenance"
	"coder/internal/slash"
	"coder/internal/tool/git"
)

// TraceProvenance finds the origin of a file's lines: in the records of all sessions in this workspace, in git for
// lines that no session wrote, and in the records of other places whose sessions may have changed the file.
func (a *Archive) TraceProvenance(ctx context.Context, file string, line int) (*slash.Provenance, error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputErrorf("open the workspace: %v", err)
	}
	defer ws.Close()
	name, err := ws.Resolve(file)
	if err != nil {
		return nil, inputErrorf("%v", err)
	}
	if at, err := ws.Locate(name); err == nil {
		name = at
	}
	now, _, err := ws.ReadFile(name, provenance.MaxFileSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, inputErrorf("file %s does not exist", sanitize.Line(file, 200))
	case err != nil:
		return nil, inputErrorf("%v", err)
	}
	p := &slash.Provenance{Name: name, Binary: provenance.IsBinary(now),
		Explanations: make(map[*provenance.Change]*provenance.Explanation)}
	if p.Binary {
		line = 0
	}
	t := &lineTracer{Archive: a, Provenance: p, content: now, wantedLine: line}
	if err := t.searchPlace(ctx, sessionPlace{Store: a.Store(), ws: ws, name: name, sameFile: true}); err != nil {
		return nil, err
	}
	if !t.hasOpenLines() {
		return p, ctx.Err()
	}
	o := git.Options{Workspace: ws, Launcher: a.Launcher()}
	p.Commits, p.GitErr = git.Blame(ctx, o, name, t.formerNames...)
	if p.Binary {
		p.Commits = git.NewestCommit(p.Commits)
	}
	for _, at := range t.otherPlaces(ctx, o, name) {
		defer at.ws.Close()
		if !t.hasOpenLines() {
			continue
		}
		if err := t.searchPlace(ctx, at); err != nil {
			return nil, err
		}
	}
	if info, err := ws.Lstat(name); err == nil {
		p.SetCandidates(t.unknownCalls, info.ModTime())
	}
	return p, ctx.Err()
}

// maxDeletedFiles limits the number of deleted files to trace.
const maxDeletedFiles = 64

// findDeleted finds deleted files that sessions changed, and calls
// with an unknown end that may have changed a file.
func (s *Store) findDeleted(ctx context.Context, name string, gone func(string) bool) (names []string,
	unknown []*provenance.Change) {
	for _, id := range s.LoggedSessions() {
		var seen provenance.LogScan
		for range s.readRecords(ctx, id, func(line []byte) bool { seen.AddLine(line); return false }, event.LogAudit) {
			break // use the part that was readable
		}
		for file := range seen.Files {
			if len(names) < maxDeletedFiles && !slices.Contains(names, file) && gone(file) {
				names = append(names, file)
			}
		}
		if wants := seen.PendingFilter(); wants != nil {
			unknown = append(unknown, provenance.UnfinishedChanges(s.readRecords(ctx, id, wants, event.LogAudit), name)...)
		}
	}
	return names, unknown
}

// fileChanges returns the calls in all sessions that changed a file,
// by any name that it or one of the others had, in order of time.
func (s *Store) fileChanges(ctx context.Context, name string, others ...string) (all []*provenance.Change) {
	names := append([]string{name}, others...)
	for {
		all = nil
		touches := provenance.FileFilter(names)
		for _, id := range s.LoggedSessions() {
			list, err := provenance.CollectChanges(s.readRecords(ctx, id, touches, event.LogAudit))
			if err != nil {
				s.warn(err.Error()) // use the readable part
			}
			all = append(all, list...)
		}
		provenance.SortByTime(all)
		more := provenance.EarlierNames(names, all)
		if len(more) <= len(names) {
			return all
		}
		names = more // include changes under its other names
	}
}

// readRecords reads the records of a session whose lines are wanted, or all records if they are not on disk.
func (s *Store) readRecords(ctx context.Context, id string, wants func(line []byte) bool,
	logs ...event.Log) iter.Seq2[event.Record, error] {
	if s.ephemeral || s.unusableDirs["log"] != nil {
		return s.Logs.Read(ctx, id, 0, logs...)
	}
	return s.logs.ReadWhere(ctx, id, 0, wants, logs...)
}

// ReadLog reads all records of a session that has some.
func (s *Store) ReadLog(ctx context.Context, id string) (records []event.Record, err error) {
	for r, err := range s.Logs.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, inputErrorf("session %s has no readable log; see coder audit verify %[1]s", id)
	}
	return records, nil
}

// kept returns the file contents in the undo store and in git.
func (a *Archive) kept(ws *workspace.Workspace) past.CurrentStore {
	return a.savedContentsIn(a.Store(), ws)
}

func (a *Archive) savedContentsIn(s *Store, ws *workspace.Workspace) past.CurrentStore {
	return past.CurrentStore{Keeper: undo.New(ws, s.undoStore(), undo.Options{Launcher: a.Launcher(), Now: a.Env.Now}),
		Workspace: ws}
}

// ReadDiff returns how a session's files changed from one record to a later one, zero meaning the last. unsaved
// describes a file whose content is not saved.
func (a *Archive) ReadDiff(ctx context.Context, id string, from, to uint64,
	unsaved func(path string) string) (diff string, err error) {
	var all strings.Builder
	err = a.ReadStates(ctx, id, []uint64{from, to}, func(states []PastState, kept provenance.ContentReader) error {
		for _, d := range asof.Compare(ctx, states[0].State, states[1].State, kept) {
			text, _, _ := patch.Unified(d.Path, d.Old, d.New)
			if d.Err != nil {
				text = unsaved(singleLine(event.DisplayName(d.Path)))
			}
			all.WriteString(sanitize.Text(text))
		}
		return nil
	})
	return all.String(), err
}

// PastState is a session's state at one of its records.
type PastState struct {
	asof.State
	Conversation *conversation.Conversation
	ToolTokens   int // tokens in the tools' descriptions
}

// PastState reads a session's state at each of the given records, zero meaning the last, and
// passes the states and the file contents to do. It keeps only the records that it needs.
func (a *Archive) ReadStates(ctx context.Context, id string, at []uint64,
	do func([]PastState, provenance.ContentReader) error) error {
	now, err := a.openPastStore(0)
	if err != nil {
		return err
	}
	defer now.Workspace.Close()
	kept := now.CurrentStore
	var states []PastState
	for _, seq := range at {
		s := PastState{Conversation: new(conversation.Conversation)}
		s.State, err = asof.Fold(ctx, func(yield func(event.Record, error) bool) {
			for r, err := range asof.Until(a.Store().Logs.Read(ctx, id, 0), seq) {
				if err == nil {
					s.addRecord(r)
				}
				if !yield(r, err) {
					return
				}
			}
		}, kept)
		if err != nil {
			return err
		}
		if seq > s.Seq {
			return inputErrorf("session %s has %d records", id, s.Seq)
		}
		states = append(states, s)
	}
	return do(states, kept)
}

func (s *PastState) addRecord(r event.Record) {
	s.Conversation.Add(r)
	// otherwise they are a subtask's
	if e, ok := r.Event.(event.MessageAdded); ok && len(e.Tools) > 0 && s.Conversation.SystemText() == e.Message.Text() {
		s.ToolTokens = 0
		for _, n := range e.Tools {
			s.ToolTokens += n
		}
	}
}

// ReadTranscript returns a session's transcript up to one of its records.
func (a *Archive) ReadTranscript(ctx context.Context, id string, until PastState) (export.Transcript, error) {
	return export.FromRecords(session.Head{ID: id, Updated: until.Time},
		asof.Until(a.Store().Logs.Read(ctx, id, 0), until.Seq))
}

// markVouched reads a session, and marks the requests behind changes that are vouched.
func (s *Store) markVouched(ctx context.Context, id string,
	changes []*provenance.Change) iter.Seq2[event.Record, error] {
	notary := seal.New(s.SealKey(), s.root, id)
	return func(yield func(event.Record, error) bool) {
		for r, err := range s.readRecords(ctx, id, provenance.ExplanationFilter(changes)) {
			if e, ok := r.Event.(event.ToolCallRequested); ok && provenance.ContainsCall(changes, e.CallID) {
				r.Vouched = notary.HasValidSeal(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
