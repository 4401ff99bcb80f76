//go:build unix

package tty

import (
	"strings"
	"unicode/utf8"

	"coder/internal/ui/cells"
)

// Limits of what a cleaner holds.
const (
	maxHeld    = 8 << 10 // bytes of an unfinished sequence
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
	open bool   // inside a line
	held string // start of an unfinished character or sequence

	colours, link string // at the end of the text
	after         string // ends them, so that something else can be drawn
	before        string // sets them again
}

// clean returns the part of text that may be written, continuing the previous texts. Newlines are
// written for a terminal in raw mode.
func (c *cleaner) clean(text string) string {
	text, c.held = c.held+text, ""
	var b strings.Builder
	for text != "" {
		n := plainPrefix(text)
		if n > 0 {
			b.WriteString(text[:n])
			c.open = true
			text = text[n:]
			continue
		}
		n = c.special(&b, text)
		if n == 0 {
			if len(text) <= maxHeld {
				c.held = text
			}
			break
		}
		text = text[n:]
	}
	return b.String()
}

// plainPrefix returns the length of the printable ASCII at the start of text.
func plainPrefix(text string) int {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b >= 0x7f {
			return i
		}
	}
	return len(text)
}

// special handles the start of text, which is not printable ASCII, and returns its length; 0 if it is
// unfinished.
func (c *cleaner) special(b *strings.Builder, text string) int {
	switch text[0] {
	case '\n':
		b.WriteString(c.after + lineEnd + c.before) // each line is complete in itself
		c.open = false
		return 1
	case '\t':
		b.WriteByte('\t')
		c.open = true
		return 1
	case esc:
		n := cells.Escape(text)
		c.sequence(b, text[:n])
		return n
	}
	if !utf8.FullRuneInString(text) {
		return 0
	}
	r, n := utf8.DecodeRuneInString(text)
	if r >= 0xa0 {
		b.WriteRune(r)
		c.open = true
	}
	return n
}

// sequence passes colors and links, and tracks them.
func (c *cleaner) sequence(b *strings.Builder, seq string) {
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
	c.before, c.after = c.colours+c.link, ""
	if c.colours != "" {
		c.after += noColour
	}
	if c.link != "" {
		c.after += noLink
	}
}
