package ink

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks lines between words, so that none is wider than a terminal. What
// does not fit goes on below, set in. A word that is wider than a line is left
// to the terminal, so that it can be copied whole.
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
		n := w.run(text)
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
			w.wide += Width(part)
			w.last, _ = utf8.DecodeLastRuneInString(part)
			if w.long = w.long || w.wide > w.Width; w.long {
				w.flush()
			}
		}
		text = text[n:]
	}
}

// run is how much of text is blanks, or goes on in the word that is held; 0 if
// a line may be broken before it.
func (w *Wrap) run(text string) int {
	if blank(text[0]) {
		return len(text) - len(strings.TrimLeft(text, " \t"))
	}
	before := w.last
	for i, r := range text {
		switch {
		case r == ' ' || r == '\t':
			return i
		case breaks(before, r):
			return i
		}
		before = r
	}
	return len(text)
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// flush puts the word that is held, on the next line if it does not fit.
func (w *Wrap) flush() {
	if len(w.word) == 0 {
		return
	}
	gap := 0
	for _, s := range w.gap {
		gap += Width(strings.ReplaceAll(s.Text, "\t", " "))
	}
	if !w.long && w.column+gap+w.wide > w.Width && w.column > w.Indent && w.wide <= w.Width-w.indent() {
		w.Put(Look{}, "\n"+strings.Repeat(" ", w.indent()))
		w.column = w.indent()
	} else {
		w.put(w.gap)
		w.column += gap
	}
	w.put(w.word)
	if w.column += w.wide; w.column > 0 {
		w.column = (w.column-1)%w.Width + 1
	}
	w.gap, w.word, w.wide = w.gap[:0], w.word[:0], 0
}

// indent is Indent, or less where little room would be left beside it.
func (w *Wrap) indent() int {
	if w.Width-w.Indent < minRoom {
		return min(w.Indent, 2)
	}
	return w.Indent
}

const minRoom = 20

func (w *Wrap) put(spans []Span) {
	for _, s := range spans {
		w.Put(s.Look, s.Text)
	}
}

// Held is the word that was not put yet, with the blanks before it.
func (w *Wrap) Held() []Span {
	if len(w.word) == 0 {
		return nil
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
	var b strings.Builder
	w := Wrap{Put: func(_ Look, text string) { b.WriteString(text) }, Width: width}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		w.Indent = Hanging(line)
		w.Write(Look{}, line)
		w.End()
	}
	return b.String()
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
	case len(digits) < len(text) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") ")):
		n = len(strings.TrimLeft(digits[1:], " "))
	}
	return Width(line[:len(line)-n])
}

// Signs that do not begin, or do not end, a line.
const (
	closing = "，。：；、！？）】》”’…"
	opening = "（【《“‘"
)

// Break is where word, which has no blanks, may first be broken: at its end, or
// between characters of a script that has no blanks.
func Break(word string) int {
	var before rune
	for i, r := range word {
		if breaks(before, r) {
			return i
		}
		before = r
	}
	return len(word)
}

func breaks(before, r rune) bool {
	return before != 0 && (isWide(before) || isWide(r)) && Width(string(r)) > 0 &&
		r != '.' && r != ',' && r != '/' && before != '/' && !strings.ContainsRune(closing, r) && !strings.ContainsRune(opening, before)
}

func isWide(r rune) bool { return r >= 0x1100 && Width(string(r)) == 2 }
