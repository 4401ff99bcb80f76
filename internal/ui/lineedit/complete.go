package lineedit

import (
	"slices"
	"strings"
)

// maxMenu is how many choices are shown at a time.
const maxMenu = 8

// Choice is one thing that completes a draft.
type Choice struct {
	Text string // what is put in, with a blank at its end if one should follow
	Note string // said beside it, may be empty
}

// menu is the choice among several completions.
type menu struct {
	start   int // they stand instead of the text from here to the cursor
	choices []Choice
	chosen  int // none if negative
	// offered says that nobody asked for it: typing goes on as if it were not
	// there, and Enter takes only what was chosen with an arrow.
	offered bool
	of      moment // the draft it is for, if it was offered
}

// none is chosen.
const none = -1

// Typing is the draft if it has just been typed and completions may be offered
// for what stands before the cursor. In it each paste is one private character.
func (e *Editor) Typing() (draft string, cursor int, ok bool) {
	return e.draft.raw, e.at, e.offers && e.search == nil && (e.menu == nil || e.menu.offered)
}

// Offer shows what may stand instead of the text from start to the cursor of the
// draft as it is, unless the person closed that. No choices close it.
func (e *Editor) Offer(start int, choices []Choice) {
	if _, at, ok := e.Typing(); !ok || start < 0 || start > at {
		return
	}
	m := &menu{start: start, choices: choices, chosen: none, offered: true, of: moment{e.draft.raw, e.at}}
	if e.menu != nil && e.menu.chosen >= 0 { // what was chosen stays so
		m.chosen = slices.Index(choices, e.menu.choices[e.menu.chosen])
	}
	written := len(choices) == 1 && strings.TrimSpace(choices[0].Text) == e.draft.raw[start:e.at]
	if e.closed != start+1 || start == e.at { // another name, or none
		e.closed = 0
	}
	if e.menu = m; len(choices) == 0 || written || e.closed > 0 {
		e.menu = nil
	}
}

// Close takes a menu away.
func (e *Editor) Close() {
	if e.menu != nil && e.menu.offered {
		e.closed = e.menu.start + 1
	}
	e.menu = nil
}

// choices asks for completions, and trusts no answer that is out of bounds.
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

// menuKey handles a key while a menu is shown and reports whether that was all
// there is to it. Typing and erasing choose among fewer or more; other keys
// close the menu and are then done as usual.
func (e *Editor) menuKey(k Key) bool {
	m := e.menu
	n := len(m.choices)
	switch {
	case m.offered && k == Key{Name: Enter} && m.chosen < 0:
		e.menu = nil
		return false
	case m.offered && k == Key{Name: Tab} && m.chosen < 0 && m.of != moment{e.draft.raw, e.at}:
		e.menu = nil // something was typed since
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

// narrows reports whether k changes the text a menu completes.
func narrows(k Key) bool {
	return k.Name == Char && k.Mod&^Shift == 0 || k == Key{Name: Backspace} || k == WithCtrl('h')
}
