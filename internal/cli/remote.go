package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"coder/internal/agent/inbox"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/ui/browser"
	"coder/internal/ui/repl"
)

// What a person can have a session do that another process works in.
const (
	toSay  = "say"
	toStop = "stop"
)

// remoteSlot is the question that is always open to the person in a session that is
// worked in: what is to be said, or whether it is to stop. It is answered by the
// same letters as any other.
func remoteSlot(root, session, what string) uip.Request {
	sum := sha256.Sum256([]byte(root + "\x00" + session))
	return uip.Request{ID: what + "_" + hex.EncodeToString(sum[:16]), Kind: uip.Input, Purpose: uip.RequestInfo, Display: uip.Display{Title: what}}
}

// listener takes what the person says to a session from other processes of theirs. The
// zero value takes nothing; close it.
type listener struct {
	session string
	slots   map[string]*inbox.Slot
}

// listen opens it for a session, if it is not open for it.
func (l *listener) listen(a *app.App, session string, to ...string) {
	if l.session == session || a.Options.Ephemeral || a.Home == "" {
		return
	}
	l.close()
	l.session, l.slots = session, make(map[string]*inbox.Slot)
	for _, what := range to {
		if slot, err := a.Store().Remote().Open(remoteSlot(a.Root, session, what), inbox.Place{Root: a.Root, Session: session}); err == nil { // else it is said here alone
			l.slots[what] = slot
		}
	}
}

// next is the next thing that was said, if there is one.
func (l *listener) next() (said repl.Remote, ok bool) {
	for what, slot := range l.slots {
		if letter, ok := slot.Next(); ok {
			return repl.Remote{Text: letter.Answer.Input, Stop: what == toStop, From: letter.From}, true
		}
	}
	return said, false
}

func (l *listener) close() {
	for _, slot := range l.slots {
		slot.Close()
	}
	*l = listener{}
}

// listenTime is how often a run without a terminal listens, and after what time it
// begins to: one that is over before has nothing to be stopped in.
const listenTime = 500 * time.Millisecond

// stoppable is ctx until the person stops the turn from another process; over ends
// the listening.
func (s *headless) stoppable(ctx context.Context, say func(string)) (turn context.Context, over func()) {
	turn, cancel := context.WithCancel(ctx)
	session := s.ID // which another may follow
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var l listener
		defer l.close()
		tick := time.NewTicker(listenTime)
		defer tick.Stop()
		for {
			select {
			case <-turn.Done():
				return
			case <-tick.C:
			}
			l.listen(s.app, session, toStop)
			if said, ok := l.next(); ok {
				say(fmt.Sprintf("stopped elsewhere (%s)", said.From))
				cancel()
			}
		}
	}()
	return turn, func() { cancel(); <-ended }
}

// listens reports whether the process that works in a session can be told something.
func listens(a *app.App, session, what string) bool {
	_, ok := a.Store().Remote().Where(remoteSlot(a.Root, session, what).ID)
	return ok
}

// sendRemote tells the process that works in a session to say something, or to stop.
func sendRemote(ctx context.Context, a *app.App, session, what, words string) error {
	q := remoteSlot(a.Root, session, what)
	said := uip.Response{ID: q.ID, Input: words, Author: event.ActorUser, Via: "web"}
	letter, err := a.Store().Remote().Post(inbox.Place{Root: a.Root, Session: session}, q, said, fmt.Sprintf("coder web, process %d", os.Getpid()), app.NewID("a"))
	if errors.Is(err, inbox.ErrNobodyWaits) {
		return &browser.Problem{Status: http.StatusConflict, Text: "the process that works in this session takes nothing from here but answers; say or stop it there. Nothing was changed"}
	}
	if err != nil {
		return asProblem(err)
	}
	defer letter.Withdraw()
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	tired := time.NewTimer(askTime)
	defer tired.Stop()
	for {
		switch letter.State() {
		case inbox.Taken:
			return nil
		case inbox.Refused:
			return &browser.Problem{Status: http.StatusConflict, Text: "the process that works in this session did not take it; nothing was changed"}
		}
		select {
		case <-poll.C:
		case <-tired.C:
			return &browser.Problem{Status: http.StatusConflict, Text: "the process that works in this session did not take it; nothing was changed"}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
