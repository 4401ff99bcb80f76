//go:build unix

package tty

import (
	"slices"
	"strings"
	"unicode/utf8"

	"coder/internal/ui/cells"
)

// growingLine is the rows of a growing line. New text only changes the layout of its last row.
type growingLine struct {
	cols    int
	line    string   // the text laid out
	rows    []string // the full rows
	lastRow string   // the text of the last row
}

// layOut returns the rows of line; after resets the colors at its end.
func (t *growingLine) layOut(line, after string, cols int) []string {
	if t.cols != cols || !strings.HasPrefix(line, t.line) {
		*t = growingLine{cols: cols}
	}
	t.lastRow += line[len(t.line):]
	t.line = line
	for {
		row, rest := breakRow(t.lastRow, cols)
		if rest == "" {
			return append(t.rows[:len(t.rows):len(t.rows)], row+after)
		}
		t.rows, t.lastRow = append(t.rows, row), rest
	}
}

const tabStop = 8

// breakRow returns the first row of text, and the rest with the colors in effect; the rest is empty if
// everything fits.
func breakRow(text string, cols int) (row, rest string) {
	var b strings.Builder
	var colours cleaner
	used := 0
	for at := 0; at < len(text); {
		if text[at] == esc {
			n := max(1, cells.EscapeLen(text[at:]))
			colours.cleanSequence(&b, text[at:at+n])
			at += n
			continue
		}
		cluster, w := cells.NextCluster(text[at:])
		if cluster == "\t" {
			cluster = strings.Repeat(" ", min(tabStop-used%tabStop, max(1, cols-used)))
			w = len(cluster)
		}
		if used+w > cols && used > 0 {
			return b.String() + colours.resetCodes, colours.restoreCodes + text[at:]
		}
		b.WriteString(cluster)
		used += w
		if text[at] == '\t' {
			at++
			continue
		}
		at += len(cluster)
	}
	return b.String(), ""
}

// rowChange turns one row into another: write text from column at on.
type rowChange struct {
	column, width int
	text          string
	eraseRest     bool // erase the rest of the row
}

// glyph is a cluster with its colors.
type glyph struct {
	text, before, after string
	width               int
}

// diffRows returns the least text to write to change a row. If the width of a glyph on the terminal is
// uncertain, the text is written from the start of the row.
func diffRows(was, row string) rowChange {
	a, b := splitGlyphs(was), splitGlyphs(row)
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] && isCertain(a[same]) {
		same++
	}
	if same < len(b) && same > 0 && b[same].width == 0 || same < len(a) && same > 0 && a[same].width == 0 {
		same-- // it joins the cluster before
	}
	c := rowChange{column: glyphsWidth(a[:same])}
	a, b = a[same:], b[same:]
	end := len(b)
	if wide := glyphsWidth(b); wide == glyphsWidth(a) && allCertain(a) && allCertain(b) {
		for end > 0 && len(a) > len(b)-end && b[end-1] == a[len(a)-1-(len(b)-end)] {
			end--
		}
	} else {
		c.eraseRest = wide < glyphsWidth(a) || !allCertain(a) || !allCertain(b)
	}
	c.width = glyphsWidth(b[:end])
	var out strings.Builder
	last := glyph{}
	for _, g := range b[:end] {
		if g.before != last.before {
			out.WriteString(last.after + g.before)
		}
		out.WriteString(g.text)
		last = g
	}
	out.WriteString(last.after)
	c.text = out.String()
	return c
}

// splitGlyphs returns the clusters of a row.
func splitGlyphs(row string) (all []glyph) {
	row, _ = cells.Truncate(row, 1<<20)
	all = make([]glyph, 0, len(row))
	var colours cleaner
	var none strings.Builder
	for row != "" {
		if row[0] == esc {
			n := max(1, cells.EscapeLen(row))
			colours.cleanSequence(&none, row[:n])
			row = row[n:]
			continue
		}
		cluster, w := cells.NextCluster(row)
		all = append(all, glyph{cluster, colours.restoreCodes, colours.resetCodes, w})
		row = row[len(cluster):]
	}
	return all
}

func glyphsWidth(gs []glyph) (n int) {
	for _, g := range gs {
		n += g.width
	}
	return n
}

func allCertain(gs []glyph) bool {
	return !slices.ContainsFunc(gs, func(g glyph) bool { return !isCertain(g) })
}

// isCertain reports whether all terminals show g with the same width and position: not so for joined
// characters, pictures and right-to-left text.
func isCertain(g glyph) bool {
	r, n := utf8.DecodeRuneInString(g.text)
	return n == len(g.text) && g.width > 0 && (r < 0x590 || r >= 0x1100 && r < 0x2300 || r >= 0x2800 && r < 0x2900 ||
		r >= 0x2e80 && r < 0xe000)
}
