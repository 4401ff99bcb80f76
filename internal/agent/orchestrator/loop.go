package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
)

// sameRounds is how often the same calls may give the same results in a row
// before somebody is asked about it.
const sameRounds = 3

// Options of the question about a loop.
const (
	loopGoOn = "continue"
	loopStop = "stop"
)

// ErrLoop ends a turn that a person stopped because it went in circles.
var ErrLoop = errors.New("stopped: the same call was repeated with the same result")

// rounds notices when the model goes in circles.
type rounds struct {
	last  string
	count int
}

// passing are the parts of a result that differ from one time to the next
// whatever happened.
var passing = []string{"duration_ms", "log_path", "seconds"}

// lasting is a result without what differs each time.
func lasting(result string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &object) != nil {
		return result
	}
	for _, name := range passing {
		delete(object, name)
	}
	return string(jsonx.Must(object))
}

// guardLoop explains a loop and asks what to do about it. Nothing is halted
// without a word: where nobody can be asked, the model is told.
func (o *Orchestrator) guardLoop(ctx context.Context, st *turnState, calls []chat.ToolCall, results []string) error {
	var b strings.Builder
	for i, c := range calls {
		fmt.Fprintf(&b, "%s %s\n", c.Name, c.Args)
		if i < len(results) {
			b.WriteString(lasting(results[i]) + "\n")
		}
	}
	if b.String() != st.rounds.last {
		st.rounds.last, st.rounds.count = b.String(), 0
	}
	st.rounds.count++
	n := st.rounds.count
	if n < sameRounds || n%sameRounds != 0 || len(calls) == 0 {
		return nil
	}
	what := fmt.Sprintf("%s was called %d times in a row with the same arguments and gave the same result", calls[0].Name, n)
	if err := o.warn(ctx, st, what); err != nil {
		return err
	}
	a, err := o.Person(st.sink).Ask(ctx, uip.Request{
		ID: o.NewID("ui"), TaskID: st.task, Author: o.actor(ActorAgent), Kind: uip.Select, Purpose: uip.Generic,
		Display: uip.Display{Title: "The model may be going in circles. Go on?", Description: what},
		Options: []uip.Option{{ID: loopGoOn, Label: "Go on", Default: true}, {ID: loopStop, Label: "Stop the turn", Style: uip.Danger}},
	})
	advice := cmp.Or(a.Input, a.Comment)
	switch {
	case err != nil:
		return err
	case a.Unanswered():
		advice = what + ". Try something else, or end your turn and say what is in the way."
	case a.Option == loopStop:
		return ErrLoop
	}
	if advice == "" {
		return nil
	}
	return o.emit(ctx, st, ActorUser, event.MessageAdded{Message: chat.Say(chat.User, advice)})
}
