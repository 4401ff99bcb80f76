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
	app           *app.Workspace
	id            func() string  // the session's
	local         uip.Interactor // nil: no face
	report        func(text string)
	recordedOnly  bool // ask only recorded questions
	remoteAnswers bool // other processes may answer
	mu            sync.Mutex
	current       *question     // nil if there is none
	lastID        string        // the id of the last one opened
	ended         bool          // no more answers
	opened        chan struct{} // closed when the next one opens; nil if nobody waits
}

// question is an open question. It is open as soon as it is
// shown, because its answer may come before anybody waits for it.
type question struct {
	uip.Request
	reply      chan uip.Response // buffered for one answer
	answered   bool
	answeredBy string // the other process that answered, if any
}

// handleRecord opens a question when it is shown.
func (s *Questions) handleRecord(_ context.Context, r event.Record) error {
	if e, ok := r.Event.(event.InteractionRequested); ok {
		s.openQuestion(e.Request)
	}
	return nil
}

// openQuestion opens a question, unless it is already open.
func (s *Questions) openQuestion(q uip.Request) *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.ID == q.ID {
		return s.current
	}
	asked := &question{Request: q, reply: make(chan uip.Response, 1)}
	s.current, s.lastID = asked, q.ID
	if s.opened != nil {
		close(s.opened)
		s.opened = nil
	}
	if s.ended {
		asked.answer(uip.NoAnswer(q), "")
	}
	return asked
}

// answer answers a question, and reports whether it was still unanswered.
func (q *question) answer(a uip.Response, from string) bool {
	if q.answered {
		return false
	}
	q.answered, q.answeredBy = true, from
	q.reply <- a
	return true
}

func (s *Questions) answerQuestion(q *question, a uip.Response, from string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return q.answer(a, from)
}

// discard discards a question that nobody waits for.
func (s *Questions) discard(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == q {
		s.current = nil
	}
}

// Current returns the question that waits for an answer, if any.
func (s *Questions) Current() (uip.Request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.answered {
		return uip.Request{}, false
	}
	return s.current.Request, true
}

// Answer answers the question named in a, and reports whether it was unanswered.
// A question is recorded a moment before it opens; Answer waits for that.
func (s *Questions) Answer(ctx context.Context, a uip.Response) bool {
	tired := time.NewTimer(askTimeout)
	defer tired.Stop()
	for {
		done, news := s.tryAnswer(a)
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

// tryAnswer is Answer without waiting: if the question is not open yet, news is closed when the next one opens.
func (s *Questions) tryAnswer(a uip.Response) (done bool, news chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.current != nil && s.current.ID == a.ID:
		return s.current.answer(a, ""), nil
	case s.lastID == a.ID:
		return false, nil
	}
	if s.opened == nil {
		s.opened = make(chan struct{})
	}
	return false, s.opened
}

// End ends all questions without an answer.
func (s *Questions) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.current != nil {
		s.current.answer(uip.NoAnswer(s.current.Request), "")
	}
}

// Ask opens a question and waits for the first answer.
func (s *Questions) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	asked := s.openQuestion(q)
	defer s.discard(asked)
	if s.recordedOnly && !s.app.Store().IsFullyRecorded() {
		return uip.NoAnswer(q), nil
	}
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	ended := ctx.Done()
	failed := make(chan error, 1)
	var work sync.WaitGroup
	if s.local != nil {
		ended = nil // the face decides how it ends
		work.Go(func() {
			if a, err := s.local.Ask(asking, q); err != nil {
				failed <- err
			} else {
				s.answerQuestion(asked, a, "")
			}
		})
	}
	if s.remoteAnswers {
		work.Go(func() { s.receiveAnswer(asking, asked) })
	}
	var err error
	select {
	case a := <-asked.reply:
		withdraw()
		work.Wait()
		if asked.answeredBy != "" {
			s.report(fmt.Sprintf("answered elsewhere: %s (%s)", answerLine(q, a), asked.answeredBy))
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

// receiveAnswer accepts an answer from another process, until ctx ends.
func (s *Questions) receiveAnswer(ctx context.Context, asked *question) {
	slot, err := s.app.Store().Inbox().Open(s.app.MaskQuestion(asked.Request),
		inbox.Origin{Root: s.app.Root, Session: s.id()})
	if err != nil {
		return // answers here still work
	}
	defer slot.Close()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
		letter, ok := slot.Accept()
		switch {
		case !ok:
		case uip.CheckResponse(asked.Request, letter.Answer) != nil:
			letter.MarkRefused()
		case ctx.Err() != nil:
			letter.Requeue() // for the next process that asks
			return
		case !s.answerQuestion(asked, letter.Answer, letter.From):
			letter.MarkLate()
			return
		default:
			return
		}
	}
}

// maxAnswerLine limits the length of an answer on a line.
const maxAnswerLine = 400

// answerLine returns an answer as one line.
func answerLine(q uip.Request, a uip.Response) string {
	if a.Option == "" && len(a.Parts) > 0 {
		var parts []string
		for _, part := range q.Parts {
			parts = append(parts, answerLine(part, a.PartAnswer(part)))
		}
		return strings.Join(parts, ", ")
	}
	for _, o := range q.Options {
		if o.ID == a.Option && o.Label != "" {
			return sanitize.Line(o.Label, maxAnswerLine)
		}
	}
	return sanitize.Line(cmp.Or(a.Option, a.Input), maxAnswerLine)
}
