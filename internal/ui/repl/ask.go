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

// ask is a question from the turn to the user.
type ask struct {
	question uip.Request
	reply    chan reply      // buffers one reply
	over     <-chan struct{} // closed if the question is withdrawn
}

// reply is the answer to a question.
type reply struct {
	uip.Response
	err error
}

// Ask asks the user at the terminal.
func (r *REPL) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	a := ask{q, make(chan reply, 1), ctx.Done()}
	select {
	case r.asks <- a:
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
	ask
	at    int // the current part, if asked part by part
	parts []uip.Response
	given []string       // text typed for each part
	back  lineedit.Draft // the last line typed that was not an answer
	whole bool           // all of the approval's subject was shown
	trust bool           // its card offered to trust the folder

	chosen  int  // index of the highlighted option
	flat    bool // its options are in the output, for lack of room below
	touched bool // a key was pressed in it

	since  time.Time // when it was shown
	called bool      // the user, who looked elsewhere, was notified
}

// seen returns cards that hide nothing if all of the question was shown.
func (d *dialogue) seen(cards term.Cards) term.Cards {
	cards.Whole = cards.Whole || d.whole
	return cards
}

// titleOf returns the subject of a question, for the user.
func (r *REPL) titleOf(q uip.Request) string {
	if q.Worded() {
		return r.Words.Said(q.Display.Title)
	}
	return q.Display.Title
}

// secondLook returns the complete card, with a message, if the user asks for it or must see it: nobody
// approves what they were not shown. It is empty if the line is an answer.
func (d *dialogue) secondLook(cards term.Cards, words term.Words, line string) string {
	q := d.current()
	wants := slices.Contains(view, strings.ToLower(strings.TrimSpace(line))) && q.Purpose == uip.ConfirmRiskyAction
	a, ok := read(words, q, line)
	agrees := ok && (a.Option != uip.Reject || len(a.Parts) > 0) || d.trusts(line)
	if !wants && (d.whole || !agrees || !cards.Conceals(q)) {
		return ""
	}
	d.whole = true
	cards.Whole = true
	text := cards.Draw(q)
	if !wants {
		width := 0
		if cards.Width != nil {
			width = cards.Width()
		}
		text += "\n" + ink.Folded(words.T("Parts of this were not shown before. Review them and answer again."), width)
	}
	return text
}

// inParts reports whether the parts are asked one by one. An approval of several calls is one card with
// one answer.
func (d *dialogue) inParts() bool {
	return len(d.question.Parts) > 0 && d.question.Purpose != uip.ConfirmRiskyAction
}

// current returns the question that the next answer is for.
func (d *dialogue) current() uip.Request {
	if d.inParts() {
		return d.question.Parts[d.at]
	}
	return d.question
}

// put shows a question and waits for its answer.
func (r *REPL) put(ctx context.Context, a ask) error {
	select {
	case <-a.over:
		return nil
	default:
	}
	r.open = &dialogue{ask: a, since: r.Now()}
	r.open.flat = !r.fits(a.question)
	r.open.choose(r.cards())
	r.answer.Reset()
	r.open.called = r.call(r.titleOf(a.question), attended)
	if err := r.show(); err != nil || r.begun.Question != a.question.ID {
		return err
	}
	begun := r.begun.at(a.question)
	r.begun = Answer{}
	for _, line := range begun.Given {
		var typed lineedit.Editor
		typed.SetText(line)
		if err := r.answered(ctx, line, typed.Draft()); err != nil {
			return err
		}
	}
	r.answer.Put(begun.Text, r.pastes)
	if begun.Mode != "" {
		return r.switchMode(ctx, begun.Mode)
	}
	return nil
}

// show draws the current part of the question.
func (r *REPL) show() error {
	cards, d := r.cards(), r.open
	if !cards.Hides(d.question) {
		r.render.Saw(d.question)
	}
	d.trust = d.trust || cards.Trusts(d.question)
	return r.render.Insert(d.card(cards))
}

// card returns the card for the current part of the question.
func (d *dialogue) card(c term.Cards) string {
	if d.inParts() {
		return c.Question(d.current(), d.at+1, len(d.question.Parts))
	}
	return c.Draw(d.question)
}

func (r *REPL) cards() term.Cards {
	c := offering(r.render.Cards(), r.Trust, r.Direct)
	c.Live = r.open == nil || !r.open.flat
	return c
}

// offering adds to the cards what an option may do beyond the call.
func offering(c term.Cards, trust func() bool, direct func() error) term.Cards {
	c.Trust, c.Direct = trust != nil && trust(), direct != nil
	return c
}

// trustInput is the command that trusts the folder.
const trustInput = "/trust yes"

// trusts reports whether a line approves a check and all later ones, if the card offered that.
func (d *dialogue) trusts(line string) bool {
	if line = strings.ToLower(strings.TrimSpace(line)); !d.trust {
		return false
	}
	word, _, rest := firstWord(line) // yes, and trust this folder
	for _, and := range []string{"and ", "并"} {
		rest = strings.TrimPrefix(rest, and)
	}
	return slices.Contains(trust, line) || slices.Contains(yes, word) && (strings.HasPrefix(rest, "trust") || strings.HasPrefix(rest, "信任"))
}

// entered handles a line typed at a question. A command acts as it does during a turn, and is never the
// answer.
func (r *REPL) entered(ctx context.Context, action lineedit.Action) error {
	s := r.Session()
	mode := s.Switches(action.Text)
	if r.Sent != nil && (mode != "" || s.Looks(action.Text)) {
		r.Sent(action.Text) // for the history
		r.editor.Found(action.Draft)
	}
	switch {
	case mode != "":
		return r.switchMode(ctx, mode)
	case s.Looks(action.Text):
		return r.look(ctx, action.Text, false)
	case s.Leaves(action.Text):
		return errLeave
	case s.Knows(action.Text):
		r.queue.add(action.Draft)
		r.open.back = lineedit.Draft{} // Up recalls the line typed last
		return nil
	}
	if err := s.Unknown(action.Text); err != nil {
		return r.Tell([]ink.Span{{Look: ink.Look{Role: warn}, Text: r.Words.Said(err.Error())}})
	}
	if isPrompt(r.open.current(), action.Text) {
		if r.Sent != nil {
			r.Sent(action.Text)
			r.editor.Found(action.Draft)
		}
		r.queue.add(action.Draft)
		r.open.back = lineedit.Draft{}
		return nil
	}
	return r.answered(ctx, action.Text, action.Draft)
}

// answered handles a line as the answer, and leaves it on the screen as typed.
func (r *REPL) answered(ctx context.Context, line string, draft lineedit.Draft) error {
	if err := r.commit(r.answerPrompt(), draft); err != nil {
		return err
	}
	same, stop := numbered(r.cards().Choices(r.open.current()), line)
	return r.decide(ctx, same, draft, stop)
}

// decide reads a line as the answer; stop means that a no stops the turn.
func (r *REPL) decide(ctx context.Context, line string, draft lineedit.Draft, stop bool) error {
	d := r.open
	q := d.current()
	if text := d.secondLook(r.cards(), r.Words, line); text != "" {
		r.render.Saw(d.question)
		r.swallow = r.Now().Add(calm) // ignore an Enter meant for the first card
		return r.render.Insert(text)
	}
	switch {
	case d.trusts(line) && r.cards().Trust:
		return r.look(ctx, trustInput, true)
	case d.trusts(line): // trust was given elsewhere meanwhile
		line = "y"
	case directs(r.cards(), q, line):
		if err := r.Direct(); err != nil {
			return r.remark(bad, r.Words.Said(err.Error()))
		}
		line = "y"
	}
	a, ok := read(r.Words, q, line)
	if !ok || unheard(q, a) {
		r.forgo(draft)
		d.back = draft
		return r.Tell([]ink.Span{{Look: ink.Look{Role: warn}, Text: hint(r.Words, r.open.seen(r.cards()), q)}})
	}
	a.ID, a.Author, a.Stop = q.ID, "user", stop
	if err := uip.Check(q, a); err != nil {
		return r.Tell([]ink.Span{{Look: ink.Look{Role: warn}, Text: r.Words.Said(err.Error())}})
	}
	if hasWords(r.Words, q, line) && r.Sent != nil {
		r.Sent(line) // for the history
		r.editor.Found(draft)
	}
	if !d.inParts() {
		return r.reply(a)
	}
	d.parts, d.given = append(d.parts, a), append(d.given, line)
	if d.at++; d.at < len(d.question.Parts) {
		return r.show()
	}
	return r.reply(uip.Response{ID: d.question.ID, Author: "user", Parts: d.parts})
}

// directs reports whether a line approves a command that the user typed, and all later ones, if the card
// offers that.
func directs(cards term.Cards, q uip.Request, line string) bool {
	return cards.Unasks(q) && strings.EqualFold(strings.TrimSpace(line), "b")
}

// forgo saves text typed at the open question that will not answer it: Up and Ctrl+R find it.
func (r *REPL) forgo(half lineedit.Draft) {
	if r.open == nil || !hasWords(r.Words, r.open.current(), half.Text()) {
		return
	}
	r.editor.Remember(half)
	if r.Sent != nil {
		r.Sent(half.Text())
	}
}

// unheard reports whether a yes has a comment that no model would read.
func unheard(q uip.Request, a uip.Response) bool {
	return a.Comment != "" && a.Option != uip.Reject && (q.Author == event.ActorUser || q.Author == event.ActorVerifier)
}

func (r *REPL) reply(a uip.Response) error {
	r.open.reply <- reply{Response: a}
	r.open = nil
	r.turn.began = r.Now() // waiting for the user is not the turn's time
	return nil
}

// hint returns the possible answers to a question.
func hint(words term.Words, cards term.Cards, q uip.Request) string {
	if q.Kind == uip.Composite {
		if len(q.Parts) == 2 {
			return words.T("answer y for all, n for none, or 1 or 2 for that one; 2 and … adds a note")
		}
		return words.T("answer y for all, n for none, or the numbers to allow, such as 1 3; 1 3 and … adds a note")
	}
	if q.Kind == uip.Select && q.Display.Metadata[uip.OnWords] != "" {
		return words.T("answer with a number from 1 to %d; 1 and … adds a note", len(q.Options))
	}
	if q.Kind == uip.Select && q.Display.Metadata[uip.Quoted] != "" {
		return words.T("answer with a number from 1 to %d, or in your own words", len(q.Options))
	}
	if q.Kind == uip.Select && q.Author == event.ActorRecovery {
		return words.T("answer with a number from 1 to %d; other text is a new prompt", len(q.Options))
	}
	if q.Kind == uip.Select {
		return words.T("answer with a number from 1 to %d", len(q.Options))
	}
	if q.Kind == uip.Input {
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

func hasHunks(q uip.Request) bool { return q.Display.Metadata[uip.Hunks] != "" }

// decidesMode reports whether the answer decides the mode: the options are named after modes.
func decidesMode(q uip.Request) bool {
	return slices.ContainsFunc(q.Options, func(o uip.Option) bool { return q.Display.Metadata[uip.Named+o.ID] != "" })
}

// modeHint returns how to choose the mode at such a question.
func modeHint(words term.Words, q uip.Request) string {
	return words.T("the answer sets the mode: answer with a number from 1 to %d", len(q.Options))
}
