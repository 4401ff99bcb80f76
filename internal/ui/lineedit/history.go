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
	earlier, extra []Draft
	offset         int   // drafts back from the new one; 0 is the new one
	newDraft       Draft // the new one, while an older one is shown
}

func (h *history) add(d Draft) {
	h.sent = append(h.sent, d)
	h.bytes += d.memorySize()
	for len(h.sent) > maxHistory || h.bytes > maxHistoryBytes && len(h.sent) > 1 {
		h.bytes -= h.sent[0].memorySize()
		h.sent = h.sent[1:]
	}
	h.reset()
}

func (h *history) reset() { h.offset, h.newDraft = 0, Draft{} }

// Remember adds a draft written elsewhere to the history.
func (e *Editor) Remember(d Draft) { e.history.add(d) }

// draftAt returns the draft n back; the earlier ones follow the first one sent.
func (h *history) draftAt(n int) Draft {
	if n > len(h.sent) {
		return h.earlier[len(h.earlier)-(n-len(h.sent))]
	}
	return h.sent[len(h.sent)-n]
}

// AddSearchable adds a text that was not sent from here to the search.
func (e *Editor) AddSearchable(d Draft) { e.history.extra = append(e.history.extra, d) }

// setEarlier sets earlier, without drafts already known.
func (h *history) setEarlier(before []string) {
	known := make(map[string]bool)
	for _, d := range slices.Concat(h.sent, h.extra) {
		known[d.Text()] = true
	}
	h.earlier = nil
	for _, text := range before {
		if !known[text] {
			h.earlier = append(h.earlier, Draft{raw: cleanTyped(text)})
		}
	}
	h.earlier = append(h.earlier, h.extra...)
}

// moveUp moves to the row above, or from the first row to the draft sent before.
func (e *Editor) moveUp(keyKind) Action {
	if e.moveRow(-1) || e.IsQuestion || e.history.offset == len(e.history.sent) {
		return Action{}
	}
	if e.history.offset == 0 {
		e.history.newDraft = e.Draft()
	}
	e.history.offset++
	e.replace(e.history.draftAt(e.history.offset))
	return Action{}
}

// UnsentDraft returns the text written but not sent: the draft, unless it is an unchanged draft from the
// history.
func (e *Editor) UnsentDraft() Draft {
	d := e.Draft()
	if e.search != nil { // a search result is only shown
		d = e.draft.withRaw(e.search.initial.text)
	}
	if back := e.history.offset; back > 0 && d.Text() == e.history.draftAt(back).Text() {
		return e.history.newDraft
	}
	return d
}

// moveDown moves to the row below, or from the last row to the draft sent after; the newest is followed by
// the new one, unchanged. Changes to history drafts are not kept.
func (e *Editor) moveDown(keyKind) Action {
	if e.moveRow(+1) || e.IsQuestion || e.history.offset == 0 {
		return Action{}
	}
	e.history.offset--
	if e.history.offset == 0 {
		e.replace(e.history.newDraft)
		e.history.reset()
		return Action{}
	}
	e.replace(e.history.draftAt(e.history.offset))
	return Action{}
}

// search is a search through the history. The match is shown as the draft.
type search struct {
	query       string
	matchOffset int  // the match, counted as in history
	notFound    bool // no older draft contains the query
	continued   bool // the user asked for another match
	initial     snapshot
}

func (e *Editor) startSearch(keyKind) Action {
	if e.Earlier != nil {
		e.history.setEarlier(e.Earlier())
	}
	if !e.IsQuestion || e.Earlier != nil {
		e.search = &search{initial: snapshot{e.draft.raw, e.cursor}}
	}
	return Action{}
}

// handleSearchKey handles a key during a search. Any other key ends the search, keeps the match, and then has
// its usual effect.
func (e *Editor) handleSearchKey(k Key) (done bool) {
	s := e.search
	s.continued = (k == CtrlKey('r') || k == CtrlKey('s')) && (s.continued || !s.notFound)
	switch {
	case k == CtrlKey('r'):
		e.findDraft(s.query, s.matchOffset+1, +1)
	case k == CtrlKey('s'):
		e.findDraft(s.query, s.matchOffset-1, -1)
	case k == Key{Name: Backspace}, k == CtrlKey('h'):
		_, n := utf8.DecodeLastRuneInString(s.query)
		s.matchOffset, s.notFound = 0, false
		e.findDraft(s.query[:len(s.query)-n], 1, +1)
	case k == Key{Name: Escape}, k == CtrlKey('g'):
		e.draft.raw, e.cursor = s.initial.text, s.initial.cursor
		e.search = nil
	case k == CtrlKey('c'): // leaving changes nothing
		e.draft.raw, e.cursor = s.initial.text, s.initial.cursor
		e.search = nil
		return false
	case k.Name == Char && k.Mod&^Shift == 0 && k.Rune >= ' ':
		e.findDraft(s.query+string(k.Rune), max(1, s.matchOffset), +1)
	case k == Key{Name: Enter} && s.notFound && !s.continued: // the draft shown does not match
		e.search = nil
	default:
		if e.search = nil; s.matchOffset > 0 {
			e.undo.save(s.initial.text, s.initial.cursor)
			if left := e.draft.withRaw(s.initial.text); e.OnReplaced != nil && strings.TrimSpace(left.raw) != "" {
				e.OnReplaced(left)
			}
			if e.history.offset == 0 {
				e.history.newDraft = e.draft.withRaw(s.initial.text)
			}
			e.history.offset = min(s.matchOffset, len(e.history.sent))
		}
		return false
	}
	return true
}

// findDraft shows the first draft from n back on, towards older ones or, with step -1, newer ones, whose
// shown text contains query.
func (e *Editor) findDraft(query string, n, step int) {
	s := e.search
	s.query = query
	if query == "" && (!s.continued || n < 1) { // asking for one after the other matches all
		return
	}
	h := &e.history
	has := func(d Draft) bool { return strings.Contains(d.String(), query) }
	if query == strings.ToLower(query) || !slices.ContainsFunc(h.sent, has) && !slices.ContainsFunc(h.earlier, has) {
		// ignore case if query is in lower case, or nothing matches exactly
		has = func(d Draft) bool { return strings.Contains(strings.ToLower(d.String()), strings.ToLower(query)) }
	}
	shown := "" // skip its duplicates
	if s.matchOffset > 0 && s.matchOffset != n {
		shown = h.draftAt(s.matchOffset).Text()
	}
	for ; n > 0 && n <= len(h.sent)+len(h.earlier); n += step {
		if d := h.draftAt(n); has(d) && d.Text() != shown {
			s.matchOffset, s.notFound = n, false
			e.draft.raw = e.draft.importPastes(d)
			e.cursor = len(e.draft.raw)
			return
		}
	}
	s.notFound = true
}
