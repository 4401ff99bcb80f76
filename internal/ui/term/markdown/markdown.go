// Package markdown reads Markdown while it arrives and says what each part is
// to look like, at once and for good: what was put is never taken back, so a
// sign that may or may not open something is held until that is certain, its
// line ends, or too much would be held.
//
// What is put depends only on the text so far, not on the pieces it came in.
//
// Marks that a look replaces are left out: the stars of emphasis, the tildes of
// struck text, the ticks of code, the brackets of links (whose address follows
// in parentheses) and the backslash of an escape; a character that is written by
// its name, such as &lt;, is shown. Everything else stays as it
// was typed: heading signs, bullets, quote signs. Fences of code that has
// colours become blank lines. Tables are drawn in columns. Blank lines at both ends are dropped, and several in prose become
// one. Lines of words are broken between words where they are wider than the
// terminal, and go on below the words of an item; code is not.
package markdown

import (
	"strings"

	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/syntax"
)

// Stream renders one text. Set Put, then call Write and finally End.
//
// The text must be whole runes without control characters other than tab and newline.
type Stream struct {
	Put          ink.SpanFunc
	Width        func() int // of the terminal; nil: unlimited
	KeepMarks    bool       // no styles: leave all marks in place
	ASCII        bool       // draw with ASCII only
	ScreenReader bool       // for a screen reader: a table that does not fit is a list

	line    string    // the undrawn part of the current line
	started bool      // the start of the line was drawn; the rest is inline
	style   ink.Style // style of the line
	prev    byte      // the byte before line

	pendingNewlines int  // newlines pending
	hasOutput       bool // something was drawn

	fence      fence
	inCode     bool // the line before was indented code
	isFence    bool // the line is a fence, which is not written
	itemColumn int  // start column of the current item's words
	table      table
	wrap       ink.Wrap // for prose
}

// Limits of what is held back, in bytes.
const (
	maxSpanBytes = 512     // an unfinished span
	maxHeadBytes = 256     // a line of unknown kind
	maxCodeBytes = 4096    // a line of code
	maxRowBytes  = 8 << 10 // a table row
)

// Write adds the next piece.
func (s *Stream) Write(text string) {
	if s.Width != nil && s.started {
		s.wrap.Resize(s.Width())
	}
	for text != "" {
		head, rest, whole := strings.Cut(text, "\n")
		s.line += head
		s.advance(whole)
		if whole {
			s.wrap.End()
			if s.isFence { // a blank line stands for it
				s.isFence, s.pendingNewlines = false, max(s.pendingNewlines, 2)
			} else {
				s.pendingNewlines++
			}
			if !s.fence.isOpen() {
				s.pendingNewlines = min(s.pendingNewlines, 2)
			}
			s.line, s.started, s.style, s.prev = "", false, ink.Style{}, 0
		}
		text = rest
	}
}

// End draws what was held back. The stream can then be reused.
func (s *Stream) End() {
	if s.line != "" {
		s.advance(true)
	}
	s.wrap.End()
	s.endTable()
	*s = Stream{Put: s.Put, Width: s.Width, KeepMarks: s.KeepMarks, ASCII: s.ASCII, ScreenReader: s.ScreenReader}
}

// advance draws as much of the line as is certain; whole means that the line is complete.
func (s *Stream) advance(whole bool) {
	switch {
	case s.started && (s.fence.isOpen() || s.inCode):
		s.drawRest(ink.Style{Role: ink.Plain})
	case s.started:
		s.drawInline(whole)
	case s.fence.isOpen():
		margin, inside := s.fence.stripMargin(s.line)
		switch {
		case !inside && (whole || strings.TrimLeft(s.line, " ") != ""): // the quote has ended, and its code with it
			s.fence = fence{}
			s.advance(whole)
			return
		case len(s.line) > maxCodeBytes:
			s.started = true
			s.drawRest(ink.Style{})
		case !whole:
		case s.fence.isClosedBy(s.line[margin:]):
			s.drawFence()
			s.fence = fence{}
		default:
			s.draw(ink.Style{Role: ink.Dim}, s.line[:margin])
			if s.line = s.line[margin:]; s.fence.diff {
				s.drawRest(ink.Style{Role: diffRole(s.line)})
				return
			}
			s.fence.syntax.DrawLine(s.line, s.draw)
			s.line = ""
		}
	case s.isCode():
		s.endTable()
		if s.inCode = true; whole || len(s.line) > maxCodeBytes {
			s.started = true
			s.drawRest(ink.Style{})
		}
	default:
		k, n := classify(s.line, whole)
		if k == lineUnsure {
			return
		}
		s.recordPosition(k, n)
		if k != lineRow || !s.table.continues(s.line[:n]) {
			s.endTable()
		}
		switch k {
		case lineBlank:
			s.line = ""
		case lineRow:
			if whole {
				if s.table.isEmpty() {
					s.table.margin = strings.ReplaceAll(s.line[:n], "\t", "    ")
				}
				s.addRow(s.line[n:])
				s.line = ""
			}
		case lineRule:
			s.drawRest(ink.Style{Role: ink.Dim})
		case lineFence:
			quotes := strings.Count(s.line[:n], ">")
			text := strings.TrimSpace(s.line[n:])
			sign := text[:runLength(text)]
			lang := strings.TrimSpace(text[len(sign):])
			s.fence = fence{sign: sign, quotes: quotes, diff: lang == "diff" || lang == "patch", syntax: syntax.For(lang)}
			s.drawFence()
		case lineHeading:
			s.style.Bold = true
			s.startLine(n, s.style, whole)
		case lineQuote:
			s.startLine(n, ink.Style{Role: ink.Dim}, whole)
		case lineProse, lineBullet, lineUnsure:
			s.startLine(n, s.style, whole)
		}
	}
}

// drawFence puts the fence that the line is, or hides it where colours tell code from words.
func (s *Stream) drawFence() {
	coloured := !s.KeepMarks && !s.ScreenReader && (s.fence.diff || s.fence.syntax.HasLanguage())
	if !coloured || s.fence.quotes > 0 {
		s.drawRest(ink.Style{Role: ink.Dim})
		return
	}
	s.line, s.isFence = "", true
}

// Restart continues the arriving line on a new line, because other output is below it. It returns the
// indent to use.
func (s *Stream) Restart() (indent int) { return s.wrap.Restart() }

// OwesNewline reports whether the last line drawn is complete except for its newline.
func (s *Stream) OwesNewline() bool { return s.hasOutput && s.pendingNewlines > 0 }

// AtParagraphEnd reports whether only whole paragraphs and blocks of code have been drawn.
func (s *Stream) AtParagraphEnd() bool { return s.OwesNewline() && !s.fence.isOpen() }

// Pending returns the text not drawn yet: an unfinished word, line of code or table row. If it is wider
// than the screen, it returns the end.
func (s *Stream) Pending() []ink.Span {
	if s.started || s.line == "" && len(s.table.rows) == 0 {
		return s.wrap.Pending()
	}
	line, look := s.line, ink.Style{}
	switch {
	case s.fence.isOpen() || s.isCode():
	case len(s.table.rows) > 0 || strings.HasPrefix(strings.TrimLeft(line, "> "), "|"):
		look.Role = ink.Dim
		switch {
		case line == "" && s.Rows() != nil: // shown otherwise
			return nil
		case line == "":
			line = s.table.rows[len(s.table.rows)-1]
		}
	default: // a few signs that may become anything
		return nil
	}
	return []ink.Span{{}, {Style: look, Text: s.fittingEnd(line)}} // keeps the spaces before it
}

// fittingEnd returns the end of a line as typed, as much as fits.
func (s *Stream) fittingEnd(line string) string {
	room := 79
	if s.Width != nil && s.Width() > 0 {
		room = s.Width() - 1
	}
	dots := "…"
	if s.ASCII {
		dots = "..."
	}
	return ink.TruncateLeft(strings.ReplaceAll(line, "\t", "    "), room, dots)
}

// draw draws text after the pending newlines.
func (s *Stream) draw(l ink.Style, text string) {
	if text == "" {
		return
	}
	if s.pendingNewlines > 0 && s.hasOutput {
		s.Put(ink.Style{}, strings.Repeat("\n", s.pendingNewlines))
	}
	s.pendingNewlines, s.hasOutput = 0, true
	s.Put(l, text)
}

// drawRest draws the rest of the line.
func (s *Stream) drawRest(l ink.Style) {
	s.draw(l, s.line)
	s.line = ""
}

// fence is an open block of code.
type fence struct {
	sign   string // its opening sign; the end is at least as long
	quotes int    // number of quotes around it
	diff   bool
	syntax syntax.Scanner
}

func (f fence) isOpen() bool { return f.sign != "" }

// stripMargin returns the length of the prefix before a line's code, and whether the line is still in the
// code's quote.
func (f fence) stripMargin(line string) (margin int, ok bool) {
	for range f.quotes {
		rest := strings.TrimLeft(line[margin:], " ")
		if !strings.HasPrefix(rest, ">") {
			return margin, false
		}
		margin = len(line) - len(rest) + 1
	}
	if f.quotes > 0 && strings.HasPrefix(line[margin:], " ") {
		margin++
	}
	return margin, true
}

// isClosedBy reports whether line closes f.
func (f fence) isClosedBy(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(f.sign) && strings.Trim(line, f.sign[:1]) == ""
}

func diffRole(line string) ink.Role {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
		return ink.Dim
	case strings.HasPrefix(line, "+"):
		return ink.Good
	case strings.HasPrefix(line, "-"):
		return ink.Bad
	}
	return ink.Plain
}
