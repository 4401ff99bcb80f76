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
	// pollTime is the interval between checks for letters while a question is open.
	pollTime = 100 * time.Millisecond
	// askTime is how long a process may take from recording a question to waiting for its answer.
	askTime = 3 * time.Second
	// listenTime is the interval at which a turn checks for messages from other
	// processes, and the delay before the first check: a shorter turn needs no stopping.
	listenTime = 500 * time.Millisecond
)

// ErrElsewhere reports that another process continues with an answer.
var ErrElsewhere = errors.New("another process continues with the answer")

// Refusal says why the process that runs a session did not accept a message.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// HandOver sends the answer to q to the process that holds the session. The error is [ErrElsewhere]
// if it counted there. If that process ends first, nil means that the answer is recorded here.
func HandOver(ctx context.Context, a *app.Workspace, session string, q uip.Request, answer uip.Response) error {
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

// outcomeOf checks once whether an answer has arrived.
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

// What the user can send to a session that another process runs.
const (
	ToSay  = "say"
	ToStop = "stop"
)

// slotOf returns the question that is always open to the user in a running session: what
// to say, or whether to stop. The same letters as for any other question answer it.
func slotOf(root, session, what string) uip.Request {
	sum := sha256.Sum256([]byte(root + "\x00" + session))
	return uip.Request{ID: what + "_" + hex.EncodeToString(sum[:16]), Kind: uip.Input, Purpose: uip.RequestInfo, Display: uip.Display{Title: what}}
}

// Remote is a message from the user in another process.
type Remote struct {
	Text string
	Stop bool
	From string
}

// Listener receives the user's messages to a session from other
// processes. The zero value receives nothing. Close it after use.
type Listener struct {
	session string
	slots   map[string]*inbox.Slot
}

// Listen starts to receive messages for a session, unless l already does.
func (l *Listener) Listen(a *app.Workspace, session string, to ...string) {
	if l.session == session || a.Options.Ephemeral || a.Home == "" {
		return
	}
	l.Close()
	l.session, l.slots = session, make(map[string]*inbox.Slot)
	for _, what := range to {
		if slot, err := a.Store().Remote().Open(slotOf(a.Root, session, what), inbox.Place{Root: a.Root, Session: session}); err == nil { // otherwise only this process accepts messages
			l.slots[what] = slot
		}
	}
}

// Next returns the next message, if any.
func (l *Listener) Next() (said Remote, ok bool) {
	for what, slot := range l.slots {
		if letter, ok := slot.Next(); ok {
			return Remote{Text: letter.Answer.Input, Stop: what == ToStop, From: letter.From}, true
		}
	}
	return said, false
}

// Close stops receiving messages.
func (l *Listener) Close() {
	for _, slot := range l.slots {
		slot.Close()
	}
	*l = Listener{}
}

// Stoppable returns a context that ends when the user stops
// the turn from another process; over stops listening.
func (h *Host) Stoppable(ctx context.Context, say func(string)) (turn context.Context, over func()) {
	turn, cancel := context.WithCancel(ctx)
	session := h.ID() // the turn may switch sessions
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

// Listens reports whether the process that runs a session accepts messages.
func Listens(a *app.Workspace, session, what string) bool {
	_, ok := a.Store().Remote().Where(slotOf(a.Root, session, what).ID)
	return ok
}

// Tell sends a message or a stop to the process that runs a session.
func Tell(ctx context.Context, a *app.Workspace, session, what, words string) error {
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
