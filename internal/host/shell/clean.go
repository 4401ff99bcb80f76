package shell

import (
	"bytes"
	"io"
	"unicode/utf8"

	"coder/internal/core/sanitize"
)

// Clean converts a command's output to plain text: valid UTF-8, no escape sequences, no control
// characters except newline and tab. It names characters that reorder text or are invisible. Of a line
// that was redrawn, such as a progress bar, only the last state remains.
func Clean(b []byte) string {
	if isPlain(b) {
		return string(b)
	}
	var c cleaner
	c.out.Grow(len(b))
	c.scan(b, true)
	c.endOutput()
	return c.out.String()
}

func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return !bytes.ContainsFunc(b, sanitize.Hazard)
		}
	}
	return true
}

// LiveWriter cleans what is written to it and forwards it in whole runes. It forwards a redrawn line
// when it is complete; until then it calls Draw, if set, with the line's text.
type LiveWriter struct {
	To   io.Writer
	Draw func(line string)
	c    cleaner
}

// Write cleans b and returns the error of the underlying writer.
func (w *LiveWriter) Write(b []byte) (int, error) {
	w.c.scan(b, false)
	if !w.c.drawn && !w.c.home && len(w.c.line) > 0 {
		w.c.out.Write(w.c.line)
		w.c.line, w.c.shown = w.c.line[:0], true
	}
	err := w.pass()
	if w.Draw != nil && len(w.c.line) > 0 { // the line is being redrawn
		w.Draw(string(w.c.line))
	}
	return len(b), err
}

// Flush forwards what was held back: an incomplete rune, a line being redrawn.
func (w *LiveWriter) Flush() error {
	w.c.scan(nil, true)
	w.c.endOutput()
	return w.pass()
}

func (w *LiveWriter) pass() error {
	if w.c.out.Len() == 0 {
		return nil
	}
	_, err := w.To.Write(w.c.out.Bytes())
	w.c.out.Reset()
	return err
}

// cleaner holds the current line and the state within an escape sequence.
type cleaner struct {
	out   bytes.Buffer
	line  []byte // the part of the current line not yet written
	shown bool   // a part of the current line has been written
	home  bool   // after a carriage return: the next rune restarts the line
	drawn bool   // the line was restarted, so it waits until complete
	state state
	part  []byte // the first bytes of an incomplete rune
}

// state is the position within an escape sequence.
type state uint8

const (
	text    state = iota
	escape        // after ESC
	charset       // after ESC and an intermediate, before the final rune
	control       // in a control sequence, before its final letter
	label         // in a string such as a window title, before its terminator
	labelES       // in a label, after an ESC that may begin the terminator
)

// scan processes b rune by rune; last means that no input follows.
func (c *cleaner) scan(b []byte, last bool) {
	if len(c.part) > 0 {
		b = append(c.part, b...)
		c.part = nil
	}
	for len(b) > 0 {
		if !last && !utf8.FullRune(b) {
			c.part = bytes.Clone(b)
			return
		}
		r, n := utf8.DecodeRune(b)
		c.rune(r)
		b = b[n:]
	}
}

// maxLine limits how much of a redrawn line is held back.
const maxLine = 64 << 10

func (c *cleaner) rune(r rune) {
	switch c.state {
	case text:
		c.plain(r)
	case escape:
		c.afterEscape(r)
	case charset:
		if r >= ' ' && r <= '/' {
			return
		}
		c.state = text
		if r < ' ' || r >= 0x7f {
			c.plain(r)
		}
	case control:
		switch {
		case r >= ' ' && r <= '?':
		case r >= '@' && r <= '~':
			c.state = text
		default:
			c.state = text
			c.plain(r)
		}
	case label, labelES:
		// An unterminated label must not swallow all further output.
		switch {
		case r == '\n':
			c.state = text
			c.plain(r)
		case r == '\a', r == 0x9c:
			c.state = text
		case c.state == labelES && r == '\\':
			c.state = text
		case c.state == labelES:
			c.state = text
			c.afterEscape(r)
		case r == 0x1b:
			c.state = labelES
		}
	}
}

func (c *cleaner) plain(r rune) {
	switch {
	case r == '\n':
		c.home = false
		c.emit()
		c.out.WriteByte('\n')
		c.shown, c.drawn = false, false
	case r == '\r':
		c.home = true
	case r == '\b':
		_, n := utf8.DecodeLastRune(c.line)
		c.line = c.line[:len(c.line)-n]
	case r == 0x1b:
		c.state = escape
	case r == 0x9b:
		c.state = control
	case r == 0x90, r == 0x98, r >= 0x9d && r <= 0x9f:
		c.state = label
	case r < ' ' && r != '\t', r >= 0x7f && r < 0xa0:
	default:
		if c.home {
			c.line, c.home, c.drawn = c.line[:0], false, true
		}
		if len(c.line) >= maxLine && c.drawn {
			return
		}
		if sanitize.Hazard(r) {
			c.line = append(c.line, sanitize.Name(r)...)
			return
		}
		c.line = utf8.AppendRune(c.line, r)
	}
}

// afterEscape starts the sequence that r introduces.
func (c *cleaner) afterEscape(r rune) {
	switch {
	case r == '[':
		c.state = control
	case r == ']', r == 'P', r == 'X', r == '^', r == '_':
		c.state = label
	case r >= ' ' && r <= '/':
		c.state = charset
	case r < ' ' || r >= 0x7f: // not an escape sequence
		c.state = text
		c.plain(r)
	default:
		c.state = text
	}
}

func (c *cleaner) endOutput() {
	c.emit()
	c.shown, c.drawn, c.home = false, false, false
}

// emit writes the rest of the line. If the line was restarted after a part had been shown, it goes on a
// new line.
func (c *cleaner) emit() {
	if c.shown && c.drawn && len(c.line) > 0 {
		c.out.WriteByte('\n')
	}
	c.out.Write(c.line)
	c.line = c.line[:0]
}
