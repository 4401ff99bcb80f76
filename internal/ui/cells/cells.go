// Package cells measures text as a terminal shows it: in grapheme clusters and
// in columns. It knows nothing of screens and does no input or output.
//
// Only colours (SGR) and links (OSC 8) are understood as escape sequences, and
// take no room; [Cut] drops every other one, so that what passed through it
// cannot move the cursor.
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

// Next returns the first grapheme cluster of s and its columns: 0, 1 or 2, more only for
// letters with signs beside them. Control characters are clusters without width. s must
// be valid UTF-8.
func Next(s string) (cluster string, width int) {
	switch {
	case s == "":
		return "", 0
	case s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf):
		return s[:1], ascii(s[0])
	}
	cluster = graphemes.FromString(s).First()
	return cluster, measured(cluster)
}

// measured is how many columns a cluster takes. Terminals give each letter and vowel
// sign of the scripts of India and South East Asia that stands beside others its own
// column, though they make one cluster: คำ, का.
func measured(cluster string) (width int) {
	if first, _ := utf8.DecodeRuneInString(cluster); !besides(first) {
		return displaywidth.String(cluster)
	}
	for _, r := range cluster {
		width += displaywidth.Rune(r)
	}
	return width
}

// besides reports whether r is of a script whose signs may stand beside a letter, or a sign
// of Arabic and Syriac that the digits after it join.
func besides(r rune) bool {
	if r >= 0x600 && r < 0x900 {
		return r <= 0x605 || r == 0x6dd || r == 0x70f || r == 0x890 || r == 0x891 || r == 0x8e2
	}
	return r >= 0x900 && (r < 0x10a0 || r >= 0x1700 && r < 0x1c80 || r >= 0xa800 && r < 0xaa80 || r >= 0x11000 && r < 0x12000)
}

// Columns is how many columns a text without escape sequences takes.
func Columns(s string) (width int) {
	if strings.IndexFunc(s, besides) < 0 {
		return displaywidth.String(s)
	}
	for clusters := graphemes.FromString(s); clusters.Next(); {
		width += measured(clusters.Value())
	}
	return width
}

func ascii(b byte) int {
	if b < ' ' || b == 0x7f {
		return 0
	}
	return 1
}

// Width is how many columns s takes on one line. Escape sequences and control
// characters take none.
func Width(s string) (width int) {
	s = valid(s)
	for s != "" {
		if s[0] == esc {
			s = s[max(1, Escape(s)):]
			continue
		}
		cluster, w := Next(s)
		width += w
		s = s[len(cluster):]
	}
	return width
}

// Middle is text of at most so many columns, or twelve: dots stand for the middle of
// a longer one.
func Middle(text string, columns int, dots string) string {
	if columns = max(columns, 12); Width(text) <= columns {
		return text
	}
	head, used := Cut(text, columns/3)
	end := text
	for end != "" && Width(end) > columns-used-Width(dots) { // the longest end that fits
		cluster, _ := Next(end)
		end = end[len(cluster):]
	}
	return head + dots + end
}

// Cut is the longest start of s that fits into width columns, and the columns
// it takes. Colours and links are kept even past the cut, so that what they
// opened is closed; everything else that is not text is dropped.
func Cut(s string, width int) (string, int) {
	s = valid(s)
	var b strings.Builder
	used, full := 0, false
	for s != "" {
		if s[0] == esc {
			n := max(1, Escape(s))
			if Harmless(s[:n]) {
				b.WriteString(s[:n])
			}
			s = s[n:]
			continue
		}
		cluster, w := Next(s)
		s = s[len(cluster):]
		full = full || used+w > width
		if full || control(cluster) {
			continue
		}
		b.WriteString(cluster)
		used += w
	}
	return b.String(), used
}

func valid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

func control(cluster string) bool {
	r, _ := utf8.DecodeRuneInString(cluster)
	return r < ' ' || r >= 0x7f && r < 0xa0
}

// Escape is the length of the escape sequence that s starts with, 0 if s ends
// before it does, and 1 for an escape character that starts none.
func Escape(s string) int {
	if len(s) < 2 {
		return 0
	}
	from, final := 1, byte(0x30)
	switch s[1] {
	case '[':
		from, final = 2, 0x40
	case ']', 'P', 'X', '^', '_':
		// No such string goes over a line end
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

// Harmless reports whether the escape sequence seq only colours or links.
func Harmless(seq string) bool { return IsColour(seq) || IsLink(seq) }

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
