//go:build unix

package repl

import (
	"context"
	"errors"
	"io"

	"coder/internal/ui/lineedit"
	"coder/internal/ui/tty"
)

// ErrLeft reports that the person left a list without choosing.
var ErrLeft = errors.New("nothing was chosen")

// Pick lets the person choose from a list before anything else. It returns
// [ErrLeft] if they leave it, and [ErrInterrupted] on Ctrl+C.
func (r *REPL) Pick(ctx context.Context, p lineedit.Picker) (value string, err error) {
	ctx, stop := context.WithCancel(ctx)
	r.startReading(ctx)
	defer func() {
		stop()
		r.stopReading()
		err = errors.Join(err, r.Screen.SetLive(nil, 0, 0))
	}()
	r.picker = r.dressed(p)
	defer func() { r.picker = nil }()
	for {
		if err := r.draw(); err != nil {
			return "", err
		}
		select {
		case batch := <-r.events:
			for i, e := range batch {
				done, value, err := r.pickEvent(e)
				if done || err != nil {
					r.pending = append(r.pending, batch[i+1:])
					return value, err
				}
			}
		case err := <-r.broken:
			if errors.Is(err, io.EOF) {
				err = ErrLeft
			}
			return "", err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// pickEvent handles what is typed before there is a session.
func (r *REPL) pickEvent(e tty.Event) (done bool, value string, err error) {
	switch e := e.(type) {
	case tty.Key:
		switch a := r.picker.Key(lineedit.Key(e)); a.Kind {
		case lineedit.Submit:
			return true, a.Text, nil
		case lineedit.Cancel, lineedit.EOF:
			return true, "", ErrLeft
		case lineedit.None:
		default:
			return false, "", r.usual(a.Kind)
		}
	case tty.Paste:
		r.picker.Paste(e.Text)
	case tty.Resumed:
		return false, "", r.Screen.Show()
	}
	return false, "", nil
}

// dressed is a list in the looks and words of this face.
func (r *REPL) dressed(p lineedit.Picker) *lineedit.Picker {
	p.Style = r.style()
	p.Help, p.Nothing = r.Words.T("type to search · Up, Down · Enter takes it · Esc leaves"), r.Words.T("nothing matches")
	return &p
}

// list opens the list that stands for an input, if there is one.
func (r *REPL) list(input string) bool {
	if r.Lists == nil || r.turn != nil {
		return false
	}
	p, ok := r.Lists(input)
	if ok {
		r.picker = r.dressed(p)
	}
	return ok
}

// pickKey handles a key while a list is open. What is chosen is sent as if it had
// been typed. A slash begins a command, as always.
func (r *REPL) pickKey(ctx context.Context, k lineedit.Key) error {
	if r.picker.Query() == "" && k == lineedit.Typed('/') {
		r.picker = nil
		r.editor.Key(k)
		return nil
	}
	switch a := r.picker.Key(k); a.Kind {
	case lineedit.Submit:
		r.picker = nil
		return r.send(ctx, a)
	case lineedit.Cancel, lineedit.EOF:
		r.picker = nil
	case lineedit.None:
	default:
		return r.usual(a.Kind)
	}
	return nil
}

// usual does what keys ask for wherever they are pressed.
func (r *REPL) usual(k lineedit.Kind) error {
	switch k {
	case lineedit.Interrupt:
		return ErrInterrupted
	case lineedit.Suspend:
		if err := r.hide(); err != nil {
			return err
		}
		return r.Terminal.Suspend()
	case lineedit.Redraw:
		return r.Screen.Clear()
	}
	return nil
}
