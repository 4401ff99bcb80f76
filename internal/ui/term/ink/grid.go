package ink

import (
	"strings"
	"unicode"

	"coder/internal/ui/cells"
)

// Align is the alignment of a column's text.
type Align uint8

// Alignments.
const (
	Left Align = iota
	Centre
	Right
)

// Cell is one line of text.
type Cell []Span

// Grid is a table with a head. Rows may be ragged.
type Grid struct {
	Head  []Cell
	Rows  [][]Cell
	Align []Align
	ASCII bool // draw the rule with ASCII only
	// ScreenReader is set for a screen reader: a grid that does not fit becomes a list immediately.
	ScreenReader bool
}

// gap is the text between two columns.
const gap = "  "

// Draw draws g in columns and returns their widths. If it does not fit into width, the widest columns
// wrap between words; if that leaves too little room, each cell gets a line after its heading. Nothing
// is cut off. A width of 0 or less always fits. No line ends in spaces; the last has no newline.
func (g Grid) Draw(width int, put SpanFunc) []int {
	widths := g.Widths()
	if width > 0 && !g.squeeze(widths, width) {
		g.DrawList(width, put)
		return widths
	}
	g.drawRow(g.Head, widths, true, put)
	if len(g.Head) > 0 {
		put(Style{}, "\n")
		bar := "─"
		if g.ASCII {
			bar = "-"
		}
		var parts []string
		for _, w := range widths {
			parts = append(parts, strings.Repeat(bar, max(1, w)))
		}
		put(Style{Role: Dim}, strings.Join(parts, gap))
	}
	g.DrawRows(widths, len(g.Head) == 0, put)
	return widths
}

// DrawList draws each row as a list of its cells, each after its heading.
func (g Grid) DrawList(width int, put SpanFunc) {
	if len(g.Rows) == 0 {
		g.drawRow(g.Head, make([]int, len(g.Head)), true, put)
	}
	for i, r := range g.Rows {
		if i > 0 {
			put(Style{}, "\n\n")
		}
		g.drawRecord(r, width, put)
	}
}

// minColumn is the least width of a squeezed column.
const minColumn = 12

// squeeze narrows the widest columns until all fit into width, and reports whether they do. It breaks no
// word.
func (g Grid) squeeze(widths []int, width int) bool {
	room := width - max(0, len(widths)-1)*len(gap)
	if g.ScreenReader {
		return Shrink(widths, widths, room)
	}
	least := make([]int, len(widths))
	for _, r := range append([][]Cell{g.Head}, g.Rows...) {
		for i, c := range r {
			least[i] = max(least[i], c.longestPart(), min(widths[i], minColumn))
		}
	}
	return Shrink(widths, least, room)
}

// Shrink narrows the widest column that is above its minimum until the sum fits into room, and reports
// whether it does.
func Shrink(widths, least []int, room int) bool {
	over := -room
	for _, w := range widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// longestPart returns the width of the widest part that is not broken.
func (c Cell) longestPart() (n int) {
	var text strings.Builder
	for _, s := range c {
		text.WriteString(s.Text)
	}
	for word := range strings.FieldsSeq(text.String()) {
		for word != "" {
			i := BreakIndex(word)
			if strings.Contains(word, "/") { // a path
				i = len(word)
			}
			n = max(n, Width(word[:i]))
			word = word[i:]
		}
	}
	return n
}

// DrawRows draws only the rows, in columns of these widths; first means that nothing is above them.
func (g Grid) DrawRows(widths []int, first bool, put SpanFunc) {
	for _, r := range g.Rows {
		if !first {
			put(Style{}, "\n")
		}
		first = false
		g.drawRow(r, widths, false, put)
	}
}

// Widths returns the widths of the columns.
func (g Grid) Widths() []int {
	var widths []int
	for _, r := range append([][]Cell{g.Head}, g.Rows...) {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], c.width())
		}
	}
	return widths
}

func (c Cell) width() int {
	n := 0
	for _, s := range c {
		n += Width(s.Text)
	}
	return n
}

// Width returns the columns that s takes on a terminal.
func Width(s string) int { return cells.Columns(s) }

// drawRow draws one row, with as many lines as its tallest cell.
func (g Grid) drawRow(cells []Cell, widths []int, head bool, put SpanFunc) {
	var lines [][]Cell
	for i, c := range cells {
		wide := 0
		if i < len(widths) {
			wide = widths[i]
		}
		for n, line := range c.wrapLines(wide) {
			if n == len(lines) {
				lines = append(lines, make([]Cell, len(cells)))
			}
			lines[n][i] = line
		}
	}
	for n, line := range lines {
		if n > 0 {
			put(Style{}, "\n")
		}
		g.drawLine(line, widths, head, put)
	}
}

// wrapLines wraps a cell to width.
func (c Cell) wrapLines(width int) []Cell {
	if width <= 0 || c.width() <= width {
		return []Cell{c}
	}
	all := []Cell{nil}
	put := func(l Style, text string) {
		for i, part := range strings.Split(text, "\n") {
			if i > 0 {
				all = append(all, nil)
			}
			if part != "" {
				all[len(all)-1] = append(all[len(all)-1], Span{l, part})
			}
		}
	}
	w := Wrap{Put: put, Width: width}
	for _, s := range c {
		w.Write(s.Style, s.Text)
	}
	w.End()
	return all
}

func (g Grid) drawLine(cells []Cell, widths []int, head bool, put SpanFunc) {
	last := len(cells) - 1
	for last >= 0 && cells[last].width() == 0 {
		last--
	}
	for i, c := range cells[:last+1] {
		wide := 0
		if i < len(widths) {
			wide = widths[i]
		}
		before, after := g.pad(i, wide-c.width())
		put(Style{}, strings.Repeat(" ", before))
		c.draw(head, put)
		if i < last {
			put(Style{}, strings.Repeat(" ", after)+gap)
		}
	}
}

func (c Cell) draw(bold bool, put SpanFunc) {
	for _, s := range c {
		s.Style.Bold = s.Style.Bold || bold
		put(s.Style, s.Text)
	}
}

func (g Grid) pad(column, blank int) (before, after int) {
	blank = max(0, blank)
	switch {
	case column >= len(g.Align):
	case g.Align[column] == Right:
		return blank, 0
	case g.Align[column] == Centre:
		return blank / 2, blank - blank/2
	}
	return 0, blank
}

// HeadingSeparator returns the separator between a heading and its cell, full-width after Chinese.
func HeadingSeparator(head string) string {
	if strings.ContainsFunc(head, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return "："
	}
	return ": "
}

// drawRecord draws a row as a list: each cell on a line after its heading.
func (g Grid) drawRecord(r []Cell, width int, put SpanFunc) {
	var named []Cell
	for i, c := range r {
		if c.width() == 0 {
			continue
		}
		var n Cell
		if i < len(g.Head) && g.Head[i].width() > 0 {
			for _, s := range g.Head[i] {
				s.Style.Bold = true
				n = append(n, s)
			}
			n = append(n, Span{Text: HeadingSeparator(spansText(n))})
		}
		named = append(named, append(n, c...))
	}
	for i, c := range named {
		if i > 0 {
			put(Style{}, "\n")
		}
		w := Wrap{Put: put, Width: width, Indent: len(gap)}
		for _, s := range c {
			w.Write(s.Style, s.Text)
		}
		w.End()
	}
}
