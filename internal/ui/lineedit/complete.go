package lineedit

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
	chosen  int
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
	case k == Key{Name: Tab}, k == Key{Name: Down}, k == WithCtrl('n'):
		m.chosen = (m.chosen + 1) % n
	case k == Key{Name: Tab, Mod: Shift}, k == Key{Name: Up}, k == WithCtrl('p'):
		m.chosen = (m.chosen + n - 1) % n
	case k == Key{Name: Enter}:
		e.put(m.start, m.choices[m.chosen].Text)
		e.menu = nil
	case k == Key{Name: Escape}:
		e.menu = nil
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
