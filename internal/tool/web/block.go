package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// writer lays text out in blocks: paragraphs, list items, rows,
// code. It collects a block in line and writes it when it ends.
type writer struct {
	markdown bool
	limit    int // bytes of output
	out      []byte
	full     bool // the limit was reached

	line          []byte
	pendingSpace  bool // white space precedes the next word
	pendingBreaks int  // wanted line breaks before the next block

	lists      []list
	quoteDepth int
	bullet     string // of the current item if it has no text yet
	heading    string // the mark of the current heading
}

// list is an open list.
type list struct {
	ordered bool
	number  int // of the next item
	items   int
}

const (
	maxIndent = 16  // lists and quotes shown inside each other
	maxNested = 256 // lists and tables tracked
)

// writeText adds text to the block, with white space collapsed.
func (w *writer) writeText(s string) {
	for i, r := range s {
		switch {
		case unicode.IsSpace(r):
			w.pendingSpace = true
			continue
		case r == 0xad || r == 0x200b || r == 0x2060 || r == 0xfeff:
			continue // invisible: permits or forbids a line break
		}
		w.writeSpace()
		_, n := utf8.DecodeRuneInString(s[i:])
		w.line = append(w.line, s[i:i+n]...)
	}
	w.checkLimit()
}

// writeSpace writes the space before a word.
func (w *writer) writeSpace() {
	if n := len(w.line); w.pendingSpace && n > 0 && w.line[n-1] != '\n' {
		w.line = append(w.line, ' ')
	}
	w.pendingSpace = false
}

// checkLimit records whether the limit is reached.
func (w *writer) checkLimit() { w.full = w.full || len(w.out)+len(w.line) > w.limit }

// flushBlock writes the block, if there is one, and requests space before the next one.
func (w *writer) flushBlock(gap int) {
	text := strings.TrimSpace(string(w.line))
	w.line, w.pendingSpace = w.line[:0], false
	if text != "" {
		w.writeBlock(text)
	}
	if w.bullet == "" {
		w.pendingBreaks = max(w.pendingBreaks, gap)
	}
}

// writeBlock writes the lines of a block.
func (w *writer) writeBlock(text string) {
	if len(w.out) > 0 {
		w.out = append(w.out, strings.Repeat("\n", max(w.pendingBreaks, 1))...)
	}
	w.pendingBreaks = 0
	depth := min(len(w.lists), maxIndent)
	margin := w.linePrefix(depth)
	first := margin
	if w.bullet != "" {
		first = w.linePrefix(max(depth-1, 0)) + w.bullet
		w.bullet = ""
	}
	first += w.heading
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			w.out = append(w.out, '\n')
			first = margin
		}
		w.out = append(w.out, strings.TrimRight(first+line, " ")...)
	}
	w.checkLimit()
}

// linePrefix returns the prefix of every line: quote marks, indentation.
func (w *writer) linePrefix(depth int) string {
	m := strings.Repeat("  ", depth)
	if w.markdown {
		m = strings.Repeat("> ", min(w.quoteDepth, maxIndent)) + m
	}
	return m
}

// listGap returns the space around a list: none inside another list.
func (w *writer) listGap() int {
	if len(w.lists) > 0 {
		return 1
	}
	return 2
}
