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
func (l *LineREPL) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	back := make(chan struct{})
	select {
	case l.keyboardRequests <- back:
		defer close(back)
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	}
	l.questionOpen.Store(true)
	defer func() {
		if l.ctx.Err() == nil { // otherwise the turn must not be stopped: the question stays open
			l.questionOpen.Store(false)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(uip.ErrAnswerPending) })()
	d := dialogue{pendingQuestion: pendingQuestion{question: q}}
	if l.currentAnswer = l.restoredAnswer.forQuestion(q); l.restoredAnswer.Question == q.ID {
		l.restoredAnswer = Answer{}
	}
	l.earlierAnswers, l.currentAnswer.Given = l.currentAnswer.Given, nil
	if l.currentAnswer.Mode != "" {
		l.switchMode(ctx, l.currentAnswer.Mode)
	}
	if _, mode := l.Status(); l.mode == mode { // the mode is in effect
		l.mode = ""
	}
	if !l.Renderer.Cards().HidesPart(q) {
		l.Renderer.MarkSeen(q)
	}
	for {
		a, err := l.readAnswer(ctx, &d)
		l.leftQuestion = errors.Is(err, uip.ErrAnswerPending)
		if err != nil || a.Dismissed || !d.isPartwise() {
			return a, err
		}
		d.answers = append(d.answers, a)
		if d.part++; d.part == len(q.Parts) {
			return uip.Response{ID: q.ID, Author: "user", Parts: d.answers}, nil
		}
	}
}

func (l *LineREPL) cards() term.Cards {
	return withOffers(l.Renderer.Cards(), l.CanTrust, l.AllowDirect)
}

// drawCard returns the card for the current part of the question, shortened if it was shown in full before.
func (l *LineREPL) drawCard(d *dialogue, brief bool) string {
	cards := l.cards()
	d.offeredTrust = d.offeredTrust || cards.OffersTrust(d.question)
	if brief {
		return cards.DrawAgain(d.drawCard)
	}
	return d.drawCard(cards)
}

// readAnswer reads lines until one is an answer. Esc stops the turn at an approval, and dismisses any other
// question. If no more input can be read, the question stays open.
func (l *LineREPL) readAnswer(ctx context.Context, d *dialogue) (uip.Response, error) {
	text := l.drawCard(d, false)
	for q := d.currentQuestion(); ; {
		h, err := l.readReply(ctx, strings.TrimPrefix(text+"\n> ", "\n"))
		if err == nil && h.kind == inputEsc && l.OnSent != nil && hasWords(l.Translator, q, h.line) {
			l.OnSent(h.line) // discarded, but in the history
		}
		switch {
		case ctx.Err() != nil:
			return uip.Response{}, context.Cause(ctx)
		case err != nil:
			return uip.Response{}, uip.ErrAnswerPending
		case h.kind == inputEsc && d.question.Purpose == uip.PurposeConfirmRiskyAction:
			l.stopTurn()
			return uip.Response{}, context.Canceled
		case h.kind == inputEsc:
			return uip.Response{ID: d.question.ID, Author: "user", Dismissed: true}, nil
		case h.kind == inputEOF, l.Session().IsExitCommand(strings.TrimSpace(h.line)):
			l.cancel(errLeave)
			return uip.Response{}, uip.ErrAnswerPending
		case l.Session().IsShowCommand(strings.TrimSpace(h.line)):
			l.runShowCommand(ctx, h)
			l.showCommands.Wait()
			text = l.drawCard(d, true)
			continue
		}
		if said, ok := l.runCommand(ctx, q, h.line); ok {
			if l.OnSent != nil && !l.Session().IsKnownCommand(strings.TrimSpace(h.line)) { // otherwise it is sent later
				l.OnSent(strings.TrimSpace(h.line)) // for the history
			}
			text = said
			continue
		}
		line, stop := expandNumber(l.cards().Choices(q), h.line)
		if h.line = line; isWhyQuestion(q, line) {
			text = l.cards().ExplainApproval(q)
			continue
		}
		if all := d.reviewCard(l.cards(), l.Translator, h.line); all != "" {
			l.Renderer.MarkSeen(d.question)
			text = all
			continue
		}
		if d.approvesTrust(h.line) && !l.cards().Trust { // trust was given elsewhere meanwhile
			h.line = "y"
		}
		if d.approvesTrust(h.line) {
			l.runShowCommand(ctx, input{line: trustInput})
			l.showCommands.Wait()
			if !l.cards().Trust { // trust was given
				return uip.Response{ID: q.ID, Author: "user", Option: uip.OptionApprove}, nil
			}
			text = l.drawCard(d, true)
			continue
		}
		if approvesDirect(l.cards(), q, h.line) {
			if err := l.AllowDirect(); err != nil {
				text = l.wrapText(l.Translator.TranslateError(err))
				continue
			}
			h.line = "y"
		}
		a, ok := parseAnswer(l.Translator, q, h.line)
		a.ID, a.Author, a.Stop = q.ID, "user", stop
		if ok && !hasUnreadComment(q, a) && uip.CheckResponse(q, a) == nil {
			l.currentAnswer.Given = append(l.currentAnswer.Given, h.line)
			if l.OnSent != nil && hasWords(l.Translator, q, h.line) {
				l.OnSent(h.line) // for the history
			}
			return a, nil
		}
		text = l.wrapText(answerHint(l.Translator, d.unfoldSeen(l.cards()), q))
	}
}

// runCommand runs a command typed at a question, as during a turn, and returns the text to show below it.
// It reports whether the line is a command.
func (l *LineREPL) runCommand(ctx context.Context, q uip.Request, line string) (say string, ok bool) {
	s := l.Session()
	line = strings.TrimSpace(line)
	switch mode := s.TargetMode(line); {
	case mode != "" && isModeQuestion(q):
		return l.wrapText(modeHint(l.Translator, q)), true
	case mode != "":
		l.switchMode(ctx, mode)
		return "", true
	case s.IsKnownCommand(line):
		l.enqueue(input{line: line})
		return "", true
	}
	if err := s.CheckUnknownCommand(line); err != nil {
		return l.wrapText(l.Translator.TranslateError(err)), true
	}
	if isPrompt(q, line) {
		l.enqueue(input{line: line})
		return "", true
	}
	return "", false
}

// readReply prompts and waits for a line typed after the prompt, or Esc. A line begun before the question
// appeared is not an answer.
func (l *LineREPL) readReply(ctx context.Context, text string) (input, error) {
	if err := l.prompt(text); err != nil {
		return input{}, err
	}
	if len(l.earlierAnswers) > 0 {
		line := l.earlierAnswers[0]
		l.earlierAnswers = l.earlierAnswers[1:]
		return input{line: line}, l.reprint(line)
	}
	if l.currentAnswer.Text != "" {
		l.prefill <- l.currentAnswer.Text
		l.currentAnswer.Text = ""
	}
	for {
		h, err := l.waitInput(ctx)
		switch {
		case err != nil, h.kind == inputEsc, h.kind == inputEOF, h.kind == inputLine && h.afterPrompt:
			return h, err
		case h.kind == inputLine && strings.TrimSpace(h.line) != "":
			l.enqueue(h)
			if err := l.prompt("> "); err != nil {
				return input{}, err
			}
		}
	}
}
