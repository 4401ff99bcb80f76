package ink

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Wrap breaks lines between words, so that none is wider than a terminal. What
// does not fit goes on below, set in. A word that is wider than a line is broken
// where it goes on set in; else it is left to the terminal, so that it can be
// copied whole.
//
// Text comes in any pieces: the last word is held until it is known where it
// ends.
type Wrap struct {
	Put    Put
	Width  int // 0: lines are not broken
	Indent int // how far what goes on below is set in

	column int    // of what was put
	gap    []Span // blanks before the word
	word   []Span // that has not ended
	wide   int    // columns of the word
	last   rune   // of the word
	long   bool   // the word fits nowhere, and what came of it was put
}

// HardBlank is a blank at which no line is broken.
const HardBlank = "\u00a0"

// Resize has what follows broken for another width, from where the cursor then is:
// a terminal breaks what stands in the line anew.
func (w *Wrap) Resize(width int) {
	if w.Width = width; width > 0 && w.column > 0 {
		w.column = (w.column-1)%width + 1
	}
}

// Fixed puts the beginning of a line, which is not broken.
func (w *Wrap) Fixed(l Look, text string) {
	w.column += Width(text)
	w.Put(l, text)
}

// Write puts text without line ends.
func (w *Wrap) Write(l Look, text string) {
	if w.Width <= 0 {
		w.Put(l, text)
		return
	}
	for text != "" {
		n := w.run(l, text)
		switch part := text[:n]; {
		case n == 0: // a line may be broken here
			w.flush()
			w.last, w.long = 0, false
		case blank(text[0]):
			w.flush()
			w.last, w.long = 0, false
			w.gap = append(w.gap, Span{l, part})
		default:
			w.word = append(w.word, Span{l, part})
			if w.wide += Width(part); part[0] >= utf8.RuneSelf && len(w.word) > 1 { // its sign may have begun before
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

// run is how much of text is blanks, or goes on in the word that is held; 0 if
// a line may be broken before it. Code and addresses are broken at blanks only.
func (w *Wrap) run(l Look, text string) int {
	if blank(text[0]) {
		return len(text) - len(strings.TrimLeft(text, " \t"))
	}
	before := w.last
	name := l.Role == Code || l.Link != "" && strings.Contains(l.Link, text)
	goesOn := name && len(w.word) > 0 && w.word[len(w.word)-1].Look == l
	ticked := false // it is code as it was typed
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

// flush puts the word that is held, on the next line if it does not fit.
func (w *Wrap) flush() {
	if len(w.word) == 0 {
		return
	}
	if w.below() || len(w.gap) > 0 && w.column >= w.Width { // no line begins with blanks
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

// below reports whether the word that is held goes on the next line.
func (w *Wrap) below() bool {
	return !w.long && w.column+w.blanks()+w.wide > w.Width && w.column > w.Indent && w.wide <= w.Width-w.indent()
}

// breakWord puts what of a word that is wider than a line stands in this one, if
// that has room for half a line of it, and in those below, until the rest fits.
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

// putPart puts as much of the word as fits into so many columns.
func (w *Wrap) putPart(room int) {
	text := textOf(w.word)
	n := Fit(text, room)
	part, rest := cut(w.word, n)
	w.put(part)
	w.word, w.wide = slices.Clone(rest), Width(text[n:])
}

// Rows are the rows of a line, none wider than so many columns unless that is 0 or less,
// with nothing left out: blanks begin the row below them.
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

// Fit is how much of a text that is wider than width stands in a line so wide: up to a
// blank in the second half of what fits, or before, if the word behind it fits into a line;
// to behind a slash or else another sign there, else all that fits, and one character at least.
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

// columns is the most that text takes: a tab may be as wide as its stops are apart.
func columns(text string) int { return Width(text) + tabStop*strings.Count(text, "\t") }

const tabStop = 8

func textOf(spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// cut parts spans behind the first n bytes.
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

// newline goes on below, set in; blanks before a word are not put then.
func (w *Wrap) newline() {
	w.Put(Look{}, "\n"+strings.Repeat(" ", w.indent()))
	w.column, w.gap = w.indent(), w.gap[:0]
}

func (w *Wrap) putGap() {
	w.put(w.gap)
	w.column += w.blanks()
	w.gap = w.gap[:0]
}

// blanks is how many columns there are before the word: a tab reaches to its next stop.
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

// indent is Indent, or less where little room would be left beside it.
func (w *Wrap) indent() int {
	if w.Width-w.Indent < minRoom {
		return min(w.Indent, 2, w.Width/4)
	}
	return w.Indent
}

const minRoom = 20

// maxRun is how many bytes of a word are looked at in one go.
const maxRun = 1 << 10

func (w *Wrap) put(spans []Span) {
	for _, s := range spans {
		w.Put(s.Look, s.Text)
	}
}

// Anew has the line go on in one of its own: something stands below what was put. It
// returns how far that is to be set in.
func (w *Wrap) Anew() (indent int) {
	w.column = w.indent()
	return w.column
}

// Held is the word that was not put yet, with the blanks before it, or the end of the line
// if it goes below that.
func (w *Wrap) Held() []Span {
	switch {
	case len(w.word) == 0:
		return nil
	case w.below():
		return append([]Span{{Text: "\n" + strings.Repeat(" ", w.indent())}}, w.word...)
	}
	return append(w.gap[:len(w.gap):len(w.gap)], w.word...)
}

// End ends the line: what was held is put, and blanks at its end are not.
func (w *Wrap) End() {
	w.flush()
	*w = Wrap{Put: w.Put, Width: w.Width}
}

// Folded is text with its lines broken between words for a width; 0: as it is.
func Folded(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Hung(line, width, Hanging(line))
	}
	return strings.Join(lines, "\n")
}

// Hung is a line broken between words for a width; what goes on is set in so far.
func Hung(line string, width, indent int) string {
	var b strings.Builder
	w := Wrap{Put: func(_ Look, text string) { b.WriteString(text) }, Width: width, Indent: indent}
	w.Write(Look{}, line)
	w.End()
	return b.String()
}

// End is the end of a text that fits into so many columns: dots stand for what is before
// it. The cost is that of what is shown.
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

// Hanging is how far the lines of a text go on set in: below the words of an
// item of a list or of a quote, else below its first letter.
func Hanging(line string) int {
	text := strings.TrimLeft(line, " \t>")
	n := len(text)
	digits := strings.TrimLeft(text, "0123456789")
	switch {
	case text == "":
	case strings.HasPrefix(text, "- "), strings.HasPrefix(text, "* "), strings.HasPrefix(text, "+ "), strings.HasPrefix(text, "• "):
		_, size := utf8.DecodeRuneInString(text)
		n = len(strings.TrimLeft(text[size:], " "))
	case strings.HasPrefix(text, ": "): // what a term means
		n = len(strings.TrimLeft(text[1:], " "))
	case strings.HasPrefix(text, "[^") && strings.Contains(text, "]: "): // a note
		_, words, _ := strings.Cut(text, "]: ")
		n = len(strings.TrimLeft(words, " "))
	case len(digits) < len(text) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") ")):
		n = len(strings.TrimLeft(digits[1:], " "))
	}
	return Width(line[:len(line)-n])
}

// Signs that do not begin, or do not end, a line.
const (
	closing = "，。：；、！？）】》”’…)]}"
	opening = "（【《“‘([{"
)

// Break is where word, which has no blanks, may first be broken: at its end, or
// between characters of a script that has no blanks.
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

// Breaks reports whether a line may be broken between two characters that are not blanks:
// one is of a script without blanks, and they need not stay together. Before is 0 at the
// beginning of a line.
func Breaks(before, r rune) bool {
	return before != 0 && (isWide(before) || isWide(r)) && Width(string(r)) > 0 && !joins(before, r) &&
		r != '.' && r != ',' && r != '/' && before != '/' && !strings.ContainsRune(closing, r) && !strings.ContainsRune(opening, before)
}

// joins reports whether two characters that have a width may be parts of one sign: of an
// emoji, or of a flag.
func joins(before, r rune) bool {
	const joiner = '\u200d'
	flag := func(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
	skin := r >= 0x1f3fb && r <= 0x1f3ff
	return before == joiner || skin || flag(before) && flag(r)
}

func isWide(r rune) bool { return r >= 0x1100 && Width(string(r)) == 2 }
