//go:build unix

package repl

import "coder/internal/ui/lineedit"

// suggestions is the looking for what may complete what is being typed. It is done
// beside the loop, one look at a time, so that typing never waits for it.
type suggestions struct {
	found chan found // holds one
	busy  bool
	last  moment // that was looked for
	more  bool   // there may be more for it later
}

// moment is a draft in its line, with the cursor.
type moment struct {
	line   *lineedit.Editor
	draft  string
	cursor int
}

// found is what came of a look.
type found struct {
	of      moment
	start   int
	choices []lineedit.Choice
	more    bool
}

// suggest looks for what may complete the draft if it was typed just now.
func (r *REPL) suggest() {
	line := r.line()
	draft, cursor, typing := line.Typing()
	now := moment{line, draft, cursor}
	if !typing { // what is typed next may be the same, and is looked for anew
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

// offer shows what was found, or looks again if something was typed meanwhile.
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
