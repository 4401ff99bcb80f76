package term

import (
	"strings"
	"unicode/utf8"

	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// page collects the text that one event adds to the stream. It tracks whether the cursor is at the start
// of a line, and closes every style before the text is written, so that others may write in between.
type page struct {
	palette Palette
	codes   map[ink.Style]string // sequences made so far

	text         strings.Builder
	style        ink.Style // the current style
	midLine      bool      // the cursor is not at the start of a line
	newlineAdded bool      // the last newline was added before its writer added it
	hasOutput    bool      // anything was ever written
	blankLines   int       // blank lines at the end
}

// write adds text, which must be clean. A style never spans a newline.
func (p *page) write(l ink.Style, text string) {
	if p.newlineAdded && text != "" {
		p.newlineAdded = false
		text = strings.TrimPrefix(text, "\n")
	}
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		if line != "" {
			p.setStyle(l)
			p.text.WriteString(line)
			p.midLine, p.hasOutput, p.blankLines = true, true, 0
		}
		if ends {
			p.newline()
		}
		text = rest
	}
}

func (p *page) newline() {
	p.setStyle(ink.Style{})
	p.text.WriteByte('\n')
	if !p.midLine {
		p.blankLines++
	}
	p.midLine, p.newlineAdded = false, false
}

// setStyle switches to style l.
func (p *page) setStyle(l ink.Style) {
	if p.style == l {
		return
	}
	if p.styleCode(p.style) != "" {
		p.text.WriteString(resetCode)
	}
	if p.style.Link != l.Link && p.palette.Links {
		p.text.WriteString("\x1b]8;;" + l.Link + "\x1b\\") // an empty address ends the link
	}
	p.text.WriteString(p.styleCode(l))
	p.style = l
}

func (p *page) styleCode(l ink.Style) string {
	l.Link = ""
	if c, ok := p.codes[l]; ok {
		return c
	}
	if p.codes == nil {
		p.codes = make(map[ink.Style]string)
	}
	c := p.palette.styleCode(l)
	p.codes[l] = c
	return c
}

// endLine ends the current line.
func (p *page) endLine() {
	if p.midLine {
		p.newline()
	}
}

// endLineEarly ends the line for a writer that is finished but would add the newline only with its next text, so
// that content drawn below the page is visible.
func (p *page) endLineEarly() {
	if p.midLine {
		p.newline()
		p.newlineAdded = true
	}
}

// addBlankLine leaves one blank line, unless nothing is above.
func (p *page) addBlankLine() {
	p.endLine()
	if p.hasOutput && p.blankLines == 0 {
		p.newline()
	}
}

// writeMasked adds text on its own lines, with keys masked.
func (p *page) writeMasked(r ink.Role, text string) { p.writeLines(r, sanitize.Mask(text)) }

// writeLines adds text on its own lines.
func (p *page) writeLines(r ink.Role, text string) {
	p.endLine()
	p.write(ink.Style{Role: r}, strings.TrimRight(sanitize.Text(text), "\n"))
	p.endLine()
}

// writeWrapped adds text on its own lines, wrapped between words to the terminal's width.
func (p *page) writeWrapped(width int, r ink.Role, text string) {
	p.endLine()
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(text), "\n"), "\n") {
		p.writeHanging(width, r, line, ink.HangIndent(line))
	}
}

// writeHanging adds a line, wrapped between words to the terminal's width, with this indent. A hard space keeps
// words together; it is written as a normal space.
func (p *page) writeHanging(width int, r ink.Role, line string, indent int) {
	p.endLine()
	w := ink.Wrap{Put: p.writeSoft, Width: width, Indent: indent}
	w.Write(ink.Style{Role: r}, line)
	w.End()
	p.write(ink.Style{}, "\n")
}

// writeSoft adds text with normal spaces for hard ones.
func (p *page) writeSoft(l ink.Style, text string) {
	p.write(l, strings.ReplaceAll(text, ink.NoBreakSpace, " "))
}

// lineCount returns the number of newlines collected.
func (p *page) lineCount() int { return strings.Count(p.text.String(), "\n") }

// takeText returns and clears the collected text.
func (p *page) takeText() string {
	p.setStyle(ink.Style{})
	s := p.text.String()
	p.text.Reset()
	return s
}

// pieceCleaner cleans a text that arrives in arbitrary pieces.
type pieceCleaner struct{ pending string }

// clean returns the new part of the text that is certain: whole runes, and no carriage return that a
// newline may follow.
func (p *pieceCleaner) clean(piece string) string {
	s := p.pending + piece
	n := len(s) - unfinishedLen(s)
	p.pending = s[n:]
	return sanitize.Text(s[:n])
}

// flush returns what was held back, when nothing follows.
func (p *pieceCleaner) flush() string {
	s := p.pending
	p.pending = ""
	return sanitize.Text(s)
}

// unfinishedLen returns the number of bytes at the end of s that depend on what follows.
func unfinishedLen(s string) int {
	if strings.HasSuffix(s, "\r") {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		tail := s[len(s)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRuneInString(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
