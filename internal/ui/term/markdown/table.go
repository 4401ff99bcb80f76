package markdown

import (
	"strings"

	"coder/internal/ui/term/ink"
)

// Limits of a table held until its end; later rows are drawn one by one, in columns of the same widths.
const (
	maxTableRows  = 200
	maxTableBytes = 32 << 10
)

// defaultWidth is assumed for a terminal of unknown width.
const defaultWidth = 80

// table is rows that may turn out to be a table.
type table struct {
	rows            []string // as typed; the second is the rule below the heading
	size            int
	pendingNewlines int // newlines pending before the first row
	align           []ink.Align
	widths          []int  // column widths, once the first part was drawn
	margin          string // prefix of each row: spaces, quote signs
}

func (t table) isEmpty() bool { return len(t.rows) == 0 && t.widths == nil }

// continues reports whether a row with this margin belongs to the table: it is in the same quote.
func (t table) continues(margin string) bool {
	return t.isEmpty() || strings.Count(t.margin, ">") == strings.Count(margin, ">")
}

// withMargin returns a Put that draws after a margin.
func (s *Stream) withMargin(margin string) ink.SpanFunc {
	if margin == "" {
		return s.draw
	}
	begun := false
	return func(l ink.Style, text string) {
		for i, line := range strings.Split(text, "\n") {
			if i > 0 {
				s.draw(ink.Style{}, "\n")
				begun = false
			}
			if line == "" {
				continue
			}
			if !begun {
				s.draw(ink.Style{Role: ink.Dim}, margin)
			}
			begun = true
			s.draw(l, line)
		}
	}
}

// addRow adds a line that begins with a bar.
func (s *Stream) addRow(line string) {
	if s.table.widths != nil {
		g := ink.Grid{Rows: [][]ink.Cell{s.parseCells(line)}, Align: s.table.align}
		g.DrawRows(s.table.widths, true, s.withMargin(s.table.margin))
		return
	}
	if len(s.table.rows) == 0 {
		s.table.pendingNewlines = s.pendingNewlines
	}
	s.table.rows = append(s.table.rows, line)
	s.table.size += len(line)
	if len(s.table.rows) == 2 {
		if s.table.align = parseRule(line); s.table.align == nil { // the first row is not a heading; this one may be
			after := s.pendingNewlines
			s.drawRaw(s.table.rows[0])
			s.table = table{rows: []string{line}, size: len(line), pendingNewlines: after, margin: s.table.margin}
		}
	}
	s.pendingNewlines = 0
	if t := s.table; len(t.rows) > 2 && (len(t.rows) > maxTableRows || t.size > maxTableBytes) {
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
func (s *Stream) Preview(put ink.SpanFunc) {
	so := Stream{Put: put, Width: s.Width, KeepMarks: s.KeepMarks, ASCII: s.ASCII, ScreenReader: s.ScreenReader,
		table: s.table}
	so.table.pendingNewlines = 0
	if s.hasOutput && s.table.pendingNewlines > 1 {
		put(ink.Style{}, strings.Repeat("\n", s.table.pendingNewlines-1))
	}
	if len(s.table.rows) == 1 { // it may not be a table
		put(ink.Style{Role: ink.Dim}, s.fittingEnd(s.table.rows[0]))
		return
	}
	so.drawTable()
}

// endTable draws the held rows, if any.
func (s *Stream) endTable() {
	after := s.pendingNewlines
	switch t := s.table; {
	case len(t.rows) == 1:
		s.drawRaw(t.rows[0])
	case len(t.rows) > 1:
		s.drawTable()
	}
	s.pendingNewlines, s.table = after, table{}
}

// drawRaw draws a row that is not part of a table.
func (s *Stream) drawRaw(line string) {
	s.pendingNewlines = s.table.pendingNewlines
	if s.draw(ink.Style{Role: ink.Dim}, s.table.margin); s.KeepMarks {
		s.draw(ink.Style{}, line)
		return
	}
	inliner{put: s.draw, complete: true}.parse(line, 0, ink.Style{}, 0)
}

// drawTable draws all held rows and returns the column widths.
func (s *Stream) drawTable() []int {
	t := s.table
	s.pendingNewlines = t.pendingNewlines
	g := ink.Grid{Head: s.parseCells(t.rows[0]), Align: t.align, ASCII: s.ASCII, ScreenReader: s.ScreenReader}
	for _, r := range t.rows[2:] {
		g.Rows = append(g.Rows, s.parseCells(r))
	}
	width, put := 0, s.withMargin(t.margin)
	if s.Width != nil && s.Width() > 0 {
		width = max(1, s.Width()-ink.Width(t.margin))
	}
	widths := g.Widths()
	wide := 0
	for _, w := range widths {
		wide += w
	}
	if width == 0 && s.KeepMarks && wide > defaultWidth { // possibly lines for a screen reader
		g.DrawList(0, put)
	} else {
		widths = g.Draw(width, put)
	}
	s.pendingNewlines = 0
	return widths
}

// lineBreakReplacer replaces line breaks within a cell, which stays on one line.
var lineBreakReplacer = strings.NewReplacer("<br>", " / ", "<br/>", " / ", "<br />", " / ")

// parseCells parses the cells of a row.
func (s *Stream) parseCells(line string) []ink.Cell {
	var cells []ink.Cell
	for _, text := range splitRow(line) {
		var c ink.Cell
		text = lineBreakReplacer.Replace(strings.NewReplacer("\t", " ", `\|`, "|").Replace(text))
		if s.KeepMarks {
			c = append(c, ink.Span{Text: text})
		} else {
			put := func(l ink.Style, text string) { c = append(c, ink.Span{Style: l, Text: text}) }
			inliner{put: put, complete: true}.parse(text, 0, ink.Style{}, 0)
		}
		cells = append(cells, c)
	}
	return cells
}

// splitRow splits a row at its bars, except those after a backslash or within ticks.
func splitRow(line string) []string {
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
			i = max(skipCode(line, i), i+runLength(line[i:]))
		case line[i] == '|':
			cells = append(cells, strings.TrimSpace(line[from:i]))
			i++
			from = i
		default:
			i++
		}
	}
}

// parseRule parses the row below the heading; nil if it is not a rule.
func parseRule(line string) []ink.Align {
	var align []ink.Align
	for _, c := range splitRow(line) {
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
