//go:build unix

package tty

import (
	"strings"
	"unicode/utf8"

	"coder/internal/ui/cells"
)

// Limits of what a cleaner holds.
const (
	maxPending = 8 << 10 // bytes of an unfinished sequence
	maxColours = 1 << 10 // bytes of accumulated colors
)

const (
	lineEnd  = "\r\n"
	noColour = "\x1b[0m"
	noLink   = "\x1b]8;;\x1b\\"
)

// cleaner passes the harmless part of printed text, and tracks the state in which it leaves the
// terminal. The zero value is at the start of a line.
type cleaner struct {
	midLine bool   // inside a line
	pending string // start of an unfinished character or sequence

	colours, link string // at the end of the text
	resetCodes    string // ends them, so that something else can be drawn
	restoreCodes  string // sets them again
}

// clean returns the part of text that may be written, continuing the previous texts. Newlines are
// written for a terminal in raw mode.
func (c *cleaner) clean(text string) string {
	text, c.pending = c.pending+text, ""
	var b strings.Builder
	for text != "" {
		n := printablePrefixLen(text)
		if n > 0 {
			b.WriteString(text[:n])
			c.midLine = true
			text = text[n:]
			continue
		}
		n = c.cleanSpecial(&b, text)
		if n == 0 {
			if len(text) <= maxPending {
				c.pending = text
			}
			break
		}
		text = text[n:]
	}
	return b.String()
}

// printablePrefixLen returns the length of the printable ASCII at the start of text.
func printablePrefixLen(text string) int {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b >= 0x7f {
			return i
		}
	}
	return len(text)
}

// cleanSpecial handles the start of text, which is not printable ASCII, and returns its length; 0 if it is
// unfinished.
func (c *cleaner) cleanSpecial(b *strings.Builder, text string) int {
	switch text[0] {
	case '\n':
		b.WriteString(c.resetCodes + lineEnd + c.restoreCodes) // each line is complete in itself
		c.midLine = false
		return 1
	case '\t':
		b.WriteByte('\t')
		c.midLine = true
		return 1
	case esc:
		n := cells.EscapeLen(text)
		c.cleanSequence(b, text[:n])
		return n
	}
	if !utf8.FullRuneInString(text) {
		return 0
	}
	r, n := utf8.DecodeRuneInString(text)
	if r >= 0xa0 {
		b.WriteRune(r)
		c.midLine = true
	}
	return n
}

// cleanSequence passes colors and links, and tracks them.
func (c *cleaner) cleanSequence(b *strings.Builder, seq string) {
	switch {
	case cells.IsColour(seq):
		c.colours += seq
		if seq == "\x1b[m" || seq == noColour || len(c.colours) > maxColours {
			c.colours = ""
		}
	case cells.IsLink(seq):
		c.link = seq
		if strings.HasPrefix(seq, "\x1b]8;;\x1b") || strings.HasPrefix(seq, "\x1b]8;;\a") {
			c.link = ""
		}
	default:
		return
	}
	b.WriteString(seq)
	c.restoreCodes, c.resetCodes = c.colours+c.link, ""
	if c.colours != "" {
		c.resetCodes += noColour
	}
	if c.link != "" {
		c.resetCodes += noLink
	}
}
