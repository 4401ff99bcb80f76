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

// Stream reads one text. Set Put, then call Write and in the end End.
//
// The text must be whole runes without control characters other than tab and
// line end.
type Stream struct {
	Put    ink.Put
	Width  func() int // of the terminal; nil: wide enough
	Source bool       // there are no looks: leave all marks in place
	ASCII  bool       // draw with ASCII only
	Spoken bool       // somebody listens: a table that does not fit is a list

	line  string   // of the current line, what was not put yet
	begun bool     // the start of the line was put; what follows is inline
	look  ink.Look // of the line
	prev  byte     // what stands before line

	ends  int  // line ends owed
	wrote bool // something was put

	fence  fence
	code   bool // the line before was code that is set in
	hidden bool // the line is a fence, which is not put
	item   int  // the column where the words of the item begin that lines may belong to
	table  table
	wrap   ink.Wrap // of a line of words
}

// Limits of what is held back, in bytes.
const (
	spanBytes = 512     // of a span whose end has not come
	headBytes = 256     // of a line whose kind is not known
	codeBytes = 4096    // of a line of code
	rowBytes  = 8 << 10 // of a row of a table
)

// Write takes the next piece.
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

// End puts what was held back. The stream can then be used anew.
func (s *Stream) End() {
	if s.line != "" {
		s.advance(true)
	}
	s.wrap.End()
	s.endTable()
	*s = Stream{Put: s.Put, Width: s.Width, Source: s.Source, ASCII: s.ASCII, Spoken: s.Spoken}
}

// advance puts as much of the line as is certain; whole says that it is all.
func (s *Stream) advance(whole bool) {
	switch {
	case s.begun && (s.fence.open() || s.code):
		s.rest(ink.Look{Role: ink.Plain})
	case s.begun:
		s.inline(whole)
	case s.fence.open():
		margin, inside := s.fence.within(s.line)
		switch {
		case !inside && (whole || strings.TrimLeft(s.line, " ") != ""): // the quote has ended, and its code
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

// Anew has the line that is arriving go on in one of its own: something stands below what
// was put of it. It returns how far that is to be set in.
func (s *Stream) Anew() (indent int) { return s.wrap.Anew() }

// Owes reports whether the line that was put last is whole, though its end was
// not put yet.
func (s *Stream) Owes() bool { return s.wrote && s.ends > 0 }

// Between reports whether what was put is whole paragraphs and blocks of code.
func (s *Stream) Between() bool { return s.Owes() && !s.fence.open() }

// Held is what has come and was not put yet: the word of which it is not known where it ends,
// the line of code, the row of a table. Of what is wider than the screen it is the end.
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
		case line == "" && s.Rows() != nil: // they are seen otherwise
			return nil
		case line == "":
			line = s.table.rows[len(s.table.rows)-1]
		}
	default: // a few signs that may become anything
		return nil
	}
	return []ink.Span{{}, {Look: look, Text: s.end(line)}} // the blanks before it stay
}

// end is the end of a line as typed, as much as there is room for.
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

// put puts text after the line ends that are owed.
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

// rest puts all there is of the line.
func (s *Stream) rest(l ink.Look) {
	s.put(l, s.line)
	s.line = ""
}

// fence is an open block of code.
type fence struct {
	sign   string // what opened it; its end is as long or longer
	quotes int    // it stands in so many
	diff   bool
	syntax syntax.Scanner
}

func (f fence) open() bool { return f.sign != "" }

// within is how much of a line stands before its code, and whether it is still in the quote
// that the code stands in.
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

// closedBy reports whether line ends f.
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
