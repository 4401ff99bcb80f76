//go:build unix

package repl

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
)

// calm is how long a new card ignores Enter, unless an answer was begun in it, and how long an Enter
// after a number is ignored.
const calm = 500 * time.Millisecond

// unchosen is the highlight's index if there is none.
const unchosen = -1

// choose initializes the options of the open question: the first is highlighted, unless the question is
// about something dangerous.
func (d *dialogue) choose(cards term.Cards) {
	d.chosen = unchosen
	if !d.flat && !term.Dangerous(d.question) && len(cards.Choices(d.question)) > 0 {
		d.chosen = 0
	}
}

// cardKey handles a key at the open question while its line is empty. It reports whether the key had a
// meaning.
func (r *REPL) cardKey(ctx context.Context, k lineedit.Key) (done bool, err error) {
	enter := k == lineedit.Key{Name: lineedit.Enter}
	swallows := r.Now().Before(r.swallow)
	if r.swallow = (time.Time{}); swallows && enter {
		return true, nil
	}
	d := r.open
	if d == nil {
		return false, nil
	}
	fresh := !d.touched && r.Now().Sub(d.since) < calm
	if enter && fresh && r.answer.Empty() && d.question.Author != event.ActorRecovery {
		return true, nil
	}
	d.touched = true
	if !r.answer.Empty() || r.answer.Asks() {
		return false, nil
	}
	if k == lineedit.WithCtrl('o') && r.cards().Hides(d.question) && !d.whole {
		return true, r.wholeCard()
	}
	choices := r.cards().Choices(d.current())
	if k == (lineedit.Key{Name: lineedit.Tab, Mod: lineedit.Shift}) && d.question.Purpose == uip.ConfirmRiskyAction {
		return true, r.allowEdits(ctx, choices, fresh)
	}
	if len(choices) == 0 && !term.Dangerous(d.current()) {
		return false, nil
	}
	return r.choiceKey(ctx, k, choices)
}

// choiceKey handles a key at the options of an approval.
func (r *REPL) choiceKey(ctx context.Context, k lineedit.Key, choices []term.Choice) (done bool, err error) {
	d := r.open
	switch {
	case k == lineedit.Typed('?'), k == lineedit.Typed('？'):
		d.chosen, r.swallow = unchosen, r.Now().Add(calm)
		return true, r.render.Insert(r.cards().Why(d.current()))
	case term.Dangerous(d.current()):
		return false, nil
	case d.flat: // no highlight to move
	case k == lineedit.Key{Name: lineedit.Down}, k == lineedit.WithCtrl('n'):
		d.chosen = min(d.chosen+1, len(choices)-1)
		return true, nil
	case k == lineedit.Key{Name: lineedit.Up} && d.chosen <= 0 && r.takeBack():
		return true, nil
	case k == lineedit.Key{Name: lineedit.Up}, k == lineedit.WithCtrl('p'):
		d.chosen = max(d.chosen-1, 0)
		return true, nil
	case k == lineedit.Key{Name: lineedit.Enter} && d.chosen >= 0 && d.chosen < len(choices):
		return true, r.choice(ctx, choices[d.chosen])
	}
	if d.current().Kind != uip.Confirm { // here numbers choose calls
		return false, nil
	}
	i := slices.IndexFunc(choices, func(c term.Choice) bool { return len(c.Key) == 1 && k == lineedit.Typed(rune(c.Key[0])) })
	if i < 0 || !r.editor.Empty() && r.Now().Sub(d.since) < calm { // the key may have been meant for the draft
		return false, nil
	}
	r.swallow = r.Now().Add(calm)
	return true, r.choice(ctx, choices[i])
}

// allowEdits approves an edit and all later edits in this session. At any other approval it shows how to
// change the mode. A fresh card ignores a key meant for the prompt.
func (r *REPL) allowEdits(ctx context.Context, choices []term.Choice, fresh bool) error {
	d := r.open
	if !term.Edits(d.question) {
		return r.remark(dim, r.Words.T("the mode is unchanged; /mode NAME changes it here"))
	}
	for _, c := range choices {
		if (c.Line == "d" || c.Line == "s") && !fresh {
			r.swallow = r.Now().Add(calm)
			return r.choice(ctx, c)
		}
	}
	return nil
}

// isPrompt reports whether a line typed at an approval is a prompt: several words that do not begin like
// an answer.
func isPrompt(q uip.Request, line string) bool {
	line = strings.TrimSpace(line)
	word, _, rest := firstWord(line)
	han := 0
	for _, c := range line {
		if unicode.Is(unicode.Han, c) {
			han++
		}
	}
	answers := slices.Concat(yes, no, view, hunks, trust, remembered[uip.Always], remembered[uip.Session], remembered[uip.Below], conditions, putOff)
	begins := slices.ContainsFunc(answers, func(a string) bool { return word == a || han > 0 && strings.HasPrefix(word, a) })
	several := rest != "" && utf8.RuneCountInString(word) > 1 || han > 3
	return q.Purpose == uip.ConfirmRiskyAction && q.Kind != uip.Select && several && !begins && !strings.ContainsAny(word, "0123456789?？")
}

// choice answers with an option.
func (r *REPL) choice(ctx context.Context, c term.Choice) error {
	var shown, line lineedit.Editor
	shown.SetText(c.Key + " " + c.Label)
	line.SetText(c.Line)
	if err := r.commit(r.answerPrompt(), shown.Draft()); err != nil {
		return err
	}
	return r.decide(ctx, c.Line, line.Draft(), c.Stop)
}

// wholeCard shows everything that the open question is about.
func (r *REPL) wholeCard() error {
	d, cards := r.open, r.cards()
	d.whole, cards.Whole = true, true
	r.render.Saw(d.question)
	return r.render.Insert(cards.Draw(d.question))
}

// options returns the rows of the open question's options, at most so many; none if they are in the
// output.
func (r *REPL) options(most int) []string {
	d := r.open
	if d.flat || d.inParts() {
		return nil
	}
	chosen := d.chosen
	if !r.answer.Empty() {
		chosen = unchosen
	}
	rows := d.seen(r.cards()).Options(d.question, chosen)
	if len(rows) > most { // the terminal has shrunk
		return rows[max(0, min(chosen, len(rows)-most)):][:most]
	}
	return rows
}

// leastCard is the number of rows kept for the card above its options.
const leastCard = 3

// fits reports whether a question's options fit below its card.
func (r *REPL) fits(q uip.Request) bool {
	rows := r.cards().Options(q, unchosen)
	return len(rows) > 0 && len(rows)+leastCard+1 < r.height()
}

// numbered replaces an option's number at the start of a line with its letter: 1 is y, 4 use b is n use
// b.
func numbered(choices []term.Choice, line string) (same string, stop bool) {
	word, _, rest := firstWord(strings.TrimSpace(line))
	for _, c := range choices {
		switch {
		case c.Key != word || c.Key == c.Line:
		case rest == "":
			return c.Line, c.Stop
		case c.Line == "n":
			return c.Line + " " + rest, false
		case c.Line == "y":
			return c.Line + strings.TrimPrefix(strings.TrimSpace(line), word), false
		}
	}
	return line, false
}

// asksWhy reports whether a line asks why approval is needed.
func asksWhy(q uip.Request, line string) bool {
	line = strings.TrimSpace(line)
	return (line == "?" || line == "？") && q.Purpose == uip.ConfirmRiskyAction && q.Kind != uip.Select
}

// showOmitted shows the last text of which a part was not shown, in the pager if there is one.
func (r *REPL) showOmitted(ctx context.Context) error {
	text := strings.TrimRight(r.render.Omitted(), "\n")
	switch {
	case text == "":
		return r.remark(dim, r.Words.T("no output was omitted so far"))
	case r.Page == nil:
		return r.Say(text)
	}
	var failed error
	err := r.away(ctx, func() {
		failed = r.Terminal.Lend(func(terminal *os.File) error { return r.Page(ctx, terminal, text+"\n") })
	})
	if err == nil && failed != nil {
		err = errors.Join(r.remark(warn, r.Words.T("the pager could not be used: %v", r.Words.Said(failed.Error()))), r.Say(text))
	}
	return err
}
