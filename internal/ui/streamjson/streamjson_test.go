package streamjson_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/ui/streamjson"
	"coder/testkit/rendertest"
)

// play shows the story and finishes each of its turns.
func play(t testing.TB, r *streamjson.Renderer) {
	t.Helper()
	ctx := context.Background()
	outcomes := []streamjson.Outcome{
		{Result: "All \"green\" now"},
		{Err: context.Canceled},
		{Err: errors.New("ask gpt-x: quota used up")},
	}
	for _, rec := range rendertest.Story() {
		if err := r.Emit(ctx, rec); err != nil {
			t.Fatal(err)
		}
		if s, ok := rec.Event.(event.StateChanged); ok && !s.Busy {
			if err := r.Finish(ctx, outcomes[0]); err != nil {
				t.Fatal(err)
			}
			outcomes = outcomes[1:]
		}
	}
}

func render(t *testing.T, o streamjson.Options) []byte {
	t.Helper()
	var out bytes.Buffer
	play(t, streamjson.New(&out, o))
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	for name, o := range map[string]streamjson.Options{
		"stream":  {KeySource: "CODER_API_KEY"},
		"partial": {Partial: true},
		"json":    {ResultOnly: true},
	} {
		t.Run(name, func(t *testing.T) { rendertest.Golden(t, name, render(t, o)) })
	}
}

type line struct {
	Type, Subtype, UUID string
	Session             string `json:"session_id"`
	Message             struct {
		ID      string
		Content []struct {
			Type, Text, Thinking string
			Input                json.RawMessage
		}
	}
	Event struct {
		Type    string
		Index   int
		Message struct{ ID string }
		Delta   struct {
			Type, Text, Thinking string
			Args                 string `json:"partial_json"`
		}
	}
	NumTurns    int   `json:"num_turns"`
	DurationMs  int64 `json:"duration_ms"`
	APIMs       int64 `json:"duration_api_ms"`
	IsError     bool  `json:"is_error"`
	Result      string
	Cost        float64 `json:"total_cost_usd"`
	Usage       map[string]int
	Permissions json.RawMessage `json:"permission_denials"`
}

func decode(t *testing.T, out []byte) (ls []line) {
	t.Helper()
	for raw := range bytes.Lines(out) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		ls = append(ls, l)
	}
	return ls
}

func TestEveryLineHasItsOwnUUID(t *testing.T) {
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, l := range decode(t, render(t, streamjson.Options{Partial: true})) {
		if !shape.MatchString(l.UUID) || seen[l.UUID] {
			t.Errorf("uuid %q of a %s line is badly formed or not its own", l.UUID, l.Type)
		}
		seen[l.UUID] = true
		if l.Session != rendertest.Session {
			t.Errorf("a %s line is of session %q", l.Type, l.Session)
		}
	}
	if a, b := render(t, streamjson.Options{}), render(t, streamjson.Options{}); !bytes.Equal(a, b) {
		t.Error("the same records give other bytes")
	}
	other := decode(t, render(t, streamjson.Options{Session: "sess_2"}))[1].UUID
	if seen[other] {
		t.Error("two sessions share a uuid")
	}
}

// What the pieces of a reply add up to is the reply, under the same id.
func TestPartialRepliesAddUp(t *testing.T) {
	var id, text, thought, args string
	replies, calls := 0, 0
	for _, l := range decode(t, render(t, streamjson.Options{Partial: true})) {
		switch {
		case l.Event.Type == "message_start":
			id, text, thought, args = l.Event.Message.ID, "", "", ""
		case l.Event.Type == "content_block_delta":
			text += l.Event.Delta.Text
			thought += l.Event.Delta.Thinking
			args += l.Event.Delta.Args
		case l.Type == "assistant" && id != "":
			for _, b := range l.Message.Content {
				text = strings.TrimPrefix(text, b.Text)
				thought = strings.TrimPrefix(thought, b.Thinking)
				if b.Type == "tool_use" {
					calls++
					args = strings.TrimPrefix(args, string(b.Input))
				}
			}
			if l.Message.ID != id || text+thought+args != "" {
				t.Errorf("message %s: pieces %q, %q and %q are left over of %s", l.Message.ID, text, thought, args, id)
			}
			replies++
			id = ""
		}
	}
	if replies != 6 || calls == 0 {
		t.Errorf("%d replies and %d calls were told in pieces", replies, calls)
	}
}

func TestResult(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(1000 + ms)) }
	call := chat.ToolCall{ID: "c1", Name: "write", Args: json.RawMessage(`{"path":"a"}`)}
	rs := []event.Record{
		{Time: at(-900), Event: event.SessionOpened{}},
		{Time: at(0), Task: "t1", Seq: 1, Event: event.TaskCreated{TaskID: "t1"}},
		{Time: at(10), Task: "t1", Seq: 2, Event: event.MessageAdded{Message: chat.TextMessage(chat.User, "hi")}},
		{Time: at(110), Task: "t1", Seq: 3, Event: event.MessageAdded{
			Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{call}}, Usage: &chat.Usage{In: 10, Out: 1, Cached: 4, Cost: 0.5}}},
		{Time: at(120), Task: "t1", Event: event.ToolFinished{CallID: "c1", Tool: "write", Denied: true}},
		{Time: at(500), Task: "t1", Seq: 4, Event: event.MessageAdded{Message: chat.ToolMessage(chat.ToolResult{CallID: "c1"})}},
		{Time: at(530), Task: "t1", Seq: 5, Event: event.MessageAdded{
			Message: chat.TextMessage(chat.Assistant, "ok"), Usage: &chat.Usage{In: 20, Out: 2, Cost: 0.25}}},
	}
	var out bytes.Buffer
	r := streamjson.New(&out, streamjson.Options{Session: "s", ResultOnly: true, Now: func() time.Time { return at(600) }})
	rendertest.Play(t, r, rs)
	for _, o := range []streamjson.Outcome{{Result: "ok"}, {Err: errors.New("boom"), Subtype: streamjson.MaxTurns}, {Err: errors.New("bang")}} {
		if err := r.Finish(context.Background(), o); err != nil {
			t.Fatal(err)
		}
	}
	ls := decode(t, out.Bytes())
	first := ls[0]
	if first.Subtype != "success" || first.IsError || first.Result != "ok" || first.NumTurns != 2 ||
		first.DurationMs != 600 || first.APIMs != 130 || first.Cost != 0.75 {
		t.Errorf("result %+v", first)
	}
	if u := first.Usage; u["input_tokens"] != 26 || u["output_tokens"] != 3 || u["cache_read_input_tokens"] != 4 {
		t.Errorf("usage %v", u)
	}
	if want := `[{"tool_name":"write","tool_use_id":"c1","tool_input":{"path":"a"}}]`; string(first.Permissions) != want {
		t.Errorf("denials %s", first.Permissions)
	}
	for i, want := range map[int]string{1: "error_max_turns boom", 2: "error_during_execution bang"} {
		if got := ls[i].Subtype + " " + ls[i].Result; got != want || !ls[i].IsError {
			t.Errorf("result %d is %+v", i, ls[i])
		}
		if ls[i].NumTurns != 0 || string(ls[i].Permissions) != "[]" || ls[i].DurationMs != 0 {
			t.Errorf("a turn has the numbers of the one before: %+v", ls[i])
		}
	}
}

func TestTally(t *testing.T) {
	var tally streamjson.Tally
	for _, r := range rendertest.Story() {
		tally.Add(r)
	}
	if tally.Replies != 5 {
		t.Errorf("%d replies", tally.Replies)
	}
	want := chat.Usage{In: 400 + 600 + 800 + 50 + 900, Out: 30 + 40 + 20 + 2 + 9, Cached: 512, Reasoning: 12, Cost: 0.03}
	if tally.Usage != want {
		t.Errorf("usage %+v, want %+v", tally.Usage, want)
	}
	if len(tally.Denials) != 1 || tally.Denials[0].CallID != "call_d" || string(tally.Denials[0].Input) != `{"path":"a.txt","content":"x"}` {
		t.Errorf("denials %+v", tally.Denials)
	}
}

// Subtasks name the call they came from, also where calls run side by side or
// ids come back.
func TestParents(t *testing.T) {
	var out bytes.Buffer
	r := streamjson.New(&out, streamjson.Options{})
	on := func(task string, es ...event.Event) {
		for _, e := range es {
			rendertest.Play(t, r, []event.Record{{Task: task, Event: e}})
		}
	}
	born := func(task, parent string) { on(task, event.TaskCreated{TaskID: task, ParentID: parent}) }
	say := func(task string) string {
		out.Reset()
		on(task, event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "x")})
		_, parent, _ := strings.Cut(out.String(), `"parent_tool_use_id":`)
		return strings.TrimSuffix(parent, "}\n")
	}
	on("main", event.ToolStarted{CallID: "a"}, event.ToolStarted{CallID: "b"})
	born("t1", "main")
	born("t2", "main")
	born("t3", "t1") // t1 runs no call
	on("t1", event.ToolStarted{CallID: "a"})
	born("t4", "t1")
	on("main", event.ToolFinished{CallID: "a"}, event.ToolCallCompleted{CallID: "b"}, event.ToolStarted{CallID: "a"})
	born("t5", "main")
	born("t6", "main")                                                       // the same call makes two
	on("t7", event.TaskCreated{TaskID: "t7", ParentID: "main", CallID: "z"}) // it says so itself
	for task, want := range map[string]string{
		"main": "null", "t1": `"b"`, "t2": `"a"`, "t3": "null", "t4": `"a"`, "t5": `"a"`, "t6": `"a"`, "t7": `"z"`,
	} {
		if got := say(task); got != want {
			t.Errorf("%s came from %s, want %s", task, got, want)
		}
	}
}

func TestImagesAndLooseEnds(t *testing.T) {
	var out bytes.Buffer
	r := streamjson.New(&out, streamjson.Options{Model: "m"})
	rendertest.Play(t, r, []event.Record{
		{Event: event.MessageAdded{Message: chat.TextMessage(chat.System, "be good")}},
		{Event: event.MessageAdded{Message: chat.Message{Role: chat.User, Parts: []chat.Part{chat.Image{MediaType: "image/png", Data: []byte{1}}}}}},
		{Event: event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{
			chat.Reasoning{Details: json.RawMessage(`[1]`)}, chat.ToolCall{ID: "c"}}}, Interrupted: true, StopReason: "end"}},
	})
	got := out.String()
	for _, want := range []string{
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQ=="}}`,
		`"model":"m","content":[{"type":"tool_use","id":"c","name":"","input":{}}],"stop_reason":null`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "be good") {
		t.Error("the system text is in the stream")
	}
}

type badWriter struct{ after int }

var errFull = errors.New("disk full")

func (w *badWriter) Write(p []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	for after := range 12 {
		r := streamjson.New(&badWriter{after}, streamjson.Options{Partial: true})
		var err error
		for _, rec := range rendertest.Story() {
			if err = r.Emit(context.Background(), rec); err != nil {
				break
			}
		}
		if !errors.Is(err, errFull) {
			t.Errorf("after %d lines the error is %v", after, err)
		}
	}
	if err := streamjson.New(&badWriter{}, streamjson.Options{}).Finish(context.Background(), streamjson.Outcome{}); !errors.Is(err, errFull) {
		t.Errorf("Finish: %v", err)
	}
}

func TestFlush(t *testing.T) {
	var out bytes.Buffer
	r := streamjson.New(bufio.NewWriterSize(&out, 1<<20), streamjson.Options{})
	rendertest.Play(t, r, []event.Record{{Event: event.SessionOpened{Dir: "here"}}})
	if !strings.Contains(out.String(), "here") {
		t.Error("the line waits in a buffer")
	}
}

func TestConcurrentEmit(t *testing.T) {
	var out bytes.Buffer
	r := streamjson.New(&out, streamjson.Options{Partial: true})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { rendertest.Play(t, r, rendertest.Story()) })
	}
	wg.Wait()
	decode(t, out.Bytes())
}

func BenchmarkDeltas(b *testing.B) {
	deltas := rendertest.Deltas(20000, "word, ")
	for name, o := range map[string]streamjson.Options{"whole": {}, "partial": {Partial: true}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rendertest.Play(b, streamjson.New(io.Discard, o), deltas)
			}
		})
	}
}

// pieces collects what is written and the longest Write.
type pieces struct {
	bytes.Buffer
	longest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	return p.Buffer.Write(b)
}

func TestALargeReplyIsWrittenInPieces(t *testing.T) {
	text := strings.Repeat("déjà \"vu\" ", 1<<18)
	reply := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Reasoning{Text: text}, chat.Text(text)}}
	for _, only := range []bool{false, true} {
		var w pieces
		r := streamjson.New(&w, streamjson.Options{Session: "s", ResultOnly: only})
		rec := event.Record{Seq: 1, Session: "s", Task: "t", Event: event.MessageAdded{Message: reply}}
		if err := cmp.Or(r.Emit(t.Context(), rec), r.Finish(t.Context(), streamjson.Outcome{Result: text})); err != nil {
			t.Fatal(err)
		}
		if w.longest > 128<<10 {
			t.Errorf("result only %v: a Write of %d bytes", only, w.longest)
		}
		var last struct{ Result string }
		for line := range bytes.Lines(w.Bytes()) {
			if err := json.Unmarshal(line, &last); err != nil {
				t.Fatalf("%v in %.80q", err, line)
			}
		}
		if last.Result != text {
			t.Errorf("result only %v: the result has %d bytes of %d", only, len(last.Result), len(text))
		}
	}
}
