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

// enterDelay is how long a new card ignores Enter, unless an answer was begun in it, and how long an Enter
// after a number is ignored.
const enterDelay = 500 * time.Millisecond

// noSelection is the highlight's index if there is none.
const noSelection = -1

// initSelection initializes the options of the open question: the first is highlighted, unless the question is
// about something dangerous.
func (d *dialogue) initSelection(cards term.Cards) {
	d.selected = noSelection
	if !d.optionsPrinted && !term.IsDangerous(d.question) && len(cards.Choices(d.question)) > 0 {
		d.selected = 0
	}
}

// handleCardKey handles a key at the open question while its line is empty. It reports whether the key had a
// meaning.
func (r *REPL) handleCardKey(ctx context.Context, k lineedit.Key) (done bool, err error) {
	enter := k == lineedit.Key{Name: lineedit.Enter}
	swallows := r.Now().Before(r.ignoreEnterUntil)
	if r.ignoreEnterUntil = (time.Time{}); swallows && enter {
		return true, nil
	}
	d := r.question
	if d == nil {
		return false, nil
	}
	fresh := !d.touched && r.Now().Sub(d.shownAt) < enterDelay
	if enter && fresh && r.answer.IsEmpty() && d.question.Author != event.ActorRecovery {
		return true, nil
	}
	d.touched = true
	if !r.answer.IsEmpty() || r.answer.HasOverlay() {
		return false, nil
	}
	if k == lineedit.CtrlKey('o') && r.cards().HidesPart(d.question) && !d.fullyShown {
		return true, r.showFullCard()
	}
	choices := r.cards().Choices(d.currentQuestion())
	if k == (lineedit.Key{Name: lineedit.Tab, Mod: lineedit.Shift}) &&
		d.question.Purpose == uip.PurposeConfirmRiskyAction {
		return true, r.allowEdits(ctx, choices, fresh)
	}
	if len(choices) == 0 && !term.IsDangerous(d.currentQuestion()) {
		return false, nil
	}
	return r.handleChoiceKey(ctx, k, choices)
}

// handleChoiceKey handles a key at the options of an approval.
func (r *REPL) handleChoiceKey(ctx context.Context, k lineedit.Key, choices []term.Choice) (done bool, err error) {
	d := r.question
	switch {
	case k == lineedit.RuneKey('?'), k == lineedit.RuneKey('？'):
		d.selected, r.ignoreEnterUntil = noSelection, r.Now().Add(enterDelay)
		return true, r.renderer.Insert(r.cards().ExplainApproval(d.currentQuestion()))
	case term.IsDangerous(d.currentQuestion()):
		return false, nil
	case d.optionsPrinted: // no highlight to move
	case k == lineedit.Key{Name: lineedit.Down}, k == lineedit.CtrlKey('n'):
		d.selected = min(d.selected+1, len(choices)-1)
		return true, nil
	case k == lineedit.Key{Name: lineedit.Up} && d.selected <= 0 && r.recallQueued():
		return true, nil
	case k == lineedit.Key{Name: lineedit.Up}, k == lineedit.CtrlKey('p'):
		d.selected = max(d.selected-1, 0)
		return true, nil
	case k == lineedit.Key{Name: lineedit.Enter} && d.selected >= 0 && d.selected < len(choices):
		return true, r.applyChoice(ctx, choices[d.selected])
	}
	if d.currentQuestion().Kind != uip.KindConfirm { // here numbers choose calls
		return false, nil
	}
	i := slices.IndexFunc(choices, func(c term.Choice) bool {
		return len(c.Key) == 1 &&
			k == lineedit.RuneKey(rune(c.Key[0]))
	})
	if i < 0 || !r.editor.IsEmpty() && r.Now().Sub(d.shownAt) < enterDelay { // the key may have been meant for the draft
		return false, nil
	}
	r.ignoreEnterUntil = r.Now().Add(enterDelay)
	return true, r.applyChoice(ctx, choices[i])
}

// allowEdits approves an edit and all later edits in this session. At any other approval it shows how to
// change the mode. A fresh card ignores a key meant for the prompt.
func (r *REPL) allowEdits(ctx context.Context, choices []term.Choice, fresh bool) error {
	d := r.question
	if !term.IsEdit(d.question) {
		return r.printNote(dim, r.Translator.T("the mode is unchanged; /mode NAME changes it here"))
	}
	for _, c := range choices {
		if (c.Line == "d" || c.Line == "s") && !fresh {
			r.ignoreEnterUntil = r.Now().Add(enterDelay)
			return r.applyChoice(ctx, c)
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
	answers := slices.Concat(yesWords, noWords, viewWords, hunkWords, trustWords, rememberWords[uip.OptionAlways],
		rememberWords[uip.OptionSession], rememberWords[uip.OptionAlwaysBelow], conditionWords, delayWords)
	begins := slices.ContainsFunc(answers, func(a string) bool {
		return word == a || han > 0 &&
			strings.HasPrefix(word, a)
	})
	several := rest != "" && utf8.RuneCountInString(word) > 1 || han > 3
	return q.Purpose == uip.PurposeConfirmRiskyAction && q.Kind != uip.KindSelect && several && !begins &&
		!strings.ContainsAny(word, "0123456789?？")
}

// applyChoice answers with an option.
func (r *REPL) applyChoice(ctx context.Context, c term.Choice) error {
	var shown, line lineedit.Editor
	shown.SetText(c.Key + " " + c.Label)
	line.SetText(c.Line)
	if err := r.commitInput(r.answerPrompt(), shown.Draft()); err != nil {
		return err
	}
	return r.applyAnswer(ctx, c.Line, line.Draft(), c.Stop)
}

// showFullCard shows everything that the open question is about.
func (r *REPL) showFullCard() error {
	d, cards := r.question, r.cards()
	d.fullyShown, cards.NoFold = true, true
	r.renderer.MarkSeen(d.question)
	return r.renderer.Insert(cards.Draw(d.question))
}

// optionRows returns the rows of the open question's options, at most so many; none if they are in the
// output.
func (r *REPL) optionRows(most int) []string {
	d := r.question
	if d.optionsPrinted || d.isPartwise() {
		return nil
	}
	chosen := d.selected
	if !r.answer.IsEmpty() {
		chosen = noSelection
	}
	rows := d.unfoldSeen(r.cards()).Options(d.question, chosen)
	if len(rows) > most { // the terminal has shrunk
		return rows[max(0, min(chosen, len(rows)-most)):][:most]
	}
	return rows
}

// minCardRows is the number of rows kept for the card above its options.
const minCardRows = 3

// optionsFit reports whether a question's options fit below its card.
func (r *REPL) optionsFit(q uip.Request) bool {
	rows := r.cards().Options(q, noSelection)
	return len(rows) > 0 && len(rows)+minCardRows+1 < r.height()
}

// expandNumber replaces an option's number at the start of a line with its letter: 1 is y, 4 use b is n use
// b.
func expandNumber(choices []term.Choice, line string) (same string, stop bool) {
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

// isWhyQuestion reports whether a line asks why approval is needed.
func isWhyQuestion(q uip.Request, line string) bool {
	line = strings.TrimSpace(line)
	return (line == "?" || line == "？") && q.Purpose == uip.PurposeConfirmRiskyAction && q.Kind != uip.KindSelect
}

// showOmitted shows the last text of which a part was not shown, in the pager if there is one.
func (r *REPL) showOmitted(ctx context.Context) error {
	text := strings.TrimRight(r.renderer.Omitted(), "\n")
	switch {
	case text == "":
		return r.printNote(dim, r.Translator.T("no output was omitted so far"))
	case r.Page == nil:
		return r.Print(text)
	}
	var failed error
	err := r.away(ctx, func() {
		failed = r.Terminal.Lend(func(terminal *os.File) error { return r.Page(ctx, terminal, text+"\n") })
	})
	if err == nil && failed != nil {
		err = errors.Join(r.printNote(warn, r.Translator.T("the pager could not be used: %v",
			r.Translator.TranslateError(failed))), r.Print(text))
	}
	return err
}
