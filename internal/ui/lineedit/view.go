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
	Style string // SGR sequence that starts it; empty for none
}

// Style sets how the parts of a view look: SGR sequences, empty for none.
type Style struct {
	Paste  string // label of a paste
	Menu   string // a choice
	Chosen string // the choice that Enter accepts
	Note   string // note beside a choice
	Search string // search row

	ASCII bool // the terminal shows only ASCII
}

// dots returns the sign for omitted text.
func (s Style) dots() string {
	if s.ASCII {
		return "..."
	}
	return "…"
}

// beginning returns text, or the start that fits into room, with a mark that more follows.
func (s Style) beginning(text string, room int) string {
	if cells.Width(text) <= room {
		return text
	}
	text, _ = cells.Cut(text, max(0, room-cells.Width(s.dots())))
	return text + s.dots()
}

const (
	reset    = "\x1b[0m"
	tabStop  = "    " // how a tab in the draft is shown
	wideOpen = 1 << 20
	goesOn   = 2  // indent of a continued row
	roomy    = 20 // least width for the indent and for keeping words whole
)

// View lays out prompt, draft and menu in rows of at most width columns, and returns the cursor
// position. No character crosses the edge; after a full row the cursor is at the start of the next. Rows
// leave no style open.
func (e *Editor) View(width int) (rows []string, cursorRow, cursorCol int) {
	e.width = max(1, width)
	p := e.paint(nil)
	row, col := p.cursor.row, p.cursor.col
	if e.search != nil {
		what := cmp.Or(e.Searching, "search history: ")
		switch {
		case e.search.failed && e.search.again && e.search.back > 0: // the draft shown matches
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
		others := 0 // choices without room
		if len(m.choices) > rows && rows > 2 {
			rows--
			others = len(m.choices) - rows
		}
		first := max(0, min(m.chosen-rows/2, len(m.choices)-rows))
		shown := m.choices[first:min(first+rows, len(m.choices))]
		column := 0
		for _, c := range shown {
			most := e.width - 2
			if c.Note != "" { // leave room for a part of the note
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
				if c.Note = "Tab"; m.chosen >= 0 { // accepts it
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
		case others > 0 && e.Most > 0 && len(m.choices) >= e.Most: // the number of others is unknown
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

// paint lays out prompt and draft, and passes each possible cursor position to spots. A cursor inside a
// cluster, as when a typed character joins the next one, is shown after the cluster.
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
		if i == word && p.indent > 0 { // a word begins
			var needs int
			if word, needs = e.word(i); p.col > p.indent && p.col+needs > p.width && p.indent+needs <= p.width {
				p.wrap()
			}
		}
		cluster, width := clusterAt(text, i)
		shown, style := e.shown(cluster, width)
		lead := width // width of the first cell that shows the cluster
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

// word returns the end of the word at an offset of the draft, including the space after it, and its
// columns: a word that fits a row is not broken. In a script without spaces a word is one character,
// with the signs that stay with it.
func (e *Editor) word(at int) (end, columns int) {
	text := e.draft.raw
	var last rune
	for end = at; end < len(text) && columns <= e.width; {
		cluster, width := clusterAt(text, end)
		first, _ := utf8.DecodeRuneInString(cluster)
		if cluster != " " && ink.Breaks(last, first) { // a space stays with the word before
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

// shown returns how a cluster of the draft is displayed. One without width would join the character
// before it, so its name is shown.
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

// spots returns the possible cursor positions in the draft, and the index of the current one.
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

// climb moves the cursor a row up or down within the draft, and reports whether there was such a row.
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
	best := -1 // the position at or before the goal, otherwise the row's first
	for _, s := range spots {
		if s.row == row && (best < 0 || s.col <= e.goal) {
			best = s.at
		}
	}
	e.at = max(0, best)
	return true
}
