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
		for r, err := range s.follow(ctx, session, after, tip.seq) {
			wanted := err != nil || len(logs) == 0 || slices.Contains(logs, event.LogOf(r.Event))
			if wanted && !yield(r, err) {
				return
			}
		}
	}
}

// Watch yields the records of session newer than after, and goes on with those
// that are written, until ctx ends.
func (s *Store) Watch(ctx context.Context, session string, after uint64) iter.Seq2[event.Record, error] {
	return s.follow(ctx, session, after, 0)
}

// follow yields records up to the message numbered until; zero is without end.
func (s *Store) follow(ctx context.Context, session string, after, until uint64) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for data, err := range messages(ctx, s.stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{s.l.subject(session)}}, until) {
			if err != nil {
				yield(event.Record{}, fmt.Errorf("read session %s: %w", session, err))
				return
			}
			for line := range bytes.Lines(data.Data()) {
				r, _, err := event.Decode(line[1:], event.Log(line[0]-'0'))
				if err != nil {
					yield(r, fmt.Errorf("read session %s: %w", session, err))
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
