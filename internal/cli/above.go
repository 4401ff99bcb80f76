package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"coder/internal/app"
	"coder/internal/core/display"
)

// above is the line above the prompt: what matters beside the context and the model. git and your
// own command run beside the terminal's loop, whenever something they may depend on has changed.
type above struct {
	terminal *terminal
	ctx      context.Context
	stop     func()
	wg       sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	branch string
	dirty  bool
	own    string // what your own command printed
	made   string // what these were made for
	making bool
	inputs int // that have ended: each may have changed files
}

func newAbove(ctx context.Context, t *terminal) *above {
	b := &above{terminal: t}
	b.ctx, b.stop = context.WithCancel(ctx)
	return b
}

func (b *above) close() {
	b.stop()
	b.wg.Wait()
}

// Line returns the line as it is known now.
func (b *above) Line() string {
	t := b.terminal
	model, mode := t.status()
	session, used := t.session().ID, t.session().ContextUsed()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inputs == 0 {
		used = 0 // an estimate, of a window that may not be known yet
	}
	s := t.host.Inside().Standing(used)
	if now := fmt.Sprint(model, mode, session, s, b.inputs); now != b.made && !b.making {
		b.made, b.making = now, true
		b.wg.Go(func() { b.make(session, mode, s) })
	}
	if len(t.app.Config.UI.Statusline) > 0 {
		return b.own
	}
	s.Branch, s.Dirty = b.branch, b.dirty
	return strings.Join(b.parts(s), t.apart())
}

// ended notes that an input has ended.
func (b *above) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inputs++
}

// make asks git, and runs your own command where there is one.
func (b *above) make(session, mode string, s app.Standing) {
	t, own := b.terminal, ""
	s.Branch, s.Dirty = t.app.Branch(b.ctx)
	if len(t.app.Config.UI.Statusline) > 0 {
		text, err := t.app.StatusLine(b.ctx, session, mode, s)
		if own = text; err != nil {
			own = t.inv.words.T("ui.statusline: %s", t.inv.words.Said(message(err)))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.branch, b.dirty, b.own, b.making = s.Branch, s.Dirty, own, false
}

// leastPercent is how full the window is when the line says so.
const leastPercent = 25

// parts are what the line says, the lasting first.
func (b *above) parts(s app.Standing) (parts []string) {
	t, w := b.terminal, b.terminal.inv.words
	if t.compact() {
		parts = append(parts, t.app.ModelName())
	}
	if s.Dirty {
		s.Branch += "*"
	}
	if s.Branch != "" {
		parts = append(parts, oneLine(s.Branch))
	}
	if s.Percent >= leastPercent || t.compact() {
		parts = append(parts, fmt.Sprintf("%d%%", s.Percent))
	}
	if s.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", s.Cost))
	}
	if s.Jobs > 0 {
		parts = append(parts, w.T(display.Form(s.Jobs, "%d job", "%d jobs"), s.Jobs))
	}
	if s.Questions > 0 {
		parts = append(parts, w.T(display.Form(s.Questions, "%d question waiting", "%d questions waiting"), s.Questions))
	}
	return parts
}

// compact reports whether the prompt is one short line.
func (t *terminal) compact() bool { return t.app.Config.UI.Prompt == "compact" }
