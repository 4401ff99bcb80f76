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

// send sends what was typed: to be worked on, or while a turn runs to be answered
// beside it or queued.
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
	r.keepDraft() // there is none any more, and the session may become another
	return r.begin(ctx, action)
}

// look answers what the person wants to know beside the turn. The question that is open
// meanwhile is put below it once more; agrees says that it is answered with yes where trust
// was given by it.
func (r *REPL) look(ctx context.Context, input string, agrees bool) error {
	s, open := r.Session(), r.open
	echo := ""
	if !agrees { // else the letter for it stands there
		echo = r.echo(oneLine(input))
	}
	r.looking.Go(func() {
		if err := s.Look(ctx, input, echoing{r.render, echo}); err != nil && ctx.Err() == nil {
			_ = r.render.Answer(echo, event.LocalAdded{Output: err.Error(), Failed: true}) // a terminal that is gone ends the loop by itself
		}
		select {
		case r.looked <- looked{open, agrees}:
		case <-ctx.Done():
		}
	})
	return nil
}

// echo is what was typed as it stands in the stream.
func (r *REPL) echo(text string) string {
	const sign = "> "
	return r.render.Cards().Palette.Paint(good, sign) + strings.TrimPrefix(ink.Folded(sign+text, r.width()), sign)
}

// looked is a command that was answered, the question that was open before it, and
// whether trust answers that.
type looked struct {
	open   *dialogue
	agrees bool
}

// goOn goes on with the question that was open before a command.
func (r *REPL) goOn(l looked) error {
	switch {
	case l.open == nil || l.open != r.open:
		return nil
	case l.agrees && !r.cards().Trust: // it is given
		return r.reply(uip.Response{ID: r.open.question.ID, Author: "user", Option: uip.Approve})
	}
	return r.render.Insert(r.cards().Again(r.open.card))
}

// echoing shows what a command says below what was typed.
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

// takeElsewhere does what the person said elsewhere, as if it had been typed here. It
// waits while they choose from a list.
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

// stopTurn stops all that is going on. What was queued goes back to where it
// was typed, before what is being typed; a command does only if it is alone, since what
// stands behind it would be taken for its arguments, and one that is being typed stays so.
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

// keepDraft keeps what is typed and not sent, if that has changed.
func (r *REPL) keepDraft() {
	if r.Unsent == nil {
		return
	}
	draft, begun := r.editor.Unsent(), r.begun
	if draft.Empty() { // else what was put away would be lost with the program
		draft = r.stash
	}
	now := Unsent{Queue: r.queue.texts(), Draft: draft.Saved(), Pastes: lineedit.Join(append(r.queue.waiting(), draft, r.answer.Draft())...).Pastes()}
	if r.open != nil {
		begun = Answer{Question: r.open.question.ID, Given: r.open.given}
		_, answers := read(r.Words, r.open.current(), r.answer.Text())
		bare := r.open.question.Purpose == uip.ConfirmRiskyAction && len(strings.Fields(r.answer.Text())) < 2 && (answers || r.open.trusts(r.answer.Text())) // it is given anew
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

// edit lets the person write the draft, or an answer, in another program.
func (r *REPL) edit(ctx context.Context) error {
	if r.Edit == nil {
		return nil
	}
	line := r.line()
	r.stopReading()
	defer r.startReading(ctx)
	if err := errors.Join(r.hide(), r.Terminal.Restore()); err != nil {
		return err
	}
	r.keepDraft() // whatever becomes of it
	text, err := r.Edit(ctx, line.Text())
	line.SetText(text)
	r.keepDraft()
	r.Terminal.Forget()
	if back := errors.Join(r.Terminal.Raw(), r.Screen.Show()); back != nil {
		return back
	}
	if err != nil {
		return r.remark(warn, r.Words.T("the editor could not be used: %v", r.Words.Said(err.Error())))
	}
	return nil
}

// switchMode changes the mode; that of a turn which runs, from its next step on.
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
