package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/policy/mode"
	"coder/internal/record/session"
)

// projection is the session's snapshot, folded from records.
type projection struct {
	mu            sync.Mutex // guards the fields below
	head          session.Head
	system        *chat.Message
	messages      []chat.Message
	notes         []session.Note
	localCommands []session.Local
	last          uint64
	subtasks      map[string]bool // their messages are left out
}

// SaveProjection writes the snapshot of session id from its logs, if it is newer
// than the saved one. It opens nothing: it does not claim the session or
// add a record, and does not disturb a process that uses the session.
func (s *Supervisor) SaveProjection(ctx context.Context, id string) error {
	snap, err := s.LoadSnapshot(ctx, id)
	if err != nil {
		return err
	}
	if saved, err := s.Sessions.Load(ctx, id); err == nil && saved.LastSeq >= snap.LastSeq {
		return nil
	}
	snap.Observed = true // a process using the session may have written a newer one
	return s.Sessions.Save(ctx, snap)
}

func (p *projection) add(r event.Record) {
	if r.Seq == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = r.Seq
	p.head.Updated = r.Time
	if p.head.Created.IsZero() {
		p.head.Created = r.Time
	}
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID != "" {
			putIn(&p.subtasks, r.Task, true)
			return
		}
		p.head.Meta.Turns++
		p.head.Meta.Title = cmp.Or(p.head.Meta.Title, e.Title)
	case event.MessageAdded:
		if !p.subtasks[r.Task] {
			if e.Message.Role == chat.System {
				p.system = &e.Message
				return
			}
			if e.Model != "" {
				p.head.Meta.Model = e.Model
			}
			p.notes = append(p.notes, session.Note{
				Index: len(p.messages), Time: r.Time, Task: r.Task, Interrupted: e.Interrupted, Reminders: e.Reminders,
			})
			p.messages = append(p.messages, e.Message)
		}
	case event.ModeChanged:
		p.head.Meta.Agent = e.Mode
	case event.LocalAdded:
		p.localCommands = append(p.localCommands, session.Local{Before: len(p.messages), Time: r.Time, Local: true,
			Input: e.Input, Output: e.Output})
	}
}

// missingMessages lists the messages in snap after those of the
// projection. ok is false if snap does not begin with them.
func (p *projection) missingMessages(snap session.Snapshot) (ms []chat.Message, ok bool, err error) {
	mine, err := p.snapshot()
	if err != nil {
		return nil, false, err
	}
	have, theirs := dropSystem(mine.Messages), dropSystem(snap.Messages)
	for i, m := range have {
		if i >= len(theirs) || !bytes.Equal(m, theirs[i]) {
			return nil, i >= len(theirs), nil // the logs have more
		}
	}
	for i, raw := range theirs[len(have):] {
		var m chat.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, false, message.Errorf("message %d: %w", len(have)+i, err)
		}
		ms = append(ms, m)
	}
	return ms, true, nil
}

// dropSystem drops the system text, which is recorded again when it differs.
func dropSystem(ms []json.RawMessage) []json.RawMessage {
	if len(ms) > 0 && bytes.HasPrefix(ms[0], []byte(`{"role":"system"`)) {
		return ms[1:]
	}
	return ms
}

// snapshot returns the projection in OpenAI form, the system text first.
func (p *projection) snapshot() (session.Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	snap := session.Snapshot{Head: p.head, LastSeq: p.last}
	shift := 0
	if p.system != nil {
		shift = 1
		raw, err := p.system.MarshalOpenAI()
		if err != nil {
			return snap, err
		}
		snap.Messages = append(snap.Messages, raw)
	}
	for i, m := range p.messages {
		raw, err := m.MarshalOpenAI()
		if err != nil {
			return snap, message.Errorf("message %d: %w", i, err)
		}
		snap.Messages = append(snap.Messages, raw)
	}
	for _, n := range p.notes {
		n.Index += shift
		snap.Notes = append(snap.Notes, n)
	}
	for _, l := range p.localCommands {
		l.Before += shift
		snap.Local = append(snap.Local, l)
	}
	return snap, nil
}

// saveSnapshot replaces the session's snapshot.
func (s *Session) saveSnapshot(ctx context.Context) error {
	snap, err := s.projection.snapshot()
	if err != nil {
		return message.Errorf("project session %s: %w", s.ID, err)
	}
	set := s.engine.Settings()
	snap.ID, snap.Model = s.ID, set.Model
	snap.Meta.Agent, snap.Meta.Model, snap.Meta.Dir = set.Mode, set.Model, s.supervisor.Dir
	tools := []json.RawMessage{}
	for t := range set.Tools.Specs() {
		tools = append(tools, jsonx.MustMarshal(map[string]any{
			"type":     "function",
			"function": map[string]any{"name": t.Name, "description": t.Doc, "parameters": t.Schema},
		}))
	}
	snap.Tools = tools
	return s.supervisor.Sessions.Save(ctx, snap)
}

// LoadSnapshot returns the snapshot of session id from its logs, or the saved
// one if there are none. Without either, the error is [session.ErrNotFound].
func (s *Supervisor) LoadSnapshot(ctx context.Context, id string) (session.Snapshot, error) {
	saved, savedErr := s.Sessions.Load(ctx, id)
	var view projection
	for r, err := range s.Store.Read(ctx, id, 0) {
		if err != nil {
			return session.Snapshot{}, err
		}
		view.add(r)
	}
	if view.last == 0 {
		return saved, savedErr
	}
	snap, err := view.snapshot()
	snap.ID, snap.Tools, snap.Meta.Dir = id, saved.Tools, s.Dir
	snap.Meta.Agent = cmp.Or(snap.Meta.Agent, saved.Meta.Agent, mode.Build)
	snap.Meta.Model = cmp.Or(snap.Meta.Model, saved.Meta.Model)
	snap.Model = snap.Meta.Model
	if snap.Tools == nil {
		snap.Tools = []json.RawMessage{}
	}
	return snap, err
}
