//go:build unix

package repl

import (
	"context"
	"strings"

	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/tty"
)

// take handles keyboard input.
func (r *REPL) take(ctx context.Context, batch []tty.Event) error {
	for _, e := range batch {
		var err error
		switch e := e.(type) {
		case tty.Key:
			r.typedAt = r.Now()
			err = r.key(ctx, lineedit.Key(e))
		case tty.Paste:
			r.escaped, r.stays, r.typedAt = false, false, r.Now()
			if r.picker != nil && r.open == nil {
				r.picker.Paste(e.Text)
			} else {
				err = r.paste(e.Text)
			}
			if r.open != nil {
				r.open.touched = true
			}
		case tty.Focus:
			r.focused, r.tells = e.In, true
		case tty.Background:
			if r.Recolour != nil {
				r.Palette = r.Recolour(e.Light)
				r.render.Recolour(r.Palette)
			}
		case tty.Resumed:
			err = r.Screen.Show()
		case tty.Resize:
			r.resized = true
		}
		if err != nil {
			return err
		}
	}
	r.suggest()
	return nil
}

// typing reports whether the user is typing a draft right now.
func (r *REPL) typing() bool {
	return r.open == nil && !r.editor.Empty() && r.Now().Sub(r.typedAt) < typingPause
}

// line returns the editor that receives the keys.
func (r *REPL) line() *lineedit.Editor {
	if r.open != nil {
		return &r.answer
	}
	return &r.editor
}

// takeBack returns the last queued message to where it was typed: before the next draft, or to a
// question's empty line if it does not answer that. At a question it may also return the last line that
// was no answer.
func (r *REPL) takeBack() bool {
	switch {
	case r.open != nil && r.answer.Empty() && !r.open.back.Empty():
		r.answer.SetDraft(r.open.back)
		r.open.back = lineedit.Draft{}
		return true
	case r.open != nil && r.answer.Empty():
		d, ok := r.queue.takeBack(func(d lineedit.Draft) bool { return !words(0, d) || isPrompt(r.open.current(), d.Text()) })
		if ok {
			r.answer.SetDraft(d)
		}
		return ok
	case r.open != nil, r.turn == nil, r.editor.Asks(), !r.editor.OnTop():
		return false
	}
	d, ok := r.queue.takeBack(func(lineedit.Draft) bool { return true })
	switch {
	case ok && r.editor.Empty():
		r.editor.SetDraft(d)
	case ok:
		r.editor.SetDraft(lineedit.Join(d, r.editor.Draft()))
	}
	return ok
}

func (r *REPL) key(ctx context.Context, k lineedit.Key) error {
	if does, ok := r.Bound[k]; ok {
		k = does
	}
	if r.picker != nil && r.open == nil {
		return r.pickKey(ctx, k)
	}
	if done, err := r.cardKey(ctx, k); done {
		return err
	}
	if k == (lineedit.Key{Name: lineedit.Up}) && r.takeBack() {
		return nil
	}
	if k == lineedit.WithCtrl('s') && r.open == nil {
		r.swapStash()
		return nil
	}
	if k == lineedit.WithCtrl('o') && r.open == nil {
		return r.showOmitted(ctx)
	}
	if k == lineedit.WithCtrl('v') && r.open == nil && r.Clipboard != nil {
		r.copyIn(ctx)
		return nil
	}
	if r.turn != nil && r.open == nil && k.Name == lineedit.Escape && k.Mod == 0 && !r.editor.TakesEsc() {
		return r.stopTurn()
	}
	if r.open != nil && k == (lineedit.Key{Name: lineedit.Enter}) && r.answer.Empty() && r.open.current().Display.Metadata[uip.OnEnter] != "" {
		return r.answered(ctx, "", lineedit.Draft{})
	}
	if r.open == nil && r.editor.Text() == "?" && (k == lineedit.Typed('/') || k == lineedit.Typed('!')) {
		r.editor.Reset() // a command follows the list of keys
	}
	var half lineedit.Draft // of an answer
	if r.open != nil {
		half = r.answer.Draft()
	}
	action := r.line().Key(k)
	again := r.escaped
	r.escaped, r.stays = false, false
	switch action.Kind {
	case lineedit.Interrupt, lineedit.Suspend, lineedit.Redraw:
		return r.usual(action.Kind)
	case lineedit.EOF:
		switch {
		case r.turn == nil && r.open == nil && r.list(leaveInput): // running commands end with the session
			return nil
		case r.turn == nil || r.open != nil: // an open question stays open
			return errLeave
		}
		r.leaves = r.turn.stopped.Load() // once the turn has stopped
		r.stays = !r.leaves
	case lineedit.Submit:
		if r.open != nil {
			return r.entered(ctx, action)
		}
		if same, ok := shorthand(action.Text); ok {
			var line lineedit.Editor
			line.SetText(same)
			action.Text, action.Draft = same, line.Draft()
		}
		if r.list(strings.TrimSpace(action.Text)) {
			return nil
		}
		return r.send(ctx, action)
	case lineedit.Cancel, lineedit.Clear: // an approval stops the whole turn, any other question is dismissed
		switch {
		case r.open == nil && again:
			if !r.list(backInput) {
				return r.remark(dim, r.Words.T("no message to go back to"))
			}
			return nil
		case r.open == nil:
			r.escaped = action.Kind == lineedit.Cancel && r.Lists != nil
			return nil
		}
		r.forgo(half)
		if r.open.question.Purpose != uip.ConfirmRiskyAction {
			return r.reply(uip.Response{ID: r.open.question.ID, Author: "user", Dismissed: true})
		}
		return r.stopTurn()
	case lineedit.Edit:
		return r.edit(ctx)
	case lineedit.ToggleMode:
		return r.switchMode(ctx, r.Toggle())
	case lineedit.CycleMode:
		_, mode := r.Status()
		if r.turn != nil && r.turn.mode != "" {
			mode = r.turn.mode
		}
		return r.switchMode(ctx, r.Next(mode))
	case lineedit.None:
	}
	return nil
}

// backInput is the command for Esc pressed twice on an empty line.
const backInput = "/rewind"

// swapStash exchanges the draft and the stash.
func (r *REPL) swapStash() {
	draft := r.editor.Draft()
	r.editor.SetDraft(r.stash)
	r.stash = draft
}

// shorthand returns the command for a word that the user types alone at the prompt.
func shorthand(text string) (command string, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "?":
		return "/keys", true
	case "exit", "quit":
		return "/exit", true
	}
	return "", false
}
