package jetstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"coder/internal/core/event"

	"github.com/nats-io/nats.go/jetstream"
)

// Read yields what session held when the reading began.
func (s *Store) Read(ctx context.Context, session string, after uint64, logs ...event.Log) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		tip, err := s.Tip(ctx, session)
		if err != nil {
			yield(event.Record{}, cause(err, ctx.Err()))
			return
		}
		if tip.Last <= after {
			return
		}
		for r, err := range decoded(s.kept(ctx, session, tip.seq), after) {
			wanted := err != nil || len(logs) == 0 || slices.Contains(logs, event.LogOf(r.Event))
			if wanted && !yield(r, err) {
				return
			}
		}
	}
}

// kept yields the messages of session up to the one numbered until. They are asked
// for one by one: a server that goes away in between is noticed, and a log is short.
func (s *Store) kept(ctx context.Context, session string, until uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for next := uint64(1); next <= until; {
			m, err := s.stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(s.l.subject(session)))
			if err != nil {
				yield(nil, fmt.Errorf("read session %s: %w", session, cause(err, ctx.Err())))
				return
			}
			if next = m.Sequence + 1; !yield(m.Data, nil) {
				return
			}
		}
	}
}

// Watch yields the records of session newer than after, and goes on with those
// that are written, until ctx ends.
func (s *Store) Watch(ctx context.Context, session string, after uint64) iter.Seq2[event.Record, error] {
	return decoded(func(yield func([]byte, error) bool) {
		for m, err := range messages(ctx, s.stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{s.l.subject(session)}}, 0) {
			if err != nil {
				yield(nil, fmt.Errorf("read session %s: %w", session, err))
				return
			}
			if !yield(m.Data(), nil) {
				return
			}
		}
	}, after)
}

// decoded yields the records in messages that are newer than after.
func decoded(messages iter.Seq2[[]byte, error], after uint64) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for data, err := range messages {
			if err != nil {
				yield(event.Record{}, err)
				return
			}
			for line := range bytes.Lines(data) {
				r, _, err := event.Decode(line[1:], event.Log(line[0]-'0'))
				if err != nil {
					yield(r, err)
					return
				}
				if r.Seq > after && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// messages yields what a stream holds, up to the message numbered until.
func messages(ctx context.Context, stream jetstream.Stream, c jetstream.OrderedConsumerConfig, until uint64) iter.Seq2[jetstream.Msg, error] {
	return func(yield func(jetstream.Msg, error) bool) {
		consumer, err := stream.OrderedConsumer(ctx, c)
		if err != nil {
			yield(nil, cause(err, ctx.Err()))
			return
		}
		it, err := consumer.Messages()
		if err != nil {
			yield(nil, cause(err, ctx.Err()))
			return
		}
		defer it.Stop()
		for {
			m, err := it.Next(jetstream.NextContext(ctx))
			if err != nil {
				if errors.Is(err, jetstream.ErrMsgIteratorClosed) && ctx.Err() != nil {
					err = ctx.Err()
				}
				yield(nil, err)
				return
			}
			at, err := m.Metadata()
			if !yield(m, err) || err != nil || until > 0 && at.Sequence.Stream >= until {
				return
			}
		}
	}
}
