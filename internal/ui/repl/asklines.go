//go:build unix

package repl

import (
	"context"
	"errors"
	"strings"

	"coder/internal/core/uip"
	"coder/internal/ui/term"
)

// Ask asks the user a question, part by part if it has parts.
func (l *Lines) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	back := make(chan struct{})
	select {
	case l.asks <- back:
		defer close(back)
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	}
	l.asking.Store(true)
	defer func() {
		if l.program.Err() == nil { // otherwise the turn must not be stopped: the question stays open
			l.asking.Store(false)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.program, func() { cancel(uip.ErrParked) })()
	d := dialogue{ask: ask{question: q}}
	if l.now = l.half.at(q); l.half.Question == q.ID {
		l.half = Answer{}
	}
	l.again, l.now.Given = l.now.Given, nil
	if l.now.Mode != "" {
		l.switchMode(ctx, l.now.Mode)
	}
	if _, mode := l.Status(); l.mode == mode { // the mode is in effect
		l.mode = ""
	}
	if !l.Render.Cards().Hides(q) {
		l.Render.Saw(q)
	}
	for {
		a, err := l.answer(ctx, &d)
		l.parted = errors.Is(err, uip.ErrParked)
		if err != nil || a.Dismissed || !d.inParts() {
			return a, err
		}
		d.parts = append(d.parts, a)
		if d.at++; d.at == len(q.Parts) {
			return uip.Response{ID: q.ID, Author: "user", Parts: d.parts}, nil
		}
	}
}

func (l *Lines) cards() term.Cards { return offering(l.Render.Cards(), l.Trust, l.Direct) }

// card returns the card for the current part of the question, shortened if it was shown in full before.
func (l *Lines) card(d *dialogue, brief bool) string {
	cards := l.cards()
	d.trust = d.trust || cards.Trusts(d.question)
	if brief {
		return cards.Again(d.card)
	}
	return d.card(cards)
}

// answer reads lines until one is an answer. Esc stops the turn at an approval, and dismisses any other
// question. If no more input can be read, the question stays open.
func (l *Lines) answer(ctx context.Context, d *dialogue) (uip.Response, error) {
	text := l.card(d, false)
	for q := d.current(); ; {
		h, err := l.reply(ctx, strings.TrimPrefix(text+"\n> ", "\n"))
		if err == nil && h.kind == stopped && l.Sent != nil && hasWords(l.Words, q, h.line) {
			l.Sent(h.line) // discarded, but in the history
		}
		switch {
		case ctx.Err() != nil:
			return uip.Response{}, context.Cause(ctx)
		case err != nil:
			return uip.Response{}, uip.ErrParked
		case h.kind == stopped && d.question.Purpose == uip.ConfirmRiskyAction:
			l.stopTurn()
			return uip.Response{}, context.Canceled
		case h.kind == stopped:
			return uip.Response{ID: d.question.ID, Author: "user", Dismissed: true}, nil
		case h.kind == left, l.Session().Leaves(strings.TrimSpace(h.line)):
			l.end(errLeave)
			return uip.Response{}, uip.ErrParked
		case l.Session().Looks(strings.TrimSpace(h.line)):
			l.look(ctx, h)
			l.looking.Wait()
			text = l.card(d, true)
			continue
		}
		if said, ok := l.command(ctx, q, h.line); ok {
			if l.Sent != nil && !l.Session().Knows(strings.TrimSpace(h.line)) { // otherwise it is sent later
				l.Sent(strings.TrimSpace(h.line)) // for the history
			}
			text = said
			continue
		}
		line, stop := numbered(l.cards().Choices(q), h.line)
		if h.line = line; asksWhy(q, line) {
			text = l.cards().Why(q)
			continue
		}
		if all := d.secondLook(l.cards(), l.Words, h.line); all != "" {
			l.Render.Saw(d.question)
			text = all
			continue
		}
		if d.trusts(h.line) && !l.cards().Trust { // trust was given elsewhere meanwhile
			h.line = "y"
		}
		if d.trusts(h.line) {
			l.look(ctx, input{line: trustInput})
			l.looking.Wait()
			if !l.cards().Trust { // trust was given
				return uip.Response{ID: q.ID, Author: "user", Option: uip.Approve}, nil
			}
			text = l.card(d, true)
			continue
		}
		if directs(l.cards(), q, h.line) {
			if err := l.Direct(); err != nil {
				text = l.folded(l.Words.Said(err.Error()))
				continue
			}
			h.line = "y"
		}
		a, ok := read(l.Words, q, h.line)
		a.ID, a.Author, a.Stop = q.ID, "user", stop
		if ok && !unheard(q, a) && uip.Check(q, a) == nil {
			l.now.Given = append(l.now.Given, h.line)
			if l.Sent != nil && hasWords(l.Words, q, h.line) {
				l.Sent(h.line) // for the history
			}
			return a, nil
		}
		text = l.folded(hint(l.Words, d.seen(l.cards()), q))
	}
}

// command runs a command typed at a question, as during a turn, and returns the text to show below it.
// It reports whether the line is a command.
func (l *Lines) command(ctx context.Context, q uip.Request, line string) (say string, ok bool) {
	s := l.Session()
	line = strings.TrimSpace(line)
	switch mode := s.Switches(line); {
	case mode != "" && decidesMode(q):
		return l.folded(modeHint(l.Words, q)), true
	case mode != "":
		l.switchMode(ctx, mode)
		return "", true
	case s.Knows(line):
		l.enqueue(input{line: line})
		return "", true
	}
	if err := s.Unknown(line); err != nil {
		return l.folded(l.Words.Said(err.Error())), true
	}
	if isPrompt(q, line) {
		l.enqueue(input{line: line})
		return "", true
	}
	return "", false
}

// reply prompts and waits for a line typed after the prompt, or Esc. A line begun before the question
// appeared is not an answer.
func (l *Lines) reply(ctx context.Context, text string) (input, error) {
	if err := l.prompt(text); err != nil {
		return input{}, err
	}
	if len(l.again) > 0 {
		line := l.again[0]
		l.again = l.again[1:]
		return input{line: line}, l.repeat(line)
	}
	if l.now.Text != "" {
		l.begins <- l.now.Text
		l.now.Text = ""
	}
	for {
		h, err := l.await(ctx)
		switch {
		case err != nil, h.kind == stopped, h.kind == left, h.kind == entered && h.asked:
			return h, err
		case h.kind == entered && strings.TrimSpace(h.line) != "":
			l.enqueue(h)
			if err := l.prompt("> "); err != nil {
				return input{}, err
			}
		}
	}
}
