package term

import (
	"strings"
	"unicode/utf8"

	"coder/internal/core/sanitize"
	"coder/internal/ui/term/ink"
)

// page collects what one event adds to the stream. It knows whether the cursor
// stands at the start of a line, and closes every look it opens before the
// collected text is handed over, so that others may write in between.
type page struct {
	palette Palette
	codes   map[ink.Look]string // the sequences made so far

	b      strings.Builder
	look   ink.Look // that is on
	mid    bool     // the cursor is not at the start of a line
	rested bool     // the last line end was put before its writer put it
	wrote  bool     // anything was ever written
	blanks int      // blank lines at the end
}

// put adds text, which must be clean. A look never spans a line end.
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

// turn switches to l.
func (p *page) turn(l ink.Look) {
	if p.look == l {
		return
	}
	if p.code(p.look) != "" {
		p.b.WriteString(reset)
	}
	if p.look.Link != l.Link && p.palette.Links {
		p.b.WriteString("\x1b]8;;" + l.Link + "\x1b\\") // of no address: it ends
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

// fresh ends the line the cursor is in.
func (p *page) fresh() {
	if p.mid {
		p.newline()
	}
}

// rest ends the line for a writer that is done with it and would put its end
// only before the next one: what is drawn below the page can then be seen.
func (p *page) rest() {
	if p.mid {
		p.newline()
		p.rested = true
	}
}

// gap leaves one blank line, unless nothing stands above.
func (p *page) gap() {
	p.fresh()
	if p.wrote && p.blanks == 0 {
		p.newline()
	}
}

// say puts text on lines of its own, without keys.
func (p *page) say(r ink.Role, text string) { p.tell(r, sanitize.Mask(text)) }

// tell puts text on lines of its own.
func (p *page) tell(r ink.Role, text string) {
	p.fresh()
	p.put(ink.Look{Role: r}, strings.TrimRight(sanitize.Text(text), "\n"))
	p.fresh()
}

// words puts text on lines of its own, broken between words for the width of the
// terminal.
func (p *page) words(width int, r ink.Role, text string) {
	p.fresh()
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Text(text), "\n"), "\n") {
		p.hung(width, r, line, ink.Hanging(line))
	}
}

// hung puts a line of its own, broken between words for the width of the terminal; what
// goes on is set in so far. Words that stand together with a hard blank between them are
// not parted; what is put is a blank as any other.
func (p *page) hung(width int, r ink.Role, line string, indent int) {
	p.fresh()
	w := ink.Wrap{Put: p.softened, Width: width, Indent: indent}
	w.Write(ink.Look{Role: r}, line)
	w.End()
	p.put(ink.Look{}, "\n")
}

// softened puts text with blanks as any other for hard ones.
func (p *page) softened(l ink.Look, text string) {
	p.put(l, strings.ReplaceAll(text, ink.HardBlank, " "))
}

// lines is how many line ends were collected.
func (p *page) lines() int { return strings.Count(p.b.String(), "\n") }

// take hands over what was collected.
func (p *page) take() string {
	p.turn(ink.Look{})
	s := p.b.String()
	p.b.Reset()
	return s
}

// pieces cleans a text that arrives in pieces cut anywhere.
type pieces struct{ held string }

// next is what of the text so far is new and certain: whole runes, and no
// carriage return whose line end may follow.
func (p *pieces) next(piece string) string {
	s := p.held + piece
	n := len(s) - unfinished(s)
	p.held = s[n:]
	return sanitize.Text(s[:n])
}

// rest is what was held back, when nothing follows.
func (p *pieces) rest() string {
	s := p.held
	p.held = ""
	return sanitize.Text(s)
}

// unfinished is how many bytes at the end of s wait for what follows them.
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
