package web

import "strings"

const maxCells = 256 // of a row; what follows is lost

// table is one that is open. One that serves to lay out a page, as can be told
// from what its cells hold, is not shown as a table.
type table struct {
	rows   int
	inRow  bool
	inCell bool
	layout bool
	cells  []string
	size   int // bytes in cells
}

// row is the table whose row we are in, or nil.
func (p *page) row() *table {
	if n := len(p.tables); n > 0 && p.tables[n-1].inRow {
		return p.tables[n-1]
	}
	return nil
}

func (p *page) tableTag(t token) {
	n := len(p.tables)
	switch {
	case t.name == "table" && t.end:
		p.endRow()
		p.tables = p.tables[:max(n-1, 0)]
		p.end(2)
	case t.name == "table":
		p.closeInline()
		p.burst()
		p.end(2)
		if n < maxNested {
			p.tables = append(p.tables, new(table))
		}
	case t.name == "td" || t.name == "th":
		if !t.end {
			p.openCell()
		} else if p.row() != nil {
			p.endCell()
		}
	case t.name == "tr" && !t.end:
		p.closeInline()
		p.openRow()
	default:
		p.endRow()
	}
}

func (p *page) openRow() {
	p.endRow()
	p.end(1)
	if n := len(p.tables); n > 0 && !p.tables[n-1].layout {
		p.tables[n-1].inRow = true
	}
}

func (p *page) openCell() {
	n := len(p.tables)
	if n == 0 || p.tables[n-1].layout {
		p.boundary(1)
		return
	}
	if p.row() == nil {
		p.openRow()
	}
	p.endCell()
	p.tables[n-1].inCell = true
}

// endCell keeps what was gathered for the cell.
func (p *page) endCell() {
	t := p.row()
	if t == nil {
		return
	}
	p.closeInline()
	text := strings.Join(strings.Fields(string(p.line)), " ")
	p.line, p.blank = p.line[:0], false
	if !t.inCell && text == "" || len(t.cells) == maxCells {
		return
	}
	t.cells = append(t.cells, text)
	t.inCell = false
	t.size += len(text)
	p.full = p.full || len(p.out)+t.size > p.limit
}

// endRow writes the row.
func (p *page) endRow() {
	p.endCell()
	t := p.row()
	if t == nil {
		return
	}
	cells := t.cells
	t.cells, t.size, t.inRow = nil, 0, false
	if strings.Join(cells, "") == "" {
		return
	}
	if len(cells) == 1 && t.rows == 0 { // no table, so far
		p.block(cells[0])
		return
	}
	if t.rows == 0 {
		p.gap = 2
	}
	t.rows++
	if !p.markdown {
		p.block(strings.Join(cells, " | "))
		return
	}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	p.block("| " + strings.Join(cells, " | ") + " |")
	if t.rows == 1 {
		p.block("|" + strings.Repeat(" --- |", len(cells)))
	}
}

// burst makes blocks of the cells of a row that holds more than a line of text.
func (p *page) burst() {
	t := p.row()
	if t == nil {
		return
	}
	p.endCell()
	for _, c := range t.cells {
		if c != "" {
			p.block(c)
		}
	}
	t.cells, t.size, t.inRow, t.layout = nil, 0, false, true
}
