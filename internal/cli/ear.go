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

// standing is the question that is always open to the person in a session that is
// worked in: what is to be said, or whether it is to stop. It is answered by the
// same letters as any other.
func standing(root, session, what string) uip.Request {
	sum := sha256.Sum256([]byte(root + "\x00" + session))
	return uip.Request{ID: what + "_" + hex.EncodeToString(sum[:16]), Kind: uip.Input, Purpose: uip.RequestInfo, Display: uip.Display{Title: what}}
}

// ear hears what the person says to a session from other processes of theirs. The
// zero value hears nothing; close it.
type ear struct {
	session string
	slots   map[string]*inbox.Slot
}

// listen opens the ear for a session, if it is not open for it.
func (e *ear) listen(a *app.App, session string, to ...string) {
	if e.session == session || a.Options.Ephemeral || a.Home == "" {
		return
	}
	e.close()
	e.session, e.slots = session, make(map[string]*inbox.Slot)
	for _, what := range to {
		if slot, err := a.Store().Ears().Open(standing(a.Root, session, what), inbox.Place{Root: a.Root, Session: session}); err == nil { // else it is said here alone
			e.slots[what] = slot
		}
	}
}

// next is the next thing that was said, if there is one.
func (e *ear) next() (said repl.Heard, ok bool) {
	for what, slot := range e.slots {
		if letter, ok := slot.Next(); ok {
			return repl.Heard{Text: letter.Answer.Input, Stop: what == toStop, From: letter.From}, true
		}
	}
	return said, false
}

func (e *ear) close() {
	for _, slot := range e.slots {
		slot.Close()
	}
	*e = ear{}
}

// hearTime is how often a run without a terminal listens, and after what time it
// begins to: one that is over before has nothing to be stopped in.
const hearTime = 500 * time.Millisecond

// stoppable is ctx until the person stops the turn from another process; over ends
// the listening.
func (s *headless) stoppable(ctx context.Context, say func(string)) (turn context.Context, over func()) {
	turn, cancel := context.WithCancel(ctx)
	session := s.ID // which another may follow
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var e ear
		defer e.close()
		tick := time.NewTicker(hearTime)
		defer tick.Stop()
		for {
			select {
			case <-turn.Done():
				return
			case <-tick.C:
			}
			e.listen(s.app, session, toStop)
			if heard, ok := e.next(); ok {
				say(fmt.Sprintf("stopped elsewhere (%s)", heard.From))
				cancel()
			}
		}
	}()
	return turn, func() { cancel(); <-ended }
}

// hears reports whether the process that works in a session can be told something.
func hears(a *app.App, session, what string) bool {
	_, ok := a.Store().Ears().Where(standing(a.Root, session, what).ID)
	return ok
}

// tell tells the process that works in a session to say something, or to stop.
func tell(ctx context.Context, a *app.App, session, what, words string) error {
	q := standing(a.Root, session, what)
	said := uip.Response{ID: q.ID, Input: words, Author: event.ActorUser, Via: "web"}
	letter, err := a.Store().Ears().Post(inbox.Place{Root: a.Root, Session: session}, q, said, fmt.Sprintf("coder web, process %d", os.Getpid()), app.NewID("a"))
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
