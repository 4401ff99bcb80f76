package jetstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/record/session"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// hdrHead holds the head of a snapshot, so that a list need not read the rest.
const hdrHead = "Coder-Head"

// Sessions is a [session.Store]. Use [OpenSessions].
type Sessions struct {
	js     jetstream.JetStream
	l      Layout
	stream jetstream.Stream
}

// OpenSessions returns the store that [Provision] made.
func OpenSessions(ctx context.Context, js jetstream.JetStream, l Layout) (*Sessions, error) {
	stream, err := js.Stream(ctx, l.sessions())
	if err != nil {
		return nil, message.Errorf("open the sessions: %w", err)
	}
	return &Sessions{js: js, l: l, stream: stream}, nil
}

func (ss *Sessions) subject(id string) string { return ss.l.Name + ".session." + token(id) }

// Save replaces the snapshot of s.ID.
func (ss *Sessions) Save(ctx context.Context, s session.Snapshot) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.ID == "" {
		return message.Errorf("save session: the session has no id")
	}
	m := nats.NewMsg(ss.subject(s.ID))
	head, err := jsonx.Marshal(s.Head)
	if err == nil {
		m.Data, err = jsonx.Marshal(s)
	}
	if err != nil {
		return message.Errorf("save session %s: %w", s.ID, err)
	}
	m.Header.Set(hdrHead, string(head))
	for {
		var opts []jetstream.PublishOpt
		if s.Observed {
			at, seq, err := ss.at(ctx, s.ID)
			if err != nil || at > s.LastSeq {
				return err
			}
			opts = append(opts, jetstream.WithExpectLastSequencePerSubject(seq))
		}
		if _, err := ss.js.PublishMsg(ctx, m, opts...); !moved(err) {
			return err
		}
	}
}

// at is the record up to which the snapshot that is kept goes.
func (ss *Sessions) at(ctx context.Context, id string) (at, seq uint64, err error) {
	m, err := ss.last(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	var s session.Snapshot
	_ = json.Unmarshal(m.Data, &s) // one that is broken knows nothing
	return s.LastSeq, m.Sequence, nil
}

func (ss *Sessions) last(ctx context.Context, id string) (*jetstream.RawStreamMsg, error) {
	m, err := ss.stream.GetLastMsgForSubject(ctx, ss.subject(id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, message.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	if err != nil {
		return nil, message.Errorf("session %s: %w", id, cause(err, ctx.Err()))
	}
	return m, nil
}

// Load returns the snapshot of id.
func (ss *Sessions) Load(ctx context.Context, id string) (s session.Snapshot, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	m, err := ss.last(ctx, id)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(m.Data, &s); err != nil {
		return s, message.Errorf("session %s: %w", id, err)
	}
	return s, nil
}

// List yields the heads of all sessions, last updated first.
func (ss *Sessions) List(ctx context.Context) iter.Seq2[session.Head, error] {
	return func(yield func(session.Head, error) bool) {
		heads, broken, err := ss.heads(ctx)
		if err != nil {
			yield(session.Head{}, err)
			return
		}
		for _, err := range broken {
			if !yield(session.Head{}, err) {
				return
			}
		}
		for _, h := range heads {
			if !yield(h, nil) {
				return
			}
		}
	}
}

func (ss *Sessions) heads(ctx context.Context) (heads []session.Head, broken []error, err error) {
	info, err := ss.stream.Info(ctx)
	if err != nil {
		return nil, nil, cause(err, ctx.Err())
	}
	if info.State.Msgs == 0 {
		return nil, nil, nil
	}
	for next := uint64(1); next <= info.State.LastSeq; {
		m, err := ss.stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(ss.l.Name+".session.*"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, nil, cause(err, ctx.Err())
		}
		next = m.Sequence + 1
		var h session.Head
		if err := json.Unmarshal([]byte(m.Header.Get(hdrHead)), &h); err != nil {
			broken = append(broken, message.Errorf("%s: %w", m.Subject, err))
			continue
		}
		heads = append(heads, h)
	}
	slices.SortFunc(heads, func(a, b session.Head) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
	})
	return heads, broken, nil
}
