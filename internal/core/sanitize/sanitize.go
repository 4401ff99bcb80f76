// Package sanitize makes untrusted text safe to print on a terminal. It names characters that would move
// the cursor, change colours, hide or reorder text. It drops nothing silently, so the user sees that
// something was there.
package sanitize

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"coder/internal/core/clip"
)

// Text sanitizes s and keeps its lines and tabs. CR LF becomes LF; invalid UTF-8 becomes U+FFFD.
func Text(s string) string {
	if strings.IndexFunc(s, IsHazard) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i, r := range s {
		switch {
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case r == '\t' || r == '\n':
			b.WriteRune(r)
		case IsHazard(r):
			b.WriteString(HazardName(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line sanitizes s and makes it one line of at most limit runes; each run of white space becomes one
// blank. An ellipsis replaces what it cuts off. A limit of zero or less means no limit.
func Line(s string, limit int) string {
	s = strings.TrimSpace(s)
	whole := len(s)
	if limit > 0 && limit < len(s)/maxBytesPerRune {
		s = clip.Head(s, limit*maxBytesPerRune)
	}
	line := Text(strings.Join(strings.Fields(s), " "))
	if len(s) == whole && (limit <= 0 || utf8.RuneCountInString(line) <= limit) {
		return line
	}
	runes := []rune(line)
	return strings.TrimRight(string(runes[:min(limit-1, len(runes))]), " ") + "…"
}

// maxBytesPerRune is how many bytes Line examines per rune of its result, so that its cost does not depend on the
// length of the text.
const maxBytesPerRune = 16

// IsHazard reports whether r could fool a terminal or a reader. It includes the replacement character only
// so that invalid UTF-8 is rewritten. It excludes joiners: emoji and the scripts of whole languages need
// them.
func IsHazard(r rune) bool {
	switch {
	case r == '\t' || r == '\n':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r < 0x061c:
		return false
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x206f:
		return true // they reorder or reshape the text around them
	case r == 0x2028, r == 0x2029, r >= 0xfff9 && r <= 0xfffb:
		return true // they break lines or hide the text around them
	case r == 0x180e, r == 0x200b, r >= 0x2060 && r <= 0x2065, r == 0x3164, r == 0xfeff, r == 0xffa0,
		r >= 0xe0000 && r <= 0xe0fff:
		return true // they are invisible
	}
	return r == utf8.RuneError
}

// HazardName spells out a hazard: ^[ for the escape character, <U+202E> beyond ASCII.
func HazardName(r rune) string {
	switch {
	case r == utf8.RuneError:
		return string(utf8.RuneError)
	case r < 0x20:
		return "^" + string(r+'@')
	case r == 0x7f:
		return "^?"
	}
	return fmt.Sprintf("<U+%04X>", r)
}
