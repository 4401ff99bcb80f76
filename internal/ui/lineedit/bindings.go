package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// keyBindings maps keys that do not insert themselves to their actions. was is the kind of the key before.
var keyBindings = map[Key]func(e *Editor, was keyKind) Action{
	{Name: Enter}:             (*Editor).submitDraft,
	{Name: Enter, Mod: Alt}:   insertNewline,
	{Name: Enter, Mod: Shift}: insertNewline,
	{Name: Enter, Mod: Ctrl}:  insertNewline,
	CtrlKey('j'):              insertNewline,

	{Name: Escape}:          (*Editor).discardDraft,
	{Name: Tab}:             (*Editor).tab,
	{Name: Tab, Mod: Shift}: (*Editor).shiftTab,
	CtrlKey('c'):            actionBinding(Interrupt),
	CtrlKey('z'):            actionBinding(Suspend),
	CtrlKey('l'):            actionBinding(Redraw),
	CtrlKey('g'):            actionBinding(Edit),
	CtrlKey('d'):            (*Editor).endOfInput,

	{Name: Left}:              moveBinding(clusterStart),
	CtrlKey('b'):              moveBinding(clusterStart),
	{Name: Right}:             moveBinding(clusterEnd),
	CtrlKey('f'):              moveBinding(clusterEnd),
	{Name: Home}:              moveBinding(lineStart),
	CtrlKey('a'):              moveBinding(lineStart),
	{Name: End}:               moveBinding(lineEnd),
	CtrlKey('e'):              moveBinding(lineEnd),
	{Name: Home, Mod: Ctrl}:   moveBinding(func(string, int) int { return 0 }),
	{Name: End, Mod: Ctrl}:    moveBinding(func(text string, _ int) int { return len(text) }),
	AltKey('b'):               moveBinding(wordLeft),
	{Name: Left, Mod: Alt}:    moveBinding(wordLeft),
	{Name: Left, Mod: Ctrl}:   moveBinding(wordLeft),
	AltKey('f'):               moveBinding(wordRight),
	{Name: Right, Mod: Alt}:   moveBinding(wordRight),
	{Name: Right, Mod: Ctrl}:  moveBinding(wordRight),
	{Name: Up}:                (*Editor).moveUp,
	CtrlKey('p'):              (*Editor).moveUp,
	{Name: Down}:              (*Editor).moveDown,
	CtrlKey('n'):              (*Editor).moveDown,
	CtrlKey('r'):              (*Editor).startSearch,
	{Name: Backspace}:         deleteBinding(clusterStart),
	CtrlKey('h'):              deleteBinding(clusterStart),
	{Name: Delete}:            deleteBinding(clusterEnd),
	CtrlKey('k'):              (*Editor).killToEnd,
	CtrlKey('u'):              killBinding(lineStart),
	CtrlKey('w'):              killBinding(bigWordLeft),
	AltKey('d'):               killBinding(wordRight),
	{Name: Delete, Mod: Alt}:  killBinding(wordRight),
	{Name: Delete, Mod: Ctrl}: killBinding(wordRight),

	{Name: Backspace, Mod: Alt}:  killBinding(wordLeft),
	{Name: Backspace, Mod: Ctrl}: killBinding(wordLeft),

	CtrlKey('y'): (*Editor).yank,
	AltKey('y'):  (*Editor).yankOlder,
	CtrlKey('_'): (*Editor).undoStep,
	CtrlKey('/'): (*Editor).undoStep,
}

func wordLeft(text string, i int) int { return wordStart(text, i, isWordRune) }
func bigWordLeft(text string, i int) int {
	return wordStart(text, i, func(r rune) bool { return !unicode.IsSpace(r) })
}

// actionBinding returns a binding that only returns an action to the caller.
func actionBinding(k ActionKind) func(*Editor, keyKind) Action {
	return func(*Editor, keyKind) Action { return Action{Kind: k} }
}

// moveBinding returns a binding that moves the cursor to a position.
func moveBinding(to func(text string, i int) int) func(*Editor, keyKind) Action {
	return func(e *Editor, _ keyKind) Action {
		e.cursor = to(e.draft.raw, e.cursor)
		return Action{}
	}
}

// deleteBinding returns a binding that deletes the text between the cursor and a position.
func deleteBinding(to func(text string, i int) int) func(*Editor, keyKind) Action {
	return func(e *Editor, _ keyKind) Action {
		i := to(e.draft.raw, e.cursor)
		e.remove(min(i, e.cursor), max(i, e.cursor))
		return Action{}
	}
}

// killBinding returns a binding that kills the text between the cursor and a position; Ctrl+Y inserts it
// again. Repeated kills collect into one text.
func killBinding(to func(text string, i int) int) func(*Editor, keyKind) Action {
	return func(e *Editor, was keyKind) Action {
		e.kill(e.cursor, to(e.draft.raw, e.cursor), was)
		return Action{}
	}
}

func (e *Editor) kill(at, to int, was keyKind) {
	e.lastKind = keyKilling
	if at == to {
		return
	}
	from, to := min(at, to), max(at, to)
	d := e.draft.withRaw(e.draft.raw[from:to])
	n := len(e.kills)
	switch {
	case was != keyKilling || n == 0:
		e.kills = append(e.kills, d)
	case from == at:
		e.kills[n-1] = joinKills(e.kills[n-1], d)
	default:
		e.kills[n-1] = joinKills(d, e.kills[n-1])
	}
	if len(e.kills) > maxKills {
		e.kills = e.kills[1:]
	}
	e.remove(from, to)
}

func joinKills(a, b Draft) (d Draft) {
	d.raw = d.importPastes(a)
	d.raw += d.importPastes(b)
	return d
}

// killToEnd kills to the end of the line, or the newline if the cursor is there.
func (e *Editor) killToEnd(was keyKind) Action {
	to := lineEnd(e.draft.raw, e.cursor)
	if to == e.cursor {
		to = clusterEnd(e.draft.raw, e.cursor)
	}
	e.kill(e.cursor, to, was)
	return Action{}
}

// yank inserts the newest killed text.
func (e *Editor) yank(keyKind) Action {
	if len(e.kills) > 0 {
		e.insertKill(len(e.kills) - 1)
	}
	return Action{}
}

// yankOlder replaces the text just yanked with an older one.
func (e *Editor) yankOlder(was keyKind) Action {
	if was != keyYanking || len(e.kills) < 2 {
		return Action{}
	}
	// Rotate the ring: the newest goes to the end.
	n := len(e.kills)
	e.kills = append([]Draft{e.kills[n-1]}, e.kills[:n-1]...)
	e.remove(e.yankedSpan.from, e.yankedSpan.to)
	e.insertKill(n - 1)
	return Action{}
}

func (e *Editor) insertKill(i int) {
	from := e.cursor
	e.insertStep(e.draft.importPastes(e.kills[i]))
	e.yankedSpan = span{from, e.cursor}
	e.lastKind = keyYanking
}

func (e *Editor) undoStep(keyKind) Action {
	u := &e.undo
	u.typingRun = false
	if n := len(u.snapshots); n > 0 {
		m := u.snapshots[n-1]
		u.snapshots, u.bytes = u.snapshots[:n-1], u.bytes-len(m.text)
		e.draft.raw, e.cursor = m.text, m.cursor
	}
	return Action{}
}

func insertNewline(e *Editor, _ keyKind) Action {
	e.insertStep("\n")
	return Action{}
}

// submitDraft submits the draft, unless a backslash asks for a new line. It does not submit a blank draft.
func (e *Editor) submitDraft(keyKind) Action {
	// With an odd number the last one is not escaped.
	head := e.draft.raw[:e.cursor]
	if (len(head)-len(strings.TrimRight(head, `\`)))%2 == 1 {
		e.remove(e.cursor-1, e.cursor)
		e.insert("\n")
		return Action{}
	}
	if strings.TrimSpace(e.draft.raw) == "" {
		return Action{}
	}
	d := e.Draft()
	if !e.IsQuestion {
		e.history.add(d)
	}
	e.Reset()
	return Action{Kind: Submit, Text: d.Text(), Draft: d}
}

// discardDraft discards the draft. Ctrl+_ restores it.
func (e *Editor) discardDraft(keyKind) Action {
	if e.IsEmpty() {
		return Action{Kind: Cancel}
	}
	e.replace(Draft{})
	e.history.reset()
	return Action{Kind: Clear}
}

func (e *Editor) endOfInput(keyKind) Action {
	if e.IsEmpty() {
		return Action{Kind: EOF}
	}
	return Action{}
}

func (e *Editor) tab(keyKind) Action {
	switch {
	case e.IsEmpty() && e.IsQuestion:
	case e.IsEmpty():
		return Action{Kind: ToggleMode}
	default:
		start, choices := e.findChoices()
		switch len(choices) {
		case 0:
		case 1:
			e.replaceToCursor(start, choices[0].Text)
		default:
			prefix := choices[0].Text // common to all choices
			for _, c := range choices[1:] {
				for !strings.HasPrefix(c.Text, prefix) {
					_, n := utf8.DecodeLastRuneInString(prefix)
					prefix = prefix[:len(prefix)-n]
				}
			}
			// If a choice does not start with the typed text, nothing is removed.
			if written := e.draft.raw[start:e.cursor]; len(prefix) > len(written) && strings.HasPrefix(prefix, written) {
				e.replaceToCursor(start, prefix)
			}
			e.menu = &menu{start: start, choices: choices}
		}
	}
	return Action{}
}

func (e *Editor) shiftTab(keyKind) Action { return Action{Kind: CycleMode} }
