// Package lineedit edits the user's input line: keys and pastes go in, rows to show and finished drafts
// come out. It does no input or output, starts no goroutine and needs no terminal, so that every key can
// be tested as a function call.
//
// Guarantees:
//   - A key costs the same however much was pasted: a paste is one unit.
//   - The cursor of [Editor.View] is the cell where the next character goes,
//     whatever the width of the characters before it.
//   - The submitted text is exactly what was typed and pasted; line ends are LF.
package lineedit

import "strings"

// Limits, so that nothing grows without bound.
const (
	maxDraft   = 1 << 20  // bytes typed into one draft
	maxInline  = 4 << 10  // bytes of a one-line paste inserted as typed text
	maxHistory = 1000     // drafts in the history
	maxKept    = 64 << 20 // bytes of all drafts in the history
	maxKills   = 32
)

// Editor holds a draft and its editing state. The zero Editor is ready to use. It is not safe for
// concurrent use.
type Editor struct {
	// Prompt is shown before the draft; a newline in it starts a new row.
	Prompt []Span
	// Style sets how the parts of the view look.
	Style Style
	// Complete finds completions for draft[start:cursor]. In draft each paste is one private character. Nil
	// disables completion.
	Complete func(draft string, cursor int) (start int, choices []Choice)
	// Earlier, which may be nil, returns what was sent before this editor existed, or elsewhere, newest
	// last. It is called when the user begins a search.
	Earlier func() []string
	// Replaced, which may be nil, is called with the draft that a search result replaces.
	Replaced func(Draft)
	// Question makes this the line of a question: it saves no history, and Up and Down only move within it.
	Question bool
	// Vim has the keys be those of vim: a draft begins in insert mode, Esc leads to normal mode.
	Vim bool
	// MenuRows is how many choices are shown at a time; 0 means eight.
	MenuRows int
	// Most is the limit of choices: a list that reaches it is incomplete, so its hidden choices are not
	// counted. 0 means no limit.
	Most int
	// Searching, NotFound and NoOther are the labels of the history search. Empty ones are English.
	Searching, NotFound, NoOther string

	draft  Draft // may hold pastes that raw no longer contains
	at     int   // the cursor, a byte offset into draft.raw
	goal   int   // the column that Up and Down aim at; -1 if none
	width  int   // as of the last View
	undo   undo
	kills  []Draft
	yanked span // text that Ctrl+Y inserted, until another key
	last   kind // of the last key

	vim     vim
	history history
	search  *search
	menu    *menu
	offers  bool // the last key typed: completions may be offered
	closed  int  // start of the text without offers, plus one; 0 if none
}

// kind groups keys whose repetition has a meaning.
type kind uint8

const (
	other kind = iota
	typing
	killing
	yanking
	climbing
)

type span struct{ from, to int }

// Action is what a key asks the caller to do.
type Action struct {
	Kind  Kind
	Text  string // for Submit: the whole text, pastes in full
	Draft Draft  // for Submit: the same, to show or edit again
}

// Kind is the kind of an action.
type Kind uint8

// Kinds of actions. The zero Kind only asks for a redraw.
const (
	None       Kind = iota
	Submit          // Enter: the draft is finished and the editor empty
	Clear           // Esc: the draft was discarded
	Cancel          // Esc with nothing to discard
	EOF             // Ctrl+D on an empty draft
	Interrupt       // Ctrl+C
	Suspend         // Ctrl+Z
	Redraw          // Ctrl+L
	Edit            // Ctrl+G: edit Text elsewhere, then SetText
	ToggleMode      // Tab on an empty draft
	CycleMode       // Shift+Tab
)

// Key handles a key press.
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
	if e.at < e.closed { // the closed text is gone
		e.closed = 0
	}
	if e.menu != nil && !e.menu.offered && narrows(k) { // the draft under the menu has changed
		e.menu = nil
		if start, choices := e.choices(); len(choices) > 0 && !e.Empty() {
			e.menu = &menu{start: start, choices: choices}
		}
	}
	return a
}

// Paste inserts pasted text at the cursor. Text of several lines, or a very long line, becomes one unit;
// a single line is inserted as if typed.
func (e *Editor) Paste(text string) {
	text = strings.ToValidUTF8(lineEnds(text), "\uFFFD")
	e.leaveModes()
	e.last = other
	e.goal = -1
	if lines(text) == 1 && len(text) <= maxInline {
		e.change(strings.TrimSuffix(typed(text), "\n"))
		return
	}
	if e.draft.bytes()+len(text) > maxKept { // drop the pastes that only undo needs
		e.draft, e.undo = e.Draft(), undo{}
	}
	if r := e.draft.keep(pasted(text)); r >= 0 {
		e.change(string(r))
	}
}

// Text returns the whole draft, pastes in full.
func (e *Editor) Text() string { return e.Draft().Text() }

// Asks reports whether Esc would close an open search or menu.
func (e *Editor) Asks() bool { return e.search != nil || e.menu != nil }

// TakesEsc reports whether Esc means something here: it closes what is open, or leaves vim's insert mode.
func (e *Editor) TakesEsc() bool { return e.Asks() || e.Vim && !e.vim.normal && !e.Empty() }

// Empty reports whether the draft is empty.
func (e *Editor) Empty() bool { return e.draft.raw == "" }

// Draft returns the current draft.
func (e *Editor) Draft() Draft { return e.draft.only(e.draft.raw) }

// SetDraft replaces the draft, as a step that can be undone, and moves the cursor to its end.
func (e *Editor) SetDraft(d Draft) {
	e.leaveModes()
	e.replace(d)
}

// SetText replaces the draft with text, as after editing it elsewhere. Text too long to edit here
// becomes a paste. Text equal to the draft's changes nothing.
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

// Put replaces the draft with text in which pastes are units, as when they were pasted.
func (e *Editor) Put(text string, pastes []string) {
	d := Folded(text, pastes)
	if len(d.raw) > maxInline*4 {
		d = Folded(typed(text), []string{typed(text)})
	}
	e.SetDraft(d)
}

// Reset empties the draft and its editing state; history stays.
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

// replace replaces the whole draft with d.
func (e *Editor) replace(d Draft) {
	e.undo.keep(e.draft.raw, e.at)
	e.draft.raw = e.draft.adopt(d)
	e.at = len(e.draft.raw)
	e.last, e.goal = other, -1
}

// change inserts s at the cursor as one undo step.
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

// remove deletes [from, to) as one undo step.
func (e *Editor) remove(from, to int) {
	if from >= to {
		return
	}
	e.undo.keep(e.draft.raw, e.at)
	e.draft.raw = e.draft.raw[:from] + e.draft.raw[to:]
	e.at = from
}

// typeRune inserts a typed character; a run of them is one undo step.
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
