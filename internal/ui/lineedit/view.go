package lineedit

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"coder/internal/core/sanitize"
	"coder/internal/ui/cells"
	"coder/internal/ui/term/ink"
)

// Span is text in one style.
type Span struct {
	Text  string
	Style string // the SGR sequence that starts it; empty for none
}

// Style is how the parts of a view look: SGR sequences, empty for none.
type Style struct {
	Paste  string // the label of a paste
	Menu   string // a choice
	Chosen string // the choice that Enter takes
	Note   string // what is said beside a choice
	Search string // the row of a search

	ASCII bool // the terminal shows no more
}

// dots stand for what is left out.
func (s Style) dots() string {
	if s.ASCII {
		return "..."
	}
	return "…"
}

// beginning is text, or what has room of its beginning, with a mark that more follows.
func (s Style) beginning(text string, room int) string {
	if cells.Width(text) <= room {
		return text
	}
	text, _ = cells.Cut(text, max(0, room-cells.Width(s.dots())))
	return text + s.dots()
}

const (
	reset    = "\x1b[0m"
	tabStop  = "    " // how a tab in a draft is shown
	wideOpen = 1 << 20
	goesOn   = 2  // how far a row is set in that goes on from the one before it
	roomy    = 20 // how wide a terminal must be for that, and to keep words whole
)

// View lays prompt, draft and menu out in rows of at most width columns, and
// says where the cursor is. No character stands across the edge; after a full
// row the cursor is at the start of the next. Rows leave no style open.
func (e *Editor) View(width int) (rows []string, cursorRow, cursorCol int) {
	e.width = max(1, width)
	p := e.paint(nil)
	row, col := p.cursor.row, p.cursor.col
	if e.search != nil {
		what := cmp.Or(e.Searching, "search history: ")
		switch {
		case e.search.failed && e.search.again && e.search.back > 0: // what is shown has it
			what = cmp.Or(e.NoOther, "no more in history: ")
		case e.search.failed:
			what = cmp.Or(e.NotFound, "not in history: ")
		}
		p.newline()
		p.text(what+e.search.query, e.Style.Search)
		p.markCursor(0)
		row, col = p.cursor.row, p.cursor.col
	}
	if e.menu != nil {
		m := e.menu
		rows := cmp.Or(max(0, e.MenuRows), maxMenu)
		others := 0 // that have no room
		if len(m.choices) > rows && rows > 2 {
			rows--
			others = len(m.choices) - rows
		}
		first := max(0, min(m.chosen-rows/2, len(m.choices)-rows))
		shown := m.choices[first:min(first+rows, len(m.choices))]
		column := 0
		for _, c := range shown {
			most := e.width - 2
			if c.Note != "" { // of which something is to be seen, too
				most = max(e.width/2-2, 1)
			}
			column = max(column, min(cells.Width(sanitize.Line(c.Text, 0)), most))
		}
		for i, c := range shown {
			mark, style := "  ", e.Style.Menu
			if first+i == m.chosen {
				mark, style = "> ", e.Style.Chosen
			}
			if m.offered && first+i == max(0, m.chosen) && c.Note == "" && column+len("    Enter") <= e.width {
				if c.Note = "Tab"; m.chosen >= 0 { // takes it
					c.Note = "Enter"
				}
			}
			p.newline()
			most := e.width - 2
			if c.Note != "" {
				most = column
			}
			p.clipped(mark+cells.Middle(sanitize.Line(c.Text, 0), most, e.Style.dots()), style)
			if c.Note != "" {
				p.clipped(strings.Repeat(" ", max(0, column+4-p.col)), e.Style.Note)
				p.clipped(e.Style.beginning(sanitize.Line(c.Note, 0), e.width-p.col), e.Style.Note)
			}
		}
		switch {
		case others > 0 && e.Most > 0 && len(m.choices) >= e.Most: // nobody counted the rest
			p.newline()
			p.clipped("  "+e.Style.dots(), e.Style.Note)
		case others > 0:
			p.newline()
			p.clipped(fmt.Sprintf("  %s +%d", e.Style.dots(), others), e.Style.Note)
		}
	}
	p.newline()
	return p.rows, row, col
}

// paint lays out prompt and draft, telling each place a cursor may be to spots.
// A cursor inside a cluster, as when a character typed joins the one after it,
// is shown behind the cluster.
func (e *Editor) paint(spots func(spot)) *painter {
	p := &painter{width: e.width}
	at := boundary(e.draft.raw, e.at)
	for _, s := range e.Prompt {
		p.text(s.Text, s.Style)
	}
	if e.width >= roomy {
		p.indent = goesOn
	}
	text := e.draft.raw
	for i, word := 0, 0; i < len(text); {
		if i == word && p.indent > 0 { // one begins
			var needs int
			if word, needs = e.word(i); p.col > p.indent && p.col+needs > p.width && p.indent+needs <= p.width {
				p.wrap()
			}
		}
		cluster, width := clusterAt(text, i)
		shown, style := e.shown(cluster, width)
		lead := width // of the first cell of what stands for the cluster
		if len(shown) > 1 {
			_, lead = cells.Next(shown)
		}
		if i == at {
			p.markCursor(lead)
		}
		if spots != nil {
			spots(p.spot(i, lead, i == at))
		}
		switch {
		case shown == "\n":
			p.newline()
		case len(shown) == 1:
			p.cell(shown, width, style)
		default:
			p.line(shown, style)
		}
		i += len(cluster)
	}
	if at == len(text) {
		p.markCursor(0)
	}
	if spots != nil {
		spots(p.spot(len(text), 0, at == len(text)))
	}
	return p
}

// word is where the word that begins at an offset of the draft ends, with the blank behind
// it, and how many columns it needs: it is kept whole where a row has room for it. In a
// script without blanks that is a character, with the signs that stay with it.
func (e *Editor) word(at int) (end, columns int) {
	text := e.draft.raw
	var last rune
	for end = at; end < len(text) && columns <= e.width; {
		cluster, width := clusterAt(text, end)
		first, _ := utf8.DecodeRuneInString(cluster)
		if cluster != " " && ink.Breaks(last, first) { // a blank stays with what it stands behind
			break
		}
		end += len(cluster)
		if cluster == "\n" {
			break
		}
		shown, _ := e.shown(cluster, width)
		if columns += cells.Width(shown); cluster == " " || cluster == "\t" {
			break
		}
		last, _ = utf8.DecodeLastRuneInString(cluster)
	}
	return end, columns
}

// shown is what stands on the screen for a cluster of the draft. One that has
// no width of its own would join whatever stands before it, and is named.
func (e *Editor) shown(cluster string, width int) (text, style string) {
	switch {
	case len(cluster) == 1 && (cluster == "\n" || cluster >= " " && cluster < "\x7f"):
		return cluster, ""
	case cluster == "\t":
		return tabStop, ""
	}
	first, _ := utf8.DecodeRuneInString(cluster)
	if p, ok := e.draft.paste(first); ok {
		return p.label, e.Style.Paste
	}
	text = sanitize.Text(cluster)
	if width == 0 && text == cluster {
		text = ""
		for _, r := range cluster {
			text += fmt.Sprintf("<U+%04X>", r)
		}
	}
	return text, ""
}

// OnTop reports whether the cursor is in the first row of the draft.
func (e *Editor) OnTop() bool {
	spots, here := e.spots()
	return spots[here].row == spots[0].row
}

// spots are the places of the draft where the cursor can be, and which of them it is at.
func (e *Editor) spots() (spots []spot, here int) {
	if e.width == 0 {
		e.width = wideOpen
	}
	at := boundary(e.draft.raw, e.at)
	e.paint(func(s spot) {
		if s.at == at {
			here = len(spots)
		}
		spots = append(spots, s)
	})
	return spots, here
}

// climb moves the cursor a row up or down within the draft, and reports
// whether there was one to move to.
func (e *Editor) climb(by int) bool {
	spots, here := e.spots()
	row := spots[here].row + by
	if row < spots[0].row || row > spots[len(spots)-1].row {
		return false
	}
	if e.goal < 0 {
		e.goal = spots[here].col
	}
	e.last = climbing
	best := -1 // the place at or before the goal, else the row's first
	for _, s := range spots {
		if s.row == row && (best < 0 || s.col <= e.goal) {
			best = s.at
		}
	}
	e.at = max(0, best)
	return true
}
