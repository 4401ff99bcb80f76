package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// bindings maps keys that do not insert themselves to their actions. was is the kind of the key before.
var bindings = map[Key]func(e *Editor, was kind) Action{
	{Name: Enter}:             (*Editor).enter,
	{Name: Enter, Mod: Alt}:   newline,
	{Name: Enter, Mod: Shift}: newline,
	{Name: Enter, Mod: Ctrl}:  newline,
	WithCtrl('j'):             newline,

	{Name: Escape}:          (*Editor).escape,
	{Name: Tab}:             (*Editor).tab,
	{Name: Tab, Mod: Shift}: (*Editor).shiftTab,
	WithCtrl('c'):           asks(Interrupt),
	WithCtrl('z'):           asks(Suspend),
	WithCtrl('l'):           asks(Redraw),
	WithCtrl('g'):           asks(Edit),
	WithCtrl('d'):           (*Editor).endOfInput,

	{Name: Left}:              moves(before),
	WithCtrl('b'):             moves(before),
	{Name: Right}:             moves(after),
	WithCtrl('f'):             moves(after),
	{Name: Home}:              moves(lineStart),
	WithCtrl('a'):             moves(lineStart),
	{Name: End}:               moves(lineEnd),
	WithCtrl('e'):             moves(lineEnd),
	{Name: Home, Mod: Ctrl}:   moves(func(string, int) int { return 0 }),
	{Name: End, Mod: Ctrl}:    moves(func(text string, _ int) int { return len(text) }),
	WithAlt('b'):              moves(wordLeft),
	{Name: Left, Mod: Alt}:    moves(wordLeft),
	{Name: Left, Mod: Ctrl}:   moves(wordLeft),
	WithAlt('f'):              moves(wordRight),
	{Name: Right, Mod: Alt}:   moves(wordRight),
	{Name: Right, Mod: Ctrl}:  moves(wordRight),
	{Name: Up}:                (*Editor).up,
	WithCtrl('p'):             (*Editor).up,
	{Name: Down}:              (*Editor).down,
	WithCtrl('n'):             (*Editor).down,
	WithCtrl('r'):             (*Editor).startSearch,
	{Name: Backspace}:         deletes(before),
	WithCtrl('h'):             deletes(before),
	{Name: Delete}:            deletes(after),
	WithCtrl('k'):             (*Editor).killToEnd,
	WithCtrl('u'):             kills(lineStart),
	WithCtrl('w'):             kills(blankLeft),
	WithAlt('d'):              kills(wordRight),
	{Name: Delete, Mod: Alt}:  kills(wordRight),
	{Name: Delete, Mod: Ctrl}: kills(wordRight),

	{Name: Backspace, Mod: Alt}:  kills(wordLeft),
	{Name: Backspace, Mod: Ctrl}: kills(wordLeft),

	WithCtrl('y'): (*Editor).yank,
	WithAlt('y'):  (*Editor).yankOlder,
	WithCtrl('_'): (*Editor).takeBack,
	WithCtrl('/'): (*Editor).takeBack,
}

func wordLeft(text string, i int) int { return wordStart(text, i, inWord) }
func blankLeft(text string, i int) int {
	return wordStart(text, i, func(r rune) bool { return !unicode.IsSpace(r) })
}

// asks returns a binding that only returns an action to the caller.
func asks(k Kind) func(*Editor, kind) Action {
	return func(*Editor, kind) Action { return Action{Kind: k} }
}

// moves returns a binding that moves the cursor to a position.
func moves(to func(text string, i int) int) func(*Editor, kind) Action {
	return func(e *Editor, _ kind) Action {
		e.at = to(e.draft.raw, e.at)
		return Action{}
	}
}

// deletes returns a binding that deletes the text between the cursor and a position.
func deletes(to func(text string, i int) int) func(*Editor, kind) Action {
	return func(e *Editor, _ kind) Action {
		i := to(e.draft.raw, e.at)
		e.remove(min(i, e.at), max(i, e.at))
		return Action{}
	}
}

// kills returns a binding that kills the text between the cursor and a position; Ctrl+Y inserts it
// again. Repeated kills collect into one text.
func kills(to func(text string, i int) int) func(*Editor, kind) Action {
	return func(e *Editor, was kind) Action {
		e.kill(e.at, to(e.draft.raw, e.at), was)
		return Action{}
	}
}

func (e *Editor) kill(at, to int, was kind) {
	e.last = killing
	if at == to {
		return
	}
	from, to := min(at, to), max(at, to)
	d := e.draft.only(e.draft.raw[from:to])
	n := len(e.kills)
	switch {
	case was != killing || n == 0:
		e.kills = append(e.kills, d)
	case from == at:
		e.kills[n-1] = joined(e.kills[n-1], d)
	default:
		e.kills[n-1] = joined(d, e.kills[n-1])
	}
	if len(e.kills) > maxKills {
		e.kills = e.kills[1:]
	}
	e.remove(from, to)
}

func joined(a, b Draft) (d Draft) {
	d.raw = d.adopt(a)
	d.raw += d.adopt(b)
	return d
}

// killToEnd kills to the end of the line, or the newline if the cursor is there.
func (e *Editor) killToEnd(was kind) Action {
	to := lineEnd(e.draft.raw, e.at)
	if to == e.at {
		to = after(e.draft.raw, e.at)
	}
	e.kill(e.at, to, was)
	return Action{}
}

// yank inserts the newest killed text.
func (e *Editor) yank(kind) Action {
	if len(e.kills) > 0 {
		e.putKilled(len(e.kills) - 1)
	}
	return Action{}
}

// yankOlder replaces the text just yanked with an older one.
func (e *Editor) yankOlder(was kind) Action {
	if was != yanking || len(e.kills) < 2 {
		return Action{}
	}
	// Rotate the ring: the newest goes to the end.
	n := len(e.kills)
	e.kills = append([]Draft{e.kills[n-1]}, e.kills[:n-1]...)
	e.remove(e.yanked.from, e.yanked.to)
	e.putKilled(n - 1)
	return Action{}
}

func (e *Editor) putKilled(i int) {
	from := e.at
	e.change(e.draft.adopt(e.kills[i]))
	e.yanked = span{from, e.at}
	e.last = yanking
}

func (e *Editor) takeBack(kind) Action {
	u := &e.undo
	u.open = false
	if n := len(u.past); n > 0 {
		m := u.past[n-1]
		u.past, u.bytes = u.past[:n-1], u.bytes-len(m.text)
		e.draft.raw, e.at = m.text, m.at
	}
	return Action{}
}

func newline(e *Editor, _ kind) Action {
	e.change("\n")
	return Action{}
}

// enter submits the draft, unless a backslash asks for a new line. It does not submit a blank draft.
func (e *Editor) enter(kind) Action {
	// With an odd number the last one is not escaped.
	head := e.draft.raw[:e.at]
	if (len(head)-len(strings.TrimRight(head, `\`)))%2 == 1 {
		e.remove(e.at-1, e.at)
		e.insert("\n")
		return Action{}
	}
	if strings.TrimSpace(e.draft.raw) == "" {
		return Action{}
	}
	d := e.Draft()
	if !e.Question {
		e.history.add(d)
	}
	e.Reset()
	return Action{Kind: Submit, Text: d.Text(), Draft: d}
}

// escape discards the draft. Ctrl+_ restores it.
func (e *Editor) escape(kind) Action {
	if e.Empty() {
		return Action{Kind: Cancel}
	}
	e.replace(Draft{})
	e.history.leave()
	return Action{Kind: Clear}
}

func (e *Editor) endOfInput(kind) Action {
	if e.Empty() {
		return Action{Kind: EOF}
	}
	return Action{}
}

func (e *Editor) tab(kind) Action {
	switch {
	case e.Empty() && e.Question:
	case e.Empty():
		return Action{Kind: ToggleMode}
	default:
		start, choices := e.choices()
		switch len(choices) {
		case 0:
		case 1:
			e.put(start, choices[0].Text)
		default:
			prefix := choices[0].Text // common to all choices
			for _, c := range choices[1:] {
				for !strings.HasPrefix(c.Text, prefix) {
					_, n := utf8.DecodeLastRuneInString(prefix)
					prefix = prefix[:len(prefix)-n]
				}
			}
			// If a choice does not start with the typed text, nothing is removed.
			if written := e.draft.raw[start:e.at]; len(prefix) > len(written) && strings.HasPrefix(prefix, written) {
				e.put(start, prefix)
			}
			e.menu = &menu{start: start, choices: choices}
		}
	}
	return Action{}
}

func (e *Editor) shiftTab(kind) Action { return Action{Kind: CycleMode} }
