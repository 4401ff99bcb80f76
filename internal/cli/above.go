package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"coder/internal/app"
	"coder/internal/core/display"
)

// above is the line above the prompt: what matters beside the context and the model. It is made
// beside the terminal's loop, whenever something it may depend on has changed.
type above struct {
	terminal *terminal
	ctx      context.Context
	stop     func()
	wg       sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	text   string
	made   string // what text was made for
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

// Line is the line as it is known now.
func (b *above) Line() string {
	t := b.terminal
	model, mode := t.status()
	used := t.session().ContextUsed()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := fmt.Sprint(model, mode, t.session().ID, used, t.app.Running(), b.inputs)
	if now == b.made || b.making {
		return b.text
	}
	b.made, b.making = now, true
	session := t.session().ID
	b.wg.Go(func() {
		text := b.make(session, mode, used)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.text, b.making = text, false
	})
	return b.text
}

// ended notes that an input has ended.
func (b *above) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inputs++
}

func (b *above) make(session, mode string, used int) string {
	t, ctx := b.terminal, b.ctx
	s := t.app.Standing(ctx, session, used)
	if len(t.app.Config.UI.Statusline) == 0 {
		return strings.Join(b.parts(s), t.apart())
	}
	text, err := t.app.StatusLine(ctx, session, mode, s)
	if err != nil {
		return t.inv.words.T("ui.statusline: %s", t.inv.words.Said(message(err)))
	}
	return text
}

// leastPercent is how full the window is when the line says so.
const leastPercent = 10

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
