package ledger_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/report/ledger"
)

// priced has a token cost a millionth of ten dollars, a cached one a tenth of it.
func priced(_ string, u chat.Usage) chat.Usage {
	u.Cost = (float64(u.In-u.Cached)*10 + float64(u.Cached) + float64(u.Out)*30) / 1e6
	return u
}

// session writes records one after the other.
type session struct {
	book *ledger.Ledger
	seq  uint64
	task string
}

func (s *session) add(events ...event.Event) {
	for _, e := range events {
		s.seq++
		s.book.Add(event.Record{Seq: s.seq, Task: s.task, Event: e})
	}
}

func reply(u chat.Usage, parts ...chat.Part) event.Event {
	return event.MessageAdded{Message: chat.Message{Role: chat.Assistant, Parts: parts}, Model: "m", Usage: &u}
}

func call(id, name, args string) chat.Part {
	return chat.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

func result(id, name, text string) event.Event {
	return event.MessageAdded{Message: chat.ToolMessage(chat.ToolResult{CallID: id, Name: name, Text: text})}
}

func system(text string) event.Event {
	return event.MessageAdded{Message: chat.TextMessage(chat.System, text)}
}

// offering is the system text with the tools that go with it, and their sizes.
func offering(text string, tools map[string]int) event.Event {
	return event.MessageAdded{Message: chat.TextMessage(chat.System, text), Tools: tools}
}

func said(text string) event.Event {
	return event.MessageAdded{Message: chat.TextMessage(chat.User, text)}
}

func find(t *testing.T, b *ledger.Ledger, k ledger.Kind, name string) *ledger.Entry {
	t.Helper()
	for _, e := range b.Entries {
		if e.Kind == k && e.Name == name {
			return e
		}
	}
	t.Fatalf("there is no %s %q", k, name)
	return nil
}

const text = "You are an agent.\n\n# Rules\n\n<rules from=\"AGENTS.md\">\nBe brief, and write tests for whatever you change in this house.\n</rules>\n"

// What is in a conversation is sent with every request after it; the sums are
// those that the provider counted, and cost what it took for them.
func TestEverythingIsPaidForAgain(t *testing.T) {
	s := session{book: ledger.New(priced)}
	file := strings.Repeat("a line of code\n", 40)
	s.add(offering(text, map[string]int{"bash": 200, "read": 100}), said("look at a.go and run the tests"),
		reply(chat.Usage{In: 1000, Out: 20}, chat.Text("looking"), call("1", "read", `{"path":"./a.go"}`)), result("1", "read", file),
		reply(chat.Usage{In: 1300, Out: 30, Cached: 900}, call("2", "bash", `{"command":"go test   ./..."}`)), result("2", "bash", "ok"),
		reply(chat.Usage{In: 1400, Out: 10, Cached: 1300}, chat.Text("done")))
	b := s.book.Finish()
	if len(b.Requests) != 3 || b.Total.In != 3700 || b.Total.Cached != 2200 || len(b.Breaks)+len(b.Drops) != 0 {
		t.Fatalf("%+v", b)
	}
	if e := find(t, b, ledger.File, "a.go"); e.Requests != 2 || e.Tokens < 100 || e.Sent < e.Tokens || e.Cached == 0 || e.Cached >= e.Sent || e.Dropped {
		t.Errorf("file: %+v", e)
	}
	if e := find(t, b, ledger.Result, "bash go test ./..."); e.Requests != 1 || e.Seq != 6 {
		t.Errorf("result: %+v", e)
	}
	if e := find(t, b, ledger.Rules, "AGENTS.md"); e.Requests != 3 || e.Cached == 0 {
		t.Errorf("rules: %+v", e)
	}
	if e := find(t, b, ledger.Tool, "bash"); e.Requests != 3 || e.Tokens < 200 {
		t.Errorf("tool: %+v", e)
	}
	if b.WindowTokens() != 1410 { // the last request and its reply
		t.Errorf("%d tokens in the window", b.WindowTokens())
	}
	sent, cached, cost := 0, 0, 0.0
	for _, e := range b.Entries {
		sent, cached, cost = sent+e.Sent, cached+e.Cached, cost+e.Cost
	}
	out := float64(b.Total.Out) * 30 / 1e6
	if off := math.Abs(float64(sent - 3700)); off > 40 {
		t.Errorf("%d tokens are accounted for, of 3700", sent)
	}
	if off := math.Abs(float64(cached - 2200)); off > 40 {
		t.Errorf("%d cached tokens are accounted for, of 2200", cached)
	}
	if math.Abs(cost+out-b.Total.Cost) > b.Total.Cost/1000 {
		t.Errorf("$%f are accounted for, of $%f", cost+out, b.Total.Cost)
	}
}

func TestWhatIsNotOnRecordIsTheTools(t *testing.T) {
	s := session{book: ledger.New(priced)}
	s.add(system("short"), said("hi"), reply(chat.Usage{In: 500, Out: 1}, chat.Text("hello")))
	if e := find(t, s.book.Finish(), ledger.Tool, ""); e.Tokens < 450 || e.Tokens > 500 {
		t.Errorf("%+v", e)
	}
}

// A message that lost its middle is still there, and what another agent's conversation
// lost is not of this one.
func TestWhatWasShortenedIsNotDropped(t *testing.T) {
	s := session{book: ledger.New(priced)}
	long := strings.Repeat("a line of output\n", 1000)
	add := []event.Event{said("one"), reply(chat.Usage{In: 300}, call("1", "bash", `{"command":"make"}`)), result("1", "bash", long), reply(chat.Usage{In: 900}, chat.Text("built"))}
	s.add(add...)
	var view []chat.Message
	for _, e := range add {
		view = append(view, e.(event.MessageAdded).Message)
	}
	pruned, _ := compact.Prune(view, 1)
	data, err := json.Marshal(pruned[:3])
	var read []chat.Message // as recorded
	if err := errors.Join(err, json.Unmarshal(data, &read)); err != nil {
		t.Fatal(err)
	}
	s.add(event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: read, Keep: 1, Description: "old output was pruned"}, event.ContextReplaced{Reason: event.ReplaceModeSwitched})
	s.add(event.TaskCreated{TaskID: "sub", ParentID: "main"})
	s.book.Add(event.Record{Seq: 9, Task: "sub", Event: event.TaskCreated{TaskID: "sub", ParentID: "main"}})
	s.book.Add(event.Record{Seq: 10, Task: "sub", Event: event.ContextReplaced{Reason: event.ReplaceCompacted, Description: "it forgot"}})
	want := []ledger.Drop{{Seq: 5, Reason: "old output was pruned", Shortened: 1}, {Seq: 6, Reason: "the mode changed", Messages: 4}}
	if got := s.book.Finish().Drops; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// What compaction takes out is dropped, and the cache breaks there; so it does
// where the system text, the model or the mode change, or the provider forgets.
func TestDropsAndBreaks(t *testing.T) {
	s := session{book: ledger.New(priced)}
	long := strings.Repeat("a line of output\n", 100)
	s.add(offering(text, map[string]int{"bash": 100}), said("one"), reply(chat.Usage{In: 300, Cached: 200}, call("1", "bash", `{"command":"make"}`)), result("1", "bash", long),
		reply(chat.Usage{In: 900, Cached: 300}, chat.Text("built")),
		event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: []chat.Message{compact.NewMessage("a summary", compact.Carryover{}, 500)}, Keep: 1, TokensBefore: 900, TokensAfter: 300, Description: "a summary was written"},
		said("two"), reply(chat.Usage{In: 320, Cached: 100}, chat.Text("yes")),
		system(text+"more"), said("three"), reply(chat.Usage{In: 340, Cached: 100}, chat.Text("yes")),
		event.ModeChanged{Mode: "plan"}, said("four"), reply(chat.Usage{In: 350, Cached: 100}, chat.Text("yes")),
		said("five"), reply(chat.Usage{In: 360, Cached: 0}, chat.Text("yes")),
		event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "no"), Model: "other", Usage: &chat.Usage{In: 360}},
	)
	b := s.book.Finish()
	if len(b.Drops) != 1 || b.Drops[0].Seq != 6 || b.Drops[0].Messages != 3 || b.Drops[0].Reason != "a summary was written" {
		t.Errorf("drops: %+v", b.Drops)
	}
	if e := find(t, b, ledger.Result, "bash make"); !e.Dropped || e.Sent == 0 {
		t.Errorf("%+v", e)
	}
	var whys []string
	for _, k := range b.Breaks {
		whys = append(whys, k.Reason)
	}
	if got := strings.Join(whys, "; "); got != "conversation shortened; the system text changed; the mode and the tools changed; the provider's cache expired, or is not reported; another model was used" {
		t.Errorf("breaks: %s", got)
	}
	if b.Breaks[0].Seq != 8 || b.Breaks[0].RereadTokens != 220 {
		t.Errorf("%+v", b.Breaks[0])
	}
}

func TestWhatIsSaidInSubtasksIsNotInTheWindow(t *testing.T) {
	s := session{book: ledger.New(priced)}
	s.add(system(text), said("go"))
	s.task = "sub"
	s.add(event.TaskCreated{TaskID: "sub", ParentID: "t"}, said("look"), reply(chat.Usage{In: 9000}, chat.Text("seen")))
	if b := s.book.Finish(); len(b.Requests) != 0 || b.Total.In != 0 || b.SideUsage.In != 9000 {
		t.Errorf("%+v", b.Requests)
	}
}

// Where the provider says what a request cost and nobody knows its prices, that
// is shared out by size.
func TestACostWithoutAPriceIsSharedOut(t *testing.T) {
	s := session{book: ledger.New(func(_ string, u chat.Usage) chat.Usage { return u })}
	s.add(system(text), said("hi"), reply(chat.Usage{In: 900, Out: 100, Cost: 1}, chat.Text("hello")))
	sum := 0.0
	for _, e := range s.book.Finish().Entries {
		sum += e.Cost
	}
	if math.Abs(sum-0.9) > 0.01 {
		t.Errorf("$%f of $0.90", sum)
	}
}

// The tools are on record with the system text: each has a row of its own.
func TestEachToolHasARow(t *testing.T) {
	s := session{book: ledger.New(priced)}
	s.add(offering(text, map[string]int{"bash": 200, "read": 100}), said("go"),
		reply(chat.Usage{In: 1000, Out: 20}, chat.Text("looking")),
		offering(text+"more", map[string]int{"read": 100, "mcp__notes__add": 50}), said("on"),
		reply(chat.Usage{In: 1000, Out: 20}, chat.Text("done")))
	b := s.book.Finish()
	bash, read, other := find(t, b, ledger.Tool, "bash"), find(t, b, ledger.Tool, "read"), find(t, b, ledger.Tool, "mcp__notes__add")
	if bash.Requests != 1 || bash.Tokens != 0 || read.Requests != 2 || read.Tokens == 0 || other.Requests != 1 || other.Tokens == 0 {
		t.Errorf("bash %+v, read %+v, other %+v", *bash, *read, *other)
	}
	for _, e := range b.Entries {
		if e.Kind == ledger.Tool && e.Name == "" {
			t.Errorf("they stand together: %+v", *e)
		}
	}
}
