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
	"coder/internal/core/message"
	"coder/internal/core/uip"
)

// A loop is a sequence of at most so many rounds that occurred so often in a row with the same results.
const (
	minRepetitions = 3
	maxLoopLength  = 4
)

// Options of the question about a loop.
const (
	optionContinueLoop = "continue"
	optionStopLoop     = "stop"
)

// ErrLoop ends a turn in which the model repeated itself: the user stopped
// it, or nobody could answer and the model continued after a warning.
var ErrLoop = errors.New("stopped: the same call was repeated with the same result")

// loopDetector detects loops in the model's calls.
type loopDetector struct {
	hashes      [][sha256.Size]byte // hashes of calls and results, the newest last
	sinceReport int                 // rounds since the last report of a loop
	warned      bool                // the model was warned about the current loop
}

// add adds a round. If a loop has occurred minRepetitions times since its last
// report, add returns the loop's number of rounds and how often it occurred.
func (r *loopDetector) add(round [sha256.Size]byte) (length, times int) {
	r.hashes = append(r.hashes, round)
	r.sinceReport++
	for length = 1; length <= maxLoopLength; length++ {
		same := length
		for same < len(r.hashes) && r.hashes[len(r.hashes)-1-same] == r.hashes[len(r.hashes)-1-same+length] {
			same++
		}
		if times = same / length; times >= minRepetitions {
			if r.sinceReport < minRepetitions*length {
				return length, 0
			}
			r.sinceReport = 0
			return length, times
		}
	}
	r.warned = false
	return 0, 0
}

// volatileFields lists the fields of a result that differ in every run.
var volatileFields = []string{"duration_ms", "log_path", "seconds"}

// stripVolatileFields returns a result without fields that differ in every run.
func stripVolatileFields(result string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(result), &object) != nil {
		return result
	}
	for _, name := range volatileFields {
		delete(object, name)
	}
	return string(jsonx.MustMarshal(object))
}

// handleLoop explains a loop and asks the user what to do. If nobody can answer,
// coder warns the model, and ends the turn if the model continues anyway.
func (o *Orchestrator) handleLoop(ctx context.Context, st *turnState, calls []chat.ToolCall, results []string) error {
	if len(calls) == 0 {
		return nil
	}
	h := sha256.New()
	for i, c := range calls {
		fmt.Fprintf(h, "%s %s\n", c.Name, c.Args)
		if i < len(results) {
			fmt.Fprintln(h, stripVolatileFields(results[i]))
		}
	}
	length, n := st.loops.add([sha256.Size]byte(h.Sum(nil)))
	if n == 0 {
		return nil
	}
	what := fmt.Sprintf("%s was called %d times in a row with the same arguments and the same result", calls[0].Name, n)
	if length > 1 {
		what = fmt.Sprintf("the same %d calls ran %d times in a row with the same results", length, n)
	}
	return o.askAboutLoop(ctx, st, uip.Request{
		ID: o.NewID("ui"), TaskID: st.task, Author: o.actorFor(ActorAgent), Kind: uip.KindSelect, Purpose: uip.PurposeGeneric,
		Display: uip.Display{
			Title: "The model may be going in circles. Continue?", Description: what,
			Metadata: map[string]string{uip.MetaOnYes: optionContinueLoop, uip.MetaOnNo: optionStopLoop,
				uip.MetaOnText: optionContinueLoop},
		},
		Options: []uip.Option{{ID: optionContinueLoop, Label: "Continue", Default: true},
			{ID: optionStopLoop, Label: "Stop the turn", Style: uip.StyleDanger}},
	})
}

// IsLoopQuestion reports whether a question is about a loop.
func IsLoopQuestion(q uip.Request) bool {
	return q.CallID() == "" && q.Purpose == uip.PurposeGeneric &&
		q.Display.Metadata[uip.MetaOnYes] == optionContinueLoop && q.Display.Metadata[uip.MetaOnNo] == optionStopLoop
}

// askAboutLoop asks what to do about a loop and does it.
func (o *Orchestrator) askAboutLoop(ctx context.Context, st *turnState, q uip.Request) error {
	what := q.Display.Description
	a, err := o.NewInteractor(st.sink).Ask(ctx, q)
	if err == nil && a.IsUnanswered() { // nobody saw the question
		err = o.warn(ctx, st, what)
	}
	advice := cmp.Or(a.Input, a.Comment)
	switch {
	case err != nil:
		return err
	case a.IsUnanswered() && st.loops.warned:
		return message.Errorf("%w: %s, even after the model was warned", ErrLoop, what)
	case a.IsUnanswered():
		st.loops.warned = true
		advice = what + ". Try something else, or end your turn and say what is blocking you."
	case a.Option == optionStopLoop, a.Dismissed:
		return ErrLoop
	}
	if advice == "" {
		return nil
	}
	return o.emit(ctx, st, ActorUser, event.MessageAdded{Message: chat.TextMessage(chat.User, advice)})
}
