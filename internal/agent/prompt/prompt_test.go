package prompt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/authored/rulefile"
	"coder/internal/core/chat"
)

func TestTheSameFactsGiveTheSameText(t *testing.T) {
	f := Environment{Dir: "/w", Platform: "linux/amd64", Date: "2026-01-02", Rules: []rulefile.Rule{{Path: "AGENTS.md", Text: "be kind"}}, Append: "last words"}
	text := SystemText(f)
	if text != SystemText(f) {
		t.Error("two calls differ")
	}
	at := -1
	for _, want := range []string{"/w", "linux/amd64", "2026-01-02", `from="AGENTS.md"`, "be kind", "last words"} {
		i := strings.Index(text, want)
		if i <= at {
			t.Errorf("%q is missing or out of order", want)
		}
		at = i
	}
}

func TestRulesAreBoundedAndTheNearestAreKept(t *testing.T) {
	long := strings.Repeat("é", MaxRulesBytes)
	text := SystemText(Environment{Rules: []rulefile.Rule{{Path: "far", Text: long}, {Path: "near", Text: "NEAR RULE"}}})
	if len(text) > MaxRulesBytes+8<<10 || !utf8.ValidString(text) {
		t.Errorf("%d bytes, valid %v", len(text), utf8.ValidString(text))
	}
	if !strings.Contains(text, "NEAR RULE") || !strings.Contains(text, "[cut]") {
		t.Error("the nearest rule was cut, or the far one was not marked")
	}
	if text := SystemText(Environment{Rules: []rulefile.Rule{{Path: "far", Text: "FAR"}, {Path: "near", Text: long}}}); strings.Contains(text, "FAR") {
		t.Error("there was room for nothing but the nearest rule")
	}
}

func TestTokensFollowTheText(t *testing.T) {
	code := strings.Repeat("for i := range items { total += items[i].Price }\n", 100)
	if n := EstimateTokens(code); n < len(code)/5 || n > len(code)/3 {
		t.Errorf("%d tokens for %d bytes of code", n, len(code))
	}
	chinese := strings.Repeat("你好世界", 100)
	if n := EstimateTokens(chinese); n < 200 || n > 450 {
		t.Errorf("%d tokens for 400 Chinese characters", n)
	}
	m := chat.Message{Role: chat.Assistant, Parts: []chat.Part{
		chat.Text("hello there"), chat.Reasoning{Text: "thinking about it"}, chat.Image{}, chat.ToolCall{Name: "read", Args: []byte(`{"path":"a"}`)},
	}}
	if n := EstimateMessageTokens(m); n < 1000 || n > 1100 {
		t.Errorf("%d tokens for a mixed message", n)
	}
	if n := EstimateMessageTokens(chat.ToolMessage(chat.ToolResult{Text: code})); n < EstimateTokens(code) {
		t.Errorf("a result counts %d, its text %d", n, EstimateTokens(code))
	}
}

func TestSkillsAreNamedAndBounded(t *testing.T) {
	if text := SystemText(Environment{}); strings.Contains(text, "# Skills") {
		t.Error("skills are spoken of where there are none")
	}
	text := SystemText(Environment{Skills: "- pdf: reads PDFs\n" + strings.Repeat("é", MaxSkillsBytes), Rules: []rulefile.Rule{{Path: "AGENTS.md", Text: "be kind"}}})
	if !strings.Contains(text, "# Skills") || !strings.Contains(text, "- pdf: reads PDFs") || !utf8.ValidString(text) {
		t.Error("the skills are missing")
	}
	if len(text) > MaxSkillsBytes+8<<10 || strings.Index(text, "- pdf") > strings.Index(text, "be kind") {
		t.Error("the skills are too long or out of order")
	}
}
