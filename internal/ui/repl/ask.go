//go:build unix

package repl

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/uip"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term"
)

// ask is a question on its way from the turn to the person.
type ask struct {
	question uip.Request
	reply    chan reply      // holds one
	over     <-chan struct{} // the question is withdrawn
}

// reply is what comes back for a question.
type reply struct {
	uip.Response
	err error
}

// Ask puts a question to the person at the terminal.
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

// dialogue is a question that is being answered, part by part.
type dialogue struct {
	ask
	at    int // the part under way, if it is asked part by part
	parts []uip.Response
	whole bool // all of what is to be approved has been shown
}

// secondLook is the card with nothing left out, and what to say about it, if
// the person wants to see that or must: nobody says yes to what they were not
// shown. It is empty where the line is an answer.
func (d *dialogue) secondLook(cards term.Cards, words term.Words, line string) string {
	q := d.current()
	wants := slices.Contains(view, strings.ToLower(strings.TrimSpace(line))) && q.Purpose == uip.ConfirmRiskyAction
	a, ok := read(q, line)
	agrees := ok && (a.Option != uip.Reject || len(a.Parts) > 0)
	if !wants && (d.whole || !agrees || !cards.Hides(q)) {
		return ""
	}
	d.whole = true
	cards.Whole = true
	text := cards.Draw(q)
	if !wants {
		text += "\n" + words.T("Parts of this were not shown before. Here is all of it; please answer once more.")
	}
	return text
}

// inParts reports whether the parts are asked one after the other. An approval
// of several calls is one card with one answer.
func (d *dialogue) inParts() bool {
	return len(d.question.Parts) > 0 && d.question.Purpose != uip.ConfirmRiskyAction
}

// current is the question that the next answer is for.
func (d *dialogue) current() uip.Request {
	if d.inParts() {
		return d.question.Parts[d.at]
	}
	return d.question
}

// put shows a question and waits for its answer.
func (r *REPL) put(a ask) error {
	select {
	case <-a.over:
		return nil
	default:
	}
	r.open = &dialogue{ask: a}
	r.answer.Reset()
	r.call(a.question.Display.Title)
	return r.show()
}

// show draws the part of the question that is to be answered now.
func (r *REPL) show() error {
	cards, d := r.render.Cards(), r.open
	text := cards.Draw(d.question)
	if d.inParts() {
		text = cards.Question(d.current(), d.at+1, len(d.question.Parts))
	}
	if !cards.Hides(d.question) {
		r.render.Saw(d.question)
	}
	return r.render.Insert(text)
}

// answered takes a line as the answer, if it is one. It stays on the screen as
// it stood.
func (r *REPL) answered(line string, draft lineedit.Draft) error {
	d := r.open
	q := d.current()
	if err := r.commit(r.answer.Prompt, draft); err != nil {
		return err
	}
	if text := d.secondLook(r.render.Cards(), r.Words, line); text != "" {
		r.render.Saw(d.question)
		return r.render.Insert(text)
	}
	a, ok := read(q, line)
	if !ok {
		return r.Say(r.Palette.Paint(warn, hint(r.Words, q)))
	}
	a.ID, a.Author = q.ID, "user"
	if err := uip.Check(q, a); err != nil {
		return r.Say(r.Palette.Paint(warn, r.Words.Said(err.Error())))
	}
	if !d.inParts() {
		return r.reply(a)
	}
	d.parts = append(d.parts, a)
	if d.at++; d.at < len(d.question.Parts) {
		return r.show()
	}
	return r.reply(uip.Response{ID: d.question.ID, Author: "user", Parts: d.parts})
}

func (r *REPL) reply(a uip.Response) error {
	r.open.reply <- reply{Response: a}
	r.open = nil
	r.turn.began = r.Now() // the time a person takes is not the turn's
	return nil
}

// hint says which answers a question takes.
func hint(words term.Words, q uip.Request) string {
	switch {
	case q.Kind == uip.Composite:
		return words.T("answer y for all, n for none, or the numbers to allow, such as: 1 3")
	case offers(q, uip.Below):
		return words.T("answer y, n, s, a or d; n may be followed by a reason")
	case offers(q, uip.Always):
		return words.T("answer y, n, s or a; n may be followed by a reason")
	}
	return words.T("answer y or n; n may be followed by a reason")
}

// The words people say yes and no with, and what they say to see all of it.
var (
	yes  = []string{"y", "yes", "ok", "是", "好", "好的", "同意", "可以"}
	no   = []string{"n", "no", "否", "不", "不行", "拒绝"}
	view = []string{"v", "view", "all", "全部", "查看", "看"}
)

// remembered are the words people say a yes with that is remembered.
var remembered = map[string][]string{
	uip.Always:  {"a", "always", "总是", "始终", "一直"},
	uip.Session: {"s", "session", "本次", "本次会话", "会话"},
	uip.Below:   {"d", "dir", "below", "目录", "此目录"},
}

// read makes an answer of a line.
func read(q uip.Request, line string) (uip.Response, bool) {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		best := q.Display.Metadata[uip.OnEnter]
		return uip.Response{Option: best}, best != ""
	case q.Kind == uip.Composite:
		// For all, for none, or the numbers of those that may run
		if a, ok := readConfirm(q, line); ok {
			return a, true
		}
		chosen := make(map[int]bool)
		for _, f := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" ,，、\t", c) }) {
			n, err := strconv.Atoi(f)
			if err != nil || n < 1 || n > len(q.Parts) {
				return uip.Response{}, false
			}
			chosen[n-1] = true
		}
		var a uip.Response
		for i, part := range q.Parts {
			option := uip.Reject
			if chosen[i] {
				option = uip.Approve
			}
			a.Parts = append(a.Parts, uip.Response{ID: part.ID, Option: option})
		}
		return a, len(chosen) > 0
	case q.Kind == uip.Confirm:
		return readConfirm(q, line)
	}
	if q.Kind == uip.Input { // a number is a number there
		return uip.Response{Input: line}, true
	}
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Options) {
		return uip.Response{Option: q.Options[n-1].ID}, true
	}
	if i := slices.IndexFunc(q.Options, func(o uip.Option) bool { return strings.EqualFold(o.ID, line) }); i >= 0 {
		return uip.Response{Option: q.Options[i].ID}, true
	}
	return uip.Response{Input: line}, true
}

const separators = " ,，:：\t"

func readConfirm(q uip.Request, line string) (uip.Response, bool) {
	word, rest := line, "" // "no, use b" is "no" and "use b"
	if i := strings.IndexAny(line, separators); i >= 0 {
		word, rest = line[:i], strings.TrimLeft(line[i:], separators)
	}
	word = strings.ToLower(word)
	switch {
	case slices.Contains(yes, word) && rest == "":
		return uip.Response{Option: uip.Approve}, true
	case slices.Contains(no, word):
		return uip.Response{Option: uip.Reject, Comment: rest}, true
	}
	for option, said := range remembered {
		if slices.Contains(said, word) && rest == "" && offers(q, option) {
			return uip.Response{Option: option}, true
		}
	}
	return uip.Response{}, false
}

func offers(q uip.Request, id string) bool {
	return slices.ContainsFunc(q.Options, func(o uip.Option) bool { return o.ID == id })
}
