package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"coder/internal/agent/inbox"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// pollTime is how often letters are looked for while a question is open.
const pollTime = 100 * time.Millisecond

// remoteAnswers is someone to ask whose questions other processes may answer too.
// The first answer counts.
type remoteAnswers struct {
	app  *app.App
	here uip.Interactor
	say  func(string)  // tells whoever is here who answered
	id   func() string // of the session
}

// answerable lets questions to here be answered from other processes of this
// user too.
func answerable(a *app.App, here uip.Interactor, say func(string), session func() string) uip.Interactor {
	if a.Options.Ephemeral || a.Home == "" {
		return here // nothing another process could know the question by
	}
	return &remoteAnswers{a, here, say, session}
}

func (p *remoteAnswers) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	open, err := p.app.Store().Inbox().Open(p.app.AsKept(q), inbox.Place{Root: p.app.Root, Session: p.id()})
	if err != nil {
		return p.here.Ask(ctx, q)
	}
	defer open.Close()
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	type reply struct {
		uip.Response
		err error
	}
	here := make(chan reply, 1)
	go func() {
		a, err := p.here.Ask(asking, q)
		here <- reply{a, err}
	}()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		select {
		case r := <-here:
			return r.Response, r.err
		case <-poll.C:
		}
		letter, ok := open.Next()
		if !ok {
			continue
		}
		if uip.Check(q, letter.Answer) != nil {
			letter.Refuse()
			continue
		}
		withdraw()
		switch r := <-here; {
		case r.err == nil:
			letter.Late()
			return r.Response, nil
		case ctx.Err() != nil || !errors.Is(r.err, context.Canceled):
			letter.PutBack() // for whoever asks again
			return r.Response, r.err
		}
		p.say(fmt.Sprintf("answered elsewhere: %s (%s)", given(q, letter.Answer), letter.From))
		return letter.Answer, nil
	}
}

// given is what an answer says, on a line.
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
			return oneLine(o.Label)
		}
	}
	return oneLine(cmp.Or(a.Option, a.Input))
}

// onRecord puts to person what is on the disk. Nobody could answer the rest from
// elsewhere: questions are found in what is kept.
func onRecord(store *app.Store, person uip.Interactor) uip.Interactor {
	return uip.Func(func(ctx context.Context, q uip.Request) (uip.Response, error) {
		if !store.OnRecord() {
			return uip.NoAnswer(q), nil
		}
		return person.Ask(ctx, q)
	})
}

// waiter is someone to ask in a run without a terminal who lets the question
// wait for an answer from elsewhere.
type waiter struct {
	program context.Context // ends when the program is to end
	say     func(string)
	asking  atomic.Bool // a question is open; one that is left open stays so
}

// Emit learns of a question from the moment it is shown: who reads it may end
// the program before Ask is reached.
func (w *waiter) Emit(_ context.Context, r event.Record) error {
	switch r.Event.(type) {
	case event.InteractionRequested:
		w.asking.Store(true)
	case event.InteractionResponded:
		w.asking.Store(false)
	}
	return nil
}

// Ask waits. A program that is to end leaves the question open.
func (w *waiter) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	w.asking.Store(true) // also for one that is asked again
	w.say(parkedHint(&uip.Waiting{Request: q}))
	select {
	case <-ctx.Done():
		return uip.Response{}, ctx.Err()
	case <-w.program.Done():
		return uip.Response{}, uip.ErrParked
	}
}

// turn is the context of a turn: the end of the program ends it, save where a
// question is open.
func (w *waiter) turn(ctx context.Context) (context.Context, func()) {
	if w == nil {
		return ctx, func() {}
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !w.asking.Load() {
			cancel()
		}
	})
	return inner, func() { stop(); cancel() }
}

// errElsewhere reports that another process goes on with the answer.
var errElsewhere = errors.New("another process goes on with the answer")

// askTime is how long a process that holds a session may take from
// recording a question to waiting for its answer.
const askTime = 3 * time.Second

// handOver gives the answer to q to the process that holds the session. The error is
// errElsewhere if it counted there. If that process ends first, nil says that
// the answer is on record here.
func handOver(ctx context.Context, a *app.App, session string, q uip.Request, answer uip.Response) error {
	from := fmt.Sprintf("coder respond, process %d", os.Getpid())
	if answer.Via != "" {
		from = fmt.Sprintf("coder web, process %d", os.Getpid())
	}
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	tired := time.NewTimer(askTime)
	defer tired.Stop()
	var letter *inbox.Letter
	for {
		if letter == nil {
			l, err := a.Store().Inbox().Post(inbox.Place{Root: a.Root, Session: session}, q, answer, from, app.NewID("a"))
			if err != nil && !errors.Is(err, inbox.ErrNobodyWaits) {
				return err
			}
			if err == nil {
				letter = l
				defer letter.Withdraw()
			}
		}
		done, err := outcomeOf(ctx, a.Store().Records, session, answer, letter)
		if done {
			return err
		}
		select {
		case <-poll.C:
		case <-tired.C:
			if letter == nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// outcomeOf looks once at what became of an answer on its way.
func outcomeOf(ctx context.Context, sup *supervisor.Supervisor, session string, a uip.Response, letter *inbox.Letter) (done bool, err error) {
	err = sup.Answered(ctx, session, a.ID)
	state := inbox.Late
	if letter != nil {
		state = letter.State()
	}
	switch {
	case errors.Is(err, supervisor.ErrAnswered) && state == inbox.Taken:
		return true, errElsewhere
	case err != nil:
		return true, err
	case letter != nil && state == inbox.Refused:
		return true, inputf("the process that asked did not take the answer; coder tasks shows what it asks now")
	}
	var claimed *event.ClaimedError
	err = sup.Answer(ctx, session, a)
	return !errors.As(err, &claimed), err
}
