//go:build unix

package tty

import (
	"slices"
	"strings"
	"unicode/utf8"

	"coder/internal/ui/cells"
)

// tail is the rows that a line takes while it grows. Only its last row is laid
// out again when something comes.
type tail struct {
	cols int
	line string   // that was laid out
	rows []string // those that are full
	rest string   // what stands in the last one
}

// layOut is the rows of line, which the colours after it end.
func (t *tail) layOut(line, after string, cols int) []string {
	if t.cols != cols || !strings.HasPrefix(line, t.line) {
		*t = tail{cols: cols}
	}
	t.rest += line[len(t.line):]
	t.line = line
	for {
		row, rest := breakRow(t.rest, cols)
		if rest == "" {
			return append(t.rows[:len(t.rows):len(t.rows)], row+after)
		}
		t.rows, t.rest = append(t.rows, row), rest
	}
}

const tabStop = 8

// breakRow is the first row of text, and the rest with the colours that it
// begins in; the rest is empty if all of it fits.
func breakRow(text string, cols int) (row, rest string) {
	var b strings.Builder
	var colours cleaner
	used := 0
	for at := 0; at < len(text); {
		if text[at] == esc {
			n := max(1, cells.Escape(text[at:]))
			colours.sequence(&b, text[at:at+n])
			at += n
			continue
		}
		cluster, w := cells.Next(text[at:])
		if cluster == "\t" {
			cluster = strings.Repeat(" ", min(tabStop-used%tabStop, max(1, cols-used)))
			w = len(cluster)
		}
		if used+w > cols && used > 0 {
			return b.String() + colours.after, colours.before + text[at:]
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

// change is what makes one row out of another: from column at on, write text.
type change struct {
	at, width int
	text      string
	shorter   bool // what is left of the row is to be erased
}

// glyph is a cluster in its colours.
type glyph struct {
	text, before, after string
	width               int
}

// difference is the least that has to be written to change a row. Where nobody
// can be sure how wide a terminal shows something, all that follows is written
// from the start of the row.
func difference(was, row string) change {
	a, b := glyphs(was), glyphs(row)
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] && certain(a[same]) {
		same++
	}
	if same < len(b) && same > 0 && b[same].width == 0 || same < len(a) && same > 0 && a[same].width == 0 {
		same-- // it joins what stands before it
	}
	c := change{at: width(a[:same])}
	a, b = a[same:], b[same:]
	end := len(b)
	if wide := width(b); wide == width(a) && sure(a) && sure(b) {
		for end > 0 && len(a) > len(b)-end && b[end-1] == a[len(a)-1-(len(b)-end)] {
			end--
		}
	} else {
		c.shorter = wide < width(a) || !sure(a) || !sure(b)
	}
	c.width = width(b[:end])
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

// glyphs are the clusters of a row.
func glyphs(row string) (all []glyph) {
	row, _ = cells.Cut(row, 1<<20)
	all = make([]glyph, 0, len(row))
	var colours cleaner
	var none strings.Builder
	for row != "" {
		if row[0] == esc {
			n := max(1, cells.Escape(row))
			colours.sequence(&none, row[:n])
			row = row[n:]
			continue
		}
		cluster, w := cells.Next(row)
		all = append(all, glyph{cluster, colours.before, colours.after, w})
		row = row[len(cluster):]
	}
	return all
}

func width(gs []glyph) (n int) {
	for _, g := range gs {
		n += g.width
	}
	return n
}

func sure(gs []glyph) bool {
	return !slices.ContainsFunc(gs, func(g glyph) bool { return !certain(g) })
}

// certain reports whether all terminals show g in the same width and place: not
// so with joined characters, pictures, and what is written from right to left.
func certain(g glyph) bool {
	r, n := utf8.DecodeRuneInString(g.text)
	return n == len(g.text) && g.width > 0 && (r < 0x590 || r >= 0x1100 && r < 0x2300 || r >= 0x2800 && r < 0x2900 || r >= 0x2e80 && r < 0xe000)
}
