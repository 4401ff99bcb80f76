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

// LineScreen is a terminal on which lines are printed and typed and nothing is redrawn. Output printed while a
// line is typed waits for the line's end, so that neither breaks the other, or for a pause in typing:
// then it is printed, and the line is shown again below it when typing continues. Use [NewLineScreen].
type LineScreen struct {
	out         io.Writer
	echo        bool // we print the typed text
	typingPause time.Duration

	mu               sync.Mutex // guards the fields below and the order of writing
	typing           bool
	buffered         []byte      // printed while a line is typed
	afterPrompt      bool        // the last text printed is a prompt
	takesTyped       bool        // the prompt accepts a line begun earlier
	lineAfterPrompt  bool        // the typed line follows a prompt
	midLine          bool        // the last text printed does not end a line
	lineInsideOutput bool        // the typed line was begun inside a printed line
	line             string      // the part of it shown
	lineHidden       bool        // it is hidden: output was printed since
	timer            *time.Timer // fires after a pause in typing
}

// NewLineScreen returns a Page that writes to to. echo makes it print the typed text too.
func NewLineScreen(to io.Writer, echo bool) *LineScreen {
	return &LineScreen{out: to, echo: echo, typingPause: defaultTypingPause}
}

// defaultTypingPause is the pause in typing after which waiting output is printed.
const defaultTypingPause = 3 * time.Second

func (p *LineScreen) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.print(text, false)
}

// prompt prints text as a prompt. takes allows a line begun earlier to continue after it.
func (p *LineScreen) prompt(text string, takes bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takesTyped = takes
	_, err := p.print([]byte(text), true)
	return err
}

func (p *LineScreen) print(text []byte, asks bool) (int, error) {
	if len(text) == 0 {
		return 0, nil
	}
	p.afterPrompt = asks
	switch {
	case p.typing && p.lineHidden && asks:
		p.buffered, p.lineHidden = append(p.buffered, text...), false
		p.printBuffered()
		return len(text), nil
	case p.typing && !p.lineHidden:
		p.buffered = append(p.buffered, text...)
		if p.timer == nil && p.echo {
			p.timer = time.AfterFunc(p.typingPause, p.timerFired)
		}
		return len(text), nil
	}
	return p.writeText(text)
}

func (p *LineScreen) writeText(text []byte) (int, error) {
	p.midLine = !bytes.HasSuffix(text, []byte("\n"))
	return p.out.Write(text)
}

// A lost terminal ends the program by itself: write errors of typed text are ignored.

// startLine starts a line, on a new row unless after a prompt.
func (p *LineScreen) startLine() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lineAfterPrompt = p.afterPrompt
	p.typing, p.lineInsideOutput, p.line, p.lineHidden = true, p.midLine && !p.lineAfterPrompt, "", false
	if p.echo && p.lineInsideOutput {
		_, _ = p.writeText([]byte("\n"))
	}
	if p.echo && !p.lineAfterPrompt {
		_, _ = p.writeText([]byte("> "))
	}
}

// showTyped prints text, which changes the typed line to line.
func (p *LineScreen) showTyped(text, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = line
	if p.timer != nil {
		p.timer.Reset(p.typingPause)
	}
	if p.lineHidden { // show it again
		p.lineHidden, p.lineInsideOutput = false, p.midLine
		if text = "> " + line; p.lineInsideOutput {
			text = "\n" + text
		}
	}
	if p.echo {
		_, _ = p.writeText([]byte(text))
	}
}

func (p *LineScreen) timerFired() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer = nil; p.typing && len(p.buffered) > 0 {
		p.printBuffered()
	}
}

// allowInterrupt lets waiting output interrupt the typed line.
func (p *LineScreen) allowInterrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.typing && !p.lineHidden {
		p.printBuffered()
	}
}

// printBuffered prints the waiting output after a pause in typing. The typed line continues after a prompt that
// accepts it, or below one that does not; without a prompt it is hidden until typing continues.
func (p *LineScreen) printBuffered() {
	text, kept := p.buffered, []byte(nil)
	if p.afterPrompt && !p.takesTyped {
		whole := bytes.LastIndexByte(text, '\n') + 1
		text, kept = text[:whole], bytes.Clone(text[whole:])
	}
	if p.lineInsideOutput {
		text = bytes.TrimLeft(text, " ")
	}
	if p.midLine {
		text = slices.Concat([]byte("\n"), text)
	}
	switch {
	case p.afterPrompt && p.takesTyped:
		text, p.lineAfterPrompt = append(text, p.line...), true
	case p.afterPrompt:
		text = append(text, "> "+p.line...)
	default:
		p.lineHidden = true
	}
	_, _ = p.writeText(text)
	p.buffered, p.lineInsideOutput = kept, false
}

// endLine ends the typed line, prints the waiting output, and reports whether there was any, and whether the
// line followed a prompt. An empty line leaves the prompt unchanged.
func (p *LineScreen) endLine(nothing bool) (printed, behind bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	held := p.buffered
	p.typing, p.buffered = false, nil
	if len(held) == 0 {
		if nothing && p.lineAfterPrompt {
			return false, true
		}
		p.afterPrompt = false
	}
	if p.echo && !p.lineHidden {
		_, _ = p.writeText([]byte("\n"))
		if p.lineInsideOutput {
			held = bytes.TrimLeft(held, " ")
		}
	}
	if len(held) > 0 {
		_, _ = p.writeText(held)
	}
	return len(held) > 0, p.lineAfterPrompt
}

// hasPrompt reports whether a prompt is shown.
func (p *LineScreen) hasPrompt() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.afterPrompt
}

// eraseTyped deletes typed text from the screen, leaving line.
func (p *LineScreen) eraseTyped(text, line string) {
	p.showTyped(strings.Repeat("\b \b", cells.Width(text)), line)
}
