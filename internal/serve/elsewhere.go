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
	// pollInterval is the interval between checks for letters while a question is open.
	pollInterval = 100 * time.Millisecond
	// askTimeout is how long a process may take from recording a question to waiting for its answer.
	askTimeout = 3 * time.Second
	// listenInterval is the interval at which a turn checks for messages from other
	// processes, and the delay before the first check: a shorter turn needs no stopping.
	listenInterval = 500 * time.Millisecond
)

// ErrAnsweredElsewhere reports that another process continues with an answer.
var ErrAnsweredElsewhere = errors.New("another process continues with the answer")

// Refusal says why the process that runs a session did not accept a message.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// ForwardAnswer sends the answer to q to the process that holds the session. The error is [ErrAnsweredElsewhere]
// if it counted there. If that process ends first, nil means that the answer is recorded here.
func ForwardAnswer(ctx context.Context, a *app.Workspace, session string, q uip.Request, answer uip.Response) error {
	from := fmt.Sprintf("coder respond, process %d", os.Getpid())
	if answer.AnsweredBy != "" {
		from = fmt.Sprintf("coder web, process %d", os.Getpid())
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	tired := time.NewTimer(askTimeout)
	defer tired.Stop()
	var letter *inbox.Letter
	for {
		if letter == nil {
			l, err := a.Store().Inbox().Post(inbox.Origin{Root: a.Root, Session: session}, q, answer, from, app.NewID("a"))
			if err != nil && !errors.Is(err, inbox.ErrNotWaiting) {
				return err
			}
			if err == nil {
				letter = l
				defer letter.Withdraw()
			}
		}
		done, err := checkOutcome(ctx, a.Store().Supervisor, session, answer, letter)
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

// checkOutcome checks once whether an answer has arrived.
func checkOutcome(ctx context.Context, sup *supervisor.Supervisor, session string, a uip.Response,
	letter *inbox.Letter) (done bool, err error) {
	err = sup.CheckAnswered(ctx, session, a.ID)
	state := inbox.StateLate
	if letter != nil {
		state = letter.State()
	}
	switch {
	case errors.Is(err, supervisor.ErrAnswered) && state == inbox.StateAccepted:
		return true, ErrAnsweredElsewhere
	case err != nil:
		return true, err
	case letter != nil && state == inbox.StateRefused:
		return true, Refusal("the process that asked did not accept the answer; coder tasks shows its current question")
	}
	var claimed *event.ClaimedError
	err = sup.Answer(ctx, session, a)
	return !errors.As(err, &claimed), err
}

// What the user can send to a session that another process runs.
const (
	MessageSlot = "say"
	StopSlot    = "stop"
)

// slotRequest returns the question that is always open to the user in a running session: what
// to say, or whether to stop. The same letters as for any other question answer it.
func slotRequest(root, session, what string) uip.Request {
	sum := sha256.Sum256([]byte(root + "\x00" + session))
	return uip.Request{ID: what + "_" + hex.EncodeToString(sum[:16]), Kind: uip.KindInput, Purpose: uip.PurposeRequestInfo,
		Display: uip.Display{Title: what}}
}

// RemoteMessage is a message from the user in another process.
type RemoteMessage struct {
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
		// otherwise only this process accepts messages
		if slot, err := a.Store().RemoteInbox().Open(slotRequest(a.Root, session, what),
			inbox.Origin{Root: a.Root, Session: session}); err == nil {
			l.slots[what] = slot
		}
	}
}

// Next returns the next message, if any.
func (l *Listener) Next() (said RemoteMessage, ok bool) {
	for what, slot := range l.slots {
		if letter, ok := slot.Accept(); ok {
			return RemoteMessage{Text: letter.Answer.Input, Stop: what == StopSlot, From: letter.From}, true
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

// WithRemoteStop returns a context that ends when the user stops
// the turn from another process; over stops listening.
func (h *Host) WithRemoteStop(ctx context.Context, say func(string)) (turn context.Context, over func()) {
	turn, cancel := context.WithCancel(ctx)
	session := h.ID() // the turn may switch sessions
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var l Listener
		defer l.Close()
		tick := time.NewTicker(listenInterval)
		defer tick.Stop()
		for {
			select {
			case <-turn.Done():
				return
			case <-tick.C:
			}
			l.Listen(h.App, session, StopSlot)
			if said, ok := l.Next(); ok {
				say(fmt.Sprintf("stopped elsewhere (%s)", said.From))
				cancel()
			}
		}
	}()
	return turn, func() { cancel(); <-ended }
}

// AcceptsMessages reports whether the process that runs a session accepts messages.
func AcceptsMessages(a *app.Workspace, session, what string) bool {
	_, ok := a.Store().RemoteInbox().FindOrigin(slotRequest(a.Root, session, what).ID)
	return ok
}

// SendMessage sends a message or a stop to the process that runs a session.
func SendMessage(ctx context.Context, a *app.Workspace, session, what, words string) error {
	q := slotRequest(a.Root, session, what)
	said := uip.Response{ID: q.ID, Input: words, Author: event.ActorUser, AnsweredBy: "web"}
	letter, err := a.Store().RemoteInbox().Post(inbox.Origin{Root: a.Root, Session: session}, q, said,
		fmt.Sprintf("coder web, process %d", os.Getpid()), app.NewID("a"))
	if errors.Is(err, inbox.ErrNotWaiting) {
		return Refusal("the process running this session accepts only answers from here; send or stop it there. Nothing was changed")
	}
	if err != nil {
		return err
	}
	defer letter.Withdraw()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	tired := time.NewTimer(askTimeout)
	defer tired.Stop()
	notTaken := Refusal("the process running this session did not accept it; nothing was changed")
	for {
		switch letter.State() {
		case inbox.StateAccepted:
			return nil
		case inbox.StateRefused:
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
