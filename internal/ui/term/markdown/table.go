package markdown

import (
	"strings"

	"coder/internal/ui/term/ink"
)

// Limits of a table held until its end; later rows are drawn one by one, in columns of the same widths.
const (
	tableRows  = 200
	tableBytes = 32 << 10
)

// usualWidth is assumed for a terminal of unknown width.
const usualWidth = 80

// table is rows that may turn out to be a table.
type table struct {
	rows   []string // as typed; the second is the rule below the heading
	size   int
	owed   int // newlines pending before the first row
	align  []ink.Align
	widths []int  // column widths, once the first part was drawn
	margin string // prefix of each row: spaces, quote signs
}

func (t table) empty() bool { return len(t.rows) == 0 && t.widths == nil }

// goesOn reports whether a row with this margin belongs to the table: it is in the same quote.
func (t table) goesOn(margin string) bool {
	return t.empty() || strings.Count(t.margin, ">") == strings.Count(margin, ">")
}

// beside returns a Put that draws after a margin.
func (s *Stream) beside(margin string) ink.Put {
	if margin == "" {
		return s.put
	}
	begun := false
	return func(l ink.Look, text string) {
		for i, line := range strings.Split(text, "\n") {
			if i > 0 {
				s.put(ink.Look{}, "\n")
				begun = false
			}
			if line == "" {
				continue
			}
			if !begun {
				s.put(ink.Look{Role: ink.Dim}, margin)
			}
			begun = true
			s.put(l, line)
		}
	}
}

// addRow adds a line that begins with a bar.
func (s *Stream) addRow(line string) {
	if s.table.widths != nil {
		g := ink.Grid{Rows: [][]ink.Cell{s.cells(line)}, Align: s.table.align}
		g.More(s.table.widths, true, s.beside(s.table.margin))
		return
	}
	if len(s.table.rows) == 0 {
		s.table.owed = s.ends
	}
	s.table.rows = append(s.table.rows, line)
	s.table.size += len(line)
	if len(s.table.rows) == 2 {
		if s.table.align = readRule(line); s.table.align == nil { // the first row is not a heading; this one may be
			after := s.ends
			s.asTyped(s.table.rows[0])
			s.table = table{rows: []string{line}, size: len(line), owed: after, margin: s.table.margin}
		}
	}
	s.ends = 0
	if t := s.table; len(t.rows) > 2 && (len(t.rows) > tableRows || t.size > tableBytes) {
		s.table = table{widths: s.drawTable(), align: t.align, margin: t.margin}
	}
}

// Rows returns the complete rows of the arriving table, as typed, if there is more than one.
func (s *Stream) Rows() []string {
	if len(s.table.rows) < 2 && s.line == "" {
		return nil
	}
	return s.table.rows
}

// Preview draws the arriving table as if it ended here, on a line below the drawn text.
func (s *Stream) Preview(put ink.Put) {
	so := Stream{Put: put, Width: s.Width, Source: s.Source, ASCII: s.ASCII, Spoken: s.Spoken, table: s.table}
	so.table.owed = 0
	if s.wrote && s.table.owed > 1 {
		put(ink.Look{}, strings.Repeat("\n", s.table.owed-1))
	}
	if len(s.table.rows) == 1 { // it may not be a table
		put(ink.Look{Role: ink.Dim}, s.end(s.table.rows[0]))
		return
	}
	so.drawTable()
}

// endTable draws the held rows, if any.
func (s *Stream) endTable() {
	after := s.ends
	switch t := s.table; {
	case len(t.rows) == 1:
		s.asTyped(t.rows[0])
	case len(t.rows) > 1:
		s.drawTable()
	}
	s.ends, s.table = after, table{}
}

// asTyped draws a row that is not part of a table.
func (s *Stream) asTyped(line string) {
	s.ends = s.table.owed
	if s.put(ink.Look{Role: ink.Dim}, s.table.margin); s.Source {
		s.put(ink.Look{}, line)
		return
	}
	inliner{put: s.put, whole: true}.read(line, 0, ink.Look{}, 0)
}

// drawTable draws all held rows and returns the column widths.
func (s *Stream) drawTable() []int {
	t := s.table
	s.ends = t.owed
	g := ink.Grid{Head: s.cells(t.rows[0]), Align: t.align, ASCII: s.ASCII, Spoken: s.Spoken}
	for _, r := range t.rows[2:] {
		g.Rows = append(g.Rows, s.cells(r))
	}
	width, put := 0, s.beside(t.margin)
	if s.Width != nil && s.Width() > 0 {
		width = max(1, s.Width()-ink.Width(t.margin))
	}
	widths := g.Widths()
	wide := 0
	for _, w := range widths {
		wide += w
	}
	if width == 0 && s.Source && wide > usualWidth { // possibly lines for a screen reader
		g.List(0, put)
	} else {
		widths = g.Draw(width, put)
	}
	s.ends = 0
	return widths
}

// brokenLines replaces line breaks within a cell, which stays on one line.
var brokenLines = strings.NewReplacer("<br>", " / ", "<br/>", " / ", "<br />", " / ")

// cells parses the cells of a row.
func (s *Stream) cells(line string) []ink.Cell {
	var cells []ink.Cell
	for _, text := range split(line) {
		var c ink.Cell
		text = brokenLines.Replace(strings.NewReplacer("\t", " ", `\|`, "|").Replace(text))
		if s.Source {
			c = append(c, ink.Span{Text: text})
		} else {
			put := func(l ink.Look, text string) { c = append(c, ink.Span{Look: l, Text: text}) }
			inliner{put: put, whole: true}.read(text, 0, ink.Look{}, 0)
		}
		cells = append(cells, c)
	}
	return cells
}

// split splits a row at its bars, except those after a backslash or within ticks.
func split(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	var cells []string
	for from, i := 0, 0; ; {
		switch {
		case i >= len(line):
			if last := strings.TrimSpace(line[from:]); last != "" {
				cells = append(cells, last)
			}
			return cells
		case line[i] == '\\':
			i = min(i+2, len(line))
		case line[i] == '`':
			i = max(skipTicks(line, i), i+run(line[i:]))
		case line[i] == '|':
			cells = append(cells, strings.TrimSpace(line[from:i]))
			i++
			from = i
		default:
			i++
		}
	}
}

// readRule parses the row below the heading; nil if it is not a rule.
func readRule(line string) []ink.Align {
	var align []ink.Align
	for _, c := range split(line) {
		dashes := strings.Trim(c, ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return nil
		}
		switch left, right := strings.HasPrefix(c, ":"), strings.HasSuffix(c, ":"); {
		case left && right:
			align = append(align, ink.Centre)
		case right:
			align = append(align, ink.Right)
		default:
			align = append(align, ink.Left)
		}
	}
	return align
}
