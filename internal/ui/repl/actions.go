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

// send submits the typed text: as a new turn, or while a turn runs to be answered beside it or queued.
func (r *REPL) send(ctx context.Context, action lineedit.Action) error {
	if r.Sent != nil {
		saved := action.Text
		if !action.Draft.Empty() {
			saved = action.Draft.Saved()
		}
		r.Sent(saved)
	}
	s := r.Session()
	if mode := s.Switches(action.Text); r.turn != nil && mode != "" {
		return r.switchMode(ctx, mode)
	}
	if r.turn != nil && s.Looks(action.Text) {
		return r.look(ctx, action.Text, false)
	}
	if err := s.Unknown(action.Text); r.turn != nil && err != nil {
		return r.render.Answer(r.echo(oneLine(action.Text)), event.LocalAdded{Output: err.Error(), Failed: true})
	}
	if r.turn != nil {
		r.queue.add(action.Draft)
		return nil
	}
	r.keepDraft() // the draft was sent, and the turn may open another session
	return r.begin(ctx, action)
}

// look answers a command beside the turn, then shows the open question again below the answer. agrees
// means that trust, if it was given, approves the question.
func (r *REPL) look(ctx context.Context, input string, agrees bool) error {
	s, open := r.Session(), r.open
	echo := ""
	if !agrees { // otherwise the answer's letter is shown already
		echo = r.echo(oneLine(input))
	}
	r.looking.Go(func() {
		if err := s.Look(ctx, input, echoing{r.render, echo}); err != nil && ctx.Err() == nil {
			_ = r.render.Answer(echo, event.LocalAdded{Output: err.Error(), Failed: true}) // a lost terminal ends the loop by itself
		}
		select {
		case r.looked <- looked{open, agrees}:
		case <-ctx.Done():
		}
	})
	return nil
}

// echo returns the typed text as the output shows it.
func (r *REPL) echo(text string) string {
	const sign = "> "
	return r.render.Cards().Palette.Paint(good, sign) + strings.TrimPrefix(ink.Folded(sign+text, r.width()), sign)
}

// looked is a command that was answered, the question that was open before, and whether trust approves
// that question.
type looked struct {
	open   *dialogue
	agrees bool
}

// goOn returns to the question that was open before a command.
func (r *REPL) goOn(l looked) error {
	switch {
	case l.open == nil || l.open != r.open:
		return nil
	case l.agrees && !r.cards().Trust: // trust was given
		return r.reply(uip.Response{ID: r.open.question.ID, Author: "user", Option: uip.Approve})
	}
	return r.render.Insert(r.cards().Again(r.open.card))
}

// echoing shows a command's output below the typed command.
type echoing struct {
	*term.Renderer
	echo string
}

// Emit shows a record.
func (e echoing) Emit(ctx context.Context, rec event.Record) error {
	if said, ok := rec.Event.(event.LocalAdded); ok {
		return e.Answer(e.echo, said)
	}
	return e.Renderer.Emit(ctx, rec)
}

// takeElsewhere runs a message that the user sent elsewhere, as if it had been typed here. It waits
// while the user chooses from a list.
func (r *REPL) takeElsewhere(ctx context.Context) error {
	if r.Elsewhere == nil || r.picker != nil {
		return nil
	}
	said, ok := r.Elsewhere()
	switch {
	case !ok || said.Stop && r.turn == nil:
		return nil
	case said.Stop:
		return errors.Join(r.Say(r.Words.T("stopped elsewhere (%s)", said.From)), r.stopTurn())
	}
	var typed lineedit.Editor
	typed.SetText(said.Text)
	return errors.Join(r.Say(r.Words.T("sent elsewhere (%s)", said.From)), r.send(ctx, lineedit.Action{Kind: lineedit.Submit, Text: said.Text, Draft: typed.Draft()}))
}

// stopTurn stops the turn. Queued messages return to the prompt, before the current draft. A command
// returns only if it is alone, since the text after it would become its arguments; a command being typed
// stays alone.
func (r *REPL) stopTurn() error {
	r.editor.Close()
	r.turn.stopped.Store(true)
	r.turn.cancel()
	back := r.queue.take(all)
	if len(back) == 0 {
		return nil
	}
	var stay []lineedit.Draft
	var dropped []string
	begun := false // a command is being typed
	switch typed := r.editor.Draft(); {
	case r.editor.Empty():
	case words(0, typed):
		back = append(back, typed)
	default:
		stay, begun = append(stay, typed), true
	}
	for _, d := range back {
		if begun || len(back) > 1 && !words(0, d) {
			dropped = append(dropped, r.Words.T("no longer queued: %s", oneLine(d.String())))
		} else {
			stay = append(stay, d)
		}
	}
	r.editor.SetDraft(lineedit.Join(stay...))
	if dropped == nil {
		return nil
	}
	return r.remark(dim, dropped...)
}

// keepDraft saves the unsent text if it has changed.
func (r *REPL) keepDraft() {
	if r.Unsent == nil {
		return
	}
	draft, begun := r.editor.Unsent(), r.begun
	if draft.Empty() { // otherwise the stash would be lost with the program
		draft = r.stash
	}
	now := Unsent{Queue: r.queue.texts(), Draft: draft.Saved(), Pastes: lineedit.Join(append(r.queue.waiting(), draft, r.answer.Draft())...).Pastes()}
	if r.open != nil {
		begun = Answer{Question: r.open.question.ID, Given: r.open.given}
		_, answers := read(r.Words, r.open.current(), r.answer.Text())
		bare := r.open.question.Purpose == uip.ConfirmRiskyAction && len(strings.Fields(r.answer.Text())) < 2 && (answers || r.open.trusts(r.answer.Text())) // must be given again
		if answer := r.answer.Text(); strings.TrimSpace(answer) != "" && !bare {
			begun.Text = answer
		}
		if _, mode := r.Status(); r.turn != nil && r.turn.mode != mode {
			begun.Mode = r.turn.mode
		}
		if begun.empty() {
			begun = r.begun
		}
	}
	if now.Answer = begun; now.said() != r.kept {
		r.kept = now.said()
		r.Unsent(now)
	}
}

// edit opens the draft, or an answer, in the user's editor.
func (r *REPL) edit(ctx context.Context) error {
	if r.Edit == nil {
		return nil
	}
	line := r.line()
	var failed error
	err := r.away(ctx, func() {
		var text string
		text, failed = r.Edit(ctx, line.Text())
		line.SetText(text)
	})
	if err == nil && failed != nil {
		return r.remark(warn, r.Words.T("the editor could not be used: %v", r.Words.Said(failed.Error())))
	}
	return err
}

// away leaves the terminal to a program of the user's while use runs.
func (r *REPL) away(ctx context.Context, use func()) error {
	r.stopReading()
	defer r.startReading(ctx)
	if err := errors.Join(r.hide(), r.Terminal.Restore()); err != nil {
		return err
	}
	r.keepDraft() // whatever the program does
	use()
	r.keepDraft()
	r.Terminal.Forget()
	return errors.Join(r.Terminal.Raw(), r.Screen.Show())
}

// switchMode changes the mode; for a running turn, from its next step on.
func (r *REPL) switchMode(ctx context.Context, mode string) error {
	if r.open != nil && decidesMode(r.open.current()) {
		return r.Tell([]ink.Span{{Look: ink.Look{Role: warn}, Text: modeHint(r.Words, r.open.current())}})
	}
	change := r.Session().SwitchMode
	if r.turn != nil {
		change = r.Session().Change
	}
	if err := change(ctx, mode, r.render); err != nil {
		return r.remark(bad, r.Words.Said(err.Error()))
	}
	if r.turn != nil {
		r.turn.mode = mode
	}
	return nil
}
