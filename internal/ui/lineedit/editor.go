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
	maxDraft        = 1 << 20  // bytes typed into one draft
	maxInline       = 4 << 10  // bytes of a one-line paste inserted as typed text
	maxHistory      = 1000     // drafts in the history
	maxHistoryBytes = 64 << 20 // bytes of all drafts in the history
	maxKills        = 32
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
	// OnReplaced, which may be nil, is called with the draft that a search result replaces.
	OnReplaced func(Draft)
	// IsQuestion makes this the line of a question: it saves no history, and Up and Down only move within it.
	IsQuestion bool
	// Vim has the keys be those of vim: a draft begins in insert mode, Esc leads to normal mode.
	Vim bool
	// MenuRows is how many choices are shown at a time; 0 means eight.
	MenuRows int
	// MaxChoices is the limit of choices: a list that reaches it is incomplete, so its hidden choices are not
	// counted. 0 means no limit.
	MaxChoices int
	// SearchLabel, NotFoundLabel and NoOtherLabel are the labels of the history search. Empty ones are English.
	SearchLabel, NotFoundLabel, NoOtherLabel string

	draft      Draft // may hold pastes that raw no longer contains
	cursor     int   // the cursor, a byte offset into draft.raw
	goalColumn int   // the column that Up and Down aim at; -1 if none
	width      int   // as of the last View
	undo       undoStack
	kills      []Draft
	yankedSpan span    // text that Ctrl+Y inserted, until another key
	lastKind   keyKind // of the last key

	vim         vim
	history     history
	search      *search
	menu        *menu
	mayComplete bool // the last key typed: completions may be offered
	closedStart int  // start of the text without offers, plus one; 0 if none
}

// keyKind groups keys whose repetition has a meaning.
type keyKind uint8

const (
	keyOther keyKind = iota
	keyTyping
	keyKilling
	keyYanking
	keyClimbing
)

type span struct{ from, to int }

// Action is what a key asks the caller to do.
type Action struct {
	Kind  ActionKind
	Text  string // for Submit: the whole text, pastes in full
	Draft Draft  // for Submit: the same, to show or edit again
}

// ActionKind is the kind of an action.
type ActionKind uint8

// Kinds of actions. The zero Kind only asks for a redraw.
const (
	None       ActionKind = iota
	Submit                // Enter: the draft is finished and the editor empty
	Clear                 // Esc: the draft was discarded
	Cancel                // Esc with nothing to discard
	EOF                   // Ctrl+D on an empty draft
	Interrupt             // Ctrl+C
	Suspend               // Ctrl+Z
	Redraw                // Ctrl+L
	Edit                  // Ctrl+G: edit Text elsewhere, then SetText
	ToggleMode            // Tab on an empty draft
	CycleMode             // Shift+Tab
)

// HandleKey handles a key press.
func (e *Editor) HandleKey(k Key) Action {
	if e.search != nil && e.handleSearchKey(k) || e.menu != nil && e.handleMenuKey(k) {
		return Action{}
	}
	was := e.lastKind
	e.lastKind = keyOther
	var a Action
	if e.Vim && e.handleVimKey(k, was) {
	} else if do, bound := keyBindings[k]; bound {
		a = do(e, was)
	} else if k.Name == Char && k.Mod&^Shift == 0 && k.Rune >= ' ' {
		e.typeRune(k.Rune)
	}
	if e.lastKind != keyClimbing {
		e.goalColumn = -1
	}
	if e.lastKind != keyTyping {
		e.undo.typingRun = false
	}
	if e.IsNormalMode() {
		e.clampCursor()
	}
	e.mayComplete = changesText(k) && !e.IsNormalMode()
	if e.cursor < e.closedStart { // the closed text is gone
		e.closedStart = 0
	}
	if e.menu != nil && !e.menu.unrequested && changesText(k) { // the draft under the menu has changed
		e.menu = nil
		if start, choices := e.findChoices(); len(choices) > 0 && !e.IsEmpty() {
			e.menu = &menu{start: start, choices: choices}
		}
	}
	return a
}

// Paste inserts pasted text at the cursor. Text of several lines, or a very long line, becomes one unit;
// a single line is inserted as if typed.
func (e *Editor) Paste(text string) {
	text = strings.ToValidUTF8(normalizeLineEnds(text), "\uFFFD")
	e.closeModes()
	e.lastKind = keyOther
	e.goalColumn = -1
	if countLines(text) == 1 && len(text) <= maxInline {
		e.insertStep(strings.TrimSuffix(cleanTyped(text), "\n"))
		return
	}
	if e.draft.memorySize()+len(text) > maxHistoryBytes { // drop the pastes that only undo needs
		e.draft, e.undo = e.Draft(), undoStack{}
	}
	if r := e.draft.storePaste(newPaste(text)); r >= 0 {
		e.insertStep(string(r))
	}
}

// Text returns the whole draft, pastes in full.
func (e *Editor) Text() string { return e.Draft().Text() }

// HasOverlay reports whether Esc would close an open search or menu.
func (e *Editor) HasOverlay() bool { return e.search != nil || e.menu != nil }

// HandlesEsc reports whether Esc means something here: it closes what is open, or leaves vim's insert mode.
func (e *Editor) HandlesEsc() bool { return e.HasOverlay() || e.Vim && !e.vim.normal && !e.IsEmpty() }

// IsEmpty reports whether the draft is empty.
func (e *Editor) IsEmpty() bool { return e.draft.raw == "" }

// Draft returns the current draft.
func (e *Editor) Draft() Draft { return e.draft.withRaw(e.draft.raw) }

// SetDraft replaces the draft, as a step that can be undone, and moves the cursor to its end.
func (e *Editor) SetDraft(d Draft) {
	e.closeModes()
	e.replace(d)
}

// SetText replaces the draft with text, as after editing it elsewhere. Text too long to edit here
// becomes a paste. Text equal to the draft's changes nothing.
func (e *Editor) SetText(text string) {
	text = strings.ToValidUTF8(normalizeLineEnds(text), "\uFFFD")
	switch d := e.Draft().WithText(text); {
	case text == e.Text():
	case len(d.Pictures()) > 0:
		e.SetDraft(d)
	default:
		e.SetFolded(text, nil)
	}
}

// SetFolded replaces the draft with text in which pastes are units, as when they were pasted.
func (e *Editor) SetFolded(text string, pastes []string) {
	d := NewDraft(text, pastes)
	if len(d.raw) > maxInline*4 {
		d = NewDraft(cleanTyped(text), []string{cleanTyped(text)})
	}
	e.SetDraft(d)
}

// Reset empties the draft and its editing state; history stays.
func (e *Editor) Reset() {
	e.closeModes()
	e.closedStart = 0
	e.draft, e.cursor, e.goalColumn = Draft{}, 0, -1
	e.undo = undoStack{}
	e.vim = vim{lastChange: e.vim.lastChange}
	e.lastKind = keyOther
	e.history.reset()
}

func (e *Editor) closeModes() {
	e.search, e.menu, e.mayComplete = nil, nil, false
}

// replace replaces the whole draft with d.
func (e *Editor) replace(d Draft) {
	e.undo.save(e.draft.raw, e.cursor)
	e.draft.raw = e.draft.importPastes(d)
	e.cursor = len(e.draft.raw)
	e.lastKind, e.goalColumn = keyOther, -1
}

// insertStep inserts s at the cursor as one undo step.
func (e *Editor) insertStep(s string) {
	if s == "" || len(e.draft.raw)+len(s) > maxDraft {
		return
	}
	e.undo.save(e.draft.raw, e.cursor)
	e.insert(s)
}

func (e *Editor) insert(s string) {
	e.draft.raw = e.draft.raw[:e.cursor] + s + e.draft.raw[e.cursor:]
	e.cursor += len(s)
}

// remove deletes [from, to) as one undo step.
func (e *Editor) remove(from, to int) {
	if from >= to {
		return
	}
	e.undo.save(e.draft.raw, e.cursor)
	e.draft.raw = e.draft.raw[:from] + e.draft.raw[to:]
	e.cursor = from
}

// typeRune inserts a typed character; a run of them is one undo step.
func (e *Editor) typeRune(r rune) {
	s := cleanTyped(string(r))
	if len(e.draft.raw)+len(s) > maxDraft {
		return
	}
	if !e.undo.typingRun {
		e.undo.save(e.draft.raw, e.cursor)
	}
	e.undo.typingRun = r != ' '
	e.insert(s)
	e.lastKind = keyTyping
}
