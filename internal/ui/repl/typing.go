//go:build unix

package repl

import (
	"context"
	"strings"

	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/tty"
)

// handleEvents handles keyboard input.
func (r *REPL) handleEvents(ctx context.Context, batch []tty.Event) error {
	for _, e := range batch {
		var err error
		switch e := e.(type) {
		case tty.Key:
			r.typedAt = r.Now()
			err = r.handleKey(ctx, lineedit.Key(e))
		case tty.Paste:
			r.escPressed, r.ctrlDPressed, r.typedAt = false, false, r.Now()
			if r.picker != nil && r.question == nil {
				r.picker.Paste(e.Text)
			} else {
				err = r.handlePaste(e.Text)
			}
			if r.question != nil {
				r.question.touched = true
			}
		case tty.Focus:
			r.focused, r.reportsFocus = e.Gained, true
		case tty.Background:
			if r.PaletteFor != nil {
				r.Palette = r.PaletteFor(e.Light)
				r.renderer.SetPalette(r.Palette)
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
	r.searchCompletions()
	return nil
}

// isTyping reports whether the user is typing a draft right now.
func (r *REPL) isTyping() bool {
	return r.question == nil && !r.editor.IsEmpty() && r.Now().Sub(r.typedAt) < typingPause
}

// activeEditor returns the editor that receives the keys.
func (r *REPL) activeEditor() *lineedit.Editor {
	if r.question != nil {
		return &r.answer
	}
	return &r.editor
}

// recallQueued returns the last queued message to where it was typed: before the next draft, or to a
// question's empty line if it does not answer that. At a question it may also return the last line that
// was no answer.
func (r *REPL) recallQueued() bool {
	switch {
	case r.question != nil && r.answer.IsEmpty() && !r.question.lastDraft.IsEmpty():
		r.answer.SetDraft(r.question.lastDraft)
		r.question.lastDraft = lineedit.Draft{}
		return true
	case r.question != nil && r.answer.IsEmpty():
		d, ok := r.queue.takeLast(func(d lineedit.Draft) bool {
			return !isPromptDraft(0, d) || isPrompt(r.question.currentQuestion(), d.Text())
		})
		if ok {
			r.answer.SetDraft(d)
		}
		return ok
	case r.question != nil, r.turn == nil, r.editor.HasOverlay(), !r.editor.IsOnFirstRow():
		return false
	}
	d, ok := r.queue.takeLast(func(lineedit.Draft) bool { return true })
	switch {
	case ok && r.editor.IsEmpty():
		r.editor.SetDraft(d)
	case ok:
		r.editor.SetDraft(lineedit.Join(d, r.editor.Draft()))
	}
	return ok
}

func (r *REPL) handleKey(ctx context.Context, k lineedit.Key) error {
	if does, ok := r.KeyBindings[k]; ok {
		k = does
	}
	if r.picker != nil && r.question == nil {
		return r.handlePickKey(ctx, k)
	}
	if done, err := r.handleCardKey(ctx, k); done {
		return err
	}
	if k == (lineedit.Key{Name: lineedit.Up}) && r.recallQueued() {
		return nil
	}
	if k == lineedit.CtrlKey('s') && r.question == nil {
		r.swapStash()
		return nil
	}
	if k == lineedit.CtrlKey('o') && r.question == nil {
		return r.showOmitted(ctx)
	}
	if k == lineedit.CtrlKey('v') && r.question == nil && r.Clipboard != nil {
		r.pasteClipboard(ctx)
		return nil
	}
	if r.turn != nil && r.question == nil && k.Name == lineedit.Escape && k.Mod == 0 && !r.editor.HandlesEsc() {
		return r.stopTurn()
	}
	if r.question != nil && k == (lineedit.Key{Name: lineedit.Enter}) && r.answer.IsEmpty() &&
		r.question.currentQuestion().Display.Metadata[uip.MetaOnEnter] != "" {
		return r.handleAnswer(ctx, "", lineedit.Draft{})
	}
	if r.question == nil && r.editor.Text() == "?" && (k == lineedit.RuneKey('/') || k == lineedit.RuneKey('!')) {
		r.editor.Reset() // a command follows the list of keys
	}
	var half lineedit.Draft // of an answer
	if r.question != nil {
		half = r.answer.Draft()
	}
	action := r.activeEditor().HandleKey(k)
	again := r.escPressed
	r.escPressed, r.ctrlDPressed = false, false
	switch action.Kind {
	case lineedit.Interrupt, lineedit.Suspend, lineedit.Redraw:
		return r.handleCommonKey(action.Kind)
	case lineedit.EOF:
		switch {
		case r.turn == nil && r.question == nil && r.openList(exitCommand): // running commands end with the session
			return nil
		case r.turn == nil || r.question != nil: // an open question stays open
			return errLeave
		}
		r.leaveAfterTurn = r.turn.stopped.Load() // once the turn has stopped
		r.ctrlDPressed = !r.leaveAfterTurn
	case lineedit.Submit:
		if r.question != nil {
			return r.handleLine(ctx, action)
		}
		if same, ok := shorthandCommand(action.Text); ok {
			var line lineedit.Editor
			line.SetText(same)
			action.Text, action.Draft = same, line.Draft()
		}
		if r.openList(strings.TrimSpace(action.Text)) {
			return nil
		}
		return r.submit(ctx, action)
	case lineedit.Cancel, lineedit.Clear: // an approval stops the whole turn, any other question is dismissed
		switch {
		case r.question == nil && again:
			if !r.openList(rewindCommand) {
				return r.printNote(dim, r.Translator.T("no message to go back to"))
			}
			return nil
		case r.question == nil:
			r.escPressed = action.Kind == lineedit.Cancel && r.ListFor != nil
			return nil
		}
		r.keepUnused(half)
		if r.question.question.Purpose != uip.PurposeConfirmRiskyAction {
			return r.sendReply(uip.Response{ID: r.question.question.ID, Author: "user", Dismissed: true})
		}
		return r.stopTurn()
	case lineedit.Edit:
		return r.openEditor(ctx)
	case lineedit.ToggleMode:
		return r.switchMode(ctx, r.ToggleMode())
	case lineedit.CycleMode:
		_, mode := r.Status()
		if r.turn != nil && r.turn.mode != "" {
			mode = r.turn.mode
		}
		return r.switchMode(ctx, r.NextMode(mode))
	case lineedit.None:
	}
	return nil
}

// rewindCommand is the command for Esc pressed twice on an empty line.
const rewindCommand = "/rewind"

// swapStash exchanges the draft and the stash.
func (r *REPL) swapStash() {
	draft := r.editor.Draft()
	r.editor.SetDraft(r.stash)
	r.stash = draft
}

// shorthandCommand returns the command for a word that the user types alone at the prompt.
func shorthandCommand(text string) (command string, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "?":
		return "/keys", true
	case "exit", "quit":
		return "/exit", true
	}
	return "", false
}
