package lineedit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// history is the drafts sent, oldest first. The zero value is empty.
type history struct {
	sent  []Draft
	bytes int
	// earlier is from before this editor, and found from elsewhere, for searching only.
	earlier, found []Draft
	back           int   // drafts back from the new one; 0 is the new one
	left           Draft // the new one, while an older one is shown
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

// Remember adds a draft written elsewhere to the history.
func (e *Editor) Remember(d Draft) { e.history.add(d) }

// at returns the draft n back; the earlier ones follow the first one sent.
func (h *history) at(n int) Draft {
	if n > len(h.sent) {
		return h.earlier[len(h.earlier)-(n-len(h.sent))]
	}
	return h.sent[len(h.sent)-n]
}

// Found adds a text that was not sent from here to the search.
func (e *Editor) Found(d Draft) { e.history.found = append(e.history.found, d) }

// recall sets earlier, without drafts already known.
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

// Unsent returns the text written but not sent: the draft, unless it is an unchanged draft from the
// history.
func (e *Editor) Unsent() Draft {
	d := e.Draft()
	if e.search != nil { // a search result is only shown
		d = e.draft.only(e.search.before.text)
	}
	if back := e.history.back; back > 0 && d.Text() == e.history.at(back).Text() {
		return e.history.left
	}
	return d
}

// down moves to the row below, or from the last row to the draft sent after; the newest is followed by
// the new one, unchanged. Changes to history drafts are not kept.
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

// search is a search through the history. The match is shown as the draft.
type search struct {
	query  string
	back   int  // the match, counted as in history
	failed bool // no older draft contains the query
	again  bool // the user asked for another match
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

// searchKey handles a key during a search. Any other key ends the search, keeps the match, and then has
// its usual effect.
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
	case k == WithCtrl('c'): // leaving changes nothing
		e.draft.raw, e.at = s.before.text, s.before.at
		e.search = nil
		return false
	case k.Name == Char && k.Mod&^Shift == 0 && k.Rune >= ' ':
		e.seek(s.query+string(k.Rune), max(1, s.back), +1)
	case k == Key{Name: Enter} && s.failed && !s.again: // the draft shown does not match
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

// seek shows the first draft from n back on, towards older ones or, with step -1, newer ones, whose
// shown text contains query.
func (e *Editor) seek(query string, n, step int) {
	s := e.search
	s.query = query
	if query == "" && (!s.again || n < 1) { // asking for one after the other matches all
		return
	}
	h := &e.history
	has := func(d Draft) bool { return strings.Contains(d.String(), query) }
	if query == strings.ToLower(query) || !slices.ContainsFunc(h.sent, has) && !slices.ContainsFunc(h.earlier, has) {
		// ignore case if query is in lower case, or nothing matches exactly
		has = func(d Draft) bool { return strings.Contains(strings.ToLower(d.String()), strings.ToLower(query)) }
	}
	shown := "" // skip its duplicates
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
