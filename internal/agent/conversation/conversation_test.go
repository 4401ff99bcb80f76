package conversation_test

import (
	"fmt"
	"strings"
	"testing"

	"coder/internal/agent/conversation"
	"coder/internal/core/chat"
	"coder/internal/core/event"
)

func added(c *conversation.Conversation, m chat.Message) {
	c.Add(event.Record{Event: event.MessageAdded{Message: m}})
}

func asks(ids ...string) chat.Message {
	m := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.Text("well")}}
	for _, id := range ids {
		m.Parts = append(m.Parts, chat.ToolCall{ID: id})
	}
	return m
}

func open(c *conversation.Conversation) string {
	ids := []string{}
	for _, call := range c.OpenCalls() {
		ids = append(ids, call.ID)
	}
	return fmt.Sprint(ids)
}

func TestFold(t *testing.T) {
	var c conversation.Conversation
	for _, e := range []event.Event{event.TaskStarted{}, event.LocalAdded{Input: "/help"}, event.TextDelta{Text: "x"}, event.Unknown{Log: event.LogConversation}} {
		c.Add(event.Record{Event: e})
	}
	if len(c.Messages()) != 0 || c.SystemText() != "" || c.OpenCalls() != nil {
		t.Errorf("events that are no messages were told to the model: %+v", c)
	}
	added(&c, chat.TextMessage(chat.System, "old rules"))
	added(&c, chat.TextMessage(chat.User, "hi"))
	added(&c, chat.TextMessage(chat.System, "rules"))
	added(&c, asks())
	if c.SystemText() != "rules" {
		t.Errorf("system text is %q, want the last one", c.SystemText())
	}
	if ms := c.Messages(); len(ms) != 2 || ms[0].Text() != "hi" || ms[1].Text() != "well" {
		t.Errorf("messages are %v", ms)
	}
}

// Whatever a log has lost, no provider refuses what is left of it.
func TestWhatWasLostLeavesAConversationThatCanBeSent(t *testing.T) {
	result := func(id string) chat.Message { return chat.ToolMessage(chat.ToolResult{CallID: id, Text: "{}"}) }
	user := chat.TextMessage(chat.User, "hi")
	for name, c := range map[string]struct {
		told []chat.Message
		want string
	}{
		"nothing lost":             {[]chat.Message{user, asks("1", "2"), result("1"), result("2"), user}, "user assistant tool:1 tool:2 user"},
		"a result without a call":  {[]chat.Message{user, result("1"), asks(), result("2"), user}, "user assistant user"},
		"a result twice":           {[]chat.Message{user, asks("1"), result("1"), result("1"), user}, "user assistant tool:1 user"},
		"a call without a result":  {[]chat.Message{user, asks("1", "2"), result("1"), user}, "user assistant tool:1 tool:2 user"},
		"a result of another call": {[]chat.Message{user, asks("1"), result("x"), asks("2"), result("2")}, "user assistant tool:1 assistant tool:2"},
	} {
		var talk conversation.Conversation
		var got []string
		for _, m := range c.told {
			added(&talk, m)
		}
		for _, m := range talk.Messages() {
			text := string(m.Role)
			for r := range chat.PartsOf[chat.ToolResult](m) {
				text += ":" + r.CallID
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: the model is sent %q, want %q", name, got, c.want)
		}
	}
}

func TestRemindersFollowTheWords(t *testing.T) {
	var c conversation.Conversation
	m := chat.TextMessage(chat.User, "hi")
	c.Add(event.Record{Event: event.MessageAdded{Message: m, Reminders: "be brief"}})
	if got := c.Messages()[0].Text(); got != "hi\n\nbe brief" {
		t.Errorf("the model is sent %q", got)
	}
	if m.Text() != "hi" || len(m.Parts) != 1 {
		t.Errorf("the message itself became %q", m.Text())
	}
	if plain := (event.MessageAdded{Message: m}); !chat.IsSame(conversation.SentMessage(plain), m) {
		t.Error("a message without reminders is another one")
	}
}

func TestOpenCalls(t *testing.T) {
	var c conversation.Conversation
	for _, step := range []struct {
		m    chat.Message
		want string
	}{
		{asks("a", "b", "c"), "[a b c]"},
		{chat.ToolMessage(chat.ToolResult{CallID: "b"}), "[a c]"},
		{chat.ToolMessage(chat.ToolResult{CallID: "other"}), "[a c]"},
		{chat.ToolMessage(chat.ToolResult{CallID: "b"}), "[a c]"},
		{chat.ToolMessage(chat.ToolResult{CallID: "c"}), "[a]"},
		{chat.ToolMessage(chat.ToolResult{CallID: "a"}), "[]"},
		{asks("d", "d"), "[d d]"},
		{chat.ToolMessage(chat.ToolResult{CallID: "d"}), "[d]"},
		{chat.ToolMessage(chat.ToolResult{CallID: "d"}), "[]"},
		{asks(), "[]"},
	} {
		before := c.OpenCalls()
		had := fmt.Sprint(before)
		added(&c, step.m)
		if got := open(&c); got != step.want {
			t.Errorf("open are %s, want %s", got, step.want)
		}
		if fmt.Sprint(before) != had {
			t.Error("a list given out was changed")
		}
	}
	for id, want := range map[string]bool{"a": true, "d": true, "other": false} {
		if c.HasCall(id) != want {
			t.Errorf("Called(%s) = %v", id, !want)
		}
	}
}

func TestMessagesAreTheCallersOwn(t *testing.T) {
	var c conversation.Conversation
	added(&c, chat.TextMessage(chat.User, "a"))
	got := c.Messages()
	got[0] = chat.TextMessage(chat.User, "changed")
	_ = append(got, chat.TextMessage(chat.User, "and more"))
	added(&c, chat.TextMessage(chat.User, "b"))
	if ms := c.Messages(); ms[0].Text() != "a" || ms[1].Text() != "b" {
		t.Errorf("messages are %v", ms)
	}
}

func TestEstimate(t *testing.T) {
	var c conversation.Conversation
	added(&c, chat.TextMessage(chat.User, "a"))
	one := func(chat.Message) int { return 1 }
	if n, since := c.TokenUsage(one); n != 0 || since != 1 {
		t.Errorf("%d and %d since before any report", n, since)
	}
	c.Add(event.Record{Event: event.MessageAdded{Message: asks(), Usage: &chat.Usage{In: 10, Out: 5}}})
	added(&c, chat.TextMessage(chat.User, "b"))
	if n, since := c.TokenUsage(one); n != 15 || since != 1 {
		t.Errorf("%d and %d after a report", n, since)
	}
}

func TestAReplacementHidesTheOldAndCanBeTakenBack(t *testing.T) {
	var c conversation.Conversation
	say := func(texts ...string) {
		for _, s := range texts {
			c.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.User, s)}})
		}
	}
	see := func() string {
		var all []string
		for _, m := range c.Messages() {
			all = append(all, m.Text())
		}
		return strings.Join(all, " ")
	}
	summary := func(s string, keep int) {
		c.Add(event.Record{Event: event.ContextReplaced{Reason: event.ReplaceCompacted, Messages: []chat.Message{chat.TextMessage(chat.User, s)}, Keep: keep}})
	}
	back := func() { c.Add(event.Record{Event: event.ContextRestored{}}) }
	want := func(s string) {
		t.Helper()
		if got := see(); got != s {
			t.Errorf("the model sees %q, want %q", got, s)
		}
	}
	say("a", "b", "c")
	summary("S", 1)
	want("S c")
	say("d")
	summary("T", 0)
	say("e")
	want("T e")
	if r, ok := c.LastReplacement(); !ok || len(r.Hidden) != 3 {
		t.Errorf("%+v, %v", r, ok)
	}
	back()
	want("S c d e")
	back()
	want("a b c d e")
	back()
	want("a b c d e")
	summary("U", 99)
	want("U a b c d e")
}

// TestWhatIsSaidInASubtaskIsNoPartOfTheSession folds a log in which a subtask
// talks in between, as it is read when a session is resumed.
func TestWhatIsSaidInASubtaskIsNoPartOfTheSession(t *testing.T) {
	var main conversation.Conversation
	child := conversation.New("c")
	tell := func(task string, e event.Event) {
		main.Add(event.Record{Task: task, Event: e})
		child.Add(event.Record{Task: task, Event: e})
	}
	say := func(task string, m chat.Message) { tell(task, event.MessageAdded{Message: m}) }
	tell("t", event.TaskCreated{TaskID: "t"})
	say("t", chat.TextMessage(chat.System, "rules"))
	say("t", chat.TextMessage(chat.User, "hi"))
	say("t", asks("1"))
	tell("c", event.TaskCreated{TaskID: "c", ParentID: "t"})
	say("c", chat.TextMessage(chat.System, "child's rules"))
	say("c", chat.TextMessage(chat.User, "look"))
	say("c", asks("2"))
	tell("c", event.ContextReplaced{Reason: event.ReplaceCompacted})
	if main.SystemText() != "rules" || len(main.Messages()) != 2 || open(&main) != "[1]" || main.HasCall("2") {
		t.Errorf("the session: system %q, %d messages, open %s", main.SystemText(), len(main.Messages()), open(&main))
	}
	if child.SystemText() != "child's rules" || len(child.Messages()) != 0 || open(child) != "[2]" || child.HasCall("1") {
		t.Errorf("the subtask: system %q, messages %v, open %s", child.SystemText(), child.Messages(), open(child))
	}
	tell("t", event.ContextReplaced{Reason: event.ReplaceCompacted})
	if _, ok := main.LastReplacement(); !ok || len(main.Messages()) != 0 {
		t.Error("what was replaced in the session itself was not")
	}
	say("c", chat.TextMessage(chat.Assistant, "found"))
	if ms := child.Messages(); len(ms) != 1 || ms[0].Text() != "found" {
		t.Errorf("the subtask's messages: %v", ms)
	}
}

func TestTheEstimateCountsEachMessageOnceAndFollowsReplacements(t *testing.T) {
	var c conversation.Conversation
	counted := 0
	count := func(m chat.Message) int { counted++; return len(m.Text()) }
	say := func(s string, u *chat.Usage) {
		c.Add(event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.User, s), Usage: u}})
	}
	want := func(reported, since, calls int) {
		t.Helper()
		counted = 0
		if r, s := c.TokenUsage(count); r != reported || s != since || counted != calls {
			t.Errorf("%d and %d with %d counts, want %d and %d with %d", r, s, counted, reported, since, calls)
		}
	}
	say("abc", nil)
	say("de", nil)
	want(0, 5, 2)
	want(0, 5, 0)
	say("f", nil)
	want(0, 6, 1)
	say("reply", &chat.Usage{In: 100, Out: 10})
	want(110, 0, 1)
	want(110, 0, 0)
	say("gh", nil)
	want(110, 2, 1)
	say("a long reply that was not counted", &chat.Usage{In: 120, Out: 3})
	want(120+33, 0, 1)
	counted = 0
	for range 2 {
		if got := c.TotalTokens(count); got != 46 || counted != 6 {
			t.Errorf("%d in all, with %d counts", got, counted)
		}
	}
	c.Add(event.Record{Event: event.ContextReplaced{Messages: []chat.Message{chat.TextMessage(chat.User, "sum")}, Keep: 1}})
	want(0, 36, 2)
	c.Add(event.Record{Event: event.ContextRestored{}})
	want(0, 46, 6)
}
