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
	codes   map[ink.Look]string // sequences made so far

	b      strings.Builder
	look   ink.Look // the current style
	mid    bool     // the cursor is not at the start of a line
	rested bool     // the last newline was added before its writer added it
	wrote  bool     // anything was ever written
	blanks int      // blank lines at the end
}

// put adds text, which must be clean. A style never spans a newline.
func (p *page) put(l ink.Look, text string) {
	if p.rested && text != "" {
		p.rested = false
		text = strings.TrimPrefix(text, "\n")
	}
	for text != "" {
		line, rest, ends := strings.Cut(text, "\n")
		if line != "" {
			p.turn(l)
			p.b.WriteString(line)
			p.mid, p.wrote, p.blanks = true, true, 0
		}
		if ends {
			p.newline()
		}
		text = rest
	}
}

func (p *page) newline() {
	p.turn(ink.Look{})
	p.b.WriteByte('\n')
	if !p.mid {
		p.blanks++
	}
	p.mid, p.rested = false, false
}

// turn switches to style l.
func (p *page) turn(l ink.Look) {
	if p.look == l {
		return
	}
	if p.code(p.look) != "" {
		p.b.WriteString(reset)
	}
	if p.look.Link != l.Link && p.palette.Links {
		p.b.WriteString("\x1b]8;;" + l.Link + "\x1b\\") // an empty address ends the link
	}
	p.b.WriteString(p.code(l))
	p.look = l
}

func (p *page) code(l ink.Look) string {
	l.Link = ""
	if c, ok := p.codes[l]; ok {
		return c
	}
	if p.codes == nil {
		p.codes = make(map[ink.Look]string)
	}
	c := p.palette.code(l)
	p.codes[l] = c
	return c
}

// fresh ends the current line.
func (p *page) fresh() {
	if p.mid {
		p.newline()
	}
}

// rest ends the line for a writer that is finished but would add the newline only with its next text, so
// that content drawn below the page is visible.
func (p *page) rest() {
	if p.mid {
		p.newline()
		p.rested = true
	}
}

// gap leaves one blank line, unless nothing is above.
func (p *page) gap() {
	p.fresh()
	if p.wrote && p.blanks == 0 {
		p.newline()
	}
}

// say adds text on its own lines, with keys masked.
func (p *page) say(r ink.Role, text string) { p.tell(r, sanitize.Mask(text)) }

// tell adds text on its own lines.
func (p *page) tell(r ink.Role, text string) {
	p.fresh()
	p.put(ink.Look{Role: r}, strings.TrimRight(sanitize.Text(text), "\n"))
	p.fresh()
}

// words adds text on its own lines, wrapped between words to the terminal's width.
func (p *page) words(width int, r ink.Role, text string) {
	p.fresh()
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(text), "\n"), "\n") {
		p.hung(width, r, line, ink.Hanging(line))
	}
}

// hung adds a line, wrapped between words to the terminal's width, with this indent. A hard space keeps
// words together; it is written as a normal space.
func (p *page) hung(width int, r ink.Role, line string, indent int) {
	p.fresh()
	w := ink.Wrap{Put: p.softened, Width: width, Indent: indent}
	w.Write(ink.Look{Role: r}, line)
	w.End()
	p.put(ink.Look{}, "\n")
}

// softened adds text with normal spaces for hard ones.
func (p *page) softened(l ink.Look, text string) {
	p.put(l, strings.ReplaceAll(text, ink.HardBlank, " "))
}

// lines returns the number of newlines collected.
func (p *page) lines() int { return strings.Count(p.b.String(), "\n") }

// take returns and clears the collected text.
func (p *page) take() string {
	p.turn(ink.Look{})
	s := p.b.String()
	p.b.Reset()
	return s
}

// pieces cleans a text that arrives in arbitrary pieces.
type pieces struct{ held string }

// next returns the new part of the text that is certain: whole runes, and no carriage return that a
// newline may follow.
func (p *pieces) next(piece string) string {
	s := p.held + piece
	n := len(s) - unfinished(s)
	p.held = s[n:]
	return sanitize.Text(s[:n])
}

// rest returns what was held back, when nothing follows.
func (p *pieces) rest() string {
	s := p.held
	p.held = ""
	return sanitize.Text(s)
}

// unfinished returns the number of bytes at the end of s that depend on what follows.
func unfinished(s string) int {
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
