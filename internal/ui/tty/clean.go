//go:build unix

package tty

import (
	"strings"
	"unicode/utf8"

	"coder/internal/ui/cells"
)

// Limits of what a cleaner keeps.
const (
	maxHeld    = 8 << 10 // bytes of a sequence that does not end
	maxColours = 1 << 10 // bytes of colours set one upon the other
)

const (
	lineEnd  = "\r\n"
	noColour = "\x1b[0m"
	noLink   = "\x1b]8;;\x1b\\"
)

// cleaner lets the harmless part of printed text pass, and knows in what state
// it leaves the terminal. The zero value is at the start of a line.
type cleaner struct {
	open bool   // the line has been begun
	held string // the start of a character or sequence that has not ended

	colours, link string // as they are at the end of the text
	after         string // what ends them, for something else to be drawn
	before        string // what sets them again
}

// clean returns what may be written of text, which follows on from the texts
// before. Line ends are written for a terminal in raw mode.
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

// plainPrefix is how much of text is printable ASCII.
func plainPrefix(text string) int {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b >= 0x7f {
			return i
		}
	}
	return len(text)
}

// special handles what text starts with, which is not printable ASCII, and
// returns how long it is; 0 if it has not ended.
func (c *cleaner) special(b *strings.Builder, text string) int {
	switch text[0] {
	case '\n':
		b.WriteString(c.after + lineEnd + c.before) // each line is whole by itself
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

// sequence lets colours and links pass, and remembers them.
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
