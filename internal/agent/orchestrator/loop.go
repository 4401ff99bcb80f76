package orchestrator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/uip"
)

// Bounds of what counts as a circle: so many rounds, which came so often in a row
// with the same results.
const (
	sameRounds  = 3
	mostInRound = 4
)

// Options of the question about a loop.
const (
	loopGoOn = "continue"
	loopStop = "stop"
)

// ErrLoop ends a turn that went in circles: a person stopped it, or nobody could
// be asked and the model did not stop when it was told.
var ErrLoop = errors.New("stopped: the same call was repeated with the same result")

// rounds notices when the model goes in circles.
type rounds struct {
	past  [][sha256.Size]byte // calls and results, the newest last
	quiet int                 // rounds since the last word about a circle
	told  bool                // the model was told of the circle it is in
}

// add takes a round and reports, where a circle has just come sameRounds times
// since the last word about it, how many rounds it has and how often it came.
func (r *rounds) add(round [sha256.Size]byte) (length, times int) {
	r.past = append(r.past, round)
	r.quiet++
	for length = 1; length <= mostInRound; length++ {
		same := length
		for same < len(r.past) && r.past[len(r.past)-1-same] == r.past[len(r.past)-1-same+length] {
			same++
		}
		if times = same / length; times >= sameRounds {
			if r.quiet < sameRounds*length {
				return length, 0
			}
			r.quiet = 0
			return length, times
		}
	}
	r.told = false
	return 0, 0
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

// guardLoop explains a circle and asks what to do about it. Nothing is halted
// without a word: where nobody can be asked, the model is told, and the turn
// ends if it goes on all the same.
func (o *Orchestrator) guardLoop(ctx context.Context, st *turnState, calls []chat.ToolCall, results []string) error {
	if len(calls) == 0 {
		return nil
	}
	h := sha256.New()
	for i, c := range calls {
		fmt.Fprintf(h, "%s %s\n", c.Name, c.Args)
		if i < len(results) {
			fmt.Fprintln(h, lasting(results[i]))
		}
	}
	length, n := st.rounds.add([sha256.Size]byte(h.Sum(nil)))
	if n == 0 {
		return nil
	}
	what := fmt.Sprintf("%s was called %d times in a row with the same arguments and the same result", calls[0].Name, n)
	if length > 1 {
		what = fmt.Sprintf("the same %d calls ran %d times in a row with the same results", length, n)
	}
	return o.askAboutCircle(ctx, st, uip.Request{
		ID: o.NewID("ui"), TaskID: st.task, Author: o.actor(ActorAgent), Kind: uip.Select, Purpose: uip.Generic,
		Display: uip.Display{
			Title: "The model may be going in circles. Continue?", Description: what,
			Metadata: map[string]string{uip.OnYes: loopGoOn, uip.OnNo: loopStop, uip.OnWords: loopGoOn},
		},
		Options: []uip.Option{{ID: loopGoOn, Label: "Continue", Default: true}, {ID: loopStop, Label: "Stop the turn", Style: uip.Danger}},
	})
}

// AsksAboutCircle reports whether a question is what to do about a circle.
func AsksAboutCircle(q uip.Request) bool {
	return q.CallID() == "" && q.Purpose == uip.Generic && q.Display.Metadata[uip.OnYes] == loopGoOn && q.Display.Metadata[uip.OnNo] == loopStop
}

// askAboutCircle asks what to do about a circle and does it.
func (o *Orchestrator) askAboutCircle(ctx context.Context, st *turnState, q uip.Request) error {
	what := q.Display.Description
	a, err := o.Person(st.sink).Ask(ctx, q)
	if err == nil && a.Unanswered() { // nobody was told by the question
		err = o.warn(ctx, st, what)
	}
	advice := cmp.Or(a.Input, a.Comment)
	switch {
	case err != nil:
		return err
	case a.Unanswered() && st.rounds.told:
		return fmt.Errorf("%w: %s, even after the model was warned", ErrLoop, what)
	case a.Unanswered():
		st.rounds.told = true
		advice = what + ". Try something else, or end your turn and say what is blocking you."
	case a.Option == loopStop, a.Dismissed:
		return ErrLoop
	}
	if advice == "" {
		return nil
	}
	return o.emit(ctx, st, ActorUser, event.MessageAdded{Message: chat.Say(chat.User, advice)})
}
