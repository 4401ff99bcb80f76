package event_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/testkit/eventtest"
)

// transients are the events that are never kept.
var transients = []event.Event{
	event.SessionOpened{}, event.StateChanged{}, event.TextDelta{}, event.ReasoningDelta{}, event.Retrying{}, event.Waiting{}, event.ToolStarted{},
	event.ToolOutput{}, event.ToolProgress{}, event.ToolFinished{}, event.ContextUsed{}, event.Interrupted{}, event.Notice{},
}

// Every type of event is either in eventtest.Samples, and then it is kept and
// has a name on the wire, or in transients.
func TestEveryEventHasARow(t *testing.T) {
	rows := make(map[string]bool)
	for _, e := range slices.Concat(eventtest.Samples(), transients) {
		rows[reflect.TypeOf(e).Name()] = true
	}
	types := eventTypes(t)
	for _, name := range types {
		if !rows[name] {
			t.Errorf("%s has no sample in eventtest and is not listed as transient", name)
		}
	}
	if len(types) != len(rows) {
		t.Errorf("%d types of event, %d rows", len(types), len(rows))
	}
}

// A field that no sample sets is a field that no test has seen survive.
func TestSamplesSetEveryField(t *testing.T) {
	for _, e := range eventtest.Samples() {
		if _, ok := e.(event.Unknown); !ok {
			expectSet(t, reflect.TypeOf(e).Name(), reflect.ValueOf(e))
		}
	}
}

func expectSet(t *testing.T, name string, v reflect.Value) {
	if v.IsZero() {
		t.Errorf("%s is not set", name)
	}
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); !f.IsExported() || f.Tag.Get("json") == "-" {
				continue // no sample can set it, or it is not kept
			}
			expectSet(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		expectSet(t, name, v.Elem())
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		if !strings.HasSuffix(name, ".Parts") { // questions within a question are questions
			expectSet(t, name+"[0]", v.Index(0))
		}
	}
}

// eventTypes lists the types that have a method isEvent.
func eventTypes(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "isEvent" {
			names = append(names, f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no events in event.go")
	}
	return names
}

func TestTransientEventsAreNotKept(t *testing.T) {
	for _, e := range append(transients, nil, event.Unknown{Type: "X", Version: 1}, event.Unknown{Log: 9, Type: "X", Version: 1}, event.Unknown{Log: event.LogAudit}) {
		if u, ok := e.(event.Unknown); !ok && event.LogOf(e) != event.LogNone {
			t.Errorf("%T belongs to a log", u)
		}
		if b, err := event.Encode(event.Record{Seq: 1, Event: e}); err == nil {
			t.Errorf("%T was encoded as %s", e, b)
		}
		if event.IsIrreversible(e) {
			t.Errorf("%T is decisive", e)
		}
	}
}

func TestDurableEventsHaveALogANameAndAVersion(t *testing.T) {
	names := make(map[string]bool)
	for _, e := range eventtest.Samples() {
		name, version := event.WireName(e)
		if event.LogOf(e) == event.LogNone || name == "" || version < 1 {
			t.Errorf("%T: log %v, name %q, version %d", e, event.LogOf(e), name, version)
		}
		key := fmt.Sprint(name, version)
		if names[key] {
			t.Errorf("%T shares the name %s with another", e, key)
		}
		names[key] = true
	}
}

func TestDecisive(t *testing.T) {
	for _, c := range []struct {
		e    event.Event
		want bool
	}{
		{event.InteractionRequested{}, true}, {event.InteractionResponded{}, true},
		{event.TaskCompleted{}, true}, {event.TaskFailed{}, true}, {event.TaskCanceled{}, true},
		{event.TaskCreated{}, false}, {event.TaskStarted{}, false},
		{event.ToolCallRequested{}, true}, {event.ToolCallRequested{ReadOnly: true}, false}, {event.ToolCallCompleted{}, false},
		{event.MessageAdded{}, false}, {event.LocalAdded{}, false}, {event.Unknown{Log: event.LogDomain}, false},
	} {
		if got := event.IsIrreversible(c.e); got != c.want {
			t.Errorf("Decisive(%T) = %v", c.e, got)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for _, e := range eventtest.Samples() {
		for _, r := range []event.Record{
			eventtest.Records("s-1", 41, e)[0],
			{Seq: 1, Event: e, Seal: "5ea1"},
			{Seq: 1<<64 - 1, Event: e, Session: "s\"<\\>\n", Task: "任务", Actor: "\x01", Seal: "\"海豹", Time: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("", 5*3600))},
		} {
			for _, prev := range []string{"", hash, "odd"} {
				roundTrip(t, r, prev, false)
				roundTrip(t, r, prev, true)
			}
		}
	}
}

// written is r as a line of a log: with the hash of the line before it, as an
// earlier form had it, and with a check.
func written(t testing.TB, r event.Record, prev string, checked bool) []byte {
	t.Helper()
	b, err := event.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if prev != "" {
		b = fmt.Appendf(b[:len(b)-1], `,"prev":"%s"}`, prev)
	}
	if checked {
		b = event.AppendSum(b[:len(b)-1], [event.SumLen]byte([]byte("0123456789-_ABCDEFGHIJKLMNOPQRST")))
	}
	return b
}

func roundTrip(t *testing.T, r event.Record, prev string, checked bool) {
	t.Helper()
	b := written(t, r, prev, checked)
	if bytes.ContainsAny(b, "\n\r") || !json.Valid(b) {
		t.Fatalf("not JSON on one line: %s", b)
	}
	log := event.LogOf(r.Event)
	got, gotPrev, err := event.Decode(b, log)
	if err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if err := eventtest.Same([]event.Record{got}, []event.Record{r}); err != nil {
		t.Errorf("%s: %v", b, err)
	}
	if gotPrev != prev {
		t.Errorf("prev is %q, want %q", gotPrev, prev)
	}
	if seq, err := event.PeekSeq(b); seq != r.Seq || err != nil {
		t.Errorf("peek: %d, %v, want %d", seq, err, r.Seq)
	}
	line := bytes.Clone(b)
	kept, _, _ := event.Decode(line, log)
	clear(line) // a record keeps nothing of the line it was read from
	if err := eventtest.Same([]event.Record{kept}, []event.Record{r}); err != nil {
		t.Errorf("after the line was overwritten: %v", err)
	}
	if again := written(t, got, gotPrev, checked); !bytes.Equal(again, b) {
		t.Errorf("encoded again: %s, want %s", again, b)
	}
}

// A check that was damaged does not make a line one without a check.
func TestDamagedChecksAreNoRecords(t *testing.T) {
	r := eventtest.Records("s1", 4, event.TaskStarted{TaskID: "t1"})[0]
	line := written(t, r, "", true)
	body, _, ok := event.SplitSum(line)
	if !ok {
		t.Fatalf("no check in %s", line)
	}
	for i := len(body); i < len(line); i++ {
		for bit := range 8 {
			b := bytes.Clone(line)
			b[i] ^= 1 << bit
			if _, _, checked := event.SplitSum(b); checked {
				continue // the check is another one; whether it holds is not for us to say
			}
			if seq, err := event.PeekSeq(b); err == nil {
				t.Errorf("%s was taken for record %d", b, seq)
			}
		}
	}
}

// The words on the wire are a promise to every log ever written.
func TestWireForm(t *testing.T) {
	for _, e := range eventtest.Samples() { // the payload is the event as JSON, also where it is written in place
		if _, other := e.(event.Unknown); other {
			continue
		}
		line, err := event.Encode(eventtest.Records("s1", 4, e)[0])
		if want := `,"payload":` + string(jsonx.MustMarshal(e)) + "}"; err != nil || !strings.HasSuffix(string(line), want) {
			t.Errorf("%s, %v, want the end\n%s", line, err, want)
		}
	}
	r := eventtest.Records("s1", 4, event.TaskStarted{TaskID: "t1", AgentID: "main", Author: "user"})[0]
	b, err := event.Encode(r)
	const want = `{"seq":5,"type":"TaskStarted","v":1,"sessionId":"s1","streamId":"t1","actor":"main",` +
		`"createdAt":"2023-11-14T22:13:20.000005Z","payload":{"taskId":"t1","agentId":"main","authorActorId":"user"}}`
	if err != nil || string(b) != want {
		t.Errorf("encoded as\n%s, %v, want\n%s", b, err, want)
	}
}

func TestDecodeOtherLayouts(t *testing.T) {
	want := event.Record{Seq: 3, Session: "s", Task: "t", Time: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), Event: event.LocalAdded{Input: "x"}}
	for _, line := range []string{
		`{"seq":3,"type":"LocalAdded","v":1,"sessionId":"s","streamId":"t","createdAt":"2025-01-02T03:04:05Z","payload":{"input":"x"}}`,
		` {"seq": 3, "type":"LocalAdded", "v":1,"sessionId":"s","streamId":"t","createdAt":"2025-01-02T04:04:05+01:00","payload": {"input":"x", "new":[]} }`,
		`{"payload":{"input":"x"},"createdAt":"2025-01-02T03:04:05Z","streamId":"t","sessionId":"s","v":1,"type":"LocalAdded","seq":3}`,
		`{"seq":3,"type":"LocalAdded","v":1,"sessionId":"s","streamId":"t","createdAt":"2025-01-02T03:04:05Z","payload":{"input":"x"},"added":"later","sum":"0123456789-_ABCDEFGHIJKLMNOPQRST"}`,
		`{"seq":3,"type":"Local\u0041dded","v":1,"sessionId":"s","streamId":"t","createdAt":"2025-01-02T03:04:05Z","payload":{"input":"\u0078"}}`,
	} {
		got, _, err := event.Decode([]byte(line), event.LogConversation)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if err := eventtest.Same([]event.Record{got}, []event.Record{want}); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestOtherVersionsAreKeptAsTheyAre(t *testing.T) {
	for _, c := range []struct{ kind, payload string }{
		{`"type":"LocalAdded","v":2`, `{"input":["x"]}`},
		{`"type":"LocalAdded","v":0`, `"x"`},
		{`"type":"TaskPaused","v":1`, `{"taskId":"t1", "n": 1.0}`},
		{`"type":"LocalAdded","v":1`, `{"input":5}`}, // does not fit
		{`"type":"MessageAdded","v":1`, `{"message":{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x"}}]}}`},
		{`"type":"TaskPaused","v":1`, `null`},
	} {
		line := `{"seq":3,` + c.kind + `,"sessionId":"s","streamId":"t","createdAt":"2025-01-02T03:04:05Z","payload":` + c.payload + `}`
		r, _, err := event.Decode([]byte(line), event.LogAudit)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		u, ok := r.Event.(event.Unknown)
		if !ok || string(u.Payload) != c.payload || u.Log != event.LogAudit {
			t.Errorf("%s: %#v", line, r.Event)
		}
		again, err := event.Encode(r)
		if want := strings.ReplaceAll(line, ": ", ":"); err != nil || string(again) != strings.ReplaceAll(want, ", ", ",") {
			t.Errorf("encoded again: %s, %v, want %s", again, err, want)
		}
	}
}

func TestNotARecord(t *testing.T) {
	ok := `{"seq":1,"type":"T","v":1,"sessionId":"s","streamId":"t","createdAt":"2025-01-02T03:04:05Z","payload":{}}`
	if _, err := event.PeekSeq([]byte(ok)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"", " ", "\x00\x00", "{}", "[]", "null", "1", ok[1:], ok[:len(ok)-1], ok + "}", ok + ok,
		strings.Replace(ok, `"seq":1`, `"seq":0`, 1), strings.Replace(ok, `"seq":1`, `"seq":-1`, 1),
		strings.Replace(ok, `"seq":1`, `"seq":01`, 1), strings.Replace(ok, `"seq":1`, `"seq":"1"`, 1),
		strings.Replace(ok, `"seq":1`, `"seq":18446744073709551616`, 1),
		strings.Replace(ok, `"T"`, `""`, 1), strings.Replace(ok, `"T"`, "\"T\n\"", 1), strings.Replace(ok, `2025-`, `25-`, 1),
		strings.Replace(ok, `{}}`, `}`, 1), strings.Replace(ok, `{}}`, `{]}`, 1), strings.Replace(ok, `,"payload":{}`, ``, 1),
		strings.Replace(ok, `"v":1`, `"v":01`, 1), strings.Replace(ok, `"v":1`, `"v":"1"`, 1),
	} {
		if r, _, err := event.Decode([]byte(line), event.LogDomain); err == nil {
			t.Errorf("%q is record %+v", line, r)
		}
		if seq, err := event.PeekSeq([]byte(line)); err == nil {
			t.Errorf("%q is record %d", line, seq)
		}
	}
}

func TestEncodeRefusesWhatIsNotJSON(t *testing.T) {
	for _, r := range []event.Record{
		{Seq: 1, Event: event.ToolCallRequested{Input: json.RawMessage("{")}},
		{Seq: 1, Event: event.Unknown{Log: event.LogAudit, Type: "X", Payload: json.RawMessage("{")}},
		{Seq: 1, Event: event.LocalAdded{}, Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if b, err := event.Encode(r); err == nil {
			t.Errorf("encoded as %s", b)
		}
	}
}

func TestTeeStopsAtAnError(t *testing.T) {
	var told []string
	sink := func(name string, err error) event.Sink {
		return event.SinkFunc(func(context.Context, event.Record) error { told = append(told, name); return err })
	}
	boom := errors.New("boom")
	if err := event.Tee(sink("a", nil), sink("b", boom), sink("c", nil)).Emit(t.Context(), event.Record{}); !errors.Is(err, boom) {
		t.Errorf("%v, want boom", err)
	}
	if fmt.Sprint(told) != "[a b]" {
		t.Errorf("told %v", told)
	}
}

// Whatever the bytes are: Peek and Decode agree, and what was decoded can be
// encoded and decoded again without a change.
func FuzzRecordCodec(f *testing.F) {
	for _, e := range eventtest.Samples() {
		r := eventtest.Records("s", 6, e)[0]
		for _, prev := range []string{"", strings.Repeat("ab", 32)} {
			f.Add(written(f, r, prev, false), uint8(event.LogOf(e)))
			f.Add(written(f, r, prev, true), uint8(event.LogOf(e)))
		}
	}
	f.Add([]byte(`{"payload":{},"type":"T","seq":1,"SEQ":2}`), uint8(1))
	f.Add([]byte(`{"seq":1,"type":"T","v":1,"sessionId":"","streamId":"","createdAt":"2025-01-02T03:04:05Z","payload":1,"seq":2}`), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, l uint8) {
		log := event.AllLogs[int(l)%len(event.AllLogs)]
		r, _, err := event.Decode(data, log)
		seq, peekErr := event.PeekSeq(data)
		if (err == nil) != (peekErr == nil) || seq != r.Seq {
			t.Fatalf("Decode: %d, %v; Peek: %d, %v", r.Seq, err, seq, peekErr)
		}
		if err != nil || event.LogOf(r.Event) != log {
			return
		}
		b, err := event.Encode(r)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		again, _, err := event.Decode(b, log)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if again.Seq != r.Seq || !again.Time.Equal(r.Time) {
			t.Fatalf("%+v came back as %+v", r, again)
		}
		if b2, err := event.Encode(again); err != nil || !bytes.Equal(b, b2) {
			t.Fatalf("%s\nbecame\n%s, %v", b, b2, err)
		}
	})
}

func TestWhatNobodyToldIsAnEstimate(t *testing.T) {
	for why, want := range map[event.UsageReason]bool{event.UsageForSummary: false, event.UsageForMCPServer: false, event.UsageForPartialReply: true, event.UsageForUnreported: true} {
		_, u, ok := event.UsageOf(event.Spent{Model: "m", Usage: chat.Usage{In: 2, Out: 1}, Reason: why})
		if sum := (chat.Usage{In: 1}).Add(u); !ok || sum.Estimated != want || sum.In != 3 {
			t.Errorf("%s: %+v, want an estimate: %t", why, sum, want)
		}
	}
}
