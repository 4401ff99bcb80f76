// Package cells measures text as a terminal shows it: in grapheme clusters and columns. It does no input
// or output.
//
// Escape sequences for colors (SGR) and links (OSC 8) have no width. [Truncate] drops all others, so that its
// result cannot move the cursor.
package cells

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

const (
	esc = '\x1b'
	bel = '\a'
)

// NextCluster returns the first grapheme cluster of s and its width in columns: 0, 1 or 2, more only for
// letters with signs beside them. Control characters are clusters of width 0. s must be valid UTF-8.
func NextCluster(s string) (cluster string, width int) {
	switch {
	case s == "":
		return "", 0
	case s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf):
		return s[:1], asciiWidth(s[0])
	}
	cluster = graphemes.FromString(s).First()
	return cluster, clusterWidth(cluster)
}

// clusterWidth returns the width of a cluster. In the scripts of India and South East Asia, terminals give
// each letter and each vowel sign beside another its own column, though they are one cluster: คำ, का.
func clusterWidth(cluster string) (width int) {
	if first, _ := utf8.DecodeRuneInString(cluster); !hasSpacingMarks(first) {
		return displaywidth.String(cluster)
	}
	for _, r := range cluster {
		width += displaywidth.Rune(r)
	}
	return width
}

// hasSpacingMarks reports whether r's script has signs that stand beside a letter, or r is a sign of Arabic or
// Syriac that the following digits join.
func hasSpacingMarks(r rune) bool {
	if r >= 0x600 && r < 0x900 {
		return r <= 0x605 || r == 0x6dd || r == 0x70f || r == 0x890 || r == 0x891 || r == 0x8e2
	}
	return r >= 0x900 && (r < 0x10a0 || r >= 0x1700 && r < 0x1c80 || r >= 0xa800 && r < 0xaa80 || r >= 0x11000 &&
		r < 0x12000)
}

// Columns returns the width of a text without escape sequences.
func Columns(s string) (width int) {
	if strings.IndexFunc(s, hasSpacingMarks) < 0 {
		return displaywidth.String(s)
	}
	for clusters := graphemes.FromString(s); clusters.Next(); {
		width += clusterWidth(clusters.Value())
	}
	return width
}

func asciiWidth(b byte) int {
	if b < ' ' || b == 0x7f {
		return 0
	}
	return 1
}

// Width returns the width of s on one line. Escape sequences and control characters have none.
func Width(s string) (width int) {
	s = toValidUTF8(s)
	for s != "" {
		if s[0] == esc {
			s = s[max(1, EscapeLen(s)):]
			continue
		}
		cluster, w := NextCluster(s)
		width += w
		s = s[len(cluster):]
	}
	return width
}

// ShortenMiddle shortens text to the given number of columns, at least twelve. dots replace the middle.
func ShortenMiddle(text string, columns int, dots string) string {
	if columns = max(columns, 12); Width(text) <= columns {
		return text
	}
	head, used := Truncate(text, columns/3)
	end := text
	for end != "" && Width(end) > columns-used-Width(dots) { // longest suffix that fits
		cluster, _ := NextCluster(end)
		end = end[len(cluster):]
	}
	return head + dots + end
}

// Truncate returns the longest prefix of s that fits into width columns, and its width. Colors and links
// after the cut are kept, so that open ones are closed; other escape sequences and control characters
// are dropped.
func Truncate(s string, width int) (string, int) {
	s = toValidUTF8(s)
	var b strings.Builder
	used, full := 0, false
	for s != "" {
		if s[0] == esc {
			n := max(1, EscapeLen(s))
			if IsHarmless(s[:n]) {
				b.WriteString(s[:n])
			}
			s = s[n:]
			continue
		}
		cluster, w := NextCluster(s)
		s = s[len(cluster):]
		full = full || used+w > width
		if full || isControl(cluster) {
			continue
		}
		b.WriteString(cluster)
		used += w
	}
	return b.String(), used
}

func toValidUTF8(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

func isControl(cluster string) bool {
	r, _ := utf8.DecodeRuneInString(cluster)
	return r < ' ' || r >= 0x7f && r < 0xa0
}

// EscapeLen returns the length of the escape sequence at the start of s: 0 if it is incomplete, 1 for an
// escape character that starts none.
func EscapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	from, final := 1, byte(0x30)
	switch s[1] {
	case '[':
		from, final = 2, 0x40
	case ']', 'P', 'X', '^', '_':
		// A string sequence never spans lines.
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == bel:
				return i + 1
			case s[i] == '\n':
				return i
			case s[i] == esc && i+1 == len(s):
				return 0
			case s[i] == esc && s[i+1] == '\\':
				return i + 2
			case s[i] == esc:
				return i
			}
		}
		return 0
	}
	for i := from; i < len(s); i++ {
		switch {
		case s[i] >= 0x20 && s[i] < final:
		case s[i] >= final && s[i] < 0x7f:
			return i + 1
		default:
			return i
		}
	}
	return 0
}

// IsHarmless reports whether seq only sets colors or a link.
func IsHarmless(seq string) bool { return IsColour(seq) || IsLink(seq) }

// IsColour reports whether seq is an SGR sequence.
func IsColour(seq string) bool {
	return strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") &&
		strings.Trim(seq[2:len(seq)-1], "0123456789;:") == ""
}

// IsLink reports whether seq opens or closes a link.
func IsLink(seq string) bool {
	body, ok := strings.CutPrefix(seq, "\x1b]8;")
	if !ok {
		return false
	}
	for _, end := range []string{"\a", "\x1b\\"} {
		if inner, ok := strings.CutSuffix(body, end); ok {
			return strings.IndexFunc(inner, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
		}
	}
	return false
}
