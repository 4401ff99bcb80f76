package jetstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Read yields what session held when the reading began.
func (s *Store) Read(ctx context.Context, session string, after uint64,
	logs ...event.Log) iter.Seq2[event.Record, error] {
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
				yield(nil, message.Errorf("read session %s: %w", session, cause(err, ctx.Err())))
				return
			}
			if next = m.Sequence + 1; !yield(m.Data, nil) {
				return
			}
		}
	}
}

// watchTime is how long a watch waits before it looks for new records.
const watchTime = 250 * time.Millisecond

// Watch yields the records of session newer than after, and goes on with those
// that are written, until ctx ends.
func (s *Store) Watch(ctx context.Context, session string, after uint64) iter.Seq2[event.Record, error] {
	return func(yield func(event.Record, error) bool) {
		for {
			for r, err := range s.Read(ctx, session, after) {
				if !yield(r, err) || err != nil {
					return
				}
				after = r.Seq
			}
			select {
			case <-ctx.Done():
				yield(event.Record{}, ctx.Err())
				return
			case <-time.After(watchTime):
			}
		}
	}
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

const (
	batchSize  = 256
	batchBytes = 8 << 20
	batchTime  = 30 * time.Second // at most, for one batch
)

// Walk yields the messages that stream holds under subject, which may be a pattern,
// in their order. It makes no consumer: whoever may make one may have the server
// publish to any subject. The stream must allow direct reads.
func Walk(ctx context.Context, js jetstream.JetStream, stream, subject string) iter.Seq2[*nats.Msg, error] {
	return func(yield func(*nats.Msg, error) bool) {
		for next := uint64(1); next > 0; {
			batch, after, err := fetch(ctx, js, stream, subject, next)
			if err != nil {
				yield(nil, message.Errorf("read the stream %s: %w", stream, cause(err, ctx.Err())))
				return
			}
			for _, m := range batch {
				if !yield(m, nil) {
					return
				}
			}
			next = after
		}
	}
}

// fetch reads one batch, and says where the next one begins: 0 if there is none.
func fetch(ctx context.Context, js jetstream.JetStream, stream, subject string, from uint64) (batch []*nats.Msg,
	next uint64, err error) {
	ctx, stop := context.WithTimeout(ctx, batchTime)
	defer stop()
	conn := js.Conn()
	replies, err := conn.SubscribeSync(conn.NewInbox())
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = replies.Unsubscribe() }()
	body := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q,"batch":%d,"max_bytes":%d}`, from, subject, batchSize,
		batchBytes)
	if err := conn.PublishRequest(api(js)+"DIRECT.GET."+stream, replies.Subject, body); err != nil {
		return nil, 0, err
	}
	for {
		m, err := replies.NextMsgWithContext(ctx)
		if err != nil {
			return nil, 0, err
		}
		seq := stored(m, jetstream.SequenceHeader)
		if seq == "" { // no stored message: how the batch ended
			switch status := m.Header.Get("Status"); status {
			case "204":
				if m.Header.Get("Nats-Num-Pending") == "0" {
					next = 0
				}
				return batch, next, nil
			case "404":
				return batch, 0, nil
			default:
				return nil, 0, message.Errorf("the server returned %s %s", status, m.Header.Get("Description"))
			}
		}
		n, err := strconv.ParseUint(seq, 10, 64)
		if err != nil {
			return nil, 0, err
		}
		m.Subject, next = stored(m, jetstream.SubjectHeader), n+1
		batch = append(batch, m)
	}
}

// api begins the subjects of requests to JetStream, up to the last dot.
func api(js jetstream.JetStream) string {
	return strings.TrimSuffix(cmp.Or(js.Options().APIPrefix, jetstream.DefaultAPIPrefix), ".") + "."
}

// Message is a message that a stream holds.
type Message struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

// Next is the first message numbered from or more that stream holds under subject,
// which may be a pattern; nil if there is none. It reads no header of the message, so
// that one that is made to mislead cannot.
func Next(ctx context.Context, js jetstream.JetStream, stream, subject string, from uint64) (*Message, error) {
	ctx, stop := context.WithTimeout(ctx, batchTime)
	defer stop()
	body := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q}`, from, subject)
	reply, err := js.Conn().RequestWithContext(ctx, api(js)+"STREAM.MSG.GET."+stream, body)
	if err != nil {
		return nil, message.Errorf("read the stream %s: %w", stream, err)
	}
	var r struct {
		Message *Message            `json:"message"`
		Error   *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &r); err != nil {
		return nil, message.Errorf("read the stream %s: %w", stream, err)
	}
	if r.Error != nil && r.Error.ErrorCode != jetstream.JSErrCodeMessageNotFound {
		return nil, message.Errorf("read the stream %s: %w", stream, r.Error)
	}
	return r.Message, nil
}

// stored is what the server says of a message that it holds. It says so after the
// headers that came with the message, which may say anything.
func stored(m *nats.Msg, header string) string {
	all := m.Header[header]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// Written is when the server stored a message of [Walk].
func Written(m *nats.Msg) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, stored(m, jetstream.TimeStampHeaer))
	return at
}
