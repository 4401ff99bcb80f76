package ink_test

import (
	"strings"
	"testing"

	"coder/internal/ui/term/ink"
)

// wrapped is text in lines of a width that go on set in, written in pieces of n runes.
func wrapped(text string, width, indent, n int) string {
	var b strings.Builder
	w := ink.Wrap{Put: func(_ ink.Style, text string) { b.WriteString(text) }, Width: width, Indent: indent}
	for runes := []rune(text); len(runes) > 0; runes = runes[min(n, len(runes)):] {
		w.Write(ink.Style{}, string(runes[:min(n, len(runes))]))
	}
	w.End()
	return b.String()
}

func TestAWordWiderThanALineIsBrokenAndStaysSetIn(t *testing.T) {
	const address = "https://example.com/a/very/long/path/of/things?and=more&of=them"
	for _, tt := range []struct {
		name, text    string
		width, indent int
		want          string
	}{
		{"behind a bullet", "- " + address, 30, 2, "- https://example.com/a/very/\n  long/path/of/things?and=\n  more&of=them"},
		{"half a line is left", "- see " + address, 30, 2, "- see https://example.com/a/\n  very/long/path/of/\n  things?and=more&of=them"},
		{"less is left", "- look it up there: " + address, 30, 2, "- look it up there:\n  https://example.com/a/very/\n  long/path/of/things?and=\n  more&of=them"},
		{"no sign to break at", "- " + strings.Repeat("x", 50) + " y", 30, 2, "- " + strings.Repeat("x", 28) + "\n  " + strings.Repeat("x", 22) + " y"},
		{"wider than the room beside the bullet", "- " + strings.Repeat("x", 29), 30, 2, "- " + strings.Repeat("x", 28) + "\n  x"},
		{"it just fits", "- " + strings.Repeat("x", 28), 30, 2, "- " + strings.Repeat("x", 28)},
		{"at the edge it can be copied whole", "see " + address, 30, 0, "see " + address},
		{"behind a line that is full", strings.Repeat("a", 30) + " " + strings.Repeat("x", 40) + " y", 30, 0, strings.Repeat("a", 30) + "\n" + strings.Repeat("x", 40) + " y"},
		{"a tab is as wide as to its stop", "a\tbb\tccc dddd", 22, 0, "a\tbb\tccc\ndddd"},
		{"a sign of several characters", "- 一二三四五六七👨‍👩‍👧‍👦八👍🏽🇨🇳九", 17, 2, "- 一二三四五六七\n  👨‍👩‍👧‍👦八👍🏽🇨🇳九"},
		{"flags and skin at the edge", strings.Repeat("a", 9) + " xx🇨🇳 x👍🏽x", 13, 0, strings.Repeat("a", 9) + " xx\n🇨🇳 x👍🏽x"},
		{"wide characters", "- a/" + strings.Repeat("/项", 12), 24, 2, "- a//项/项/项/项/项/项/\n  项/项/项/项/项/项"},
	} {
		for n := 1; n <= len(tt.text); n++ {
			if got := wrapped(tt.text, tt.width, tt.indent, n); got != tt.want {
				t.Errorf("%s, in pieces of %d:\n%s\nwant\n%s", tt.name, n, got, tt.want)
				break
			}
		}
	}
}

func TestANameInCodeStaysWhole(t *testing.T) {
	for n := 1; n <= 12; n++ {
		var b strings.Builder
		w := ink.Wrap{Put: func(_ ink.Style, text string) { b.WriteString(text) }, Width: 24}
		for _, s := range []ink.Span{
			{Text: "请打开说明所在的"}, {Style: ink.Style{Role: ink.Code}, Text: "文档/用户手册.md"}, {Text: "看看第一章怎么写的"},
		} {
			for runes := []rune(s.Text); len(runes) > 0; runes = runes[min(n, len(runes)):] {
				w.Write(s.Style, string(runes[:min(n, len(runes))]))
			}
		}
		w.End()
		if got, want := b.String(), "请打开说明所在的\n文档/用户手册.md看看第一\n章怎么写的"; got != want {
			t.Errorf("in pieces of %d:\n%s\nwant\n%s", n, got, want)
		}
	}
}

// Whatever the width: no character is lost, and where lines go on set in none is too wide.
func FuzzWrap(f *testing.F) {
	f.Add("- see https://example.com/a/b and 撤回（上一轮）的 e\u0301", 20, 2)
	f.Add("- 🇩🇪🇩🇪🇩🇪🇩🇪🇩🇪🇩🇪e\u0301\u0301", 8, 2)
	f.Add("1. "+strings.Repeat("x", 2000), 7, 3)
	f.Fuzz(func(t *testing.T, text string, width, indent int) {
		if strings.ContainsAny(text, "\n\r\t\f\v") || indent < 1 || indent > 8 || width < 8 || width > 200 {
			return
		}
		text = strings.ToValidUTF8(text, "")
		got := wrapped(text, width, indent, 3)
		if strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(text), "") {
			t.Fatalf("%q at %d becomes %q", text, width, got)
		}
	})
}

func TestRowsHoldAllOfALine(t *testing.T) {
	for width, want := range map[int]string{20: "rm -rf| /very/long/path | /other/place/wide", 12: "rm -rf /|very/long/|path  /|other/place/|wide"} {
		line := []ink.Span{{Text: "rm -rf /very/"}, {Style: ink.Style{Bold: true}, Text: "long/path  /other/place"}, {Text: "/wide"}}
		var rows []string
		for _, row := range ink.WrapRows(line, width) {
			text := ""
			for _, s := range row {
				text += s.Text
			}
			rows = append(rows, text)
		}
		if got := strings.Join(rows, "|"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTheEndOfALineFits(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"short", "short"}, {"exactly ten", "…actly ten"}, {"中文字符很多很多", "…很多很多"}, {strings.Repeat("中", 1000) + "end", "…中中中end"},
	} {
		if got := ink.TruncateLeft(tt.text, 10, "…"); got != tt.want || ink.Width(got) > 10 {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
