package markdown_test

import (
	"strings"
	"testing"

	"coder/internal/ui/term/markdown"

	"pgregory.net/rapid"
)

// Texts made of nothing but marks, some of them longer than what may be held
// back, look the same in whatever pieces they come.
func TestAnyPieces(t *testing.T) {
	word := rapid.SampledFrom([]string{
		"*", "**", "***", "`", "``", "```", "~~", "~~~", "[", "](", ")", "\\", "|", "|-|", "\n", "\n\n", "- ", "12. ", "&", "lt;", "# ", "> ", " ", "a", "b c", "世", "go",
		strings.Repeat("x", 200), strings.Repeat("`", 31), strings.Repeat("*", 33), strings.Repeat("-", 130), strings.Repeat("y|", 3000),
	})
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(word, 1, 40).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		s := markdown.Stream{Width: wide, KeepMarks: rapid.Bool().Draw(t, "source")}
		want := render(s, text)
		if got := render(s, pieces...); got != want {
			t.Fatalf("%q\n got %q\nwant %q", text, got, want)
		}
		if len(text) > 8000 {
			return // long enough
		}
		if got := render(s, strings.Split(text, "")...); got != want {
			t.Fatalf("%q rune by rune\n got %q\nwant %q", text, got, want)
		}
	})
}
