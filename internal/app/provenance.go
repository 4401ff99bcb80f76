package app

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"

	"coder/internal/agent/conversation"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
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

// Provenance finds the origin of a file's lines: in the records of all sessions in this workspace, in git for
// lines that no session wrote, and in the records of other places whose sessions may have changed the file.
func (a *Archive) Provenance(ctx context.Context, file string, line int) (*slash.Provenance, error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, inputf("open the workspace: %v", err)
	}
	defer ws.Close()
	name, err := ws.Resolve(file)
	if err != nil {
		return nil, inputf("%v", err)
	}
	if at, err := ws.Locate(name); err == nil {
		name = at
	}
	now, _, err := ws.ReadFile(name, provenance.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, inputf("file %s does not exist", sanitize.Line(file, 200))
	case err != nil:
		return nil, inputf("%v", err)
	}
	p := &slash.Provenance{Name: name, Binary: provenance.Binary(now), Stories: make(map[*provenance.Change]*provenance.Story)}
	if p.Binary {
		line = 0
	}
	t := &tracing{Archive: a, Provenance: p, now: now, line: line}
	if err := t.in(ctx, place{Store: a.Store(), ws: ws, name: name, same: true}); err != nil {
		return nil, err
	}
	if !t.left() {
		return p, ctx.Err()
	}
	o := git.Options{Workspace: ws, Door: a.Door()}
	p.Commits, p.NoGit = git.Blame(ctx, o, name, t.names...)
	if p.Binary {
		p.Commits = git.Newest(p.Commits)
	}
	for _, at := range t.elsewhere(ctx, o, name) {
		defer at.ws.Close()
		if !t.left() {
			continue
		}
		if err := t.in(ctx, at); err != nil {
			return nil, err
		}
	}
	if info, err := ws.Lstat(name); err == nil {
		p.Doubt(t.unknown, info.ModTime())
	}
	return p, ctx.Err()
}

// maxGone limits the number of deleted files to trace.
const maxGone = 64

// survey finds deleted files that sessions changed, and calls
// with an unknown end that may have changed a file.
func (s *Store) survey(ctx context.Context, name string, gone func(string) bool) (names []string, unknown []*provenance.Change) {
	for _, id := range s.IDs() {
		var seen provenance.Survey
		for range s.read(ctx, id, func(line []byte) bool { seen.See(line); return false }, event.Audit) {
			break // use the part that was readable
		}
		for file := range seen.Files {
			if len(names) < maxGone && !slices.Contains(names, file) && gone(file) {
				names = append(names, file)
			}
		}
		if wants := seen.Unsettled(); wants != nil {
			unknown = append(unknown, provenance.Unknown(s.read(ctx, id, wants, event.Audit), name)...)
		}
	}
	return names, unknown
}

// changes returns the calls in all sessions that changed a file,
// by any name that it or one of the others had, in order of time.
func (s *Store) changes(ctx context.Context, name string, others ...string) (all []*provenance.Change) {
	names := append([]string{name}, others...)
	for {
		all = nil
		touches := provenance.Touches(names)
		for _, id := range s.IDs() {
			list, err := provenance.Changes(s.read(ctx, id, touches, event.Audit))
			if err != nil {
				s.warn(err.Error()) // use the readable part
			}
			all = append(all, list...)
		}
		provenance.Sort(all)
		more := provenance.Names(names, all)
		if len(more) <= len(names) {
			return all
		}
		names = more // include changes under its other names
	}
}

// read reads the records of a session whose lines are wanted, or all records if they are not on disk.
func (s *Store) read(ctx context.Context, id string, wants func(line []byte) bool, logs ...event.Log) iter.Seq2[event.Record, error] {
	if s.ephemeral || s.barred["log"] != nil {
		return s.Logs.Read(ctx, id, 0, logs...)
	}
	return s.logs.ReadWhere(ctx, id, 0, wants, logs...)
}

// Log reads all records of a session that has some.
func (s *Store) Log(ctx context.Context, id string) (records []event.Record, err error) {
	for r, err := range s.Logs.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, inputf("session %s has no readable log; see coder audit verify %[1]s", id)
	}
	return records, nil
}

// kept returns the file contents in the undo store and in git.
func (a *Archive) kept(ws *workspace.Workspace) past.Now { return a.keptIn(a.Store(), ws) }

func (a *Archive) keptIn(s *Store, ws *workspace.Workspace) past.Now {
	return past.Now{Keeper: undo.New(ws, s.contents(), undo.Options{Door: a.Door(), Now: a.Env.Now}), Workspace: ws}
}

// AsOf is a session's state at one of its records.
type AsOf struct {
	asof.State
	Conversation *conversation.Conversation
	Tools        int // tokens in the tools' descriptions
}

// AsOf reads a session's state at each of the given records, zero meaning the last, and
// passes the states and the file contents to do. It keeps only the records that it needs.
func (a *Archive) AsOf(ctx context.Context, id string, at []uint64, do func([]AsOf, provenance.Contents) error) error {
	now, err := a.openPast(0)
	if err != nil {
		return err
	}
	defer now.Workspace.Close()
	kept := now.Now
	var states []AsOf
	for _, seq := range at {
		s := AsOf{Conversation: new(conversation.Conversation)}
		s.State, err = asof.Fold(ctx, func(yield func(event.Record, error) bool) {
			for r, err := range asof.Until(a.Store().Logs.Read(ctx, id, 0), seq) {
				if err == nil {
					s.add(r)
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
			return inputf("session %s has %d records", id, s.Seq)
		}
		states = append(states, s)
	}
	return do(states, kept)
}

func (s *AsOf) add(r event.Record) {
	s.Conversation.Add(r)
	if e, ok := r.Event.(event.MessageAdded); ok && len(e.Tools) > 0 && s.Conversation.System() == e.Message.Text() { // otherwise they are a subtask's
		s.Tools = 0
		for _, n := range e.Tools {
			s.Tools += n
		}
	}
}

// Transcript returns a session's transcript up to one of its records.
func (a *Archive) Transcript(ctx context.Context, id string, until AsOf) (export.Transcript, error) {
	return export.FromRecords(session.Head{ID: id, Updated: until.Time}, asof.Until(a.Store().Logs.Read(ctx, id, 0), until.Seq))
}

// vouched reads a session, and marks the requests behind changes that are vouched.
func (s *Store) vouched(ctx context.Context, id string, changes []*provenance.Change) iter.Seq2[event.Record, error] {
	notary := seal.New(s.Key(), s.root, id)
	return func(yield func(event.Record, error) bool) {
		for r, err := range s.read(ctx, id, provenance.Tells(changes)) {
			if e, ok := r.Event.(event.ToolCallRequested); ok && provenance.Of(changes, e.CallID) {
				r.Vouched = notary.Vouches(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
