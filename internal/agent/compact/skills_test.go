package compact_test

import (
	"strings"
	"testing"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
)

func TestLoadedSkillsAreCarriedOverOnceAndAgain(t *testing.T) {
	load := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c", Name: "skill"}}}
	old := []chat.Message{
		chat.TextMessage(chat.User, "greet Bob"),
		load,
		chat.ToolMessage(chat.ToolResult{CallID: "c", Name: "skill", Text: `{"ok":true,"name":"greet","skill":"Say hello first.\nThen the name."}`}),
		chat.TextMessage(chat.User, "Follow this skill.\n\n<skill name=\"release\">\nTag, then push.\n</skill>"),
		chat.ToolMessage(chat.ToolResult{CallID: "d", Name: "skill", Text: `{"ok":false,"error":"no such skill","skills":"- greet"}`}),
	}
	check := func(ms []chat.Message) {
		t.Helper()
		if len(ms) != 2 || !strings.Contains(ms[0].Text(), "Say hello first.\nThen the name.") || !strings.Contains(ms[1].Text(), "Tag, then push.") {
			t.Fatalf("carried over: %v", ms)
		}
	}
	kept := compact.SkillMessages(old)
	check(kept)
	check(compact.SkillMessages(append(kept, old[2]))) // loaded again: still one of each
	words := compact.CollectCarryover(append(old, kept...)).UserTexts
	if strings.Join(words, "|") != "greet Bob" {
		t.Errorf("taken for the person's words: %q", words)
	}
	huge := chat.ToolMessage(chat.ToolResult{CallID: "c", Text: `{"ok":true,"name":"huge","skill":"` + strings.Repeat("x", 64<<10) + `"}`})
	if got := compact.SkillMessages([]chat.Message{huge}); len(got) != 0 {
		t.Errorf("a skill of 64 KiB was carried over")
	}
}
