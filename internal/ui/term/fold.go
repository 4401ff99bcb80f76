package term

import (
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

// How lines that are too long are broken: how many columns must be left to the
// last cell of a row for it to go on below itself, and how far what does not
// fit is set in.
const (
	minColumn = 24
	setIn     = 4
)

// fold breaks a line of the program's own that is too long for the terminal,
// between words. The last cell of a row goes on below itself. Where there is
// no room for that it stands on a line of its own; where the others do not fit
// either, so does each that does not.
func fold(l display.Line, width int) string {
	whole := l.String(ink.Width)
	if width <= 0 || ink.Width(whole) <= width {
		return whole
	}
	for i := len(l.Cells) - 1; i >= 0; i-- {
		if l.Cells[i] == "" {
			l.Cells, l.Columns = slices.Delete(slices.Clone(l.Cells), i, i+1), slices.Delete(slices.Clone(l.Columns), i, i+1)
		}
	}
	s := lineBuilder{width: width}
	last := len(l.Cells) - 1
	at, text := l.Columns[last], l.Cells[last]
	before := display.Line{Cells: l.Cells[:last], Columns: l.Columns}.String(ink.Width)
	if last > 0 && width-at >= max(minColumn, longest(text)) {
		s.put(before)
		s.setIn(at - s.column)
		s.words(text, at)
	} else if last > 1 && ink.Width(before) <= width {
		s.put(before)
		s.newline(l.Columns[0] + setIn)
		s.words(text, l.Columns[0]+setIn)
	} else {
		lead := l.Columns[0]
		if width-lead < minColumn { // little room would be left beside it
			lead = min(lead, setIn)
		}
		s.cells(l.Cells, lead)
	}
	return s.b.String()
}

// lineBuilder is what a line becomes.
type lineBuilder struct {
	b      strings.Builder
	width  int
	column int // of the cursor
}

func (s *lineBuilder) put(text string) {
	s.b.WriteString(text)
	s.column += ink.Width(text)
}

func (s *lineBuilder) setIn(n int) { s.put(strings.Repeat(" ", n)) }

func (s *lineBuilder) newline(indent int) {
	s.b.WriteByte('\n')
	s.column = 0
	s.setIn(indent)
}

// cells puts the cells of a row one after the other. The second of two, which
// says what the first is, stands below it.
func (s *lineBuilder) cells(all []string, lead int) {
	s.setIn(lead)
	if len(all) == 1 {
		s.words(all[0], lead)
		return
	}
	indent := lead + setIn
	for i, cell := range all {
		switch {
		case i == 0:
		case len(all) == 2, s.column+2+ink.Width(cell) > s.width:
			s.newline(indent)
		default:
			s.setIn(2)
		}
		s.words(cell, indent)
	}
}

// words puts text; what does not fit goes on below, set in so far.
func (s *lineBuilder) words(text string, indent int) {
	for i, p := range unbroken(text) {
		switch {
		case i > 0 && s.column+p.gap+ink.Width(p.text) > s.width && s.column > indent:
			s.newline(indent)
		case i > 0:
			s.setIn(p.gap)
		}
		s.word(p.text, indent)
	}
}

// word puts a part of a text that is not broken but where it is wider than a line and
// goes on set in; at the edge it is left to the terminal, so that it can be copied whole.
func (s *lineBuilder) word(text string, indent int) {
	wide := ink.Width(text)
	for indent > 0 && indent < s.width && s.column+wide > s.width {
		n := ink.Fit(text, s.width-s.column)
		if n == len(text) {
			break
		}
		wide -= ink.Width(text[:n])
		s.put(text[:n])
		s.newline(indent)
		text = text[n:]
	}
	s.put(text)
}

// piece is a part of a text that is not broken, and how many blanks stand
// before it.
type piece struct {
	text string
	gap  int
}

// unbroken parts text at blanks and between Chinese characters.
func unbroken(text string) (all []piece) {
	for word := range strings.FieldsSeq(text) {
		for gap := 1; word != ""; gap = 0 {
			n := ink.Break(word)
			all = append(all, piece{word[:n], gap})
			word = word[n:]
		}
	}
	return all
}

// longest is the width of the widest part of text that is not broken.
func longest(text string) (n int) {
	for _, p := range unbroken(text) {
		n = max(n, ink.Width(p.text))
	}
	return n
}
