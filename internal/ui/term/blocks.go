package term

import (
	"strings"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/syntax"
)

// block shows what a tool made for people to see. Diffs and tables are shown
// whole, text and code up to the bounds of an outputBox.
func (r *Renderer) block(b display.Block) {
	switch b := b.(type) {
	case display.Text:
		r.bounded(string(b))
	case display.Code:
		r.bounded(b.Source)
	case display.Diff:
		r.page.fresh()
		drawDiff(cleaned(b.Unified), r.page.put)
	case display.Table:
		r.page.fresh()
		drawTable(b, r.width(), r.o.ASCII, r.page.put)
	}
	r.page.fresh()
}

func (r *Renderer) bounded(text string) {
	box := outputBox{put: r.page.put}
	box.write(strings.TrimRight(cleaned(text), "\n"))
	box.end(r.leftOut)
}

// drawCode puts source, cleaned, line by line.
func drawCode(c display.Code, put ink.Put) {
	scan := syntax.For(c.Lang)
	for line := range strings.Lines(c.Source) {
		scan.Line(strings.TrimSuffix(line, "\n"), put)
		put(ink.Look{}, "\n")
	}
}

func drawTable(t display.Table, width int, ascii bool, put ink.Put) {
	g := ink.Grid{Head: cells(t.Head), ASCII: ascii}
	for _, row := range t.Rows {
		g.Rows = append(g.Rows, cells(row))
	}
	g.Draw(width, put)
}

func cells(of []display.Cell) (row []ink.Cell) {
	for _, c := range of {
		row = append(row, ink.Cell{{Text: oneLine(c.Text, 0)}})
	}
	return row
}

var diffInk = map[byte]ink.Role{0: ink.Dim, '+': ink.Good, '-': ink.Bad, ' ': ink.Plain}

// drawDiff puts a unified diff, cleaned, with each line in its colour.
func drawDiff(unified string, put ink.Put) {
	for sign, line := range display.DiffLines(unified) {
		put(ink.Look{Role: diffInk[sign]}, line)
	}
}

// own shows what the program itself says, with lines broken for width unless
// that is 0; those of a diff are not.
func (r *Renderer) own(blocks display.Blocks, width int) {
	r.page.fresh()
	line := func(role ink.Role, l display.Line) { r.page.put(ink.Look{Role: role}, fold(l, width)+"\n") }
	for _, b := range blocks {
		switch b := b.(type) {
		case display.Text:
			for text := range strings.SplitSeq(strings.TrimRight(cleaned(r.o.Words.Said(string(b))), "\n"), "\n") {
				rest := strings.TrimLeft(text, " ")
				line(ink.Plain, display.Line{Cells: []string{rest}, Columns: []int{len(text) - len(rest)}})
			}
		case display.Diff:
			drawDiff(cleaned(b.Unified), r.page.put)
		case display.Table:
			for _, l := range r.clean(b).Lines(r.o.Words.Said, ink.Width) {
				line(ink.Plain, l)
			}
		case display.Checklist:
			for _, c := range b {
				mark := c.State.Mark()
				if r.o.ASCII {
					mark = checkASCII[mark]
				}
				line(checkInk[c.State.Mark()], display.Line{Cells: []string{mark + " " + oneLine(c.Text, 0)}, Columns: []int{0}})
			}
		case display.Shell:
			r.shell(b)
		}
		r.page.fresh()
	}
}

// clean is t without what a terminal would obey.
func (r *Renderer) clean(t display.Table) display.Table {
	rows := make([][]display.Cell, len(t.Rows))
	for i, row := range t.Rows {
		for _, c := range row {
			rows[i] = append(rows[i], display.Cell{Text: oneLine(c.Text, 0), Words: c.Words})
		}
	}
	t.Rows = rows
	return t
}

var (
	checkASCII = map[string]string{"☑": "[x]", "◐": "[~]", "☐": "[ ]"}
	checkInk   = map[string]ink.Role{"☑": ink.Done, "◐": ink.Warn, "☐": ink.Dim}
)

// shell shows a command of the person's own, and what came of it.
func (r *Renderer) shell(s display.Shell) {
	role := ink.Good
	if s.Exit != 0 {
		role = ink.Bad
	}
	why := s.Error
	if why != "" {
		why = cleaned(r.o.Words.Said(why))
	}
	r.page.put(ink.Look{}, cleaned("$ "+s.Command))
	for _, part := range []struct {
		role ink.Role
		text string
	}{{role, s.Status()}, {ink.Plain, cleaned(s.Output())}, {ink.Bad, why}} {
		if part.text != "" {
			r.page.fresh()
			r.page.put(ink.Look{Role: part.role}, part.text)
		}
	}
}
