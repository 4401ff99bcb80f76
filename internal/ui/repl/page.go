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

// Page is a terminal on which lines are printed and typed and nothing is drawn
// again. What is printed while a line is typed waits for its end, so that
// neither tears the other, or for a while in which nothing is typed: then whole lines
// are printed, and the one being typed once more below them. Use [NewPage].
type Page struct {
	to    io.Writer
	echo  bool // what is typed is shown by us
	quiet time.Duration

	mu     sync.Mutex // guards the fields below and the order of writing
	typing bool
	held   []byte      // printed while a line is typed
	asked  bool        // what was printed last is a prompt
	inLine bool        // what was printed last does not end a line
	torn   bool        // the line being typed was begun in the middle of a printed one
	line   string      // what of it stands there
	rest   *time.Timer // until nothing was typed for a while
}

// NewPage returns a Page that is printed by writing to to. Echo says that what is
// typed must be printed, too.
func NewPage(to io.Writer, echo bool) *Page { return &Page{to: to, echo: echo, quiet: quiet} }

// quiet is how long nothing is typed before what waits is printed.
const quiet = 3 * time.Second

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
		if p.rest == nil && p.echo {
			p.rest = time.AfterFunc(p.quiet, p.goOn)
		}
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
	p.typing, p.torn, p.line = true, p.inLine && !asked, ""
	if p.echo && p.torn {
		_, _ = p.put([]byte("\n"))
	}
	if p.echo && !asked {
		_, _ = p.put([]byte("> "))
	}
	return asked
}

// show shows what is typed: the text that changes the line, which is then that.
func (p *Page) show(text, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = line
	if p.rest != nil {
		p.rest.Reset(p.quiet)
	}
	if p.echo {
		_, _ = p.put([]byte(text))
	}
}

// goOn prints what has waited while nothing was typed, up to the end of a line, and the
// line being typed below it: not behind a prompt, for it was begun before there was one.
func (p *Page) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = nil
	whole := bytes.LastIndexByte(p.held, '\n') + 1
	if !p.typing || whole == 0 {
		return
	}
	text := p.held[:whole]
	if p.torn {
		text = bytes.TrimLeft(text, " ")
	}
	_, _ = p.put(slices.Concat([]byte("\n"), text, []byte("> "+p.line)))
	p.held, p.torn = bytes.Clone(p.held[whole:]), false
}

// end ends the line being typed, prints what has waited for that, and reports
// whether there was anything. A line that came to nothing and stands behind a
// prompt leaves it as it was.
func (p *Page) end(nothing bool) (printed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest != nil {
		p.rest.Stop()
		p.rest = nil
	}
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

// unshow takes typed text off the line again, of which so much is left.
func (p *Page) unshow(text, line string) {
	p.show(strings.Repeat("\b \b", cells.Width(text)), line)
}
