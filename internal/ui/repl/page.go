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
// neither tears the other, or for a while in which nothing is typed: then it is printed,
// and the line stands below it once more when it is typed on. Use [NewPage].
type Page struct {
	to    io.Writer
	echo  bool // what is typed is shown by us
	quiet time.Duration

	mu     sync.Mutex // guards the fields below and the order of writing
	typing bool
	held   []byte      // printed while a line is typed
	asked  bool        // what was printed last is a prompt
	takes  bool        // behind which a line may stand that was begun before
	behind bool        // the line being typed stands behind a prompt
	inLine bool        // what was printed last does not end a line
	torn   bool        // the line being typed was begun in the middle of a printed one
	line   string      // what of it stands there
	away   bool        // it does no more: something was printed since
	rest   *time.Timer // until nothing was typed for a while
}

// NewPage returns a Page that is printed by writing to to. Echo says that what is
// typed must be printed, too.
func NewPage(to io.Writer, echo bool) *Page { return &Page{to: to, echo: echo, quiet: quiet} }

// quiet is how long nothing is typed before what waits is printed.
const quiet = 3 * time.Second

func (p *Page) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.print(text, false)
}

// prompt prints text, behind which a line is to be typed. Takes says that one that was
// begun before may stand there.
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

// A terminal that is gone ends the program by itself: what is typed is shown if
// it can be.

// begin begins a line, on one of its own unless a prompt stands before it.
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

// show shows what is typed: the text that changes the line, which is then that.
func (p *Page) show(text, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = line
	if p.rest != nil {
		p.rest.Reset(p.quiet)
	}
	if p.away { // it stands there once more
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

// aside has the line being typed give way to what is printed.
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

// goOn prints what has waited while nothing was typed. The line being typed goes behind a
// prompt that takes it, below what stands before one that does not, and else away until it
// is typed on.
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

// end ends the line being typed, prints what has waited for that, and reports
// whether there was anything, and whether the line stood behind a prompt. One that came to
// nothing there leaves the prompt as it was.
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
