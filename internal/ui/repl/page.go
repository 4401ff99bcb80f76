//go:build unix

package repl

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"coder/internal/ui/cells"
)

// Page is a terminal on which lines are printed and typed and nothing is drawn
// again. What is printed while a line is typed waits for its end, so that
// neither tears the other. Use [NewPage].
type Page struct {
	to   io.Writer
	echo bool // what is typed is shown by us

	mu     sync.Mutex // guards the fields below and the order of writing
	typing bool
	held   []byte // printed while a line is typed
	asked  bool   // what was printed last is a prompt
	inLine bool   // what was printed last does not end a line
	torn   bool   // the line being typed was begun in the middle of a printed one
}

// NewPage returns a Page that is printed by writing to to. Echo says that what is
// typed must be printed, too.
func NewPage(to io.Writer, echo bool) *Page { return &Page{to: to, echo: echo} }

func (p *Page) Write(text []byte) (int, error) { return p.print(text, false) }

// prompt prints text, behind which a line is to be typed.
func (p *Page) prompt(text string) error {
	_, err := p.print([]byte(text), true)
	return err
}

func (p *Page) print(text []byte, asks bool) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(text) == 0 {
		return 0, nil
	}
	p.asked = asks
	if p.typing {
		p.held = append(p.held, text...)
		return len(text), nil
	}
	return p.put(text)
}

func (p *Page) put(text []byte) (int, error) {
	p.inLine = !bytes.HasSuffix(text, []byte("\n"))
	return p.to.Write(text)
}

// A terminal that is gone ends the program by itself: what is typed is shown if
// it can be.

// begin begins a line, on one of its own unless a prompt stands before it, and
// reports whether one does.
func (p *Page) begin() (asked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked = p.asked
	p.typing, p.torn = true, p.inLine && !asked
	if p.echo && p.torn {
		_, _ = p.put([]byte("\n"))
	}
	if p.echo && !asked {
		_, _ = p.put([]byte("> "))
	}
	return asked
}

// show shows what is typed.
func (p *Page) show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.echo {
		_, _ = p.put([]byte(text))
	}
}

// end ends the line being typed, prints what has waited for that, and reports
// whether there was anything. A line that came to nothing and stands behind a
// prompt leaves it as it was.
func (p *Page) end(nothing bool) (printed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := p.held
	p.typing, p.held = false, nil
	if len(held) == 0 {
		if nothing {
			return false
		}
		p.asked = false
	}
	if p.echo {
		_, _ = p.put([]byte("\n"))
		if p.torn {
			held = bytes.TrimLeft(held, " ")
		}
	}
	if len(held) > 0 {
		_, _ = p.put(held)
	}
	return len(held) > 0
}

// asks reports whether a prompt stands there.
func (p *Page) asks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// unshow takes typed text off the line again.
func (p *Page) unshow(text string) {
	p.show(strings.Repeat("\b \b", cells.Width(text)))
}
