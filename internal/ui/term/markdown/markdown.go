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
	Put    ink.Put
	Width  func() int // of the terminal; nil: unlimited
	Source bool       // no styles: leave all marks in place
	ASCII  bool       // draw with ASCII only
	Spoken bool       // for a screen reader: a table that does not fit is a list

	line  string   // the undrawn part of the current line
	begun bool     // the start of the line was drawn; the rest is inline
	look  ink.Look // style of the line
	prev  byte     // the byte before line

	ends  int  // newlines pending
	wrote bool // something was drawn

	fence  fence
	code   bool // the line before was indented code
	hidden bool // the line is a fence, which is not put
	item   int  // start column of the current item's words
	table  table
	wrap   ink.Wrap // for prose
}

// Limits of what is held back, in bytes.
const (
	spanBytes = 512     // an unfinished span
	headBytes = 256     // a line of unknown kind
	codeBytes = 4096    // a line of code
	rowBytes  = 8 << 10 // a table row
)

// Write adds the next piece.
func (s *Stream) Write(text string) {
	if s.Width != nil && s.begun {
		s.wrap.Resize(s.Width())
	}
	for text != "" {
		head, rest, whole := strings.Cut(text, "\n")
		s.line += head
		s.advance(whole)
		if whole {
			s.wrap.End()
			if s.hidden { // a blank line stands for it
				s.hidden, s.ends = false, max(s.ends, 2)
			} else {
				s.ends++
			}
			if !s.fence.open() {
				s.ends = min(s.ends, 2)
			}
			s.line, s.begun, s.look, s.prev = "", false, ink.Look{}, 0
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
	*s = Stream{Put: s.Put, Width: s.Width, Source: s.Source, ASCII: s.ASCII, Spoken: s.Spoken}
}

// advance draws as much of the line as is certain; whole means that the line is complete.
func (s *Stream) advance(whole bool) {
	switch {
	case s.begun && (s.fence.open() || s.code):
		s.rest(ink.Look{Role: ink.Plain})
	case s.begun:
		s.inline(whole)
	case s.fence.open():
		margin, inside := s.fence.within(s.line)
		switch {
		case !inside && (whole || strings.TrimLeft(s.line, " ") != ""): // the quote has ended, and its code with it
			s.fence = fence{}
			s.advance(whole)
			return
		case len(s.line) > codeBytes:
			s.begun = true
			s.rest(ink.Look{})
		case !whole:
		case s.fence.closedBy(s.line[margin:]):
			s.fenced()
			s.fence = fence{}
		default:
			s.put(ink.Look{Role: ink.Dim}, s.line[:margin])
			if s.line = s.line[margin:]; s.fence.diff {
				s.rest(ink.Look{Role: diffRole(s.line)})
				return
			}
			s.fence.syntax.Line(s.line, s.put)
			s.line = ""
		}
	case s.isCode():
		s.endTable()
		if s.code = true; whole || len(s.line) > codeBytes {
			s.begun = true
			s.rest(ink.Look{})
		}
	default:
		k, n := classify(s.line, whole)
		if k == unsure {
			return
		}
		s.place(k, n)
		if k != row || !s.table.goesOn(s.line[:n]) {
			s.endTable()
		}
		switch k {
		case blank:
			s.line = ""
		case row:
			if whole {
				if s.table.empty() {
					s.table.margin = strings.ReplaceAll(s.line[:n], "\t", "    ")
				}
				s.addRow(s.line[n:])
				s.line = ""
			}
		case rule:
			s.rest(ink.Look{Role: ink.Dim})
		case opening:
			quotes := strings.Count(s.line[:n], ">")
			text := strings.TrimSpace(s.line[n:])
			sign := text[:run(text)]
			lang := strings.TrimSpace(text[len(sign):])
			s.fence = fence{sign: sign, quotes: quotes, diff: lang == "diff" || lang == "patch", syntax: syntax.For(lang)}
			s.fenced()
		case heading:
			s.look.Bold = true
			s.start(n, s.look, whole)
		case quote:
			s.start(n, ink.Look{Role: ink.Dim}, whole)
		case prose, bullet, unsure:
			s.start(n, s.look, whole)
		}
	}
}

// fenced puts the fence that the line is, or hides it where colours tell code from words.
func (s *Stream) fenced() {
	coloured := !s.Source && !s.Spoken && (s.fence.diff || s.fence.syntax.Known())
	if !coloured || s.fence.quotes > 0 {
		s.rest(ink.Look{Role: ink.Dim})
		return
	}
	s.line, s.hidden = "", true
}

// Anew continues the arriving line on a new line, because other output is below it. It returns the
// indent to use.
func (s *Stream) Anew() (indent int) { return s.wrap.Anew() }

// Owes reports whether the last line drawn is complete except for its newline.
func (s *Stream) Owes() bool { return s.wrote && s.ends > 0 }

// Between reports whether only whole paragraphs and blocks of code have been drawn.
func (s *Stream) Between() bool { return s.Owes() && !s.fence.open() }

// Held returns the text not drawn yet: an unfinished word, line of code or table row. If it is wider
// than the screen, it returns the end.
func (s *Stream) Held() []ink.Span {
	if s.begun || s.line == "" && len(s.table.rows) == 0 {
		return s.wrap.Held()
	}
	line, look := s.line, ink.Look{}
	switch {
	case s.fence.open() || s.isCode():
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
	return []ink.Span{{}, {Look: look, Text: s.end(line)}} // keeps the spaces before it
}

// end returns the end of a line as typed, as much as fits.
func (s *Stream) end(line string) string {
	room := 79
	if s.Width != nil && s.Width() > 0 {
		room = s.Width() - 1
	}
	dots := "…"
	if s.ASCII {
		dots = "..."
	}
	return ink.End(strings.ReplaceAll(line, "\t", "    "), room, dots)
}

// put draws text after the pending newlines.
func (s *Stream) put(l ink.Look, text string) {
	if text == "" {
		return
	}
	if s.ends > 0 && s.wrote {
		s.Put(ink.Look{}, strings.Repeat("\n", s.ends))
	}
	s.ends, s.wrote = 0, true
	s.Put(l, text)
}

// rest draws the rest of the line.
func (s *Stream) rest(l ink.Look) {
	s.put(l, s.line)
	s.line = ""
}

// fence is an open block of code.
type fence struct {
	sign   string // its opening sign; the end is at least as long
	quotes int    // number of quotes around it
	diff   bool
	syntax syntax.Scanner
}

func (f fence) open() bool { return f.sign != "" }

// within returns the length of the prefix before a line's code, and whether the line is still in the
// code's quote.
func (f fence) within(line string) (margin int, ok bool) {
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

// closedBy reports whether line closes f.
func (f fence) closedBy(line string) bool {
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
