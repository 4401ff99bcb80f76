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

// A loop is a sequence of at most so many rounds that occurred so often in a row with the same results.
const (
	sameRounds  = 3
	mostInRound = 4
)

// Options of the question about a loop.
const (
	loopGoOn = "continue"
	loopStop = "stop"
)

// ErrLoop ends a turn in which the model repeated itself: the user stopped
// it, or nobody could answer and the model continued after a warning.
var ErrLoop = errors.New("stopped: the same call was repeated with the same result")

// rounds detects loops in the model's calls.
type rounds struct {
	past  [][sha256.Size]byte // hashes of calls and results, the newest last
	quiet int                 // rounds since the last report of a loop
	told  bool                // the model was warned about the current loop
}

// add adds a round. If a loop has occurred sameRounds times since its last
// report, add returns the loop's number of rounds and how often it occurred.
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

// passing lists the fields of a result that differ in every run.
var passing = []string{"duration_ms", "log_path", "seconds"}

// lasting returns a result without fields that differ in every run.
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

// guardLoop explains a loop and asks the user what to do. If nobody can answer,
// coder warns the model, and ends the turn if the model continues anyway.
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

// AsksAboutCircle reports whether a question is about a loop.
func AsksAboutCircle(q uip.Request) bool {
	return q.CallID() == "" && q.Purpose == uip.Generic && q.Display.Metadata[uip.OnYes] == loopGoOn && q.Display.Metadata[uip.OnNo] == loopStop
}

// askAboutCircle asks what to do about a loop and does it.
func (o *Orchestrator) askAboutCircle(ctx context.Context, st *turnState, q uip.Request) error {
	what := q.Display.Description
	a, err := o.Person(st.sink).Ask(ctx, q)
	if err == nil && a.Unanswered() { // nobody saw the question
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
