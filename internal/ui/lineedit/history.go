package lineedit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// history is what was sent, oldest first. The zero value is empty.
type history struct {
	sent  []Draft
	bytes int
	// earlier is what was sent before, and found what was told elsewhere, for searching only.
	earlier, found []Draft
	back           int   // how many drafts back from a new one we look; 0 is the new one
	left           Draft // the new one, while we look at others
}

func (h *history) add(d Draft) {
	h.sent = append(h.sent, d)
	h.bytes += d.bytes()
	for len(h.sent) > maxHistory || h.bytes > maxKept && len(h.sent) > 1 {
		h.bytes -= h.sent[0].bytes()
		h.sent = h.sent[1:]
	}
	h.leave()
}

func (h *history) leave() { h.back, h.left = 0, Draft{} }

// Remember has a draft found among those sent, though it was written elsewhere.
func (e *Editor) Remember(d Draft) { e.history.add(d) }

// at is the draft n back; behind the first of those sent come those from before.
func (h *history) at(n int) Draft {
	if n > len(h.sent) {
		return h.earlier[len(h.earlier)-(n-len(h.sent))]
	}
	return h.sent[len(h.sent)-n]
}

// Found has a text be found by searching, though it was not sent from here.
func (e *Editor) Found(d Draft) { e.history.found = append(e.history.found, d) }

// recall takes in what was sent before, without what is known here.
func (h *history) recall(before []string) {
	known := make(map[string]bool)
	for _, d := range slices.Concat(h.sent, h.found) {
		known[d.Text()] = true
	}
	h.earlier = nil
	for _, text := range before {
		if !known[text] {
			h.earlier = append(h.earlier, Draft{raw: typed(text)})
		}
	}
	h.earlier = append(h.earlier, h.found...)
}

// up moves to the row above, or from the first row to the draft sent before.
func (e *Editor) up(kind) Action {
	if e.climb(-1) || e.Question || e.history.back == len(e.history.sent) {
		return Action{}
	}
	if e.history.back == 0 {
		e.history.left = e.Draft()
	}
	e.history.back++
	e.replace(e.history.at(e.history.back))
	return Action{}
}

// Unsent is what was written and not sent: the draft, unless that is one sent before
// which stands there as it was.
func (e *Editor) Unsent() Draft {
	d := e.Draft()
	if e.search != nil { // what was found is only looked at
		d = e.draft.only(e.search.before.text)
	}
	if back := e.history.back; back > 0 && d.Text() == e.history.at(back).Text() {
		return e.history.left
	}
	return d
}

// down moves to the row below, or from the last row to the draft sent after;
// after the newest comes the new one as it was. Changes made on the way are not kept.
func (e *Editor) down(kind) Action {
	if e.climb(+1) || e.Question || e.history.back == 0 {
		return Action{}
	}
	e.history.back--
	if e.history.back == 0 {
		e.replace(e.history.left)
		e.history.leave()
		return Action{}
	}
	e.replace(e.history.at(e.history.back))
	return Action{}
}

// search is a look through history by what it contains. What is found is shown
// as the draft.
type search struct {
	query  string
	back   int  // the draft found, counted as in history
	failed bool // the query is not in any older draft
	again  bool // another one was asked for
	before moment
}

func (e *Editor) startSearch(kind) Action {
	if e.Earlier != nil {
		e.history.recall(e.Earlier())
	}
	if !e.Question || e.Earlier != nil {
		e.search = &search{before: moment{e.draft.raw, e.at}}
	}
	return Action{}
}

// searchKey handles a key while searching. Keys that mean nothing to a search
// end it, keep what was found, and are then done as usual.
func (e *Editor) searchKey(k Key) (done bool) {
	s := e.search
	s.again = (k == WithCtrl('r') || k == WithCtrl('s')) && (s.again || !s.failed)
	switch {
	case k == WithCtrl('r'):
		e.seek(s.query, s.back+1, +1)
	case k == WithCtrl('s'):
		e.seek(s.query, s.back-1, -1)
	case k == Key{Name: Backspace}, k == WithCtrl('h'):
		_, n := utf8.DecodeLastRuneInString(s.query)
		s.back, s.failed = 0, false
		e.seek(s.query[:len(s.query)-n], 1, +1)
	case k == Key{Name: Escape}, k == WithCtrl('g'):
		e.draft.raw, e.at = s.before.text, s.before.at
		e.search = nil
	case k == WithCtrl('c'): // whoever leaves has only looked
		e.draft.raw, e.at = s.before.text, s.before.at
		e.search = nil
		return false
	case k.Name == Char && k.Mod&^Shift == 0 && k.Rune >= ' ':
		e.seek(s.query+string(k.Rune), max(1, s.back), +1)
	case k == Key{Name: Enter} && s.failed && !s.again: // what is shown is not what was asked for
		e.search = nil
	default:
		if e.search = nil; s.back > 0 {
			e.undo.keep(s.before.text, s.before.at)
			if left := e.draft.only(s.before.text); e.Replaced != nil && strings.TrimSpace(left.raw) != "" {
				e.Replaced(left)
			}
			if e.history.back == 0 {
				e.history.left = e.draft.only(s.before.text)
			}
			e.history.back = min(s.back, len(e.history.sent))
		}
		return false
	}
	return true
}

// seek shows the first draft from n drafts back on, towards older ones or, with
// a step of -1, newer ones, that has query in it as it was shown.
func (e *Editor) seek(query string, n, step int) {
	s := e.search
	s.query = query
	if query == "" && (!s.again || n < 1) { // asked for one after the other, all are
		return
	}
	h := &e.history
	has := func(d Draft) bool { return strings.Contains(d.String(), query) }
	if query == strings.ToLower(query) || !slices.ContainsFunc(h.sent, has) && !slices.ContainsFunc(h.earlier, has) {
		// without a capital letter they do not matter, nor where none is as it is written
		has = func(d Draft) bool { return strings.Contains(strings.ToLower(d.String()), strings.ToLower(query)) }
	}
	shown := "" // is not found a second time
	if s.back > 0 && s.back != n {
		shown = h.at(s.back).Text()
	}
	for ; n > 0 && n <= len(h.sent)+len(h.earlier); n += step {
		if d := h.at(n); has(d) && d.Text() != shown {
			s.back, s.failed = n, false
			e.draft.raw = e.draft.adopt(d)
			e.at = len(e.draft.raw)
			return
		}
	}
	s.failed = true
}
