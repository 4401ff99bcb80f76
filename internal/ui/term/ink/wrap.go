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
	Put    SpanFunc
	Width  int // 0 disables wrapping
	Indent int // indent of wrapped lines

	column    int    // cursor column
	gap       []Span // spaces before the word
	word      []Span // the unfinished word
	wordWidth int    // columns of the word
	lastRune  rune   // the last rune of the word
	overlong  bool   // the word fits nowhere, and a part of it was drawn
}

// NoBreakSpace is a space at which no line is broken.
const NoBreakSpace = "\u00a0"

// Resize wraps later text to another width, from the cursor's new column: the terminal has reflowed the
// current line.
func (w *Wrap) Resize(width int) {
	if w.Width = width; width > 0 && w.column > 0 {
		w.column = (w.column-1)%width + 1
	}
}

// WriteFixed draws the beginning of a line, which is not wrapped.
func (w *Wrap) WriteFixed(l Style, text string) {
	w.column += Width(text)
	w.Put(l, text)
}

// Write adds text without newlines.
func (w *Wrap) Write(l Style, text string) {
	if w.Width <= 0 {
		w.Put(l, text)
		return
	}
	for text != "" {
		n := w.runLength(l, text)
		switch part := text[:n]; {
		case n == 0: // a break is possible here
			w.flush()
			w.lastRune, w.overlong = 0, false
		case isBlank(text[0]):
			w.flush()
			w.lastRune, w.overlong = 0, false
			w.gap = append(w.gap, Span{l, part})
		default:
			w.word = append(w.word, Span{l, part})
			if w.wordWidth += Width(part); part[0] >= utf8.RuneSelf && len(w.word) > 1 { // the character may have begun before
				w.wordWidth = Width(spansText(w.word))
			}
			w.lastRune, _ = utf8.DecodeLastRuneInString(part)
			if w.wrapIndent() > 0 {
				w.breakWord()
			} else if w.overlong = w.overlong || w.wordWidth > w.Width; w.overlong {
				w.flush()
			}
		}
		text = text[n:]
	}
}

// runLength returns how much of text is spaces, or continues the held word; 0 if a break is possible before
// it. Code and addresses break only at spaces.
func (w *Wrap) runLength(l Style, text string) int {
	if isBlank(text[0]) {
		return len(text) - len(strings.TrimLeft(text, " \t"))
	}
	before := w.lastRune
	name := l.Role == Code || l.Link != "" && strings.Contains(l.Link, text)
	goesOn := name && len(w.word) > 0 && w.word[len(w.word)-1].Style == l
	ticked := false // code, exactly as typed
	for _, s := range w.word {
		ticked = ticked != (strings.Count(s.Text, "`")%2 == 1)
	}
	for i, r := range text {
		switch {
		case r == ' ' || r == '\t' || i >= maxExamined:
			return i
		case CanBreak(before, r) && !goesOn && !ticked && (i == 0 || !name):
			return i
		}
		before, ticked = r, ticked != (r == '`')
	}
	return len(text)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// flush draws the held word, on the next line if it does not fit.
func (w *Wrap) flush() {
	if len(w.word) == 0 {
		return
	}
	if w.wrapsWord() || len(w.gap) > 0 && w.column >= w.Width { // no line begins with spaces
		w.newline()
	} else {
		w.drawGap()
	}
	w.draw(w.word)
	if w.column += w.wordWidth; w.column > 0 {
		w.column = (w.column-1)%w.Width + 1
	}
	w.word, w.wordWidth = w.word[:0], 0
}

// wrapsWord reports whether the held word goes on the next line.
func (w *Wrap) wrapsWord() bool {
	return !w.overlong && w.column+w.gapWidth()+w.wordWidth > w.Width && w.column > w.Indent &&
		w.wordWidth <= w.Width-w.wrapIndent()
}

// breakWord draws the part of an overlong word that fits on this line, if at least half a line is free,
// and on the lines below, until the rest fits.
func (w *Wrap) breakWord() {
	for {
		whole := w.Width - w.wrapIndent()
		room := w.Width - w.column - w.gapWidth()
		below := w.column > w.wrapIndent() && room < w.Width/2
		if below {
			room = whole
		}
		if w.wordWidth <= max(room, whole, 1) {
			return
		}
		if below {
			w.newline()
		} else {
			w.drawGap()
		}
		w.drawPart(room)
		w.newline()
	}
}

// drawPart draws as much of the word as fits into room columns.
func (w *Wrap) drawPart(room int) {
	text := spansText(w.word)
	n := FitLen(text, room)
	part, rest := splitSpans(w.word, n)
	w.draw(part)
	w.word, w.wordWidth = slices.Clone(rest), Width(text[n:])
}

// WrapRows returns the rows of a line, none wider than width columns unless that is 0 or less. Nothing is
// lost: spaces at a break begin the next row.
func WrapRows(line []Span, width int) (rows [][]Span) {
	text := spansText(line)
	for wide := maxColumns(text); width > 0 && wide > width && text != ""; {
		n := FitLen(text, width)
		wide -= maxColumns(text[:n])
		text = text[n:]
		var row []Span
		row, line = splitSpans(line, n)
		rows = append(rows, row)
	}
	return append(rows, line)
}

// FitLen returns how much of an overlong text to place on a line of this width: up to a space in the second
// half, or earlier if the next word fits into a line; otherwise to after a slash or another sign there,
// otherwise all that fits, at least one character.
func FitLen(text string, width int) (n int) {
	blank, early, slash, sign := 0, 0, 0, 0
	signs := displaywidth.StringGraphemes(text)
	for i := 0; signs.Next(); {
		c := signs.Value()
		if c == " " || c == "\t" {
			if early = i; maxColumns(text[:i]) > width/2 {
				blank = i
			}
		}
		end := i + len(c)
		wide := maxColumns(text[:end])
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
		if maxColumns(word) < width {
			return early
		}
	}
	return cmp.Or(blank, slash, sign, n)
}

// maxColumns returns the most columns that text takes: a tab may be as wide as its stops are apart.
func maxColumns(text string) int { return Width(text) + tabStop*strings.Count(text, "\t") }

const tabStop = 8

func spansText(spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// splitSpans splits spans after the first n bytes.
func splitSpans(spans []Span, n int) (head, rest []Span) {
	for i, s := range spans {
		if len(s.Text) > n {
			head = append(head, Span{s.Style, s.Text[:n]})
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
	w.Put(Style{}, "\n"+strings.Repeat(" ", w.wrapIndent()))
	w.column, w.gap = w.wrapIndent(), w.gap[:0]
}

func (w *Wrap) drawGap() {
	w.draw(w.gap)
	w.column += w.gapWidth()
	w.gap = w.gap[:0]
}

// gapWidth returns the columns of the spaces before the word: a tab reaches to its next stop.
func (w *Wrap) gapWidth() (n int) {
	for _, s := range w.gap {
		for i := range len(s.Text) {
			if n++; s.Text[i] == '\t' {
				n += tabStop - 1 - (w.column+n-1)%tabStop
			}
		}
	}
	return n
}

// wrapIndent returns Indent, or less if little room would remain.
func (w *Wrap) wrapIndent() int {
	if w.Width-w.Indent < minWrapRoom {
		return min(w.Indent, 2, w.Width/4)
	}
	return w.Indent
}

const minWrapRoom = 20

// maxExamined is how many bytes of a word are examined at once.
const maxExamined = 1 << 10

func (w *Wrap) draw(spans []Span) {
	for _, s := range spans {
		w.Put(s.Style, s.Text)
	}
}

// Restart continues the line on a new line, because other output is below it. It returns the indent to use.
func (w *Wrap) Restart() (indent int) {
	w.column = w.wrapIndent()
	return w.column
}

// Pending returns the unfinished word with the spaces before it, or a newline if it goes on the next line.
func (w *Wrap) Pending() []Span {
	switch {
	case len(w.word) == 0:
		return nil
	case w.wrapsWord():
		return append([]Span{{Text: "\n" + strings.Repeat(" ", w.wrapIndent())}}, w.word...)
	}
	return append(w.gap[:len(w.gap):len(w.gap)], w.word...)
}

// End ends the line: it draws the held word, without trailing spaces.
func (w *Wrap) End() {
	w.flush()
	*w = Wrap{Put: w.Put, Width: w.Width}
}

// FoldText wraps the lines of text between words; width 0 leaves them unchanged.
func FoldText(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = FoldLine(line, width, HangIndent(line))
	}
	return strings.Join(lines, "\n")
}

// FoldLine wraps a line between words, with this indent.
func FoldLine(line string, width, indent int) string {
	var b strings.Builder
	w := Wrap{Put: func(_ Style, text string) { b.WriteString(text) }, Width: width, Indent: indent}
	w.Write(Style{}, line)
	w.End()
	return b.String()
}

// TruncateLeft returns the end of a text that fits into columns; dots replace the text before. The cost depends
// only on what is shown.
func TruncateLeft(text string, columns int, dots string) string {
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

// HangIndent returns the indent of a text's wrapped lines: below the words of a list item or quote,
// otherwise below the first letter.
func HangIndent(line string) int {
	text := strings.TrimLeft(line, " \t>")
	n := len(text)
	digits := strings.TrimLeft(text, "0123456789")
	switch {
	case text == "":
	case strings.HasPrefix(text, "- "), strings.HasPrefix(text, "* "), strings.HasPrefix(text, "+ "),
		strings.HasPrefix(text, "• "):
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
	closingSigns = "，。：；、！？）】》”’…)]}"
	openingSigns = "（【《“‘([{"
)

// BreakIndex returns the first possible break in word, which has no spaces: its end, or between characters of
// a script without spaces.
func BreakIndex(word string) int {
	var before rune
	for i, r := range word {
		if CanBreak(before, r) {
			return i
		}
		before = r
	}
	return len(word)
}

// CanBreak reports whether a line may be broken between two characters that are not spaces: one is of a
// script without spaces, and they need not stay together. before is 0 at the beginning of a line.
func CanBreak(before, r rune) bool {
	return before != 0 && (isWide(before) || isWide(r)) && Width(string(r)) > 0 && !isJoined(before, r) &&
		r != '.' && r != ',' && r != '/' && before != '/' && !strings.ContainsRune(closingSigns, r) &&
		!strings.ContainsRune(openingSigns, before)
}

// isJoined reports whether two characters with a width may be parts of one sign: an emoji or a flag.
func isJoined(before, r rune) bool {
	const joiner = '\u200d'
	flag := func(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
	skin := r >= 0x1f3fb && r <= 0x1f3ff
	return before == joiner || skin || flag(before) && flag(r)
}

func isWide(r rune) bool { return r >= 0x1100 && Width(string(r)) == 2 }
