//go:build unix

package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/tty"
)

// ErrCanceled reports that the user left a list without choosing.
var ErrCanceled = errors.New("nothing was chosen")

// Pick lets the user choose from a list before the prompt. It returns [ErrCanceled] if they leave it, and
// [ErrInterrupted] on Ctrl+C.
func (r *REPL) Pick(ctx context.Context, p lineedit.Picker) (value string, err error) {
	ctx, stop := context.WithCancel(ctx)
	r.startReading(ctx)
	defer func() {
		stop()
		r.stopReading()
		err = errors.Join(err, r.Screen.SetLive(nil, 0, 0))
	}()
	r.picker = r.stylePicker(p)
	defer func() { r.picker = nil }()
	for {
		if err := r.draw(); err != nil {
			return "", err
		}
		select {
		case batch := <-r.events:
			for i, e := range batch {
				done, value, err := r.handlePickEvent(e)
				if done || err != nil {
					r.pending = append(r.pending, batch[i+1:])
					return value, err
				}
			}
		case err := <-r.readErr:
			if errors.Is(err, io.EOF) {
				err = ErrCanceled
			}
			return "", err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// handlePickEvent handles input before there is a session.
func (r *REPL) handlePickEvent(e tty.Event) (done bool, value string, err error) {
	switch e := e.(type) {
	case tty.Key:
		switch a := r.picker.HandleKey(lineedit.Key(e)); a.Kind {
		case lineedit.Submit:
			return true, a.Text, nil
		case lineedit.Cancel, lineedit.EOF:
			return true, "", ErrCanceled
		case lineedit.None:
		default:
			return false, "", r.handleCommonKey(a.Kind)
		}
	case tty.Paste:
		r.picker.Paste(e.Text)
	case tty.Resumed:
		return false, "", r.Screen.Show()
	}
	return false, "", nil
}

// stylePicker returns a list with this face's style and language.
func (r *REPL) stylePicker(p lineedit.Picker) *lineedit.Picker {
	p.Style = r.editorStyle()
	p.Help, p.EmptyText = r.Translator.T("type to search · Up, Down · Enter selects · Esc cancels"),
		r.Translator.T("nothing matches")
	return &p
}

// SetPalette changes the colors of later output.
func (r *REPL) SetPalette(p term.Palette) {
	r.Palette = p
	r.renderer.SetPalette(p)
}

// exitCommand is the command for Ctrl+D.
const exitCommand = "/exit"

// openList opens the list for an input, if it has one.
func (r *REPL) openList(input string) bool {
	if r.ListFor == nil || r.turn != nil {
		return false
	}
	p, ok := r.ListFor(input)
	if ok {
		r.picker = r.stylePicker(p)
	}
	return ok
}

// handlePickKey handles a key while a list is open. The chosen value is sent as if typed. A slash begins a
// command, as always.
func (r *REPL) handlePickKey(ctx context.Context, k lineedit.Key) error {
	if r.picker.Query() == "" && k == lineedit.RuneKey('/') {
		r.picker = nil
		r.editor.HandleKey(k)
		return nil
	}
	switch a := r.picker.HandleKey(k); a.Kind {
	case lineedit.Submit:
		if r.picker = nil; a.Text == "" || r.openList(a.Text) { // no choice, or one list opens another
			return nil
		}
		return r.submit(ctx, a)
	case lineedit.Cancel, lineedit.EOF:
		r.picker = nil
	case lineedit.None:
	default:
		return r.handleCommonKey(a.Kind)
	}
	return nil
}

// handleCommonKey handles the keys that act the same everywhere.
func (r *REPL) handleCommonKey(k lineedit.ActionKind) error {
	switch k {
	case lineedit.Interrupt:
		switch {
		case r.turn == nil:
			return ErrInterrupted
		case r.CtrlCStops && !r.turn.stopped.Load():
			r.keepUnused(r.answer.Draft())
			return r.stopTurn()
		}
		return turnInterrupted{ErrInterrupted}
	case lineedit.Suspend:
		if err := r.hideLive(); err != nil {
			return err
		}
		if err := r.Terminal.Suspend(); err != nil || r.question == nil {
			return err
		}
		return r.drawQuestion()
	case lineedit.Redraw:
		if err := r.Screen.Clear(); err != nil || r.question == nil {
			return err
		}
		return r.drawQuestion() // the question must be visible to be answered
	}
	return nil
}

// maxListed is the most items of a list printed at a time.
const maxListed = 20

// Pick lets the user choose from a list before the prompt: by number, by words that match one item, or
// the first item by Enter alone. It returns [ErrCanceled] if they leave it, and [ErrInterrupted] on Ctrl+C.
func (l *LineREPL) Pick(ctx context.Context, p lineedit.Picker) (value string, err error) {
	ctx, end := context.WithCancel(ctx)
	keys := make(chan input)
	k := keyboard{terminal: l.Terminal, screen: l.Screen, inputs: keys, keepsText: func() bool { return false }}
	var reading sync.WaitGroup
	reading.Go(func() { k.listen(ctx) })
	defer func() { end(); reading.Wait() }()
	for items := p.Items; ; {
		var text strings.Builder
		for i, item := range items[:min(len(items), maxListed)] {
			fmt.Fprintf(&text, "  %d. %s  %s\n", i+1, l.oneLine(item.Text), l.oneLine(item.Note))
		}
		if more := len(items) - maxListed; more > 0 {
			fmt.Fprintf(&text, "  %s\n", l.Translator.T("%d more: type to narrow the list", more))
		}
		if err := l.prompt(l.wrapText(text.String()) + p.Title); err != nil {
			return "", err
		}
		var h input
		var ok bool
		select {
		case h, ok = <-keys:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		line := strings.TrimSpace(h.line)
		n, notNumber := strconv.Atoi(line)
		switch found := p.Find(line); {
		case !ok, h.kind == inputEsc, h.kind == inputEOF:
			return "", ErrCanceled
		case h.kind == inputInterrupt:
			return "", ErrInterrupted
		case line == "":
			return items[0].Value, nil
		case notNumber == nil && n >= 1 && n <= len(items):
			return items[n-1].Value, nil
		case len(found) == 1:
			return found[0].Value, nil
		case len(found) == 0:
			if err := l.Print(l.Translator.T("nothing matches")); err != nil {
				return "", err
			}
			items = p.Items
		default:
			items = found
		}
	}
}
