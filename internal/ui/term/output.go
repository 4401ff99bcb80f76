package term

import (
	"strings"
	"unicode/utf8"

	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// How much of a call's output is shown: the first lines as they arrive and the last ones at the end,
// both limited in bytes.
const (
	headLines    = 20
	tailLines    = 5
	maxLineBytes = 2000
)

// outputBox shows the beginning and the end of a long text that arrives in pieces, and how much was left
// out between.
type outputBox struct {
	target   ink.SpanFunc // target for text shown now
	buffered []ink.Span   // buffer until there is a target
	cleaner  pieceCleaner
	ascii    bool // the terminal shows only ASCII

	fullText    strings.Builder // all of it, up to a length
	partialLine string          // beginning of an incomplete line
	lines       int             // complete lines
	// skipped counts printed lines after those that did not arrive.
	skipped     int
	column      int      // bytes of the incomplete line
	owesNewline bool     // a newline is pending
	hiddenLine  string   // the incomplete line, if not shown
	tail        []string // the last complete lines not shown
}

// isEmpty reports whether nothing has arrived.
func (b *outputBox) isEmpty() bool { return b.lines == 0 && b.column == 0 && b.partialLine == "" }

// skipLines records that lines were left out before the next text.
func (b *outputBox) skipLines() {
	if b.skipped > 0 {
		b.lines, b.skipped, b.tail = b.lines+b.skipped, 0, nil
		b.keepText(signFor(b.ascii, "…", "...") + "\n")
	}
}

// write adds clean text. A line is shown when complete: only then is it certain whether it contains a
// key.
func (b *outputBox) write(text string) {
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		b.partialLine += line
		if ends || len(b.partialLine) > maxLineBytes {
			b.flush()
		}
		if ends {
			b.newline()
		}
		text = rest
	}
}

// maxFullText is how many bytes of a text are kept to be shown whole later.
const maxFullText = 4 << 20

func (b *outputBox) keepText(text string) {
	if b.fullText.Len()+len(text) <= maxFullText {
		b.fullText.WriteString(text)
	}
}

// flush shows the incomplete line.
func (b *outputBox) flush() {
	line := b.partialLine
	b.partialLine = ""
	text := sanitize.Mask(line)
	if text == "" {
		return
	}
	b.keepText(text)
	shown := b.fit(text)
	b.column += len(text)
	if b.lines < headLines {
		b.emit(ink.Plain, shown)
		return
	}
	b.hiddenLine += shown
}

// fit returns as much of text as the line has room for, with an ellipsis for the rest.
func (b *outputBox) fit(text string) string {
	room := maxLineBytes - b.column
	switch {
	case room < 0:
		return ""
	case len(text) <= room:
		return text
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	return text[:room] + signFor(b.ascii, "…", "...")
}

func (b *outputBox) emit(r ink.Role, text string) {
	if b.owesNewline {
		b.target(ink.Style{}, "\n")
	}
	b.owesNewline = false
	b.target(ink.Style{Role: r}, text)
}

func (b *outputBox) newline() {
	b.keepText("\n")
	if b.lines < headLines {
		if b.column == 0 {
			b.emit(ink.Plain, "")
		}
		b.owesNewline = true
	} else {
		b.tail = append(b.tail, b.hiddenLine)
		b.tail = b.tail[max(0, len(b.tail)-tailLines):]
	}
	b.lines++
	b.column, b.hiddenLine = 0, ""
}

// finish puts the last lines, after a word on those left out. Where there are such it returns the
// whole text.
func (b *outputBox) finish(leftOut func(lines int) string) (whole string) {
	if b.target == nil {
		return ""
	}
	b.write(b.cleaner.flush())
	b.flush()
	if b.column > 0 && b.lines >= headLines {
		b.newline()
	}
	if left := b.lines - headLines - len(b.tail); left > 0 {
		b.emit(ink.Dim, leftOut(left))
		b.owesNewline, whole = true, b.fullText.String()
	}
	for _, line := range b.tail {
		b.emit(ink.Plain, line)
		b.owesNewline = true
	}
	b.tail = nil
	return whole
}
