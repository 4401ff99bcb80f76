//go:build unix

package repl

import (
	"context"
	"errors"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
)

// endTurn stops the running turn and waits for it. An open question stays open: it is asked again when the
// session continues.
func (r *REPL) endTurn() {
	if r.turn == nil {
		return
	}
	later := reply{err: uip.ErrAnswerPending}
	if r.question != nil {
		r.question.reply <- later
		r.question = nil
	} else {
		r.turn.cancel()
	}
	for {
		select {
		case a := <-r.questions:
			a.reply <- later
		case l := <-r.lendRequests:
			close(l.refused)
		case <-r.turnDone:
			return
		}
	}
}

// startInput runs a sent input, and leaves it on the screen as typed.
func (r *REPL) startInput(ctx context.Context, a lineedit.Action) error {
	draft := a.Draft
	if draft.IsEmpty() {
		var typed lineedit.Editor
		typed.SetText(a.Text)
		draft = typed.Draft()
	}
	if err := r.commitInput(r.promptSpans(), draft); err != nil {
		return err
	}
	r.header.markPrinted()
	r.startTurn(ctx, a.Text, func(ctx context.Context, out event.Sink) (string, error) {
		return r.Session().Run(ctx, draft, out)
	})
	return nil
}

// commitInput makes the sent input part of the output.
func (r *REPL) commitInput(prompt []lineedit.Span, draft lineedit.Draft) error {
	sent := lineedit.Editor{Prompt: prompt, Style: r.editor.Style}
	sent.SetDraft(draft)
	rows, _, _ := sent.View(r.width())
	if last := len(rows) - 1; last > 0 && strings.TrimSpace(rows[last]) == "" && !strings.HasSuffix(draft.Text(), "\n") {
		rows = rows[:last] // the row before was full; this one is only for the cursor
	}
	return errors.Join(r.output.flush(), r.Screen.Commit(rows))
}

// startTurn runs work beside the loop. A panic there restores the terminal before it ends the program.
func (r *REPL) startTurn(ctx context.Context, input string, work func(context.Context, event.Sink) (string, error)) {
	// The end of the program does not stop the turn by itself: a question open then must stay open.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &turn{input: input, cancel: cancel, started: r.Now()}
	r.turn = t
	r.setActivity(term.Activity{})
	r.Session().SetSteering(r.takeSteering)
	go func() {
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				_ = r.Terminal.Close()
				panic(p)
			}
		}()
		out := &failureSink{Sink: r.renderer, stopped: &t.stopped}
		_, err := work(tool.WithLender(ctx, r.Lend), out)
		r.turnDone <- turnResult{input, err, out.errShown.Load()}
	}()
}

// takeSteering passes the queued text to the running turn, up to the first command.
func (r *REPL) takeSteering() (said []chat.UserText) {
	for _, d := range r.queue.takeFirst(isSteering) {
		said = append(said, d.Words())
		_ = r.Print(r.echo(d.String())) // a lost terminal ends the loop by itself
	}
	return said
}

// Turn times after which a user may look elsewhere: at the turn's end, and at a question, which blocks
// the turn.
const (
	notifyAfterTurn     = 20 * time.Second
	notifyAfterQuestion = 3 * time.Second
	// how long an earlier question is ignored, with nothing typed
	remindAfter = 5 * time.Second
)

// notifyAway notifies a user who looks elsewhere: the terminal reports that, or it reports no focus and the
// turn has taken this long.
func (r *REPL) notifyAway(text string, after time.Duration) (called bool) {
	away := r.reportsFocus && !r.focused || !r.reportsFocus && r.turn != nil && r.Now().Sub(r.turn.started) >= after
	if away && r.Notify != nil {
		r.Notify(text)
	}
	return away
}

// remindQuestion notifies a user who ignored a question, once.
func (r *REPL) remindQuestion() {
	d := r.question
	if d == nil || d.notified || r.Notify == nil || r.reportsFocus && r.focused || r.Now().Sub(d.shownAt) < remindAfter ||
		r.Now().Sub(r.typedAt) < remindAfter {
		return
	}
	d.notified = true
	r.Notify(r.questionTitle(d.question))
}

// handleTurnEnd handles the end of a turn and continues with the queue.
func (r *REPL) handleTurnEnd(ctx context.Context, f turnResult) error {
	if r.Now().Sub(r.turn.started) >= notifyAfterTurn {
		r.notifyAway(r.Translator.T("the turn has ended: %s", oneLine(f.input)), notifyAfterTurn)
	}
	r.turn, r.question = nil, nil
	if err := r.renderer.EndReply(); err != nil {
		return err
	}
	if f.err != nil && !f.errShown && !errors.Is(f.err, context.Canceled) {
		if err := r.printNote(bad, r.Translator.TranslateError(f.err)); err != nil {
			return err
		}
	}
	if r.AfterInput != nil {
		if err := r.AfterInput(ctx, f.input, f.err); err != nil {
			return err
		}
	}
	if r.leaveAfterTurn {
		return errLeave
	}
	if r.turn != nil {
		return nil // After continued another session
	}
	if ctx.Err() != nil {
		return nil
	}
	for _, d := range r.queue.takeFirst(acceptFirst) {
		if r.Session().IsExitCommand(strings.TrimSpace(d.Text())) && r.openList(exitCommand) {
			return nil // it asks first
		}
		return r.startInput(ctx, lineedit.Action{Kind: lineedit.Submit, Text: d.Text(), Draft: d})
	}
	return nil
}
