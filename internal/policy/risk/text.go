package risk

import (
	"strings"
	"unicode/utf8"
)

// excessive says why text is not even parsed; empty if it is.
func excessive(text string) string {
	switch {
	case len(text) > maxCommand:
		return "too long to be judged"
	case nesting(text) > maxBrackets:
		return "nested too deeply to be judged"
	}
	return ""
}

// unfit says why text cannot be judged by its syntax tree alone; empty if it
// can be. Parser and shell disagree about some of what is named here, and a
// person could be shown something other than what runs.
func unfit(text string) string {
	switch {
	case !utf8.ValidString(text):
		return "not valid UTF-8"
	case strings.ContainsFunc(text, deceives):
		return "holds control characters"
	}
	return ""
}

// deceives reports whether r makes text look other than it is: control
// characters, and those that turn the direction of writing.
func deceives(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func nesting(text string) (deepest int) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', '}':
			depth = max(0, depth-1)
		}
	}
	return deepest
}

const maxShown = 120 // runes of a finding's place

// plain makes a piece of a command line safe and short enough to show.
func plain(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(s) {
		if n++; n > maxShown {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case deceives(r) || r == utf8.RuneError:
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
