//go:build unix

package repl

import (
	"strings"
	"sync"

	"coder/internal/ui/lineedit"
)

// queue holds what was typed while a turn ran. The turn takes from it between
// its steps, so it is guarded.
type queue struct {
	mu     sync.Mutex // guards drafts
	drafts []lineedit.Draft
}

func (q *queue) add(d lineedit.Draft) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drafts = append(q.drafts, d)
}

// takeBack is the last draft, to be edited.
func (q *queue) takeBack() (lineedit.Draft, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.drafts) == 0 {
		return lineedit.Draft{}, false
	}
	d := q.drafts[len(q.drafts)-1]
	q.drafts = q.drafts[:len(q.drafts)-1]
	return d, true
}

// next is the first draft, to be run.
func (q *queue) next() (lineedit.Draft, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.drafts) == 0 {
		return lineedit.Draft{}, false
	}
	d := q.drafts[0]
	q.drafts = q.drafts[1:]
	return d, true
}

// takeWords is every draft before the first that is a command.
func (q *queue) takeWords() []lineedit.Draft {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.drafts) && !isCommand(q.drafts[n].Text()) {
		n++
	}
	words := q.drafts[:n:n]
	q.drafts = q.drafts[n:]
	return words
}

func isCommand(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!")
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.drafts) == 0
}

// takeAll empties the queue.
func (q *queue) takeAll() []lineedit.Draft {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.drafts
	q.drafts = nil
	return all
}

// labels are the drafts as a person sees them.
func (q *queue) labels() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []string
	for _, d := range q.drafts {
		all = append(all, d.String())
	}
	return all
}
