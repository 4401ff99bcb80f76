package term

import (
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

// Layout of lines that are too long: the columns that the last cell of a row needs to wrap within
// itself, and the indent of wrapped text.
const (
	minColumn  = 24
	hangIndent = 4
)

// foldLine wraps one of coder's own lines between words. The last cell of a row wraps within its column.
// Without enough room there it gets its own line; if the other cells do not fit either, so does each
// that does not.
func foldLine(l display.TableLine, width int) string {
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
	before := display.TableLine{Cells: l.Cells[:last], Columns: l.Columns}.String(ink.Width)
	if last > 0 && width-at >= max(minColumn, longestPiece(text)) {
		s.write(before)
		s.indentBy(at - s.column)
		s.writeWords(text, at)
	} else if last > 1 && ink.Width(before) <= width {
		s.write(before)
		s.newline(l.Columns[0] + hangIndent)
		s.writeWords(text, l.Columns[0]+hangIndent)
	} else {
		lead := l.Columns[0]
		if width-lead < minColumn { // little room would remain beside it
			lead = min(lead, hangIndent)
		}
		s.writeCells(l.Cells, lead)
	}
	return s.b.String()
}

// lineBuilder builds the wrapped line.
type lineBuilder struct {
	b      strings.Builder
	width  int
	column int // of the cursor
}

func (s *lineBuilder) write(text string) {
	s.b.WriteString(text)
	s.column += ink.Width(text)
}

func (s *lineBuilder) indentBy(n int) { s.write(strings.Repeat(" ", n)) }

func (s *lineBuilder) newline(indent int) {
	s.b.WriteByte('\n')
	s.column = 0
	s.indentBy(indent)
}

// writeCells draws a row's cells side by side. If there are two, the second, which explains the first, may go
// below it.
func (s *lineBuilder) writeCells(all []string, lead int) {
	s.indentBy(lead)
	if len(all) == 1 {
		s.writeWords(all[0], lead)
		return
	}
	indent := lead + hangIndent
	for i, cell := range all {
		switch {
		case i == 0:
		case len(all) == 2, s.column+2+ink.Width(cell) > s.width:
			s.newline(indent)
		default:
			s.indentBy(2)
		}
		s.writeWords(cell, indent)
	}
}

// writeWords draws text, wrapped with this indent.
func (s *lineBuilder) writeWords(text string, indent int) {
	for i, p := range splitPieces(text) {
		switch {
		case i > 0 && s.column+p.gap+ink.Width(p.text) > s.width && s.column > indent:
			s.newline(indent)
		case i > 0:
			s.indentBy(p.gap)
		}
		s.writeWord(p.text, indent)
	}
}

// writeWord draws an unbroken part of a text. One wider than a line is broken if it continues indented; at
// the left edge the terminal wraps it, so that it can be copied whole.
func (s *lineBuilder) writeWord(text string, indent int) {
	wide := ink.Width(text)
	for indent > 0 && indent < s.width && s.column+wide > s.width {
		n := ink.FitLen(text, s.width-s.column)
		if n == len(text) {
			break
		}
		wide -= ink.Width(text[:n])
		s.write(text[:n])
		s.newline(indent)
		text = text[n:]
	}
	s.write(text)
}

// piece is an unbroken part of a text, and the number of spaces before it.
type piece struct {
	text string
	gap  int
}

// splitPieces splits text at spaces and between Chinese characters.
func splitPieces(text string) (all []piece) {
	for word := range strings.FieldsSeq(text) {
		for gap := 1; word != ""; gap = 0 {
			n := ink.BreakIndex(word)
			all = append(all, piece{word[:n], gap})
			word = word[n:]
		}
	}
	return all
}

// longestPiece returns the width of the widest unbroken part of text.
func longestPiece(text string) (n int) {
	for _, p := range splitPieces(text) {
		n = max(n, ink.Width(p.text))
	}
	return n
}
