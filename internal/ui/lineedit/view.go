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
	Paste    string // label of a paste
	Menu     string // a choice
	Selected string // the choice that Enter accepts
	Note     string // note beside a choice
	Search   string // search row

	ASCII bool // the terminal shows only ASCII
}

// ellipsis returns the sign for omitted text.
func (s Style) ellipsis() string {
	if s.ASCII {
		return "..."
	}
	return "…"
}

// truncate returns text, or the start that fits into room, with a mark that more follows.
func (s Style) truncate(text string, room int) string {
	if cells.Width(text) <= room {
		return text
	}
	text, _ = cells.Truncate(text, max(0, room-cells.Width(s.ellipsis())))
	return text + s.ellipsis()
}

const (
	resetStyle         = "\x1b[0m"
	tabStop            = "    " // how a tab in the draft is shown
	unlimitedWidth     = 1 << 20
	continuationIndent = 2  // indent of a continued row
	minRoomyWidth      = 20 // least width for the indent and for keeping words whole
)

// View lays out prompt, draft and menu in rows of at most width columns, and returns the cursor
// position. No character crosses the edge; after a full row the cursor is at the start of the next. Rows
// leave no style open.
func (e *Editor) View(width int) (rows []string, cursorRow, cursorCol int) {
	e.width = max(1, width)
	p := e.layOut(nil)
	row, col := p.cursor.row, p.cursor.col
	if e.search != nil {
		what := cmp.Or(e.SearchLabel, "search history: ")
		switch {
		case e.search.notFound && e.search.continued && e.search.matchOffset > 0: // the draft shown matches
			what = cmp.Or(e.NoOtherLabel, "no more in history: ")
		case e.search.notFound:
			what = cmp.Or(e.NotFoundLabel, "not in history: ")
		}
		p.newline()
		p.drawText(what+e.search.query, e.Style.Search)
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
		first := max(0, min(m.selected-rows/2, len(m.choices)-rows))
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
			if first+i == m.selected {
				mark, style = "> ", e.Style.Selected
			}
			if m.unrequested && first+i == max(0, m.selected) && c.Note == "" && column+len("    Enter") <= e.width {
				if c.Note = "Tab"; m.selected >= 0 { // accepts it
					c.Note = "Enter"
				}
			}
			p.newline()
			most := e.width - 2
			if c.Note != "" {
				most = column
			}
			p.drawClipped(mark+cells.ShortenMiddle(sanitize.Line(c.Text, 0), most, e.Style.ellipsis()), style)
			if c.Note != "" {
				p.drawClipped(strings.Repeat(" ", max(0, column+4-p.col)), e.Style.Note)
				p.drawClipped(e.Style.truncate(sanitize.Line(c.Note, 0), e.width-p.col), e.Style.Note)
			}
		}
		switch {
		case others > 0 && e.MaxChoices > 0 && len(m.choices) >= e.MaxChoices: // the number of others is unknown
			p.newline()
			p.drawClipped("  "+e.Style.ellipsis(), e.Style.Note)
		case others > 0:
			p.newline()
			p.drawClipped(fmt.Sprintf("  %s +%d", e.Style.ellipsis(), others), e.Style.Note)
		}
	}
	p.newline()
	return p.rows, row, col
}

// layOut lays out prompt and draft, and passes each possible cursor position to spots. A cursor inside a
// cluster, as when a typed character joins the next one, is shown after the cluster.
func (e *Editor) layOut(spots func(spot)) *painter {
	p := &painter{width: e.width}
	at := nextBoundary(e.draft.raw, e.cursor)
	for _, s := range e.Prompt {
		p.drawText(s.Text, s.Style)
	}
	if e.width >= minRoomyWidth {
		p.indent = continuationIndent
	}
	text := e.draft.raw
	for i, word := 0, 0; i < len(text); {
		if i == word && p.indent > 0 { // a word begins
			var needs int
			if word, needs = e.wordEnd(i); p.col > p.indent && p.col+needs > p.width && p.indent+needs <= p.width {
				p.wrap()
			}
		}
		cluster, width := clusterAt(text, i)
		shown, style := e.displayCell(cluster, width)
		lead := width // width of the first cell that shows the cluster
		if len(shown) > 1 {
			_, lead = cells.NextCluster(shown)
		}
		if i == at {
			p.markCursor(lead)
		}
		if spots != nil {
			spots(p.nextSpot(i, lead, i == at))
		}
		switch {
		case shown == "\n":
			p.newline()
		case len(shown) == 1:
			p.drawCell(shown, width, style)
		default:
			p.drawLine(shown, style)
		}
		i += len(cluster)
	}
	if at == len(text) {
		p.markCursor(0)
	}
	if spots != nil {
		spots(p.nextSpot(len(text), 0, at == len(text)))
	}
	return p
}

// wordEnd returns the end of the word at an offset of the draft, including the space after it, and its
// columns: a word that fits a row is not broken. In a script without spaces a word is one character,
// with the signs that stay with it.
func (e *Editor) wordEnd(at int) (end, columns int) {
	text := e.draft.raw
	var last rune
	for end = at; end < len(text) && columns <= e.width; {
		cluster, width := clusterAt(text, end)
		first, _ := utf8.DecodeRuneInString(cluster)
		if cluster != " " && ink.CanBreak(last, first) { // a space stays with the word before
			break
		}
		end += len(cluster)
		if cluster == "\n" {
			break
		}
		shown, _ := e.displayCell(cluster, width)
		if columns += cells.Width(shown); cluster == " " || cluster == "\t" {
			break
		}
		last, _ = utf8.DecodeLastRuneInString(cluster)
	}
	return end, columns
}

// displayCell returns how a cluster of the draft is displayed. One without width would join the character
// before it, so its name is shown.
func (e *Editor) displayCell(cluster string, width int) (text, style string) {
	switch {
	case len(cluster) == 1 && (cluster == "\n" || cluster >= " " && cluster < "\x7f"):
		return cluster, ""
	case cluster == "\t":
		return tabStop, ""
	}
	first, _ := utf8.DecodeRuneInString(cluster)
	if p, ok := e.draft.findPaste(first); ok {
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

// IsOnFirstRow reports whether the cursor is in the first row of the draft.
func (e *Editor) IsOnFirstRow() bool {
	spots, here := e.cursorSpots()
	return spots[here].row == spots[0].row
}

// cursorSpots returns the possible cursor positions in the draft, and the index of the current one.
func (e *Editor) cursorSpots() (spots []spot, here int) {
	if e.width == 0 {
		e.width = unlimitedWidth
	}
	at := nextBoundary(e.draft.raw, e.cursor)
	e.layOut(func(s spot) {
		if s.offset == at {
			here = len(spots)
		}
		spots = append(spots, s)
	})
	return spots, here
}

// moveRow moves the cursor a row up or down within the draft, and reports whether there was such a row.
func (e *Editor) moveRow(by int) bool {
	spots, here := e.cursorSpots()
	row := spots[here].row + by
	if row < spots[0].row || row > spots[len(spots)-1].row {
		return false
	}
	if e.goalColumn < 0 {
		e.goalColumn = spots[here].col
	}
	e.lastKind = keyClimbing
	best := -1 // the position at or before the goal, otherwise the row's first
	for _, s := range spots {
		if s.row == row && (best < 0 || s.col <= e.goalColumn) {
			best = s.offset
		}
	}
	e.cursor = max(0, best)
	return true
}
