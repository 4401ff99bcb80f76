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

// stop stops the running turn and waits for it. An open question stays open: it is asked again when the
// session continues.
func (r *REPL) stop() {
	if r.turn == nil {
		return
	}
	later := reply{err: uip.ErrParked}
	if r.open != nil {
		r.open.reply <- later
		r.open = nil
	} else {
		r.turn.cancel()
	}
	for {
		select {
		case a := <-r.asks:
			a.reply <- later
		case l := <-r.lends:
			close(l.refused)
		case <-r.done:
			return
		}
	}
}

// begin runs a sent input, and leaves it on the screen as typed.
func (r *REPL) begin(ctx context.Context, a lineedit.Action) error {
	draft := a.Draft
	if draft.Empty() {
		var typed lineedit.Editor
		typed.SetText(a.Text)
		draft = typed.Draft()
	}
	if err := r.commit(r.prompt(), draft); err != nil {
		return err
	}
	r.above.printed()
	r.start(ctx, a.Text, func(ctx context.Context, out event.Sink) (string, error) {
		return r.Session().Run(ctx, draft, out)
	})
	return nil
}

// commit makes the sent input part of the output.
func (r *REPL) commit(prompt []lineedit.Span, draft lineedit.Draft) error {
	sent := lineedit.Editor{Prompt: prompt, Style: r.editor.Style}
	sent.SetDraft(draft)
	rows, _, _ := sent.View(r.width())
	if last := len(rows) - 1; last > 0 && strings.TrimSpace(rows[last]) == "" && !strings.HasSuffix(draft.Text(), "\n") {
		rows = rows[:last] // the row before was full; this one is only for the cursor
	}
	return errors.Join(r.wrote.flush(), r.Screen.Commit(rows))
}

// start runs work beside the loop. A panic there restores the terminal before it ends the program.
func (r *REPL) start(ctx context.Context, input string, work func(context.Context, event.Sink) (string, error)) {
	// The end of the program does not stop the turn by itself: a question open then must stay open.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &turn{input: input, cancel: cancel, began: r.Now()}
	r.turn = t
	r.status(term.Doing{})
	r.Session().Steer(r.steer)
	go func() {
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				_ = r.Terminal.Close()
				panic(p)
			}
		}()
		out := &failureSink{Sink: r.render, stopped: &t.stopped}
		_, err := work(tool.WithLender(ctx, r.Lend), out)
		r.done <- finished{input, err, out.told.Load()}
	}()
}

// steer passes the queued text to the running turn, up to the first command.
func (r *REPL) steer() (said []chat.Words) {
	for _, d := range r.queue.take(steers) {
		said = append(said, d.Words())
		_ = r.Say(r.echo(d.String())) // a lost terminal ends the loop by itself
	}
	return said
}

// Turn times after which a user may look elsewhere: at the turn's end, and at a question, which blocks
// the turn.
const (
	long     = 20 * time.Second
	attended = 3 * time.Second
	// how long an earlier question is ignored, with nothing typed
	ignored = 5 * time.Second
)

// call notifies a user who looks elsewhere: the terminal reports that, or it reports no focus and the
// turn has taken this long.
func (r *REPL) call(text string, after time.Duration) (called bool) {
	away := r.tells && !r.focused || !r.tells && r.turn != nil && r.Now().Sub(r.turn.began) >= after
	if away && r.Notify != nil {
		r.Notify(text)
	}
	return away
}

// remind notifies a user who ignored a question, once.
func (r *REPL) remind() {
	d := r.open
	if d == nil || d.called || r.Notify == nil || r.tells && r.focused || r.Now().Sub(d.since) < ignored || r.Now().Sub(r.typedAt) < ignored {
		return
	}
	d.called = true
	r.Notify(r.titleOf(d.question))
}

// over handles the end of a turn and continues with the queue.
func (r *REPL) over(ctx context.Context, f finished) error {
	if r.Now().Sub(r.turn.began) >= long {
		r.call(r.Words.T("the turn has ended: %s", oneLine(f.input)), long)
	}
	r.turn, r.open = nil, nil
	if err := r.render.Break(); err != nil {
		return err
	}
	if f.err != nil && !f.told && !errors.Is(f.err, context.Canceled) {
		if err := r.remark(bad, r.Words.Said(f.err.Error())); err != nil {
			return err
		}
	}
	if r.After != nil {
		if err := r.After(ctx, f.input, f.err); err != nil {
			return err
		}
	}
	if r.leaves {
		return errLeave
	}
	if r.turn != nil {
		return nil // After continued another session
	}
	if ctx.Err() != nil {
		return nil
	}
	for _, d := range r.queue.take(one) {
		if r.Session().Leaves(strings.TrimSpace(d.Text())) && r.list(leaveInput) {
			return nil // it asks first
		}
		return r.begin(ctx, lineedit.Action{Kind: lineedit.Submit, Text: d.Text(), Draft: d})
	}
	return nil
}
