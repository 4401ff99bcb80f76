package term

import (
	"strings"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/markdown"
	"coder/internal/ui/term/syntax"
)

// bounded shows the beginning and the end of a text, wrapped between words to width unless that is 0.
func (r *Renderer) bounded(text string, width int) {
	w := ink.Wrap{Put: r.page.put, Width: width}
	begins := true
	box := outputBox{ascii: r.o.ASCII, put: func(l ink.Look, text string) {
		for i, line := range strings.Split(text, "\n") {
			if i > 0 {
				w.End()
				r.page.put(ink.Look{}, "\n")
				begins = true
			}
			if begins && line != "" {
				w.Indent, begins = ink.Hanging(line), false
			}
			w.Write(l, line)
		}
	}}
	defer w.End()
	box.write(strings.TrimRight(cleaned(text), "\n"))
	r.omit(box.end(r.leftOut))
}

// prose returns a stream that draws Markdown in this many columns.
func (r *Renderer) prose(width int) *markdown.Stream {
	return &markdown.Stream{
		Put: r.page.put, Width: func() int { return width }, Source: r.o.Palette.Level == None && !r.o.Spoken, ASCII: r.o.ASCII, Spoken: r.o.Spoken,
	}
}

// boundedProse is bounded for Markdown.
func (r *Renderer) boundedProse(text string) {
	md := r.prose(r.width())
	box := outputBox{ascii: r.o.ASCII, put: func(_ ink.Look, text string) { md.Write(text) }}
	box.write(strings.TrimRight(cleaned(text), "\n"))
	r.omit(box.end(r.leftOut))
	md.End()
}

// drawCode draws source, cleaned, line by line.
func drawCode(c display.Code, put ink.Put) {
	scan := syntax.For(c.Lang)
	for line := range strings.Lines(c.Source) {
		scan.Line(strings.TrimSuffix(line, "\n"), put)
		put(ink.Look{}, "\n")
	}
}

// drawTable draws a table as g would, translating its words with say.
func drawTable(t display.Table, say func(string) string, width int, g ink.Grid, put ink.Put) {
	g.Head = cells(t.Head, say, g.ASCII)
	for _, row := range t.Rows {
		g.Rows = append(g.Rows, cells(row, say, g.ASCII))
	}
	g.Draw(width, put)
}

func cells(of []display.Cell, say func(string) string, ascii bool) (row []ink.Cell) {
	for _, c := range of {
		if c.Words {
			c.Text = say(c.Text)
		}
		row = append(row, ink.Cell{{Text: dots(ascii, oneLine(c.Text, 0))}})
	}
	return row
}

// Text renders coder's own blocks as lines of this many columns.
func Text(blocks display.Blocks, columns int, o Options) string {
	r := New(o)
	r.own(blocks, columns)
	return r.page.take()
}

// own shows coder's own blocks, wrapped to width unless that is 0; diffs are not wrapped.
func (r *Renderer) own(blocks display.Blocks, width int) {
	r.page.fresh()
	line := func(l display.Line) { r.page.put(ink.Look{}, fold(l, width)+"\n") }
	for _, b := range blocks {
		switch b := b.(type) {
		case display.Text:
			for text := range strings.SplitSeq(strings.TrimRight(cleaned(r.o.Words.Said(string(b))), "\n"), "\n") {
				rest := strings.TrimLeft(text, " ")
				line(display.Line{Cells: []string{rest}, Columns: []int{len(text) - len(rest)}})
			}
		case display.Code:
			if b.Lang == display.Markdown {
				md := r.prose(width)
				md.Write(cleaned(b.Source))
				md.End()
			} else {
				drawCode(display.Code{Lang: b.Lang, Source: cleaned(b.Source)}, r.page.put)
			}
		case display.Diff:
			drawDiff(diffLines(cleaned(b.Unified)), r.o.ASCII, r.page.put)
		case display.Table:
			clean := display.Table{Head: r.cleanCells(b.Head), First: min(b.First, widestFirst)}
			for _, row := range b.Rows {
				clean.Rows = append(clean.Rows, r.cleanCells(row))
			}
			for _, l := range tableLines(clean, r.said, width, r.o.Spoken) {
				line(l)
			}
		case display.Checklist:
			for _, c := range b {
				mark := c.State.Mark()
				switch {
				case r.o.Spoken:
					mark = r.o.Words.Said(checkWords[mark])
				case r.o.ASCII:
					mark = checkASCII[mark]
				}
				if !strings.HasSuffix(mark, "：") { // the full-width colon includes a space
					mark += " "
				}
				r.page.hung(width, checkInk[c.State.Mark()], mark+dots(r.o.ASCII, oneLine(c.Text, 0)), ink.Width(mark))
			}
		case display.Shell:
			r.page.put(ink.Look{}, cleaned("$ "+b.Command))
			r.outcomeOf(b, true)
		}
		r.page.fresh()
	}
}

// outcomeOf shows how the user's command ended, and its output unless that was shown as it came.
func (r *Renderer) outcomeOf(b display.Shell, withOutput bool) {
	role, output, why := ink.Good, "", b.Error
	if b.Exit != 0 {
		role = ink.Bad
	}
	if withOutput {
		output = cleaned(b.Output(r.o.Words.Said))
	}
	if why != "" {
		why = cleaned(r.o.Words.Said(why))
	}
	for _, part := range []struct {
		role ink.Role
		text string
	}{{role, b.Status()}, {ink.Plain, output}, {ink.Bad, why}} {
		switch {
		case part.text == "":
		case part.text == why, b.Terminal && part.text == output: // our own words
			r.page.fresh()
			r.page.words(r.width(), part.role, part.text)
		default:
			r.page.fresh()
			r.page.put(ink.Look{Role: part.role}, part.text)
		}
	}
	r.page.fresh()
	for _, end := range b.Ends {
		if withOutput {
			r.page.tell(ink.Dim, r.lastLines(end, b.Stdout != "" && b.Stderr != ""))
			r.page.put(ink.Look{}, cleaned(end.Text))
			r.page.fresh()
		}
	}
	if b.Log != "" && b.Truncated {
		r.page.words(r.width(), ink.Dim, r.t("full output: %s", cleaned(b.Log)))
	}
}

// lastLines returns the label of the lines that follow, naming the stream if there are two.
func (r *Renderer) lastLines(end display.End, two bool) string {
	switch {
	case two && end.From != "" && end.Of == 0:
		return r.t("the last lines of %s:", end.From)
	case two && end.From != "":
		return r.t("the last of %d lines of %s:", end.Of, end.From)
	case end.Of == 0:
		return r.t("the last lines:")
	}
	return r.t("the last of %d lines:", end.Of)
}

// widestFirst limits the width that a record may request for the first column.
const widestFirst = 100

func (r *Renderer) cleanCells(row []display.Cell) (clean []display.Cell) {
	for _, c := range row {
		text := oneLine(c.Text, 0)
		if !c.Words {
			text = dots(r.o.ASCII, text)
		}
		clean = append(clean, display.Cell{Text: text, Words: c.Words})
	}
	return clean
}

// said translates coder's own sentence, in signs that the terminal shows.
func (r *Renderer) said(text string) string {
	text = r.o.Words.Said(text)
	if r.o.ASCII {
		text = ownSigns.Replace(text)
	}
	return text
}

// ownSigns maps the signs in coder's sentences to ASCII.
var ownSigns = strings.NewReplacer("…", "...", "≥", ">=")

var (
	checkASCII = map[string]string{"☑": "[x]", "◐": "[~]", "☐": "[ ]"}
	checkWords = map[string]string{"☑": "done:", "◐": "in progress:", "☐": "to do:"}
	checkInk   = map[string]ink.Role{"☑": ink.Done, "◐": ink.Warn, "☐": ink.Dim}
)
