//go:build unix

package repl

import (
	"context"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// pendingQuestion is a question from the turn to the user.
type pendingQuestion struct {
	question  uip.Request
	reply     chan reply      // buffers one reply
	withdrawn <-chan struct{} // closed if the question is withdrawn
}

// reply is the answer to a question.
type reply struct {
	uip.Response
	err error
}

// Ask asks the user at the terminal.
func (r *REPL) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	a := pendingQuestion{q, make(chan reply, 1), ctx.Done()}
	select {
	case r.questions <- a:
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	}
	select {
	case answer := <-a.reply:
		return answer.Response, answer.err
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	}
}

// dialogue is an open question and its answers so far, part by part.
type dialogue struct {
	pendingQuestion
	part         int // the current part, if asked part by part
	answers      []uip.Response
	typedParts   []string       // text typed for each part
	lastDraft    lineedit.Draft // the last line typed that was not an answer
	fullyShown   bool           // all of the approval's subject was shown
	offeredTrust bool           // its card offered to trust the folder

	selected       int  // index of the highlighted option
	optionsPrinted bool // its options are in the output, for lack of room below
	touched        bool // a key was pressed in it

	shownAt  time.Time // when it was shown
	notified bool      // the user, who looked elsewhere, was notified
}

// unfoldSeen returns cards without folded parts if the user has seen the whole question.
func (d *dialogue) unfoldSeen(cards term.Cards) term.Cards {
	cards.NoFold = cards.NoFold || d.fullyShown
	return cards
}

// questionTitle returns the subject of a question, for the user.
func (r *REPL) questionTitle(q uip.Request) string {
	if q.HasOwnTitle() {
		return r.Translator.TranslateText(q.Display.Title)
	}
	return q.Display.Title
}

// reviewCard returns the complete card, with a message, if the user asks for it or must see it: nobody
// approves what they were not shown. It is empty if the line is an answer.
func (d *dialogue) reviewCard(cards term.Cards, words term.Translator, line string) string {
	q := d.currentQuestion()
	wants := slices.Contains(viewWords, strings.ToLower(strings.TrimSpace(line))) &&
		q.Purpose == uip.PurposeConfirmRiskyAction
	a, ok := parseAnswer(words, q, line)
	agrees := ok && (a.Option != uip.OptionReject || len(a.Parts) > 0) || d.approvesTrust(line)
	if !wants && (d.fullyShown || !agrees || !cards.HidesRequired(q)) {
		return ""
	}
	d.fullyShown = true
	cards.NoFold = true
	text := cards.Draw(q)
	if !wants {
		width := 0
		if cards.Width != nil {
			width = cards.Width()
		}
		text += "\n" + ink.FoldText(words.T("Parts of this were not shown before. Review them and answer again."), width)
	}
	return text
}

// isPartwise reports whether the parts are asked one by one. An approval of several calls is one card with
// one answer.
func (d *dialogue) isPartwise() bool {
	return len(d.question.Parts) > 0 && d.question.Purpose != uip.PurposeConfirmRiskyAction
}

// currentQuestion returns the question that the next answer is for.
func (d *dialogue) currentQuestion() uip.Request {
	if d.isPartwise() {
		return d.question.Parts[d.part]
	}
	return d.question
}

// openQuestion shows a question and waits for its answer.
func (r *REPL) openQuestion(ctx context.Context, a pendingQuestion) error {
	select {
	case <-a.withdrawn:
		return nil
	default:
	}
	r.question = &dialogue{pendingQuestion: a, shownAt: r.Now()}
	r.question.optionsPrinted = !r.optionsFit(a.question)
	r.question.initSelection(r.cards())
	r.answer.Reset()
	r.question.notified = r.notifyAway(r.questionTitle(a.question), notifyAfterQuestion)
	if err := r.drawQuestion(); err != nil || r.restoredAnswer.Question != a.question.ID {
		return err
	}
	begun := r.restoredAnswer.forQuestion(a.question)
	r.restoredAnswer = Answer{}
	for _, line := range begun.Given {
		var typed lineedit.Editor
		typed.SetText(line)
		if err := r.handleAnswer(ctx, line, typed.Draft()); err != nil {
			return err
		}
	}
	r.answer.SetFolded(begun.Text, r.pastes)
	if begun.Mode != "" {
		return r.switchMode(ctx, begun.Mode)
	}
	return nil
}

// drawQuestion draws the current part of the question.
func (r *REPL) drawQuestion() error {
	cards, d := r.cards(), r.question
	if !cards.HidesPart(d.question) {
		r.renderer.MarkSeen(d.question)
	}
	d.offeredTrust = d.offeredTrust || cards.OffersTrust(d.question)
	return r.renderer.Insert(d.drawCard(cards))
}

// drawCard returns the card for the current part of the question.
func (d *dialogue) drawCard(c term.Cards) string {
	if d.isPartwise() {
		return c.DrawQuestion(d.currentQuestion(), d.part+1, len(d.question.Parts))
	}
	return c.Draw(d.question)
}

func (r *REPL) cards() term.Cards {
	c := withOffers(r.renderer.Cards(), r.CanTrust, r.AllowDirect)
	c.OptionsBelow = r.question == nil || !r.question.optionsPrinted
	return c
}

// withOffers adds to the cards what an option may do beyond the call.
func withOffers(c term.Cards, trust func() bool, direct func() error) term.Cards {
	c.Trust, c.Direct = trust != nil && trust(), direct != nil
	return c
}

// trustInput is the command that trusts the folder.
const trustInput = "/trust yes"

// approvesTrust reports whether a line approves a check and all later ones, if the card offered that.
func (d *dialogue) approvesTrust(line string) bool {
	if line = strings.ToLower(strings.TrimSpace(line)); !d.offeredTrust {
		return false
	}
	word, _, rest := firstWord(line) // yes, and trust this folder
	for _, and := range []string{"and ", "并"} {
		rest = strings.TrimPrefix(rest, and)
	}
	return slices.Contains(trustWords, line) || slices.Contains(yesWords, word) &&
		(strings.HasPrefix(rest, "trust") || strings.HasPrefix(rest, "信任"))
}

// handleLine handles a line typed at a question. A command acts as it does during a turn, and is never the
// answer.
func (r *REPL) handleLine(ctx context.Context, action lineedit.Action) error {
	s := r.Session()
	mode := s.TargetMode(action.Text)
	if r.OnSent != nil && (mode != "" || s.IsShowCommand(action.Text)) {
		r.OnSent(action.Text) // for the history
		r.editor.AddSearchable(action.Draft)
	}
	switch {
	case mode != "":
		return r.switchMode(ctx, mode)
	case s.IsShowCommand(action.Text):
		return r.runShowCommand(ctx, action.Text, false)
	case s.IsExitCommand(action.Text):
		return errLeave
	case s.IsKnownCommand(action.Text):
		r.queue.add(action.Draft)
		r.question.lastDraft = lineedit.Draft{} // Up recalls the line typed last
		return nil
	}
	if err := s.CheckUnknownCommand(action.Text); err != nil {
		return r.PrintLines([]ink.Span{{Style: ink.Style{Role: warn}, Text: r.Translator.TranslateError(err)}})
	}
	if isPrompt(r.question.currentQuestion(), action.Text) {
		if r.OnSent != nil {
			r.OnSent(action.Text)
			r.editor.AddSearchable(action.Draft)
		}
		r.queue.add(action.Draft)
		r.question.lastDraft = lineedit.Draft{}
		return nil
	}
	return r.handleAnswer(ctx, action.Text, action.Draft)
}

// handleAnswer handles a line as the answer, and leaves it on the screen as typed.
func (r *REPL) handleAnswer(ctx context.Context, line string, draft lineedit.Draft) error {
	if err := r.commitInput(r.answerPrompt(), draft); err != nil {
		return err
	}
	same, stop := expandNumber(r.cards().Choices(r.question.currentQuestion()), line)
	return r.applyAnswer(ctx, same, draft, stop)
}

// applyAnswer reads a line as the answer; stop means that a no stops the turn.
func (r *REPL) applyAnswer(ctx context.Context, line string, draft lineedit.Draft, stop bool) error {
	d := r.question
	q := d.currentQuestion()
	if text := d.reviewCard(r.cards(), r.Translator, line); text != "" {
		r.renderer.MarkSeen(d.question)
		r.ignoreEnterUntil = r.Now().Add(enterDelay) // ignore an Enter meant for the first card
		return r.renderer.Insert(text)
	}
	switch {
	case d.approvesTrust(line) && r.cards().Trust:
		return r.runShowCommand(ctx, trustInput, true)
	case d.approvesTrust(line): // trust was given elsewhere meanwhile
		line = "y"
	case approvesDirect(r.cards(), q, line):
		if err := r.AllowDirect(); err != nil {
			return r.printNote(bad, r.Translator.TranslateError(err))
		}
		line = "y"
	}
	a, ok := parseAnswer(r.Translator, q, line)
	if !ok || hasUnreadComment(q, a) {
		r.keepUnused(draft)
		d.lastDraft = draft
		return r.PrintLines([]ink.Span{{Style: ink.Style{Role: warn},
			Text: answerHint(r.Translator, r.question.unfoldSeen(r.cards()), q)}})
	}
	a.ID, a.Author, a.Stop = q.ID, "user", stop
	if err := uip.CheckResponse(q, a); err != nil {
		return r.PrintLines([]ink.Span{{Style: ink.Style{Role: warn}, Text: r.Translator.TranslateError(err)}})
	}
	if hasWords(r.Translator, q, line) && r.OnSent != nil {
		r.OnSent(line) // for the history
		r.editor.AddSearchable(draft)
	}
	if !d.isPartwise() {
		return r.sendReply(a)
	}
	d.answers, d.typedParts = append(d.answers, a), append(d.typedParts, line)
	if d.part++; d.part < len(d.question.Parts) {
		return r.drawQuestion()
	}
	return r.sendReply(uip.Response{ID: d.question.ID, Author: "user", Parts: d.answers})
}

// approvesDirect reports whether a line approves a command that the user typed, and all later ones, if the card
// offers that.
func approvesDirect(cards term.Cards, q uip.Request, line string) bool {
	return cards.OffersDirect(q) && strings.EqualFold(strings.TrimSpace(line), "b")
}

// keepUnused saves text typed at the open question that will not answer it: Up and Ctrl+R find it.
func (r *REPL) keepUnused(half lineedit.Draft) {
	if r.question == nil || !hasWords(r.Translator, r.question.currentQuestion(), half.Text()) {
		return
	}
	r.editor.Remember(half)
	if r.OnSent != nil {
		r.OnSent(half.Text())
	}
}

// hasUnreadComment reports whether a yes has a comment that no model would read.
func hasUnreadComment(q uip.Request, a uip.Response) bool {
	return a.Comment != "" && a.Option != uip.OptionReject &&
		(q.Author == event.ActorUser || q.Author == event.ActorVerifier)
}

func (r *REPL) sendReply(a uip.Response) error {
	r.question.reply <- reply{Response: a}
	r.question = nil
	r.turn.started = r.Now() // waiting for the user is not the turn's time
	return nil
}

// answerHint returns the possible answers to a question.
func answerHint(words term.Translator, cards term.Cards, q uip.Request) string {
	if q.Kind == uip.KindComposite {
		if len(q.Parts) == 2 {
			return words.T("answer y for all, n for none, or 1 or 2 for that one; 2 and … adds a note")
		}
		return words.T("answer y for all, n for none, or the numbers to allow, such as 1 3; 1 3 and … adds a note")
	}
	if q.Kind == uip.KindSelect && q.Display.Metadata[uip.MetaOnText] != "" {
		return words.T("answer with a number from 1 to %d; 1 and … adds a note", len(q.Options))
	}
	if q.Kind == uip.KindSelect && q.Display.Metadata[uip.MetaQuotedTitle] != "" {
		return words.T("answer with a number from 1 to %d, or in your own words", len(q.Options))
	}
	if q.Kind == uip.KindSelect && q.Author == event.ActorRecovery {
		return words.T("answer with a number from 1 to %d; other text is a new prompt", len(q.Options))
	}
	if q.Kind == uip.KindSelect {
		return words.T("answer with a number from 1 to %d", len(q.Options))
	}
	if q.Kind == uip.KindInput {
		return words.T("an answer is required")
	}
	say := words.T("answer y or n")
	if n := len(cards.Choices(q)); n > 0 {
		say = words.T("answer with a number from 1 to %d, y or n", n)
	}
	if hasHunks(q) {
		say += words.T("; ") + words.T("h 1: yes to hunk 1 only")
	}
	if q.Author == event.ActorUser || q.Author == event.ActorVerifier { // not asked by a model
		return say
	}
	return say + words.T("; ") + words.T("y and … or n … adds a note")
}

func hasHunks(q uip.Request) bool { return q.Display.Metadata[uip.MetaHunks] != "" }

// isModeQuestion reports whether the answer decides the mode: the options are named after modes.
func isModeQuestion(q uip.Request) bool {
	return slices.ContainsFunc(q.Options, func(o uip.Option) bool {
		return q.Display.Metadata[uip.MetaAliasPrefix+
			o.ID] != ""
	})
}

// modeHint returns how to choose the mode at such a question.
func modeHint(words term.Translator, q uip.Request) string {
	return words.T("the answer sets the mode: answer with a number from 1 to %d", len(q.Options))
}
