//go:build unix

package repl

import "coder/internal/ui/lineedit"

// suggestions searches for completions of the draft. It works beside the loop, one search at a time, so
// that typing never waits for it.
type suggestions struct {
	found chan found // buffers one
	busy  bool
	last  moment // the last search
	more  bool   // it may find more later
}

// moment is a draft with the cursor.
type moment struct {
	line   *lineedit.Editor
	draft  string
	cursor int
}

// found is the result of a search.
type found struct {
	of      moment
	start   int
	choices []lineedit.Choice
	more    bool
}

// suggest searches for completions of the draft if it was just typed.
func (r *REPL) suggest() {
	line := r.line()
	draft, cursor, typing := line.Typing()
	now := moment{line, draft, cursor}
	if !typing { // even the same text is searched for again
		r.suggested.last = moment{}
	}
	if r.Suggest == nil || r.suggested.busy || !typing || now == r.suggested.last && !r.suggested.more {
		return
	}
	r.suggested.last, r.suggested.more = now, false
	start, find := r.Suggest(draft, cursor)
	if find == nil {
		line.Offer(cursor, nil)
		return
	}
	r.suggested.busy = true
	r.looking.Go(func() {
		choices, more := find()
		r.suggested.found <- found{now, start, choices, more}
	})
}

// offer shows the completions, or searches again if the draft has changed.
func (r *REPL) offer(f found) {
	r.suggested.busy = false
	line := r.line()
	if draft, cursor, typing := line.Typing(); typing && f.of == (moment{line, draft, cursor}) {
		line.Offer(f.start, f.choices)
		r.suggested.more = f.more
		return
	}
	r.suggest()
}
