package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
)

// A Record is a saved event: numbered from 1 without gaps within its session, across the three logs, so
// that merging them by Seq gives the true order. A transient event travels in a Record whose Seq is
// zero.
type Record struct {
	Seq     uint64
	Time    time.Time
	Session string
	Task    string
	Actor   string // who caused it: [ActorUser], the name of an agent or of a policy
	Event   Event

	// Clean reports that the record is already masked. It is never saved.
	Clean bool
	// Seal, if present, is the signature of the program that wrote the record.
	Seal string
	// Vouched reports that this user's coder wrote the record on this machine. It is never saved: opening a
	// session computes it again.
	Vouched bool
}

// Actors that are not agents.
const (
	ActorUser     = "user"
	ActorPolicy   = "policy"
	ActorRecovery = "recovery" // closes what an earlier process left unfinished
	ActorVerifier = "verify"   // runs coder's automatic checks of edits
)

// A Sink receives events in order. Several goroutines may call Emit at once, and an error from it ends
// the turn.
type Sink interface {
	Emit(ctx context.Context, r Record) error
}

// NotShownError reports a record that was saved but could not be shown.
type NotShownError struct{ Err error }

func (e *NotShownError) Error() string { return e.Err.Error() }

func (e *NotShownError) Unwrap() error { return e.Err }

// IsSaved reports whether the record was saved although Emit returned err.
func IsSaved(err error) bool {
	var unseen *NotShownError
	return err == nil || errors.As(err, &unseen)
}

// SinkFunc adapts a function to a Sink.
type SinkFunc func(context.Context, Record) error

// Emit calls f.
func (f SinkFunc) Emit(ctx context.Context, r Record) error { return f(ctx, r) }

// Discard is a Sink that ignores all events.
var Discard Sink = SinkFunc(func(context.Context, Record) error { return nil })

// Tee returns a Sink that calls each of sinks in turn and stops at the first error.
func Tee(sinks ...Sink) Sink {
	return SinkFunc(func(ctx context.Context, r Record) error {
		for _, s := range sinks {
			if err := s.Emit(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// A Store saves durable records, append-only, one log per kind. Implementations pass
// [coder/testkit/eventtest.TestStore].
type Store interface {
	// Claim makes the caller the only writer of session until release is called, and repairs incomplete
	// writes of an earlier writer. If another writer has the claim, the error is a [*ClaimedError].
	Claim(ctx context.Context, session string) (release func() error, err error)

	// Append adds records of one claimed session in one step: all of them or none. Their Seqs follow last,
	// one by one; if last is not the Seq of the session's newest record, Append returns [ErrConflict]. When
	// Append returns nil, the records survive a crash of the process, and if one of them is [IsIrreversible], also
	// one of the machine.
	Append(ctx context.Context, last uint64, rs ...Record) error

	// Read yields a session's records newer than after, oldest first, from the given logs (none = all three,
	// merged). A session that was never written has no records. After yielding an error it stops.
	Read(ctx context.Context, session string, after uint64, logs ...Log) iter.Seq2[Record, error]
}

// ErrConflict reports that another writer appended first.
var ErrConflict = errors.New("session moved on")

// AreConsecutive reports whether rs are records of one session numbered directly after last.
func AreConsecutive(last uint64, rs []Record) bool {
	for i, r := range rs {
		if r.Session != rs[0].Session || r.Seq != last+1+uint64(i) {
			return false
		}
	}
	return true
}

// NotRecordableError reports that a [ChangesWorld] cannot be recorded now and so must not run. Other records may still
// be accepted.
type NotRecordableError struct{ Err error }

func (e *NotRecordableError) Error() string { return fmt.Sprintf("cannot be recorded: %s", e.Err) }

func (e *NotRecordableError) Unwrap() error { return e.Err }

// ClaimedError reports that another process is writing the session.
type ClaimedError struct {
	Session string
	Holder  string // a description of the writer
}

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("session %s is in use by %s", e.Session, e.Holder)
}

// NewerFormatError reports a session that only a newer version may write to.
type NewerFormatError struct {
	Session                 string
	Format, SupportedFormat int    // the session's format, and the newest that this program writes
	Writer                  string // the version that wrote it last; "" if the session does not say
}

func (e *NewerFormatError) Error() string {
	by := "a newer version of coder"
	if e.Writer != "" {
		by = "coder " + e.Writer
	}
	return fmt.Sprintf("session %s was written by %s, in format %d; this version writes format %d and would damage it: continue it with %[2]s", e.Session, by, e.Format, e.SupportedFormat)
}

// durableTypes maps each durable type to a stable wire name and version. A version increases when an old reader
// would misread the payload; older payloads are upgraded when read.
var durableTypes = []struct {
	name    string
	version int
	zero    Event
}{
	{"TaskCreated", 1, TaskCreated{}},
	{"TaskStarted", 1, TaskStarted{}},
	{"TaskCompleted", 1, TaskCompleted{}},
	{"TaskFailed", 1, TaskFailed{}},
	{"TaskCanceled", 1, TaskCanceled{}},
	{"UserInteractionRequested", 1, InteractionRequested{}},
	{"UserInteractionResponded", 1, InteractionResponded{}},
	{"ToolCallRequested", 1, ToolCallRequested{}},
	{"ToolCallCompleted", 1, ToolCallCompleted{}},
	{"MessageAdded", 1, MessageAdded{}},
	{"LocalAdded", 1, LocalAdded{}},
	{"Spent", 1, Spent{}},
	{"TodosChanged", 1, TodosChanged{}},
	{"ModeChanged", 1, ModeChanged{}},
	{"ContextReplaced", 1, ContextReplaced{}},
	{"ContextRestored", 1, ContextRestored{}},
	{"ContextRewound", 1, ContextRewound{}},
}

// WireName returns the wire name and version of a durable event.
func WireName(e Event) (string, int) {
	if u, ok := e.(Unknown); ok {
		return u.Type, u.Version
	}
	t := reflect.TypeOf(e)
	for _, n := range durableTypes {
		if reflect.TypeOf(n.zero) == t {
			return n.name, n.version
		}
	}
	return "", 0
}

// recordLine is an encoded record: one JSON object on one line.
type recordLine struct {
	Seq     uint64          `json:"seq"`
	Type    string          `json:"type"`
	Version int             `json:"v"`
	Session string          `json:"sessionId"`
	Task    string          `json:"streamId"`
	Actor   string          `json:"actor,omitempty"`
	Time    time.Time       `json:"createdAt"`
	Seal    string          `json:"seal,omitempty"`
	Payload json.RawMessage `json:"payload"`
	Prev    string          `json:"prev,omitempty"` // in audit logs of an earlier format
}

// Encode encodes r as one JSON object without a newline.
func Encode(r Record) ([]byte, error) {
	var large jsonx.Holes
	data, err := EncodeAround(r, &large)
	if err != nil || !large.Large() {
		return data, err
	}
	return large.Filled(nil, data)
}

// EncodeAround encodes r with marks for its large texts, which large gets.
func EncodeAround(r Record, large *jsonx.Holes) ([]byte, error) {
	name, version := WireName(r.Event)
	if log := LogOf(r.Event); name == "" || log < LogDomain || log > LogConversation {
		return nil, message.Errorf("%T is not saved", r.Event)
	}
	l := recordLine{r.Seq, name, version, r.Session, r.Task, r.Actor, r.Time.UTC(), r.Seal, nil, ""}
	data, err := l.appendJSON(make([]byte, 0, envelopeSize))
	if err == nil {
		data, err = appendPayload(data, r.Event, large)
	}
	if err != nil {
		return nil, message.Errorf("encode %s: %w", name, err)
	}
	return append(data, '}'), nil
}

// appendPayload appends e as JSON on one line.
func appendPayload(b []byte, e Event, large *jsonx.Holes) ([]byte, error) {
	switch e := e.(type) {
	case MessageAdded:
		return jsonx.Append(b, struct {
			Message any `json:"message"`
			*MessageAdded
		}{e.Message.JSONValue(large), &e})
	case Unknown:
		if e.Payload == nil {
			return append(b, "null"...), nil
		}
		out := bytes.NewBuffer(b)
		err := json.Compact(out, e.Payload)
		return out.Bytes(), err
	}
	return jsonx.Append(b, e)
}

// Decode decodes the output of Encode, with or without a checksum; log is the log that contained it.
// prev is the hash of the previous line, which lines of an earlier format carry. An unknown type or
// version, or a payload that does not fit its type, becomes [OutcomeUnknown]. Only data that is not a record is
// an error, exactly where [PeekSeq] returns one. The Record does not refer to data.
func Decode(data []byte, log Log) (r Record, prev string, err error) {
	if l, ok := parseCanonical(data); ok {
		if e, ok := decodePayload(l, log); ok {
			return l.toRecord(e), l.Prev, nil
		}
	}
	l, err := parseLine(data)
	if err != nil {
		return Record{}, "", err
	}
	e, _ := decodePayload(l, log) // parse has checked that the payload is JSON
	return l.toRecord(e), l.Prev, nil
}

// PeekSeq returns the Seq of the record in data, or an error where Decode would return one, at a fraction
// of the cost.
func PeekSeq(data []byte) (uint64, error) {
	if l, ok := parseCanonical(data); ok && json.Valid(l.Payload) {
		return l.Seq, nil
	}
	l, err := parseLine(data)
	return l.Seq, err
}

// SeqOf returns the Seq of the record in data, or zero if data holds none. It does not check the
// record, so data must be as Encode wrote it.
func SeqOf(data []byte) uint64 {
	c := jsonCursor{rest: data}
	seq := c.expect(`{"seq":`).parseNumber()
	if _, _, ours := SplitSum(data); ours && !c.failed {
		return seq
	}
	seq, _ = PeekSeq(data)
	return seq
}

func (l recordLine) toRecord(e Event) Record {
	return Record{Seq: l.Seq, Time: l.Time, Session: l.Session, Task: l.Task, Actor: l.Actor, Event: e, Seal: l.Seal}
}

// decodePayload reports false if the payload is not JSON.
func decodePayload(l recordLine, log Log) (Event, bool) {
	for _, n := range durableTypes {
		if n.name != l.Type || n.version != l.Version {
			continue
		}
		v := reflect.New(reflect.TypeOf(n.zero))
		if json.Unmarshal(l.Payload, v.Interface()) == nil {
			return v.Elem().Interface().(Event), true
		}
	}
	if !json.Valid(l.Payload) {
		return nil, false
	}
	return Unknown{Log: log, Type: l.Type, Version: l.Version, Payload: bytes.Clone(l.Payload)}, true
}

// AsReply is what a model said, if that is what an event is.
func AsReply(e Event) (MessageAdded, bool) {
	m, ok := e.(MessageAdded)
	return m, ok && m.Message.Role == chat.Assistant && m.Model != ""
}
