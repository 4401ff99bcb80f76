package lineedit

import (
	"strings"

	"coder/internal/core/sanitize"
	"coder/internal/ui/cells"
)

// painter fills rows cell by cell.
type painter struct {
	width  int
	rows   []string
	row    strings.Builder
	col    int
	indent int    // column where a continued row begins
	style  string // the style open in row
	cursor spot
}

// spot is a possible cursor position: before the cluster at an offset.
type spot struct{ offset, row, col int }

// drawText draws s, which may contain newlines.
func (p *painter) drawText(s, style string) {
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			p.newline()
		}
		p.drawLine(sanitize.Text(line), style)
	}
}

func (p *painter) drawLine(s, style string) {
	for s != "" {
		cluster, width := cells.NextCluster(s)
		s = s[len(cluster):]
		if cluster == "\t" {
			p.drawLine(tabStop, style)
			continue
		}
		p.drawCell(cluster, width, style)
	}
}

// drawCell draws one cluster, on the next row if it does not fit on this one. A terminal too narrow for it
// shows a sign instead.
func (p *painter) drawCell(cluster string, width int, style string) {
	if width > p.width {
		cluster, width = "?", 1
	}
	if p.col+width > p.width {
		p.wrap()
	}
	p.setStyle(style)
	p.row.WriteString(cluster)
	p.col += width
}

// drawClipped draws what fits into the rest of the row.
func (p *painter) drawClipped(s, style string) {
	s, width := cells.Truncate(s, p.width-p.col)
	if s == "" {
		return
	}
	p.setStyle(style)
	p.row.WriteString(s)
	p.col += width
}

func (p *painter) setStyle(style string) {
	if p.style == style {
		return
	}
	if p.style != "" {
		p.row.WriteString(resetStyle)
	}
	p.row.WriteString(style)
	p.style = style
}

func (p *painter) newline() {
	p.setStyle("")
	p.rows = append(p.rows, p.row.String())
	p.row.Reset()
	p.col = 0
}

// wrap continues on the next row.
func (p *painter) wrap() {
	p.newline()
	p.row.WriteString(strings.Repeat(" ", p.indent))
	p.col = p.indent
}

// markCursor sets the cursor to the position of the next cell, of this width. A full row ends first.
func (p *painter) markCursor(width int) {
	if p.col+max(1, min(width, p.width)) > p.width {
		p.wrap()
	}
	p.cursor = spot{row: len(p.rows), col: p.col}
}

// nextSpot returns the position of the next cell, of this width.
func (p *painter) nextSpot(at, width int, cursor bool) spot {
	switch {
	case cursor:
		return spot{at, p.cursor.row, p.cursor.col}
	case p.col+min(width, p.width) > p.width:
		return spot{at, len(p.rows) + 1, p.indent}
	}
	return spot{at, len(p.rows), p.col}
}
