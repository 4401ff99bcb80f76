package term

import (
	"strings"
	"unicode/utf8"

	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// How much of a call's output is shown: the first lines as they come and the
// last ones in the end, each up to a length in bytes.
const (
	headLines = 20
	tailLines = 5
	lineBytes = 2000
)

// outputBox shows the beginning and the end of a long text that arrives in
// pieces, and says how much was left out between.
type outputBox struct {
	put   ink.Put    // for what is shown now
	kept  []ink.Span // or until then
	clean pieces
	ascii bool // the terminal shows no more

	whole strings.Builder // all of it, up to a length
	part  string          // the beginning of a line whose rest has not come
	lines int             // that are complete
	// skipped are lines that were printed after those and that did not come.
	skipped int
	column  int      // bytes of the line that is not
	owed    bool     // a line end was not put yet
	last    string   // the line that is not complete, if it was not put
	tail    []string // the last complete lines that were not put
}

// empty reports whether nothing has come.
func (b *outputBox) empty() bool { return b.lines == 0 && b.column == 0 && b.part == "" }

// skip takes in that lines were left out before what comes next.
func (b *outputBox) skip() {
	if b.skipped > 0 {
		b.lines, b.skipped, b.tail = b.lines+b.skipped, 0, nil
		b.keep(mark(b.ascii, "…", "...") + "\n")
	}
}

// write takes clean text. A line is shown when it is whole: only then can be
// told whether it holds a key.
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

// flush shows what there is of the line.
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

// fit is as much of text as the line may still take; an ellipsis stands for
// the rest.
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
