package term

import (
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

// tableLines lays a table out for a terminal of this width. Where its columns do not
// fit, the widest are made narrower, and what they hold goes on below itself; where
// that leaves too little room, or somebody listens, each cell has a line with its head
// before it.
func tableLines(t display.Table, say func(string) string, width int, spoken bool) []display.Line {
	lines := t.Lines(say, ink.Width)
	columns := 0
	wide := false
	for _, l := range lines {
		columns = max(columns, len(l.Cells))
		wide = wide || ink.Width(l.String(ink.Width)) > width
	}
	if width <= 0 || !wide || t.First > 0 || columns < 2 || columns == 2 && len(t.Head) == 0 {
		return lines
	}
	hasHead := len(t.Head) > 0
	if !spoken || !hasHead {
		if widths, fits := squeezed(lines, hasHead, width); fits {
			return inColumns(lines, widths)
		}
	}
	if !hasHead {
		return lines
	}
	return listed(lines[0].Cells, lines[1:])
}

// narrowest is the least that a column is squeezed to.
const narrowest = 8

// name is how long a word may be that is kept whole, such as the id of a session.
const name = 28

// columnGap is how far columns stand apart.
const columnGap = 2

// squeezed is how wide the columns are when the widest are made narrower until all fit
// into width, and whether they do. A head takes more lines before what is below it does;
// words are broken only where nothing else helps.
func squeezed(lines []display.Line, head bool, width int) ([]int, bool) {
	var widths, words []int // the widest cell and word of each column
	for n, l := range lines {
		for i, cell := range l.Cells {
			if i == len(widths) {
				widths, words = append(widths, 0), append(words, 0)
			}
			wide, word := ink.Width(cell), longest(cell)
			if n == 0 && head {
				wide = min(wide, max(word, narrowest))
			}
			widths[i], words[i] = max(widths[i], wide), max(words[i], word)
		}
	}
	steps := []struct{ word, column int }{{width, 12}, {20, 12}, {narrowest, narrowest}}
	if head { // else each cell has a line, which leaves more whole
		steps = []struct{ word, column int }{{width, 12}, {name, 10}, {20, 12}}
	}
	for _, least := range steps {
		bounds := make([]int, len(widths))
		for i := range bounds {
			bounds[i] = max(min(words[i], least.word), least.column)
		}
		if made := slices.Clone(widths); ink.Shrink(made, bounds, width-columnGap*(len(widths)-1)) {
			return made, true
		}
	}
	return nil, false
}

// inColumns is the lines of rows in columns so wide; what goes on of the first cell is
// set in, so that it is no row of its own.
func inColumns(rows []display.Line, widths []int) (lines []display.Line) {
	for _, row := range rows {
		var parts []display.Line
		at := 0
		for i, cell := range row.Cells {
			hang := 0
			if i == 0 && widths[0] > narrowest {
				hang = columnGap
			}
			for n, text := range broken(cell, widths[i], hang) {
				if n == len(parts) {
					parts = append(parts, display.Line{})
				}
				if text != "" {
					parts[n].Cells, parts[n].Columns = append(parts[n].Cells, text), append(parts[n].Columns, at)
				}
			}
			at += widths[i] + columnGap
		}
		lines = append(lines, parts...)
	}
	return lines
}

// broken is text as lines of a width, of which those after the first are set in by hang.
func broken(text string, width, hang int) (lines []string) {
	line := ""
	for _, p := range unbroken(text) {
		gap := strings.Repeat(" ", p.gap)
		switch {
		case line == "" && len(lines) == 0:
			gap = ""
		case ink.Width(line+gap+p.text) > width && strings.TrimSpace(line) != "":
			lines, line, gap = append(lines, line), strings.Repeat(" ", hang), ""
		}
		for line += gap + p.text; ink.Width(line) > width; {
			lead := len(line) - len(strings.TrimLeft(line, " "))
			n := lead + ink.Fit(line[lead:], width-lead)
			lines, line = append(lines, line[:n]), strings.Repeat(" ", hang)+line[n:]
		}
	}
	return append(lines, line)
}

// listed is rows as lists of their cells, each with its head before it; what has none
// stands before the next one.
func listed(head []string, rows []display.Line) (lines []display.Line) {
	for i, row := range rows {
		if i > 0 {
			lines = append(lines, display.Line{Cells: []string{""}, Columns: []int{0}})
		}
		before := ""
		for i, cell := range row.Cells {
			switch {
			case strings.TrimSpace(cell) == "":
			case i >= len(head) || strings.TrimSpace(head[i]) == "":
				before += strings.TrimSpace(cell) + " "
			default:
				name := before + head[i] + ink.Colon(head[i])
				lines = append(lines, display.Line{Cells: []string{strings.TrimSpace(name), cell}, Columns: []int{0, ink.Width(name)}})
				before = ""
			}
		}
		if before != "" {
			lines = append(lines, display.Line{Cells: []string{strings.TrimSpace(before)}, Columns: []int{0}})
		}
	}
	return lines
}
