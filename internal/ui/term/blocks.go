package term

import (
	"strings"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
	"coder/internal/ui/term/markdown"
	"coder/internal/ui/term/syntax"
)

// writeBounded shows the beginning and the end of a text, wrapped between words to width unless that is 0.
func (r *Renderer) writeBounded(text string, width int) {
	w := ink.Wrap{Put: r.page.write, Width: width}
	begins := true
	box := outputBox{ascii: r.options.ASCII, target: func(l ink.Style, text string) {
		for i, line := range strings.Split(text, "\n") {
			if i > 0 {
				w.End()
				r.page.write(ink.Style{}, "\n")
				begins = true
			}
			if begins && line != "" {
				w.Indent, begins = ink.HangIndent(line), false
			}
			w.Write(l, line)
		}
	}}
	defer w.End()
	box.write(strings.TrimRight(cleanText(text), "\n"))
	r.keepOmitted(box.finish(r.omittedText))
}

// newProse returns a stream that draws Markdown in this many columns.
func (r *Renderer) newProse(width int) *markdown.Stream {
	return &markdown.Stream{
		Put: r.page.write, Width: func() int { return width },
		KeepMarks: r.options.Palette.Level == None && !r.options.ScreenReader, ASCII: r.options.ASCII,
		ScreenReader: r.options.ScreenReader,
	}
}

// writeBoundedProse is bounded for Markdown.
func (r *Renderer) writeBoundedProse(text string) {
	md := r.newProse(r.width())
	box := outputBox{ascii: r.options.ASCII, target: func(_ ink.Style, text string) { md.Write(text) }}
	box.write(strings.TrimRight(cleanText(text), "\n"))
	r.keepOmitted(box.finish(r.omittedText))
	md.End()
}

// drawCode draws source, cleaned, line by line.
func drawCode(c display.Code, put ink.SpanFunc) {
	scan := syntax.For(c.Lang)
	for line := range strings.Lines(c.Source) {
		scan.DrawLine(strings.TrimSuffix(line, "\n"), put)
		put(ink.Style{}, "\n")
	}
}

// drawTable draws a table as g would, translating its words with say.
func drawTable(t display.Table, say func(string) string, width int, g ink.Grid, put ink.SpanFunc) {
	g.Head = inkCells(t.Header, say, g.ASCII)
	for _, row := range t.Rows {
		g.Rows = append(g.Rows, inkCells(row, say, g.ASCII))
	}
	g.Draw(width, put)
}

func inkCells(of []display.Cell, say func(string) string, ascii bool) (row []ink.Cell) {
	for _, c := range of {
		if c.Words {
			c.Text = say(c.Text)
		}
		row = append(row, ink.Cell{{Text: ellipsis(ascii, oneLine(c.Text, 0))}})
	}
	return row
}

// RenderText renders coder's own blocks as lines of this many columns.
func RenderText(blocks display.Blocks, columns int, o Options) string {
	r := New(o)
	r.writeBlocks(blocks, columns)
	return r.page.takeText()
}

// writeBlocks shows coder's own blocks, wrapped to width unless that is 0; diffs are not wrapped.
func (r *Renderer) writeBlocks(blocks display.Blocks, width int) {
	r.page.endLine()
	line := func(l display.TableLine) { r.page.write(ink.Style{}, foldLine(l, width)+"\n") }
	for _, b := range blocks {
		switch b := b.(type) {
		case display.Text:
			for text := range strings.SplitSeq(strings.TrimRight(cleanText(r.options.Translator.TranslateText(string(b))), "\n"),
				"\n") {
				rest := strings.TrimLeft(text, " ")
				line(display.TableLine{Cells: []string{rest}, Columns: []int{len(text) - len(rest)}})
			}
		case display.Code:
			if b.Lang == display.LangMarkdown {
				md := r.newProse(width)
				md.Write(cleanText(b.Source))
				md.End()
			} else {
				drawCode(display.Code{Lang: b.Lang, Source: cleanText(b.Source)}, r.page.write)
			}
		case display.Diff:
			drawDiff(diffLines(cleanText(b.Unified)), r.options.ASCII, r.page.write)
		case display.Table:
			clean := display.Table{Header: r.cleanCells(b.Header), FirstWidth: min(b.FirstWidth, maxFirstColumn)}
			for _, row := range b.Rows {
				clean.Rows = append(clean.Rows, r.cleanCells(row))
			}
			for _, l := range tableLines(clean, r.translateText, width, r.options.ScreenReader) {
				line(l)
			}
		case display.Checklist:
			for _, c := range b {
				mark := c.State.Symbol()
				switch {
				case r.options.ScreenReader:
					mark = r.options.Translator.TranslateText(checkWords[mark])
				case r.options.ASCII:
					mark = checkASCII[mark]
				}
				if !strings.HasSuffix(mark, "：") { // the full-width colon includes a space
					mark += " "
				}
				r.page.writeHanging(width, checkInk[c.State.Symbol()], mark+ellipsis(r.options.ASCII, oneLine(c.Text, 0)),
					ink.Width(mark))
			}
		case display.Shell:
			r.page.write(ink.Style{}, cleanText("$ "+b.Command))
			r.writeOutcome(b, true)
		}
		r.page.endLine()
	}
}

// writeOutcome shows how the user's command ended, and its output unless that was shown as it came.
func (r *Renderer) writeOutcome(b display.Shell, withOutput bool) {
	role, output, why := ink.Good, "", b.Error
	if b.ExitCode != 0 {
		role = ink.Bad
	}
	if withOutput {
		output = cleanText(b.Output(r.options.Translator.TranslateText))
	}
	if why != "" {
		why = cleanText(r.options.Translator.TranslateText(why))
	}
	for _, part := range []struct {
		role ink.Role
		text string
	}{{role, b.Status()}, {ink.Plain, output}, {ink.Bad, why}} {
		switch {
		case part.text == "":
		case part.text == why, b.UsedTerminal && part.text == output: // our own words
			r.page.endLine()
			r.page.writeWrapped(r.width(), part.role, part.text)
		default:
			r.page.endLine()
			r.page.write(ink.Style{Role: part.role}, part.text)
		}
	}
	r.page.endLine()
	for _, end := range b.Tails {
		if withOutput {
			r.page.writeLines(ink.Dim, r.lastLinesLabel(end, b.Stdout != "" && b.Stderr != ""))
			r.page.write(ink.Style{}, cleanText(end.Text))
			r.page.endLine()
		}
	}
	if b.LogPath != "" && b.Truncated {
		r.page.writeWrapped(r.width(), ink.Dim, r.t("full output: %s", cleanText(b.LogPath)))
	}
}

// lastLinesLabel returns the label of the lines that follow, naming the stream if there are two.
func (r *Renderer) lastLinesLabel(end display.OutputTail, two bool) string {
	switch {
	case two && end.Stream != "" && end.TotalLines == 0:
		return r.t("the last lines of %s:", end.Stream)
	case two && end.Stream != "":
		return r.t("the last of %d lines of %s:", end.TotalLines, end.Stream)
	case end.TotalLines == 0:
		return r.t("the last lines:")
	}
	return r.t("the last of %d lines:", end.TotalLines)
}

// maxFirstColumn limits the width that a record may request for the first column.
const maxFirstColumn = 100

func (r *Renderer) cleanCells(row []display.Cell) (clean []display.Cell) {
	for _, c := range row {
		text := oneLine(c.Text, 0)
		if !c.Words {
			text = ellipsis(r.options.ASCII, text)
		}
		clean = append(clean, display.Cell{Text: text, Words: c.Words})
	}
	return clean
}

// translateText translates coder's own sentence, in signs that the terminal shows.
func (r *Renderer) translateText(text string) string {
	text = r.options.Translator.TranslateText(text)
	if r.options.ASCII {
		text = asciiSigns.Replace(text)
	}
	return text
}

// asciiSigns maps the signs in coder's sentences to ASCII.
var asciiSigns = strings.NewReplacer("…", "...", "≥", ">=")

var (
	checkASCII = map[string]string{"☑": "[x]", "◐": "[~]", "☐": "[ ]"}
	checkWords = map[string]string{"☑": "done:", "◐": "in progress:", "☐": "to do:"}
	checkInk   = map[string]ink.Role{"☑": ink.Done, "◐": ink.Warn, "☐": ink.Dim}
)
