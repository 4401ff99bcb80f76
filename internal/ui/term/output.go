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
	headLines = 20
	tailLines = 5
	lineBytes = 2000
)

// outputBox shows the beginning and the end of a long text that arrives in pieces, and how much was left
// out between.
type outputBox struct {
	put   ink.Put    // target for text shown now
	kept  []ink.Span // buffer until there is a target
	clean pieces
	ascii bool // the terminal shows only ASCII

	whole strings.Builder // all of it, up to a length
	part  string          // beginning of an incomplete line
	lines int             // complete lines
	// skipped counts printed lines after those that did not arrive.
	skipped int
	column  int      // bytes of the incomplete line
	owed    bool     // a newline is pending
	last    string   // the incomplete line, if not shown
	tail    []string // the last complete lines not shown
}

// empty reports whether nothing has arrived.
func (b *outputBox) empty() bool { return b.lines == 0 && b.column == 0 && b.part == "" }

// skip records that lines were left out before the next text.
func (b *outputBox) skip() {
	if b.skipped > 0 {
		b.lines, b.skipped, b.tail = b.lines+b.skipped, 0, nil
		b.keep(mark(b.ascii, "…", "...") + "\n")
	}
}

// write adds clean text. A line is shown when complete: only then is it certain whether it contains a
// key.
func (b *outputBox) write(text string) {
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		b.part += line
		if ends || len(b.part) > lineBytes {
			b.flush()
		}
		if ends {
			b.newline()
		}
		text = rest
	}
}

// maxWhole is how many bytes of a text are kept to be shown whole later.
const maxWhole = 4 << 20

func (b *outputBox) keep(text string) {
	if b.whole.Len()+len(text) <= maxWhole {
		b.whole.WriteString(text)
	}
}

// flush shows the incomplete line.
func (b *outputBox) flush() {
	line := b.part
	b.part = ""
	text := sanitize.Mask(line)
	if text == "" {
		return
	}
	b.keep(text)
	shown := b.fit(text)
	b.column += len(text)
	if b.lines < headLines {
		b.emit(ink.Plain, shown)
		return
	}
	b.last += shown
}

// fit returns as much of text as the line has room for, with an ellipsis for the rest.
func (b *outputBox) fit(text string) string {
	room := lineBytes - b.column
	switch {
	case room < 0:
		return ""
	case len(text) <= room:
		return text
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	return text[:room] + mark(b.ascii, "…", "...")
}

func (b *outputBox) emit(r ink.Role, text string) {
	if b.owed {
		b.put(ink.Look{}, "\n")
	}
	b.owed = false
	b.put(ink.Look{Role: r}, text)
}

func (b *outputBox) newline() {
	b.keep("\n")
	if b.lines < headLines {
		if b.column == 0 {
			b.emit(ink.Plain, "")
		}
		b.owed = true
	} else {
		b.tail = append(b.tail, b.last)
		b.tail = b.tail[max(0, len(b.tail)-tailLines):]
	}
	b.lines++
	b.column, b.last = 0, ""
}

// end puts the last lines, after a word on those left out. Where there are such it returns the
// whole text.
func (b *outputBox) end(leftOut func(lines int) string) (whole string) {
	if b.put == nil {
		return ""
	}
	b.write(b.clean.rest())
	b.flush()
	if b.column > 0 && b.lines >= headLines {
		b.newline()
	}
	if left := b.lines - headLines - len(b.tail); left > 0 {
		b.emit(ink.Dim, leftOut(left))
		b.owed, whole = true, b.whole.String()
	}
	for _, line := range b.tail {
		b.emit(ink.Plain, line)
		b.owed = true
	}
	b.tail = nil
	return whole
}
