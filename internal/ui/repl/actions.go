package repl

import (
	"context"
	"errors"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// submit submits the typed text: as a new turn, or while a turn runs to be answered beside it or queued.
func (r *REPL) submit(ctx context.Context, action lineedit.Action) error {
	if r.OnSent != nil {
		saved := action.Text
		if !action.Draft.IsEmpty() {
			saved = action.Draft.DiskText()
		}
		r.OnSent(saved)
	}
	s := r.Session()
	if mode := s.TargetMode(action.Text); r.turn != nil && mode != "" {
		return r.switchMode(ctx, mode)
	}
	if r.turn != nil && s.IsShowCommand(action.Text) {
		return r.runShowCommand(ctx, action.Text, false)
	}
	if err := s.CheckUnknownCommand(action.Text); r.turn != nil && err != nil {
		return r.renderer.WriteAnswer(r.echo(oneLine(action.Text)), event.LocalAdded{Output: err.Error(), Failed: true})
	}
	if r.turn != nil {
		r.queue.add(action.Draft)
		return nil
	}
	r.saveDraft() // the draft was sent, and the turn may open another session
	return r.startInput(ctx, action)
}

// runShowCommand answers a command beside the turn, then shows the open question again below the answer. agrees
// means that trust, if it was given, approves the question.
func (r *REPL) runShowCommand(ctx context.Context, input string, agrees bool) error {
	s, open := r.Session(), r.question
	echo := ""
	if !agrees { // otherwise the answer's letter is shown already
		echo = r.echo(oneLine(input))
	}
	r.showCommands.Go(func() {
		if err := s.RunShowCommand(ctx, input, echoSink{r.renderer, echo}); err != nil && ctx.Err() == nil {
			// a lost terminal ends the loop by itself
			_ = r.renderer.WriteAnswer(echo, event.LocalAdded{Output: err.Error(), Failed: true})
		}
		select {
		case r.showResults <- showResult{open, agrees}:
		case <-ctx.Done():
		}
	})
	return nil
}

// echo returns the typed text as the output shows it.
func (r *REPL) echo(text string) string {
	const sign = "> "
	return r.renderer.Cards().Palette.Paint(good, sign) + strings.TrimPrefix(ink.FoldText(sign+text, r.width()), sign)
}

// showResult is a command that was answered, the question that was open before, and whether trust approves
// that question.
type showResult struct {
	question     *dialogue
	trustsFolder bool
}

// reopenQuestion returns to the question that was open before a command.
func (r *REPL) reopenQuestion(l showResult) error {
	switch {
	case l.question == nil || l.question != r.question:
		return nil
	case l.trustsFolder && !r.cards().Trust: // trust was given
		return r.sendReply(uip.Response{ID: r.question.question.ID, Author: "user", Option: uip.OptionApprove})
	}
	return r.renderer.Insert(r.cards().DrawAgain(r.question.drawCard))
}

// echoSink shows a command's output below the typed command.
type echoSink struct {
	*term.Renderer
	echo string
}

// Emit shows a record.
func (e echoSink) Emit(ctx context.Context, rec event.Record) error {
	if said, ok := rec.Event.(event.LocalAdded); ok {
		return e.WriteAnswer(e.echo, said)
	}
	return e.Renderer.Emit(ctx, rec)
}

// takeRemote runs a message that the user sent elsewhere, as if it had been typed here. It waits
// while the user chooses from a list.
func (r *REPL) takeRemote(ctx context.Context) error {
	if r.NextRemote == nil || r.picker != nil {
		return nil
	}
	said, ok := r.NextRemote()
	switch {
	case !ok || said.Stop && r.turn == nil:
		return nil
	case said.Stop:
		return errors.Join(r.Print(r.Translator.T("stopped elsewhere (%s)", said.From)), r.stopTurn())
	}
	var typed lineedit.Editor
	typed.SetText(said.Text)
	return errors.Join(r.Print(r.Translator.T("sent elsewhere (%s)", said.From)),
		r.submit(ctx, lineedit.Action{Kind: lineedit.Submit, Text: said.Text, Draft: typed.Draft()}))
}

// stopTurn stops the turn. Queued messages return to the prompt, before the current draft. A command
// returns only if it is alone, since the text after it would become its arguments; a command being typed
// stays alone.
func (r *REPL) stopTurn() error {
	r.editor.CloseMenu()
	r.turn.stopped.Store(true)
	r.turn.cancel()
	back := r.queue.takeFirst(acceptAll)
	if len(back) == 0 {
		return nil
	}
	var stay []lineedit.Draft
	var dropped []string
	begun := false // a command is being typed
	switch typed := r.editor.Draft(); {
	case r.editor.IsEmpty():
	case isPromptDraft(0, typed):
		back = append(back, typed)
	default:
		stay, begun = append(stay, typed), true
	}
	for _, d := range back {
		if begun || len(back) > 1 && !isPromptDraft(0, d) {
			dropped = append(dropped, r.Translator.T("no longer queued: %s", oneLine(d.String())))
		} else {
			stay = append(stay, d)
		}
	}
	r.editor.SetDraft(lineedit.Join(stay...))
	if dropped == nil {
		return nil
	}
	return r.printNote(dim, dropped...)
}

// saveDraft saves the unsent text if it has changed.
func (r *REPL) saveDraft() {
	if r.SaveUnsent == nil {
		return
	}
	draft, begun := r.editor.UnsentDraft(), r.restoredAnswer
	if draft.IsEmpty() { // otherwise the stash would be lost with the program
		draft = r.stash
	}
	now := UnsentText{Queue: r.queue.texts(), Draft: draft.DiskText(),
		Pastes: lineedit.Join(append(r.queue.list(), draft, r.answer.Draft())...).Pastes()}
	if r.question != nil {
		begun = Answer{Question: r.question.question.ID, Given: r.question.typedParts}
		_, answers := parseAnswer(r.Translator, r.question.currentQuestion(), r.answer.Text())
		// must be given again
		bare := r.question.question.Purpose == uip.PurposeConfirmRiskyAction && len(strings.Fields(r.answer.Text())) < 2 &&
			(answers || r.question.approvesTrust(r.answer.Text()))
		if answer := r.answer.Text(); strings.TrimSpace(answer) != "" && !bare {
			begun.Text = answer
		}
		if _, mode := r.Status(); r.turn != nil && r.turn.mode != mode {
			begun.Mode = r.turn.mode
		}
		if begun.isEmpty() {
			begun = r.restoredAnswer
		}
	}
	if now.Answer = begun; now.allText() != r.savedText {
		r.savedText = now.allText()
		r.SaveUnsent(now)
	}
}

// openEditor opens the draft, or an answer, in the user's editor.
func (r *REPL) openEditor(ctx context.Context) error {
	if r.Edit == nil {
		return nil
	}
	line := r.activeEditor()
	var failed error
	err := r.away(ctx, func() {
		var text string
		text, failed = r.Edit(ctx, line.Text())
		line.SetText(text)
	})
	if err == nil && failed != nil {
		return r.printNote(warn, r.Translator.T("the editor could not be used: %v",
			r.Translator.TranslateError(failed)))
	}
	return err
}

// away leaves the terminal to a program of the user's while use runs.
func (r *REPL) away(ctx context.Context, use func()) error {
	r.stopReading()
	defer r.startReading(ctx)
	if err := errors.Join(r.hideLive(), r.Terminal.Restore()); err != nil {
		return err
	}
	r.saveDraft() // whatever the program does
	use()
	r.saveDraft()
	r.Terminal.DropResume()
	return errors.Join(r.Terminal.SetRaw(), r.Screen.Show())
}

// switchMode changes the mode; for a running turn, from its next step on.
func (r *REPL) switchMode(ctx context.Context, mode string) error {
	if r.question != nil && isModeQuestion(r.question.currentQuestion()) {
		return r.PrintLines([]ink.Span{{Style: ink.Style{Role: warn},
			Text: modeHint(r.Translator, r.question.currentQuestion())}})
	}
	change := r.Session().SwitchMode
	if r.turn != nil {
		change = r.Session().ChangeSettings
	}
	if err := change(ctx, mode, r.renderer); err != nil {
		return r.printNote(bad, r.Translator.TranslateError(err))
	}
	if r.turn != nil {
		r.turn.mode = mode
	}
	return nil
}
