//go:build unix

package repl

import (
	"slices"
	"strings"
	"sync"

	"coder/internal/ui/lineedit"
)

// queue holds the messages typed during a turn. It has a lock because the turn reads messages from it
// between its steps.
type queue struct {
	mu     sync.Mutex // guards drafts
	drafts []lineedit.Draft
}

func (q *queue) add(d lineedit.Draft) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drafts = append(q.drafts, d)
}

// takeLast removes and returns the last draft, to be edited, if want accepts it.
func (q *queue) takeLast(want func(d lineedit.Draft) bool) (lineedit.Draft, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.drafts) == 0 || !want(q.drafts[len(q.drafts)-1]) {
		return lineedit.Draft{}, false
	}
	d := q.drafts[len(q.drafts)-1]
	q.drafts = q.drafts[:len(q.drafts)-1]
	return d, true
}

// takeFirst removes and returns the first drafts, as far as want accepts them.
func (q *queue) takeFirst(want func(i int, d lineedit.Draft) bool) []lineedit.Draft {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.drafts) && want(n, q.drafts[n]) {
		n++
	}
	taken := q.drafts[:n:n]
	q.drafts = q.drafts[n:]
	return taken
}

// What may be taken: one draft, all, those before the first that is a command, or
// of these what a turn that runs takes.
func acceptFirst(i int, _ lineedit.Draft) bool { return i == 0 }
func acceptAll(int, lineedit.Draft) bool       { return true }
func isSteering(i int, d lineedit.Draft) bool  { return isPromptDraft(i, d) && len(d.Pictures()) == 0 }
func isPromptDraft(_ int, d lineedit.Draft) bool {
	text := strings.TrimSpace(d.Text())
	return !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "!")
}

// texts returns the text of the drafts.
func (q *queue) texts() (all []string) {
	for _, d := range q.list() {
		all = append(all, d.DiskText())
	}
	return all
}

// list returns the drafts.
func (q *queue) list() []lineedit.Draft {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.drafts)
}
