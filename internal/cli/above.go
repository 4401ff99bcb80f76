package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"coder/internal/app"
	"coder/internal/core/display"
)

// statusLine is the line above the prompt: what matters beside the context and the model. git and your
// own command run beside the terminal's loop, whenever something they may depend on has changed.
type statusLine struct {
	terminal *terminal
	ctx      context.Context
	stop     func()
	wg       sync.WaitGroup

	mu          sync.Mutex // guards the fields below
	branch      string
	dirty       bool
	customText  string // what your own command printed
	madeFor     string // what these were made for
	updating    bool
	endedInputs int // that have ended: each may have changed files
}

func newStatusLine(ctx context.Context, t *terminal) *statusLine {
	b := &statusLine{terminal: t}
	b.ctx, b.stop = context.WithCancel(ctx)
	return b
}

func (b *statusLine) close() {
	b.stop()
	b.wg.Wait()
}

// Line returns the line as it is known now.
func (b *statusLine) Line() string {
	t := b.terminal
	model, mode := t.modelAndMode()
	session, used := t.session().ID, t.session().ContextUsed()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.endedInputs == 0 {
		used = 0 // an estimate, of a window that may not be known yet
	}
	s := t.host.Inside().SessionState(used)
	if now := fmt.Sprint(model, mode, session, s, b.endedInputs); now != b.madeFor && !b.updating {
		b.madeFor, b.updating = now, true
		b.wg.Go(func() { b.update(session, mode, s) })
	}
	if len(t.app.Config.UI.Statusline) > 0 {
		return b.customText
	}
	s.Branch, s.Dirty = b.branch, b.dirty
	return strings.Join(b.statusParts(s), t.separator())
}

// noteInputEnded notes that an input has ended.
func (b *statusLine) noteInputEnded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endedInputs++
}

// update asks git, and runs your own command where there is one.
func (b *statusLine) update(session, mode string, s app.SessionState) {
	t, own := b.terminal, ""
	s.Branch, s.Dirty = t.app.Branch(b.ctx)
	if len(t.app.Config.UI.Statusline) > 0 {
		text, err := t.app.RunStatusLine(b.ctx, session, mode, s)
		if own = text; err != nil {
			own = t.invocation.printer.T("ui.statusline: %s", t.invocation.printer.Translate(errorMessage(err)))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.branch, b.dirty, b.customText, b.updating = s.Branch, s.Dirty, own, false
}

// minShownPercent is how full the window is when the line says so.
const minShownPercent = 25

// statusParts are what the line says, the lasting first.
func (b *statusLine) statusParts(s app.SessionState) (parts []string) {
	t, w := b.terminal, b.terminal.invocation.printer
	if t.isCompact() {
		parts = append(parts, t.app.ModelName())
	}
	if s.Dirty {
		s.Branch += "*"
	}
	if s.Branch != "" {
		parts = append(parts, singleLine(s.Branch))
	}
	if s.Percent >= minShownPercent || t.isCompact() {
		parts = append(parts, fmt.Sprintf("%d%%", s.Percent))
	}
	if s.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", s.Cost))
	}
	if s.Jobs > 0 {
		parts = append(parts, w.T(display.Plural(s.Jobs, "%d job", "%d jobs"), s.Jobs))
	}
	if s.Questions > 0 {
		parts = append(parts, w.T(display.Plural(s.Questions, "%d question waiting", "%d questions waiting"), s.Questions))
	}
	return parts
}

// isCompact reports whether the prompt is one short line.
func (t *terminal) isCompact() bool { return t.app.Config.UI.Prompt == "compact" }
