//go:build unix

package repl

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/ui/cells"
)

// Page is a terminal on which lines are printed and typed and nothing is redrawn. Output printed while a
// line is typed waits for the line's end, so that neither breaks the other, or for a pause in typing:
// then it is printed, and the line is shown again below it when typing continues. Use [NewPage].
type Page struct {
	to    io.Writer
	echo  bool // we print the typed text
	quiet time.Duration

	mu     sync.Mutex // guards the fields below and the order of writing
	typing bool
	held   []byte      // printed while a line is typed
	asked  bool        // the last text printed is a prompt
	takes  bool        // the prompt accepts a line begun earlier
	behind bool        // the typed line follows a prompt
	inLine bool        // the last text printed does not end a line
	torn   bool        // the typed line was begun inside a printed line
	line   string      // the part of it shown
	away   bool        // it is hidden: output was printed since
	rest   *time.Timer // fires after a pause in typing
}

// NewPage returns a Page that writes to to. echo makes it print the typed text too.
func NewPage(to io.Writer, echo bool) *Page { return &Page{to: to, echo: echo, quiet: quiet} }

// quiet is the pause in typing after which waiting output is printed.
const quiet = 3 * time.Second

func (p *Page) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.print(text, false)
}

// prompt prints text as a prompt. takes allows a line begun earlier to continue after it.
func (p *Page) prompt(text string, takes bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takes = takes
	_, err := p.print([]byte(text), true)
	return err
}

func (p *Page) print(text []byte, asks bool) (int, error) {
	if len(text) == 0 {
		return 0, nil
	}
	p.asked = asks
	switch {
	case p.typing && p.away && asks:
		p.held, p.away = append(p.held, text...), false
		p.goOn()
		return len(text), nil
	case p.typing && !p.away:
		p.held = append(p.held, text...)
		if p.rest == nil && p.echo {
			p.rest = time.AfterFunc(p.quiet, p.waited)
		}
		return len(text), nil
	}
	return p.put(text)
}

func (p *Page) put(text []byte) (int, error) {
	p.inLine = !bytes.HasSuffix(text, []byte("\n"))
	return p.to.Write(text)
}

// A lost terminal ends the program by itself: write errors of typed text are ignored.

// begin starts a line, on a new row unless after a prompt.
func (p *Page) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = p.asked
	p.typing, p.torn, p.line, p.away = true, p.inLine && !p.behind, "", false
	if p.echo && p.torn {
		_, _ = p.put([]byte("\n"))
	}
	if p.echo && !p.behind {
		_, _ = p.put([]byte("> "))
	}
}

// show prints text, which changes the typed line to line.
func (p *Page) show(text, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = line
	if p.rest != nil {
		p.rest.Reset(p.quiet)
	}
	if p.away { // show it again
		p.away, p.torn = false, p.inLine
		if text = "> " + line; p.torn {
			text = "\n" + text
		}
	}
	if p.echo {
		_, _ = p.put([]byte(text))
	}
}

func (p *Page) waited() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest = nil; p.typing && len(p.held) > 0 {
		p.goOn()
	}
}

// aside lets waiting output interrupt the typed line.
func (p *Page) aside() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest != nil {
		p.rest.Stop()
		p.rest = nil
	}
	if p.typing && !p.away {
		p.goOn()
	}
}

// goOn prints the waiting output after a pause in typing. The typed line continues after a prompt that
// accepts it, or below one that does not; without a prompt it is hidden until typing continues.
func (p *Page) goOn() {
	text, kept := p.held, []byte(nil)
	if p.asked && !p.takes {
		whole := bytes.LastIndexByte(text, '\n') + 1
		text, kept = text[:whole], bytes.Clone(text[whole:])
	}
	if p.torn {
		text = bytes.TrimLeft(text, " ")
	}
	if p.inLine {
		text = slices.Concat([]byte("\n"), text)
	}
	switch {
	case p.asked && p.takes:
		text, p.behind = append(text, p.line...), true
	case p.asked:
		text = append(text, "> "+p.line...)
	default:
		p.away = true
	}
	_, _ = p.put(text)
	p.held, p.torn = kept, false
}

// end ends the typed line, prints the waiting output, and reports whether there was any, and whether the
// line followed a prompt. An empty line leaves the prompt unchanged.
func (p *Page) end(nothing bool) (printed, behind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest != nil {
		p.rest.Stop()
		p.rest = nil
	}
	held := p.held
	p.typing, p.held = false, nil
	if len(held) == 0 {
		if nothing && p.behind {
			return false, true
		}
		p.asked = false
	}
	if p.echo && !p.away {
		_, _ = p.put([]byte("\n"))
		if p.torn {
			held = bytes.TrimLeft(held, " ")
		}
	}
	if len(held) > 0 {
		_, _ = p.put(held)
	}
	return len(held) > 0, p.behind
}

// asks reports whether a prompt is shown.
func (p *Page) asks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// unshow deletes typed text from the screen, leaving line.
func (p *Page) unshow(text, line string) {
	p.show(strings.Repeat("\b \b", cells.Width(text)), line)
}
