//go:build unix

package repl

import "coder/internal/ui/lineedit"

// completionSearch searches for completions of the draft. It works beside the loop, one search at a time, so
// that typing never waits for it.
type completionSearch struct {
	results    chan completion // buffers one
	searching  bool
	lastQuery  draftState // the last search
	incomplete bool       // it may find more later
}

// draftState is a draft with the cursor.
type draftState struct {
	line   *lineedit.Editor
	draft  string
	cursor int
}

// completion is the result of a search.
type completion struct {
	state      draftState
	start      int
	choices    []lineedit.Choice
	incomplete bool
}

// searchCompletions searches for completions of the draft if it was just typed.
func (r *REPL) searchCompletions() {
	line := r.activeEditor()
	draft, cursor, typing := line.CompletionContext()
	now := draftState{line, draft, cursor}
	if !typing { // even the same text is searched for again
		r.completions.lastQuery = draftState{}
	}
	if r.Suggest == nil || r.completions.searching || !typing || now == r.completions.lastQuery &&
		!r.completions.incomplete {
		return
	}
	r.completions.lastQuery, r.completions.incomplete = now, false
	start, find := r.Suggest(draft, cursor)
	if find == nil {
		line.ShowMenu(cursor, nil)
		return
	}
	r.completions.searching = true
	r.showCommands.Go(func() {
		choices, more := find()
		r.completions.results <- completion{now, start, choices, more}
	})
}

// showCompletions shows the completions, or searches again if the draft has changed.
func (r *REPL) showCompletions(f completion) {
	r.completions.searching = false
	line := r.activeEditor()
	if draft, cursor, typing := line.CompletionContext(); typing && f.state == (draftState{line, draft, cursor}) {
		line.ShowMenu(f.start, f.choices)
		r.completions.incomplete = f.incomplete
		return
	}
	r.searchCompletions()
}
