package lineedit

import (
	"slices"
	"strings"
)

// maxMenu is the most choices shown at a time.
const maxMenu = 8

// Choice is a completion of a draft.
type Choice struct {
	Text string // inserted text, with a trailing space if one should follow
	Note string // shown beside it, may be empty
}

// menu is the list of completions.
type menu struct {
	start   int // choices replace the text from here to the cursor
	choices []Choice
	chosen  int // negative if none
	// offered is set if the user did not ask for it: typing continues as if it were not there, and Enter
	// accepts only a choice made with an arrow.
	offered bool
	of      moment // the draft it was offered for
}

// none means that nothing is chosen.
const none = -1

// Typing returns the draft if the user just typed it and completions may be offered at the cursor. Each
// paste in it is one private character.
func (e *Editor) Typing() (draft string, cursor int, ok bool) {
	return e.draft.raw, e.at, e.offers && e.search == nil && (e.menu == nil || e.menu.offered)
}

// Offer shows choices for the text from start to the cursor, unless the user closed the menu there. No
// choices close it.
func (e *Editor) Offer(start int, choices []Choice) {
	if _, at, ok := e.Typing(); !ok || start < 0 || start > at {
		return
	}
	m := &menu{start: start, choices: choices, chosen: none, offered: true, of: moment{e.draft.raw, e.at}}
	if e.menu != nil && e.menu.chosen >= 0 { // keep the chosen one
		m.chosen = slices.Index(choices, e.menu.choices[e.menu.chosen])
	}
	written := len(choices) == 1 && strings.TrimSpace(choices[0].Text) == e.draft.raw[start:e.at]
	if e.closed != start+1 || start == e.at { // another text, or none
		e.closed = 0
	}
	if e.menu = m; len(choices) == 0 || written || e.closed > 0 {
		e.menu = nil
	}
}

// Close closes the menu.
func (e *Editor) Close() {
	if e.menu != nil && e.menu.offered {
		e.closed = e.menu.start + 1
	}
	e.menu = nil
}

// choices asks for completions and discards an answer that is out of bounds.
func (e *Editor) choices() (start int, choices []Choice) {
	if e.Complete == nil {
		return 0, nil
	}
	start, choices = e.Complete(e.draft.raw, e.at)
	if start < 0 || start > e.at {
		return 0, nil
	}
	return start, choices
}

// put replaces the text from start to the cursor.
func (e *Editor) put(start int, text string) {
	text = typed(text)
	if e.draft.raw[start:e.at] == text {
		return
	}
	e.undo.keep(e.draft.raw, e.at)
	e.draft.raw = e.draft.raw[:start] + text + e.draft.raw[e.at:]
	e.at = start + len(text)
}

// menuKey handles a key while a menu is open and reports whether the key is done. Typing and erasing
// narrow or widen the choices; other keys close the menu and then have their usual effect.
func (e *Editor) menuKey(k Key) bool {
	m := e.menu
	n := len(m.choices)
	switch {
	case m.offered && k == Key{Name: Enter} && m.chosen < 0:
		e.menu = nil
		return false
	case m.offered && k == Key{Name: Tab} && m.chosen < 0 && m.of != moment{e.draft.raw, e.at}:
		e.menu = nil // the draft has changed since
		return false
	case m.offered && k == Key{Name: Tab}:
		e.put(m.start, m.choices[max(0, m.chosen)].Text)
		e.menu = nil
	case m.offered && k == Key{Name: Tab, Mod: Shift}:
		e.menu = nil
		return false
	case k == Key{Name: Tab}, k == Key{Name: Down}, k == WithCtrl('n'):
		m.chosen = (m.chosen + 1) % n
	case k == Key{Name: Tab, Mod: Shift}, k == Key{Name: Up}, k == WithCtrl('p'):
		m.chosen = (max(m.chosen, 0) + n - 1) % n
	case k == Key{Name: Enter}:
		e.put(m.start, m.choices[m.chosen].Text)
		e.menu = nil
	case k == Key{Name: Escape}:
		e.Close()
	case narrows(k):
		return false
	default:
		e.menu = nil
		return false
	}
	return true
}

// narrows reports whether k changes the text that a menu completes.
func narrows(k Key) bool {
	return k.Name == Char && k.Mod&^Shift == 0 || k == Key{Name: Backspace} || k == WithCtrl('h')
}
