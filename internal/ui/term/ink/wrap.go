package ink

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Wrap wraps lines between words so that none is wider than the terminal. Wrapped text is indented. A
// word wider than a line is broken if it continues indented; otherwise the terminal wraps it, so that it
// can be copied whole.
//
// Text may arrive in any pieces: the last word is held until its end is known.
type Wrap struct {
	Put    Put
	Width  int // 0 disables wrapping
	Indent int // indent of wrapped lines

	column int    // cursor column
	gap    []Span // spaces before the word
	word   []Span // the unfinished word
	wide   int    // columns of the word
	last   rune   // the last rune of the word
	long   bool   // the word fits nowhere, and a part of it was drawn
}

// HardBlank is a space at which no line is broken.
const HardBlank = "\u00a0"

// Resize wraps later text to another width, from the cursor's new column: the terminal has reflowed the
// current line.
func (w *Wrap) Resize(width int) {
	if w.Width = width; width > 0 && w.column > 0 {
		w.column = (w.column-1)%width + 1
	}
}

// Fixed draws the beginning of a line, which is not wrapped.
func (w *Wrap) Fixed(l Look, text string) {
	w.column += Width(text)
	w.Put(l, text)
}

// Write adds text without newlines.
func (w *Wrap) Write(l Look, text string) {
	if w.Width <= 0 {
		w.Put(l, text)
		return
	}
	for text != "" {
		n := w.run(l, text)
		switch part := text[:n]; {
		case n == 0: // a break is possible here
			w.flush()
			w.last, w.long = 0, false
		case blank(text[0]):
			w.flush()
			w.last, w.long = 0, false
			w.gap = append(w.gap, Span{l, part})
		default:
			w.word = append(w.word, Span{l, part})
			if w.wide += Width(part); part[0] >= utf8.RuneSelf && len(w.word) > 1 { // the character may have begun before
				w.wide = Width(textOf(w.word))
			}
			w.last, _ = utf8.DecodeLastRuneInString(part)
			if w.indent() > 0 {
				w.breakWord()
			} else if w.long = w.long || w.wide > w.Width; w.long {
				w.flush()
			}
		}
		text = text[n:]
	}
}

// run returns how much of text is spaces, or continues the held word; 0 if a break is possible before
// it. Code and addresses break only at spaces.
func (w *Wrap) run(l Look, text string) int {
	if blank(text[0]) {
		return len(text) - len(strings.TrimLeft(text, " \t"))
	}
	before := w.last
	name := l.Role == Code || l.Link != "" && strings.Contains(l.Link, text)
	goesOn := name && len(w.word) > 0 && w.word[len(w.word)-1].Look == l
	ticked := false // code, exactly as typed
	for _, s := range w.word {
		ticked = ticked != (strings.Count(s.Text, "`")%2 == 1)
	}
	for i, r := range text {
		switch {
		case r == ' ' || r == '\t' || i >= maxRun:
			return i
		case Breaks(before, r) && !goesOn && !ticked && (i == 0 || !name):
			return i
		}
		before, ticked = r, ticked != (r == '`')
	}
	return len(text)
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// flush draws the held word, on the next line if it does not fit.
func (w *Wrap) flush() {
	if len(w.word) == 0 {
		return
	}
	if w.below() || len(w.gap) > 0 && w.column >= w.Width { // no line begins with spaces
		w.newline()
	} else {
		w.putGap()
	}
	w.put(w.word)
	if w.column += w.wide; w.column > 0 {
		w.column = (w.column-1)%w.Width + 1
	}
	w.word, w.wide = w.word[:0], 0
}

// below reports whether the held word goes on the next line.
func (w *Wrap) below() bool {
	return !w.long && w.column+w.blanks()+w.wide > w.Width && w.column > w.Indent && w.wide <= w.Width-w.indent()
}

// breakWord draws the part of an overlong word that fits on this line, if at least half a line is free,
// and on the lines below, until the rest fits.
func (w *Wrap) breakWord() {
	for {
		whole := w.Width - w.indent()
		room := w.Width - w.column - w.blanks()
		below := w.column > w.indent() && room < w.Width/2
		if below {
			room = whole
		}
		if w.wide <= max(room, whole, 1) {
			return
		}
		if below {
			w.newline()
		} else {
			w.putGap()
		}
		w.putPart(room)
		w.newline()
	}
}

// putPart draws as much of the word as fits into room columns.
func (w *Wrap) putPart(room int) {
	text := textOf(w.word)
	n := Fit(text, room)
	part, rest := cut(w.word, n)
	w.put(part)
	w.word, w.wide = slices.Clone(rest), Width(text[n:])
}

// Rows returns the rows of a line, none wider than width columns unless that is 0 or less. Nothing is
// lost: spaces at a break begin the next row.
func Rows(line []Span, width int) (rows [][]Span) {
	text := textOf(line)
	for wide := columns(text); width > 0 && wide > width && text != ""; {
		n := Fit(text, width)
		wide -= columns(text[:n])
		text = text[n:]
		var row []Span
		row, line = cut(line, n)
		rows = append(rows, row)
	}
	return append(rows, line)
}

// Fit returns how much of an overlong text to place on a line of this width: up to a space in the second
// half, or earlier if the next word fits into a line; otherwise to after a slash or another sign there,
// otherwise all that fits, at least one character.
func Fit(text string, width int) (n int) {
	blank, early, slash, sign := 0, 0, 0, 0
	signs := displaywidth.StringGraphemes(text)
	for i := 0; signs.Next(); {
		c := signs.Value()
		if c == " " || c == "\t" {
			if early = i; columns(text[:i]) > width/2 {
				blank = i
			}
		}
		end := i + len(c)
		wide := columns(text[:end])
		if i > 0 && wide > width {
			break
		}
		switch n = end; {
		case wide <= width/2:
		case c == "/":
			slash = end
		case strings.Contains(".,:;=&?_-)]}|", c):
			sign = end
		}
		i = end
	}
	if blank == 0 && early > 0 && strings.Trim(text[:early], " \t") != "" {
		word := text[early+1:]
		if end := strings.IndexAny(word, " \t"); end >= 0 {
			word = word[:end]
		}
		if columns(word) < width {
			return early
		}
	}
	return cmp.Or(blank, slash, sign, n)
}

// columns returns the most columns that text takes: a tab may be as wide as its stops are apart.
func columns(text string) int { return Width(text) + tabStop*strings.Count(text, "\t") }

const tabStop = 8

func textOf(spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// cut splits spans after the first n bytes.
func cut(spans []Span, n int) (head, rest []Span) {
	for i, s := range spans {
		if len(s.Text) > n {
			head = append(head, Span{s.Look, s.Text[:n]})
			spans[i].Text = s.Text[n:]
			return head, spans[i:]
		}
		head = append(head, s)
		n -= len(s.Text)
	}
	return head, nil
}

// newline continues on the next line, indented; pending spaces are dropped.
func (w *Wrap) newline() {
	w.Put(Look{}, "\n"+strings.Repeat(" ", w.indent()))
	w.column, w.gap = w.indent(), w.gap[:0]
}

func (w *Wrap) putGap() {
	w.put(w.gap)
	w.column += w.blanks()
	w.gap = w.gap[:0]
}

// blanks returns the columns of the spaces before the word: a tab reaches to its next stop.
func (w *Wrap) blanks() (n int) {
	for _, s := range w.gap {
		for i := range len(s.Text) {
			if n++; s.Text[i] == '\t' {
				n += tabStop - 1 - (w.column+n-1)%tabStop
			}
		}
	}
	return n
}

// indent returns Indent, or less if little room would remain.
func (w *Wrap) indent() int {
	if w.Width-w.Indent < minRoom {
		return min(w.Indent, 2, w.Width/4)
	}
	return w.Indent
}

const minRoom = 20

// maxRun is how many bytes of a word are examined at once.
const maxRun = 1 << 10

func (w *Wrap) put(spans []Span) {
	for _, s := range spans {
		w.Put(s.Look, s.Text)
	}
}

// Anew continues the line on a new line, because other output is below it. It returns the indent to use.
func (w *Wrap) Anew() (indent int) {
	w.column = w.indent()
	return w.column
}

// Held returns the unfinished word with the spaces before it, or a newline if it goes on the next line.
func (w *Wrap) Held() []Span {
	switch {
	case len(w.word) == 0:
		return nil
	case w.below():
		return append([]Span{{Text: "\n" + strings.Repeat(" ", w.indent())}}, w.word...)
	}
	return append(w.gap[:len(w.gap):len(w.gap)], w.word...)
}

// End ends the line: it draws the held word, without trailing spaces.
func (w *Wrap) End() {
	w.flush()
	*w = Wrap{Put: w.Put, Width: w.Width}
}

// Folded wraps the lines of text between words; width 0 leaves them unchanged.
func Folded(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Hung(line, width, Hanging(line))
	}
	return strings.Join(lines, "\n")
}

// Hung wraps a line between words, with this indent.
func Hung(line string, width, indent int) string {
	var b strings.Builder
	w := Wrap{Put: func(_ Look, text string) { b.WriteString(text) }, Width: width, Indent: indent}
	w.Write(Look{}, line)
	w.End()
	return b.String()
}

// End returns the end of a text that fits into columns; dots replace the text before. The cost depends
// only on what is shown.
func End(text string, columns int, dots string) string {
	whole := len(text)
	if most := 32 * max(columns, 1); whole > most {
		text = strings.TrimLeftFunc(text[whole-most:], func(r rune) bool { return r == utf8.RuneError })
	}
	if len(text) == whole && Width(text) <= columns {
		return text
	}
	from := len(text)
	for from > 0 {
		_, n := utf8.DecodeLastRuneInString(text[:from])
		if Width(text[from-n:])+Width(dots) > columns {
			break
		}
		from -= n
	}
	return dots + text[from:]
}

// Hanging returns the indent of a text's wrapped lines: below the words of a list item or quote,
// otherwise below the first letter.
func Hanging(line string) int {
	text := strings.TrimLeft(line, " \t>")
	n := len(text)
	digits := strings.TrimLeft(text, "0123456789")
	switch {
	case text == "":
	case strings.HasPrefix(text, "- "), strings.HasPrefix(text, "* "), strings.HasPrefix(text, "+ "), strings.HasPrefix(text, "• "):
		_, size := utf8.DecodeRuneInString(text)
		n = len(strings.TrimLeft(text[size:], " "))
	case strings.HasPrefix(text, ": "): // a definition
		n = len(strings.TrimLeft(text[1:], " "))
	case strings.HasPrefix(text, "[^") && strings.Contains(text, "]: "): // a footnote
		_, words, _ := strings.Cut(text, "]: ")
		n = len(strings.TrimLeft(words, " "))
	case len(digits) < len(text) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") ")):
		n = len(strings.TrimLeft(digits[1:], " "))
	}
	return Width(line[:len(line)-n])
}

// Signs that must not begin, or end, a line.
const (
	closing = "，。：；、！？）】》”’…)]}"
	opening = "（【《“‘([{"
)

// Break returns the first possible break in word, which has no spaces: its end, or between characters of
// a script without spaces.
func Break(word string) int {
	var before rune
	for i, r := range word {
		if Breaks(before, r) {
			return i
		}
		before = r
	}
	return len(word)
}

// Breaks reports whether a line may be broken between two characters that are not spaces: one is of a
// script without spaces, and they need not stay together. before is 0 at the beginning of a line.
func Breaks(before, r rune) bool {
	return before != 0 && (isWide(before) || isWide(r)) && Width(string(r)) > 0 && !joins(before, r) &&
		r != '.' && r != ',' && r != '/' && before != '/' && !strings.ContainsRune(closing, r) && !strings.ContainsRune(opening, before)
}

// joins reports whether two characters with a width may be parts of one sign: an emoji or a flag.
func joins(before, r rune) bool {
	const joiner = '\u200d'
	flag := func(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
	skin := r >= 0x1f3fb && r <= 0x1f3ff
	return before == joiner || skin || flag(before) && flag(r)
}

func isWide(r rune) bool { return r >= 0x1100 && Width(string(r)) == 2 }
