package ink

import (
	"strings"
	"unicode"

	"coder/internal/ui/cells"
)

// Align is where the text of a column stands.
type Align uint8

// The three ways.
const (
	Left Align = iota
	Centre
	Right
)

// A Cell is one line of text.
type Cell []Span

// Grid is a table with a head. Rows may be ragged.
type Grid struct {
	Head  []Cell
	Rows  [][]Cell
	Align []Align
	ASCII bool // draw the rule with ASCII only
	// Spoken says that somebody listens: what does not fit is a list at once.
	Spoken bool
}

// gap stands between two columns.
const gap = "  "

// Draw puts g in columns, and returns how wide they are. Where it does not fit
// into width the widest columns are broken between words; where that leaves too
// little room, each cell has a line with the head before it. Nothing is cut off.
// A width of zero or less always fits. No line ends in blanks; the last has no
// line end.
func (g Grid) Draw(width int, put Put) []int {
	widths := g.Widths()
	if width > 0 && !g.squeeze(widths, width) {
		g.List(width, put)
		return widths
	}
	g.row(g.Head, widths, true, put)
	if len(g.Head) > 0 {
		put(Look{}, "\n")
		bar := "─"
		if g.ASCII {
			bar = "-"
		}
		var parts []string
		for _, w := range widths {
			parts = append(parts, strings.Repeat(bar, max(1, w)))
		}
		put(Look{Role: Dim}, strings.Join(parts, gap))
	}
	g.More(widths, len(g.Head) == 0, put)
	return widths
}

// List puts each row as a list of its cells, each with the head before it.
func (g Grid) List(width int, put Put) {
	if len(g.Rows) == 0 {
		g.row(g.Head, make([]int, len(g.Head)), true, put)
	}
	for i, r := range g.Rows {
		if i > 0 {
			put(Look{}, "\n\n")
		}
		g.record(r, width, put)
	}
}

// narrowest is the least that a column is squeezed to.
const narrowest = 12

// squeeze makes the widest columns narrower until all fit into width, and
// reports whether they do. No word is broken.
func (g Grid) squeeze(widths []int, width int) bool {
	room := width - max(0, len(widths)-1)*len(gap)
	if g.Spoken {
		return Shrink(widths, widths, room)
	}
	least := make([]int, len(widths))
	for _, r := range append([][]Cell{g.Head}, g.Rows...) {
		for i, c := range r {
			least[i] = max(least[i], c.longest(), min(widths[i], narrowest))
		}
	}
	return Shrink(widths, least, room)
}

// Shrink takes from the widest column that is wider than the least it may be, until
// their sum is no more than room, and reports whether it is.
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

// longest is the width of the widest part that is not broken.
func (c Cell) longest() (n int) {
	var text strings.Builder
	for _, s := range c {
		text.WriteString(s.Text)
	}
	for word := range strings.FieldsSeq(text.String()) {
		for word != "" {
			i := Break(word)
			if strings.Contains(word, "/") { // a path
				i = len(word)
			}
			n = max(n, Width(word[:i]))
			word = word[i:]
		}
	}
	return n
}

// More draws the rows alone, in columns as wide as given; first says that
// nothing stands above them.
func (g Grid) More(widths []int, first bool, put Put) {
	for _, r := range g.Rows {
		if !first {
			put(Look{}, "\n")
		}
		first = false
		g.row(r, widths, false, put)
	}
}

// Widths is how wide the columns are.
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

// Width is how many columns of a terminal s takes.
func Width(s string) int { return cells.Columns(s) }

// row draws one row, which takes as many lines as its tallest cell.
func (g Grid) row(cells []Cell, widths []int, head bool, put Put) {
	var lines [][]Cell
	for i, c := range cells {
		wide := 0
		if i < len(widths) {
			wide = widths[i]
		}
		for n, line := range c.lines(wide) {
			if n == len(lines) {
				lines = append(lines, make([]Cell, len(cells)))
			}
			lines[n][i] = line
		}
	}
	for n, line := range lines {
		if n > 0 {
			put(Look{}, "\n")
		}
		g.line(line, widths, head, put)
	}
}

// lines breaks a cell so that it is no wider than width.
func (c Cell) lines(width int) []Cell {
	if width <= 0 || c.width() <= width {
		return []Cell{c}
	}
	all := []Cell{nil}
	put := func(l Look, text string) {
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
		w.Write(s.Look, s.Text)
	}
	w.End()
	return all
}

func (g Grid) line(cells []Cell, widths []int, head bool, put Put) {
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
		put(Look{}, strings.Repeat(" ", before))
		c.draw(head, put)
		if i < last {
			put(Look{}, strings.Repeat(" ", after)+gap)
		}
	}
}

func (c Cell) draw(bold bool, put Put) {
	for _, s := range c {
		s.Look.Bold = s.Look.Bold || bold
		put(s.Look, s.Text)
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

// Colon stands between the head of a column and a cell of it: behind Chinese, what is
// usual there.
func Colon(head string) string {
	if strings.ContainsFunc(head, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		return "："
	}
	return ": "
}

// record draws a row as a list: each cell on a line, its head before it.
func (g Grid) record(r []Cell, width int, put Put) {
	var named []Cell
	for i, c := range r {
		if c.width() == 0 {
			continue
		}
		var n Cell
		if i < len(g.Head) && g.Head[i].width() > 0 {
			for _, s := range g.Head[i] {
				s.Look.Bold = true
				n = append(n, s)
			}
			n = append(n, Span{Text: Colon(textOf(n))})
		}
		named = append(named, append(n, c...))
	}
	for i, c := range named {
		if i > 0 {
			put(Look{}, "\n")
		}
		w := Wrap{Put: put, Width: width, Indent: len(gap)}
		for _, s := range c {
			w.Write(s.Look, s.Text)
		}
		w.End()
	}
}
