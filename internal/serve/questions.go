package serve

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"coder/internal/agent/inbox"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
)

// Questions holds a session's open question. The face, a page, a line from a
// program, or another process of the user may answer it: the first answer counts.
type Questions struct {
	app   *app.Workspace
	id    func() string  // the session's
	here  uip.Interactor // nil: no face
	said  func(text string)
	kept  bool // ask only recorded questions
	afar  bool // other processes may answer
	mu    sync.Mutex
	open  *question     // nil if there is none
	last  string        // the id of the last one opened
	ended bool          // no more answers
	news  chan struct{} // closed when the next one opens; nil if nobody waits
}

// question is an open question. It is open as soon as it is
// shown, because its answer may come before anybody waits for it.
type question struct {
	uip.Request
	reply    chan uip.Response // buffered for one answer
	answered bool
	from     string // the other process that answered, if any
}

// note opens a question when it is shown.
func (s *Questions) note(_ context.Context, r event.Record) error {
	if e, ok := r.Event.(event.InteractionRequested); ok {
		s.put(e.Request)
	}
	return nil
}

// put opens a question, unless it is already open.
func (s *Questions) put(q uip.Request) *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil && s.open.ID == q.ID {
		return s.open
	}
	asked := &question{Request: q, reply: make(chan uip.Response, 1)}
	s.open, s.last = asked, q.ID
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
	if s.ended {
		asked.give(uip.NoAnswer(q), "")
	}
	return asked
}

// give answers a question, and reports whether it was still unanswered.
func (q *question) give(a uip.Response, from string) bool {
	if q.answered {
		return false
	}
	q.answered, q.from = true, from
	q.reply <- a
	return true
}

func (s *Questions) give(q *question, a uip.Response, from string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.give(a, from)
}

// close discards a question that nobody waits for.
func (s *Questions) close(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == q {
		s.open = nil
	}
}

// Open returns the question that waits for an answer, if any.
func (s *Questions) Open() (uip.Request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil || s.open.answered {
		return uip.Request{}, false
	}
	return s.open.Request, true
}

// Answer answers the question named in a, and reports whether it was unanswered.
// A question is recorded a moment before it opens; Answer waits for that.
func (s *Questions) Answer(ctx context.Context, a uip.Response) bool {
	tired := time.NewTimer(askTime)
	defer tired.Stop()
	for {
		done, news := s.offer(a)
		if news == nil {
			return done
		}
		select {
		case <-news:
		case <-tired.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// offer is Answer without waiting: if the question is not open yet, news is closed when the next one opens.
func (s *Questions) offer(a uip.Response) (done bool, news chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open != nil && s.open.ID == a.ID:
		return s.open.give(a, ""), nil
	case s.last == a.ID:
		return false, nil
	}
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return false, s.news
}

// End ends all questions without an answer.
func (s *Questions) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.open != nil {
		s.open.give(uip.NoAnswer(s.open.Request), "")
	}
}

// Ask opens a question and waits for the first answer.
func (s *Questions) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	asked := s.put(q)
	defer s.close(asked)
	if s.kept && !s.app.Store().OnRecord() {
		return uip.NoAnswer(q), nil
	}
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	ended := ctx.Done()
	failed := make(chan error, 1)
	var work sync.WaitGroup
	if s.here != nil {
		ended = nil // the face decides how it ends
		work.Go(func() {
			if a, err := s.here.Ask(asking, q); err != nil {
				failed <- err
			} else {
				s.give(asked, a, "")
			}
		})
	}
	if s.afar {
		work.Go(func() { s.takeLetters(asking, asked) })
	}
	var err error
	select {
	case a := <-asked.reply:
		withdraw()
		work.Wait()
		if asked.from != "" {
			s.said(fmt.Sprintf("answered elsewhere: %s (%s)", given(q, a), asked.from))
		}
		return a, nil
	case err = <-failed:
	case <-ended:
		err = ctx.Err()
	}
	withdraw()
	work.Wait()
	select {
	case a := <-asked.reply: // an answer came first
		return a, nil
	default:
		return uip.Response{}, err
	}
}

// takeLetters accepts an answer from another process, until ctx ends.
func (s *Questions) takeLetters(ctx context.Context, asked *question) {
	slot, err := s.app.Store().Inbox().Open(s.app.AsKept(asked.Request), inbox.Place{Root: s.app.Root, Session: s.id()})
	if err != nil {
		return // answers here still work
	}
	defer slot.Close()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
		letter, ok := slot.Next()
		switch {
		case !ok:
		case uip.Check(asked.Request, letter.Answer) != nil:
			letter.Refuse()
		case ctx.Err() != nil:
			letter.PutBack() // for the next process that asks
			return
		case !s.give(asked, letter.Answer, letter.From):
			letter.Late()
			return
		default:
			return
		}
	}
}

// maxGiven limits the length of an answer on a line.
const maxGiven = 400

// given returns an answer as one line.
func given(q uip.Request, a uip.Response) string {
	if a.Option == "" && len(a.Parts) > 0 {
		var parts []string
		for _, part := range q.Parts {
			parts = append(parts, given(part, a.Part(part)))
		}
		return strings.Join(parts, ", ")
	}
	for _, o := range q.Options {
		if o.ID == a.Option && o.Label != "" {
			return sanitize.Line(o.Label, maxGiven)
		}
	}
	return sanitize.Line(cmp.Or(a.Option, a.Input), maxGiven)
}
