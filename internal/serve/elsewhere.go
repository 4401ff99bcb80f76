package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"coder/internal/agent/inbox"
	"coder/internal/agent/supervisor"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

const (
	// pollTime is how often letters are looked for while a question is open.
	pollTime = 100 * time.Millisecond
	// askTime is how long a process may take from recording a question to waiting for its answer.
	askTime = 3 * time.Second
	// listenTime is how often a turn listens for what is said elsewhere, and after what time it
	// begins to: one that is over before has nothing to be stopped in.
	listenTime = 500 * time.Millisecond
)

// ErrElsewhere reports that another process goes on with an answer.
var ErrElsewhere = errors.New("another process continues with the answer")

// A Refusal says why a process that works in a session did not take what was said to it.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// HandOver gives the answer to q to the process that holds the session. The error is
// [ErrElsewhere] if it counted there. If that process ends first, nil says that
// the answer is on record here.
func HandOver(ctx context.Context, a *app.App, session string, q uip.Request, answer uip.Response) error {
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

// outcomeOf looks once at the state of an answer on its way.
func outcomeOf(ctx context.Context, sup *supervisor.Supervisor, session string, a uip.Response, letter *inbox.Letter) (done bool, err error) {
	err = sup.Answered(ctx, session, a.ID)
	state := inbox.Late
	if letter != nil {
		state = letter.State()
	}
	switch {
	case errors.Is(err, supervisor.ErrAnswered) && state == inbox.Taken:
		return true, ErrElsewhere
	case err != nil:
		return true, err
	case letter != nil && state == inbox.Refused:
		return true, Refusal("the process that asked did not accept the answer; coder tasks shows its current question")
	}
	var claimed *event.ClaimedError
	err = sup.Answer(ctx, session, a)
	return !errors.As(err, &claimed), err
}

// What a person can have a session do that another process works in.
const (
	ToSay  = "say"
	ToStop = "stop"
)

// slotOf is the question that is always open to the person in a session that is worked in: what
// is to be said, or whether it is to stop. It is answered by the same letters as any other.
func slotOf(root, session, what string) uip.Request {
	sum := sha256.Sum256([]byte(root + "\x00" + session))
	return uip.Request{ID: what + "_" + hex.EncodeToString(sum[:16]), Kind: uip.Input, Purpose: uip.RequestInfo, Display: uip.Display{Title: what}}
}

// Remote is what the person said to a session from another process.
type Remote struct {
	Text string
	Stop bool
	From string
}

// Listener takes what the person says to a session from other processes. The zero value takes
// nothing; close it.
type Listener struct {
	session string
	slots   map[string]*inbox.Slot
}

// Listen opens it for a session, if it is not open for it.
func (l *Listener) Listen(a *app.App, session string, to ...string) {
	if l.session == session || a.Options.Ephemeral || a.Home == "" {
		return
	}
	l.Close()
	l.session, l.slots = session, make(map[string]*inbox.Slot)
	for _, what := range to {
		if slot, err := a.Store().Remote().Open(slotOf(a.Root, session, what), inbox.Place{Root: a.Root, Session: session}); err == nil { // else it is said here alone
			l.slots[what] = slot
		}
	}
}

// Next is the next thing that was said, if there is one.
func (l *Listener) Next() (said Remote, ok bool) {
	for what, slot := range l.slots {
		if letter, ok := slot.Next(); ok {
			return Remote{Text: letter.Answer.Input, Stop: what == ToStop, From: letter.From}, true
		}
	}
	return said, false
}

// Close takes nothing any more.
func (l *Listener) Close() {
	for _, slot := range l.slots {
		slot.Close()
	}
	*l = Listener{}
}

// Stoppable is ctx until the person stops the turn from another process; over ends
// the listening.
func (h *Host) Stoppable(ctx context.Context, say func(string)) (turn context.Context, over func()) {
	turn, cancel := context.WithCancel(ctx)
	session := h.ID() // which another may follow
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var l Listener
		defer l.Close()
		tick := time.NewTicker(listenTime)
		defer tick.Stop()
		for {
			select {
			case <-turn.Done():
				return
			case <-tick.C:
			}
			l.Listen(h.App, session, ToStop)
			if said, ok := l.Next(); ok {
				say(fmt.Sprintf("stopped elsewhere (%s)", said.From))
				cancel()
			}
		}
	}()
	return turn, func() { cancel(); <-ended }
}

// Listens reports whether the process that works in a session can be told something.
func Listens(a *app.App, session, what string) bool {
	_, ok := a.Store().Remote().Where(slotOf(a.Root, session, what).ID)
	return ok
}

// Tell tells the process that works in a session to say something, or to stop.
func Tell(ctx context.Context, a *app.App, session, what, words string) error {
	q := slotOf(a.Root, session, what)
	said := uip.Response{ID: q.ID, Input: words, Author: event.ActorUser, Via: "web"}
	letter, err := a.Store().Remote().Post(inbox.Place{Root: a.Root, Session: session}, q, said, fmt.Sprintf("coder web, process %d", os.Getpid()), app.NewID("a"))
	if errors.Is(err, inbox.ErrNobodyWaits) {
		return Refusal("the process running this session accepts only answers from here; send or stop it there. Nothing was changed")
	}
	if err != nil {
		return err
	}
	defer letter.Withdraw()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	tired := time.NewTimer(askTime)
	defer tired.Stop()
	notTaken := Refusal("the process running this session did not accept it; nothing was changed")
	for {
		switch letter.State() {
		case inbox.Taken:
			return nil
		case inbox.Refused:
			return notTaken
		}
		select {
		case <-poll.C:
		case <-tired.C:
			return notTaken
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
