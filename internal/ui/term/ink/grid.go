package ink

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
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
}

// gap stands between two columns.
const gap = "  "

// Draw puts g in columns if it fits into width, else as one line per cell with
// the head before it: nothing is cut off and no line is broken by us. A width
// of zero or less always fits. No line ends in blanks; the last has no line
// end.
func (g Grid) Draw(width int, put Put) {
	widths := g.Widths()
	total := max(0, len(widths)-1) * len(gap)
	for _, w := range widths {
		total += w
	}
	if width > 0 && total > width {
		if len(g.Rows) == 0 {
			g.row(g.Head, make([]int, len(g.Head)), true, put)
		}
		for i, r := range g.Rows {
			if i > 0 {
				put(Look{}, "\n\n")
			}
			g.record(r, put)
		}
		return
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
func Width(s string) int { return displaywidth.String(s) }

func (g Grid) row(cells []Cell, widths []int, head bool, put Put) {
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
	switch g.align(column) {
	case Right:
		return blank, 0
	case Centre:
		return blank / 2, blank - blank/2
	case Left:
	}
	return 0, blank
}

func (g Grid) align(column int) Align {
	if column < len(g.Align) {
		return g.Align[column]
	}
	return Left
}

func (g Grid) record(r []Cell, put Put) {
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
			n = append(n, Span{Text: ": "})
		}
		named = append(named, append(n, c...))
	}
	r = slices.DeleteFunc(slices.Clone(named), func(c Cell) bool { return len(c) == 0 })
	for i, c := range r {
		if i > 0 {
			put(Look{}, "\n")
		}
		c.draw(false, put)
	}
}
