package conversation_test

import (
	"fmt"
	"slices"
	"testing"

	"coder/internal/agent/conversation"
	"coder/internal/core/chat"
	"coder/internal/core/event"

	"pgregory.net/rapid"
)

// Going back to any message, and taking that back, agrees with folding only the
// records that came before it.
func TestGoingBackIsAsIfTheRestHadNotBeenSaid(t *testing.T) {
	type world struct { // what counts, kept by copying
		said    []string
		before  []*world // what stood before each prompt
		prompts []uint64
		todos   int
	}
	rapid.Check(t, func(t *rapid.T) {
		var c conversation.Conversation
		var seq uint64
		now := &world{}
		copied := func() *world {
			w := *now
			w.said, w.before, w.prompts = slices.Clone(now.said), slices.Clone(now.before), slices.Clone(now.prompts)
			return &w
		}
		var undone []*world // before each return
		since := 0          // records of the conversation since the last return
		add := func(actor string, e event.Event) {
			seq++
			c.Add(event.Record{Seq: seq, Task: fmt.Sprint("turn", seq), Actor: actor, Event: e})
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"prompt", "prompt", "reply", "note", "todos", "compact", "rewind", "rewind", "unrewind"}).Draw(t, "step") {
			case "prompt":
				was := copied()
				text := fmt.Sprint("p", seq)
				add(event.ActorUser, event.MessageAdded{Message: chat.TextMessage(chat.User, text)})
				now.said, now.before, now.prompts = append(now.said, text), append(now.before, was), append(now.prompts, seq)
				since++
			case "reply":
				text := fmt.Sprint("r", seq)
				add("main", event.MessageAdded{Message: chat.TextMessage(chat.Assistant, text), Usage: &chat.Usage{In: 5}})
				now.said = append(now.said, text)
				since++
			case "note": // of the program's own, not the person's
				text := fmt.Sprint("n", seq)
				add("main", event.MessageAdded{Message: chat.TextMessage(chat.User, text)})
				now.said = append(now.said, text)
				since++
			case "todos":
				now.todos++
				add("main", event.TodosChanged{Todos: make([]event.Todo, now.todos)})
			case "compact":
				keep := rapid.IntRange(0, len(now.said)).Draw(t, "keep")
				add("main", event.ContextReplaced{Messages: []chat.Message{chat.TextMessage(chat.User, "summary")}, Keep: keep})
				now.said = append([]string{"summary"}, now.said[len(now.said)-keep:]...)
				since++
			case "rewind":
				if len(now.prompts) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(now.prompts)-1).Draw(t, "to")
				to := now.prompts[i]
				undone = append(undone, copied())
				now = now.before[i]
				now = copied()
				add(event.ActorUser, event.ContextRewound{ToSeq: to})
				since = 0
			case "unrewind":
				e, ok := c.LastRewind()
				if want := len(undone) > 0 && since == 0; want && !ok || ok && len(undone) == 0 || ok && since > 1 {
					t.Fatalf("%+v can be taken back after %d more records", e, since)
				}
				if !ok {
					continue
				}
				now, undone = undone[len(undone)-1], undone[:len(undone)-1]
				add(event.ActorUser, event.ContextRewound{IsUndo: true})
				since = 1 // nobody counted what followed the one before it
			}
			var got []string
			for _, m := range c.Messages() {
				got = append(got, m.Text())
			}
			if !slices.Equal(got, now.said) || len(c.Todos()) != now.todos {
				t.Fatalf("counts: %q with %d todos\nwant %q with %d", got, len(c.Todos()), now.said, now.todos)
			}
			var prompts []uint64
			for p := c.LastPrompt(); p != nil; p = p.Before {
				prompts = append(prompts, p.Seq)
			}
			slices.Reverse(prompts)
			if !slices.Equal(prompts, now.prompts) {
				t.Fatalf("one can go back to %v, want %v", prompts, now.prompts)
			}
		}
	})
}

// A marker that names no message that counts, as in a damaged log, does nothing.
func TestGoingBackToNowhere(t *testing.T) {
	var c conversation.Conversation
	added(&c, chat.TextMessage(chat.User, "hi"))
	c.Add(event.Record{Event: event.ContextRewound{ToSeq: 99}})
	c.Add(event.Record{Event: event.ContextRewound{IsUndo: true}})
	if len(c.Messages()) != 1 {
		t.Error(c.Messages())
	}
}
