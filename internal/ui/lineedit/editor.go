// Package lineedit edits the line a person writes: keys and pastes go in, rows
// to show and finished drafts come out. It does no input or output, starts no
// goroutine and knows no terminal, so that every key can be tested as a plain
// function call.
//
// What it promises:
//   - A key costs the same however much was pasted: a paste is one unit.
//   - The cursor of [Editor.View] is the cell where the next character goes,
//     whatever the width of the characters before it.
//   - What is sent is exactly what was typed and pasted; line ends are LF.
package lineedit

import "strings"

// Limits, so that nothing grows for ever.
const (
	maxDraft   = 1 << 20  // bytes typed into one draft
	maxInline  = 4 << 10  // bytes of one pasted line that are put in as typed text
	maxHistory = 1000     // drafts remembered
	maxKept    = 64 << 20 // bytes of all drafts remembered
	maxKills   = 32
)

// Editor holds one draft and what belongs to it. The zero Editor is ready to
// use. It is not safe for concurrent use.
type Editor struct {
	// Prompt is shown before the draft; a line end in it starts a new row.
	Prompt []Span
	// Style says how the parts of the view look.
	Style Style
	// Complete finds what may stand instead of draft[start:cursor]. In draft
	// each paste is one private character. Nil means there is no completion.
	Complete func(draft string, cursor int) (start int, choices []Choice)
	// Earlier, which may be nil, is what was sent before this editor was there, or
	// elsewhere, the newest last. It is asked when the person begins to search.
	Earlier func() []string
	// Replaced, which may be nil, is told of a draft in whose place something is taken that
	// was searched for.
	Replaced func(Draft)
	// Question makes it the line of a question: nothing is remembered of it, and Up and
	// Down move in it alone.
	Question bool
	// Vim has the keys be those of vim: a draft begins in insert mode, Esc leads to normal mode.
	Vim bool
	// MenuRows is how many choices are shown at a time; eight if zero.
	MenuRows int
	// Most is how many choices there can be: so many are not all, and what is not shown of
	// them is not counted. Zero is any number.
	Most int
	// Searching, NotFound and NoOther stand before what is searched for in the history.
	// Empty ones are English.
	Searching, NotFound, NoOther string

	draft  Draft // raw is the text being edited, pastes may be more than stand in it
	at     int   // the cursor, a byte offset into draft.raw
	goal   int   // the column aimed at by moving up and down; -1 if none
	width  int   // as of the last View
	undo   undo
	kills  []Draft
	yanked span // what Ctrl+Y put in, until another key
	last   kind // of the last key

	vim     vim
	history history
	search  *search
	menu    *menu
	offers  bool // the last key typed: completions may be offered
	closed  int  // one more than where the text begins that nothing is to be offered for; 0 if there is none
}

// kind groups keys whose repetition means something.
type kind uint8

const (
	other kind = iota
	typing
	killing
	yanking
	climbing
)

type span struct{ from, to int }

// Action is what a key asks of the caller.
type Action struct {
	Kind  Kind
	Text  string // for Submit: all that was written, pastes in full
	Draft Draft  // for Submit: the same, to be shown or edited again
}

// Kind says which action it is.
type Kind uint8

// What a key may ask for. The zero Kind asks for nothing but to be shown.
const (
	None       Kind = iota
	Submit          // Enter: the draft is done and the editor is empty again
	Clear           // Esc: the draft was thrown away
	Cancel          // Esc, with nothing to throw away
	EOF             // Ctrl+D on an empty draft
	Interrupt       // Ctrl+C
	Suspend         // Ctrl+Z
	Redraw          // Ctrl+L
	Edit            // Ctrl+G: edit Text elsewhere, then SetText
	ToggleMode      // Tab on an empty draft
	CycleMode       // Shift+Tab
)

// Key does what k means.
func (e *Editor) Key(k Key) Action {
	if e.search != nil && e.searchKey(k) || e.menu != nil && e.menuKey(k) {
		return Action{}
	}
	was := e.last
	e.last = other
	var a Action
	if e.Vim && e.vimKey(k, was) {
	} else if do, bound := bindings[k]; bound {
		a = do(e, was)
	} else if k.Name == Char && k.Mod&^Shift == 0 && k.Rune >= ' ' {
		e.typeRune(k.Rune)
	}
	if e.last != climbing {
		e.goal = -1
	}
	if e.last != typing {
		e.undo.open = false
	}
	if e.Normal() {
		e.onCharacter()
	}
	e.offers = narrows(k) && !e.Normal()
	if e.at < e.closed { // what was closed is gone
		e.closed = 0
	}
	if e.menu != nil && !e.menu.offered && narrows(k) { // the draft under it has changed
		e.menu = nil
		if start, choices := e.choices(); len(choices) > 0 && !e.Empty() {
			e.menu = &menu{start: start, choices: choices}
		}
	}
	return a
}

// Paste puts pasted text in at the cursor. Several lines, or one that is very
// long, stand as one unit; a single line is as if typed.
func (e *Editor) Paste(text string) {
	text = strings.ToValidUTF8(lineEnds(text), "\uFFFD")
	e.leaveModes()
	e.last = other
	e.goal = -1
	if lines(text) == 1 && len(text) <= maxInline {
		e.change(strings.TrimSuffix(typed(text), "\n"))
		return
	}
	if e.draft.bytes()+len(text) > maxKept { // forget the pastes that only undo still knew
		e.draft, e.undo = e.Draft(), undo{}
	}
	if r := e.draft.keep(pasted(text)); r >= 0 {
		e.change(string(r))
	}
}

// Text is the whole draft, pastes in full.
func (e *Editor) Text() string { return e.Draft().Text() }

// Asks reports whether a search or a menu is open, which Esc closes.
func (e *Editor) Asks() bool { return e.search != nil || e.menu != nil }

// TakesEsc reports whether Esc means something here: it closes what is open, or leaves vim's insert mode.
func (e *Editor) TakesEsc() bool { return e.Asks() || e.Vim && !e.vim.normal && !e.Empty() }

// Empty reports whether the draft is empty.
func (e *Editor) Empty() bool { return e.draft.raw == "" }

// Draft is the draft as it stands.
func (e *Editor) Draft() Draft { return e.draft.only(e.draft.raw) }

// SetDraft replaces the draft; the cursor goes to its end. It can be undone.
func (e *Editor) SetDraft(d Draft) {
	e.leaveModes()
	e.replace(d)
}

// SetText replaces the draft by text, as after editing it elsewhere. A text too
// long to be edited here stands as if pasted, and a text that is the draft's
// own leaves it as it is.
func (e *Editor) SetText(text string) {
	text = strings.ToValidUTF8(lineEnds(text), "\uFFFD")
	switch d := e.Draft().Rewritten(text); {
	case text == e.Text():
	case len(d.Pictures()) > 0:
		e.SetDraft(d)
	default:
		e.Put(text, nil)
	}
}

// Put replaces the draft by text, in which these stand as one unit as they did when they
// were pasted.
func (e *Editor) Put(text string, pastes []string) {
	d := Folded(text, pastes)
	if len(d.raw) > maxInline*4 {
		d = Folded(typed(text), []string{typed(text)})
	}
	e.SetDraft(d)
}

// Reset empties the draft and forgets how it came about; history stays.
func (e *Editor) Reset() {
	e.leaveModes()
	e.closed = 0
	e.draft, e.at, e.goal = Draft{}, 0, -1
	e.undo = undo{}
	e.vim = vim{last: e.vim.last}
	e.last = other
	e.history.leave()
}

func (e *Editor) leaveModes() {
	e.search, e.menu, e.offers = nil, nil, false
}

// replace puts d in the place of the whole draft.
func (e *Editor) replace(d Draft) {
	e.undo.keep(e.draft.raw, e.at)
	e.draft.raw = e.draft.adopt(d)
	e.at = len(e.draft.raw)
	e.last, e.goal = other, -1
}

// change puts s in at the cursor as one step that can be undone.
func (e *Editor) change(s string) {
	if s == "" || len(e.draft.raw)+len(s) > maxDraft {
		return
	}
	e.undo.keep(e.draft.raw, e.at)
	e.insert(s)
}

func (e *Editor) insert(s string) {
	e.draft.raw = e.draft.raw[:e.at] + s + e.draft.raw[e.at:]
	e.at += len(s)
}

// remove takes [from, to) out as one step that can be undone.
func (e *Editor) remove(from, to int) {
	if from >= to {
		return
	}
	e.undo.keep(e.draft.raw, e.at)
	e.draft.raw = e.draft.raw[:from] + e.draft.raw[to:]
	e.at = from
}

// typeRune puts one typed character in; a run of them is undone together.
func (e *Editor) typeRune(r rune) {
	s := typed(string(r))
	if len(e.draft.raw)+len(s) > maxDraft {
		return
	}
	if !e.undo.open {
		e.undo.keep(e.draft.raw, e.at)
	}
	e.undo.open = r != ' '
	e.insert(s)
	e.last = typing
}
