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
	start    int // choices replace the text from here to the cursor
	choices  []Choice
	selected int // negative if none
	// unrequested is set if the user did not ask for it: typing continues as if it were not there, and Enter
	// accepts only a choice made with an arrow.
	unrequested bool
	state       snapshot // the draft it was offered for
}

// noChoice means that nothing is chosen.
const noChoice = -1

// CompletionContext returns the draft if the user just typed it and completions may be offered at the cursor. Each
// paste in it is one private character.
func (e *Editor) CompletionContext() (draft string, cursor int, ok bool) {
	return e.draft.raw, e.cursor, e.mayComplete && e.search == nil && (e.menu == nil || e.menu.unrequested)
}

// ShowMenu shows choices for the text from start to the cursor, unless the user closed the menu there. No
// choices close it.
func (e *Editor) ShowMenu(start int, choices []Choice) {
	if _, at, ok := e.CompletionContext(); !ok || start < 0 || start > at {
		return
	}
	m := &menu{start: start, choices: choices, selected: noChoice, unrequested: true,
		state: snapshot{e.draft.raw, e.cursor}}
	if e.menu != nil && e.menu.selected >= 0 { // keep the chosen one
		m.selected = slices.Index(choices, e.menu.choices[e.menu.selected])
	}
	written := len(choices) == 1 && strings.TrimSpace(choices[0].Text) == e.draft.raw[start:e.cursor]
	if e.closedStart != start+1 || start == e.cursor { // another text, or none
		e.closedStart = 0
	}
	if e.menu = m; len(choices) == 0 || written || e.closedStart > 0 {
		e.menu = nil
	}
}

// CloseMenu closes the menu.
func (e *Editor) CloseMenu() {
	if e.menu != nil && e.menu.unrequested {
		e.closedStart = e.menu.start + 1
	}
	e.menu = nil
}

// findChoices asks for completions and discards an answer that is out of bounds.
func (e *Editor) findChoices() (start int, choices []Choice) {
	if e.Complete == nil {
		return 0, nil
	}
	start, choices = e.Complete(e.draft.raw, e.cursor)
	if start < 0 || start > e.cursor {
		return 0, nil
	}
	return start, choices
}

// replaceToCursor replaces the text from start to the cursor.
func (e *Editor) replaceToCursor(start int, text string) {
	text = cleanTyped(text)
	if e.draft.raw[start:e.cursor] == text {
		return
	}
	e.undo.save(e.draft.raw, e.cursor)
	e.draft.raw = e.draft.raw[:start] + text + e.draft.raw[e.cursor:]
	e.cursor = start + len(text)
}

// handleMenuKey handles a key while a menu is open and reports whether the key is done. Typing and erasing
// narrow or widen the choices; other keys close the menu and then have their usual effect.
func (e *Editor) handleMenuKey(k Key) bool {
	m := e.menu
	n := len(m.choices)
	switch {
	case m.unrequested && k == Key{Name: Enter} && m.selected < 0:
		e.menu = nil
		return false
	case m.unrequested && k == Key{Name: Tab} && m.selected < 0 && m.state != snapshot{e.draft.raw, e.cursor}:
		e.menu = nil // the draft has changed since
		return false
	case m.unrequested && k == Key{Name: Tab}:
		e.replaceToCursor(m.start, m.choices[max(0, m.selected)].Text)
		e.menu = nil
	case m.unrequested && k == Key{Name: Tab, Mod: Shift}:
		e.menu = nil
		return false
	case k == Key{Name: Tab}, k == Key{Name: Down}, k == CtrlKey('n'):
		m.selected = (m.selected + 1) % n
	case k == Key{Name: Tab, Mod: Shift}, k == Key{Name: Up}, k == CtrlKey('p'):
		m.selected = (max(m.selected, 0) + n - 1) % n
	case k == Key{Name: Enter}:
		e.replaceToCursor(m.start, m.choices[m.selected].Text)
		e.menu = nil
	case k == Key{Name: Escape}:
		e.CloseMenu()
	case changesText(k):
		return false
	default:
		e.menu = nil
		return false
	}
	return true
}

// changesText reports whether k changes the text that a menu completes.
func changesText(k Key) bool {
	return k.Name == Char && k.Mod&^Shift == 0 || k == Key{Name: Backspace} || k == CtrlKey('h')
}
