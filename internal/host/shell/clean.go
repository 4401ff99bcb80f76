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
	c.finish()
	return c.out.String()
}

func isPlain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return !bytes.ContainsFunc(b, sanitize.IsHazard)
		}
	}
	return true
}

// LiveWriter cleans what is written to it and forwards it in whole runes. It forwards a redrawn line
// when it is complete; until then it calls Draw, if set, with the line's text.
type LiveWriter struct {
	To      io.Writer
	Draw    func(line string)
	cleaner cleaner
}

// Write cleans b and returns the error of the underlying writer.
func (w *LiveWriter) Write(b []byte) (int, error) {
	w.cleaner.scan(b, false)
	if !w.cleaner.isRedrawn && !w.cleaner.afterCR && len(w.cleaner.line) > 0 {
		w.cleaner.out.Write(w.cleaner.line)
		w.cleaner.line, w.cleaner.lineStarted = w.cleaner.line[:0], true
	}
	err := w.forward()
	if w.Draw != nil && len(w.cleaner.line) > 0 { // the line is being redrawn
		w.Draw(string(w.cleaner.line))
	}
	return len(b), err
}

// Flush forwards what was held back: an incomplete rune, a line being redrawn.
func (w *LiveWriter) Flush() error {
	w.cleaner.scan(nil, true)
	w.cleaner.finish()
	return w.forward()
}

func (w *LiveWriter) forward() error {
	if w.cleaner.out.Len() == 0 {
		return nil
	}
	_, err := w.To.Write(w.cleaner.out.Bytes())
	w.cleaner.out.Reset()
	return err
}

// cleaner holds the current line and the state within an escape sequence.
type cleaner struct {
	out         bytes.Buffer
	line        []byte // the part of the current line not yet written
	lineStarted bool   // a part of the current line has been written
	afterCR     bool   // after a carriage return: the next rune restarts the line
	isRedrawn   bool   // the line was restarted, so it waits until complete
	state       escapeState
	partialRune []byte // the first bytes of an incomplete rune
}

// escapeState is the position within an escape sequence.
type escapeState uint8

const (
	stateText         escapeState = iota
	stateEscape                   // after ESC
	stateCharset                  // after ESC and an intermediate, before the final rune
	stateControl                  // in a control sequence, before its final letter
	stateString                   // in a string such as a window title, before its terminator
	stateStringEscape             // in a label, after an ESC that may begin the terminator
)

// scan processes b rune by rune; last means that no input follows.
func (c *cleaner) scan(b []byte, last bool) {
	if len(c.partialRune) > 0 {
		b = append(c.partialRune, b...)
		c.partialRune = nil
	}
	for len(b) > 0 {
		if !last && !utf8.FullRune(b) {
			c.partialRune = bytes.Clone(b)
			return
		}
		r, n := utf8.DecodeRune(b)
		c.writeRune(r)
		b = b[n:]
	}
}

// maxHeldLine limits how much of a redrawn line is held back.
const maxHeldLine = 64 << 10

func (c *cleaner) writeRune(r rune) {
	switch c.state {
	case stateText:
		c.writePlain(r)
	case stateEscape:
		c.afterEscape(r)
	case stateCharset:
		if r >= ' ' && r <= '/' {
			return
		}
		c.state = stateText
		if r < ' ' || r >= 0x7f {
			c.writePlain(r)
		}
	case stateControl:
		switch {
		case r >= ' ' && r <= '?':
		case r >= '@' && r <= '~':
			c.state = stateText
		default:
			c.state = stateText
			c.writePlain(r)
		}
	case stateString, stateStringEscape:
		// An unterminated label must not swallow all further output.
		switch {
		case r == '\n':
			c.state = stateText
			c.writePlain(r)
		case r == '\a', r == 0x9c:
			c.state = stateText
		case c.state == stateStringEscape && r == '\\':
			c.state = stateText
		case c.state == stateStringEscape:
			c.state = stateText
			c.afterEscape(r)
		case r == 0x1b:
			c.state = stateStringEscape
		}
	}
}

func (c *cleaner) writePlain(r rune) {
	switch {
	case r == '\n':
		c.afterCR = false
		c.writeLine()
		c.out.WriteByte('\n')
		c.lineStarted, c.isRedrawn = false, false
	case r == '\r':
		c.afterCR = true
	case r == '\b':
		_, n := utf8.DecodeLastRune(c.line)
		c.line = c.line[:len(c.line)-n]
	case r == 0x1b:
		c.state = stateEscape
	case r == 0x9b:
		c.state = stateControl
	case r == 0x90, r == 0x98, r >= 0x9d && r <= 0x9f:
		c.state = stateString
	case r < ' ' && r != '\t', r >= 0x7f && r < 0xa0:
	default:
		if c.afterCR {
			c.line, c.afterCR, c.isRedrawn = c.line[:0], false, true
		}
		if len(c.line) >= maxHeldLine && c.isRedrawn {
			return
		}
		if sanitize.IsHazard(r) {
			c.line = append(c.line, sanitize.HazardName(r)...)
			return
		}
		c.line = utf8.AppendRune(c.line, r)
	}
}

// afterEscape starts the sequence that r introduces.
func (c *cleaner) afterEscape(r rune) {
	switch {
	case r == '[':
		c.state = stateControl
	case r == ']', r == 'P', r == 'X', r == '^', r == '_':
		c.state = stateString
	case r >= ' ' && r <= '/':
		c.state = stateCharset
	case r < ' ' || r >= 0x7f: // not an escape sequence
		c.state = stateText
		c.writePlain(r)
	default:
		c.state = stateText
	}
}

func (c *cleaner) finish() {
	c.writeLine()
	c.lineStarted, c.isRedrawn, c.afterCR = false, false, false
}

// writeLine writes the rest of the line. If the line was restarted after a part had been shown, it goes on a
// new line.
func (c *cleaner) writeLine() {
	if c.lineStarted && c.isRedrawn && len(c.line) > 0 {
		c.out.WriteByte('\n')
	}
	c.out.Write(c.line)
	c.line = c.line[:0]
}
