package term

import (
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

// tableLines lays out a table for this width. If its columns do not fit, the widest become narrower and
// wrap; if that leaves too little room, or for a screen reader, each cell gets its own line after its
// heading.
func tableLines(t display.Table, say func(string) string, width int, spoken bool) []display.TableLine {
	lines := t.Lines(say, ink.Width)
	columns := 0
	wide := false
	for _, l := range lines {
		columns = max(columns, len(l.Cells))
		wide = wide || ink.Width(l.String(ink.Width)) > width
	}
	if width <= 0 || !wide || t.FirstWidth > 0 || columns < 2 || columns == 2 && len(t.Header) == 0 {
		return lines
	}
	hasHead := len(t.Header) > 0
	if !spoken || !hasHead {
		if widths, fits := squeezeColumns(lines, hasHead, width); fits {
			return columnLines(lines, widths)
		}
	}
	if !hasHead {
		return lines
	}
	return listLines(lines[0].Cells, lines[1:])
}

// minSqueezed is the least width of a squeezed column.
const minSqueezed = 8

// maxUnbroken is the longest word that is not broken, such as a session id.
const maxUnbroken = 28

// columnGap is the distance between columns.
const columnGap = 2

// squeezeColumns narrows the widest columns until all fit into width, and reports whether they do. Headings
// wrap before the cells below; words are broken only as a last resort.
func squeezeColumns(lines []display.TableLine, head bool, width int) ([]int, bool) {
	var widths, words []int // widest cell and word of each column
	for n, l := range lines {
		for i, cell := range l.Cells {
			if i == len(widths) {
				widths, words = append(widths, 0), append(words, 0)
			}
			wide, word := ink.Width(cell), longestPiece(cell)
			if n == 0 && head {
				wide = min(wide, max(word, minSqueezed))
			}
			widths[i], words[i] = max(widths[i], wide), max(words[i], word)
		}
	}
	steps := []struct{ word, column int }{{width, 12}, {20, 12}, {minSqueezed, minSqueezed}}
	if head { // otherwise each cell gets a line, which breaks fewer words
		steps = []struct{ word, column int }{{width, 12}, {maxUnbroken, 10}, {20, 12}}
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

// columnLines lays out rows in columns of these widths; continuation lines of the first cell are indented,
// to distinguish them from rows.
func columnLines(rows []display.TableLine, widths []int) (lines []display.TableLine) {
	for _, row := range rows {
		var parts []display.TableLine
		at := 0
		for i, cell := range row.Cells {
			hang := 0
			if i == 0 && widths[0] > minSqueezed {
				hang = columnGap
			}
			for n, text := range wrapText(cell, widths[i], hang) {
				if n == len(parts) {
					parts = append(parts, display.TableLine{})
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

// wrapText wraps text to width, indenting the lines after the first by hang.
func wrapText(text string, width, hang int) (lines []string) {
	line := ""
	for _, p := range splitPieces(text) {
		gap := strings.Repeat(" ", p.gap)
		switch {
		case line == "" && len(lines) == 0:
			gap = ""
		case ink.Width(line+gap+p.text) > width && strings.TrimSpace(line) != "":
			lines, line, gap = append(lines, line), strings.Repeat(" ", hang), ""
		}
		for line += gap + p.text; ink.Width(line) > width; {
			lead := len(line) - len(strings.TrimLeft(line, " "))
			n := lead + ink.FitLen(line[lead:], width-lead)
			lines, line = append(lines, line[:n]), strings.Repeat(" ", hang)+line[n:]
		}
	}
	return append(lines, line)
}

// listLines lays out each row as a list of its cells, each after its heading; a cell without a heading
// comes before the next one.
func listLines(head []string, rows []display.TableLine) (lines []display.TableLine) {
	for i, row := range rows {
		if i > 0 {
			lines = append(lines, display.TableLine{Cells: []string{""}, Columns: []int{0}})
		}
		before := ""
		for i, cell := range row.Cells {
			switch {
			case strings.TrimSpace(cell) == "":
			case i >= len(head) || strings.TrimSpace(head[i]) == "":
				before += strings.TrimSpace(cell) + " "
			default:
				name := before + head[i] + ink.HeadingSeparator(head[i])
				lines = append(lines, display.TableLine{Cells: []string{strings.TrimSpace(name), cell},
					Columns: []int{0, ink.Width(name)}})
				before = ""
			}
		}
		if before != "" {
			lines = append(lines, display.TableLine{Cells: []string{strings.TrimSpace(before)}, Columns: []int{0}})
		}
	}
	return lines
}
