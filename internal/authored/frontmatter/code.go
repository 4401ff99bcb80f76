package frontmatter

import (
	"iter"
	"strings"
)

// Lines yields the lines of a Markdown text, and whether each is in a fenced code block.
func Lines(text string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		fence := ""
		for line := range strings.Lines(text) {
			mark, inside := FenceMarker(line), fence != ""
			switch {
			case !inside:
				fence = mark
			case strings.HasPrefix(mark, fence) && strings.Trim(strings.TrimSpace(line), mark[:1]) == "":
				fence = ""
			}
			if !yield(line, inside || mark != "") {
				return
			}
		}
	}
}

// FenceMarker returns the backticks or tildes that open or close a code block, or "".
func FenceMarker(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// maxCodeSpan limits the search for the end of a code span.
const maxCodeSpan = 8 << 10

// CodeSpanLen returns the length of the code span at the start of s or,
// if it does not close on this line, of its opening backticks.
func CodeSpanLen(s string) int {
	ticks := len(s) - len(strings.TrimLeft(s, "`"))
	s = s[:min(len(s), ticks+maxCodeSpan)]
	for i := ticks; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if i += n; n == ticks {
			return i
		}
	}
	return ticks
}
