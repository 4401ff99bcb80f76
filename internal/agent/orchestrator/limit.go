package orchestrator

import (
	"context"
	"errors"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/model/provider"
)

// Options of the question about a limit.
const (
	optionWait = "wait"
	optionStop = "stop"
)

// minAskedWait is the shortest wait that coder asks the user about.
const minAskedWait = time.Minute

// limitMargin is added to the provider's waiting time.
const limitMargin = time.Second

// waitForLimit waits for the provider's limit to end, if the user allows it:
// with a setting, up to a total time, or by answering a question, once per turn.
// If it did not wait, it returns err with the time at which the limit ends.
func (o *Orchestrator) waitForLimit(ctx context.Context, st *turnState, err error) (again bool, failure error) {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || ctx.Err() != nil || !e.Retryable || e.RetryAfter <= 0 || !errors.Is(err, provider.ErrRateLimited) &&
		!errors.Is(err, provider.ErrOverloaded) {
		return false, nil
	}
	end := o.Now().Add(e.RetryAfter)
	failure = err
	if e.RetryAfter >= minAskedWait {
		failure = message.Errorf("%w; the limit resets at %s", err, formatClockTime(o.Now(), end))
	}
	if st.waited+e.RetryAfter > st.settings.WaitLimit {
		may, err := o.confirmWait(ctx, st, failure, e.RetryAfter)
		if err != nil || !may {
			return false, errors.Join(failure, err)
		}
	}
	st.waited += e.RetryAfter
	if err := o.emit(ctx, st, ActorAgent, event.Waiting{Reason: event.WaitLimit, Until: end}); err != nil {
		return false, errors.Join(failure, err)
	}
	if err := o.sleep(ctx, max(end.Sub(o.Now()), 0)+limitMargin); err != nil {
		return false, err
	}
	return true, nil
}

// confirmWait asks the user, if present, whether to wait.
func (o *Orchestrator) confirmWait(ctx context.Context, st *turnState, why error, wait time.Duration) (bool, error) {
	if !st.settings.HasUser || st.waitOffered || o.Subtask != nil || wait < minAskedWait {
		return false, nil
	}
	st.waitOffered = true
	a, err := o.NewInteractor(st.sink).Ask(ctx, uip.Request{
		ID: o.NewID("ui"), TaskID: st.task, Author: o.actorFor(ActorAgent), Kind: uip.KindSelect, Purpose: uip.PurposeGeneric,
		Display: uip.Display{
			Title: "The provider's limit is reached. Wait until it resets, then continue?", Description: why.Error(),
			Metadata: map[string]string{uip.MetaOnYes: optionWait, uip.MetaOnNo: optionStop},
		},
		Options: []uip.Option{{ID: optionWait, Label: "Wait and continue", Default: true},
			{ID: optionStop, Label: "Stop the turn", Style: uip.StyleDanger}},
	})
	return err == nil && a.Option == optionWait && !a.IsUnanswered(), err
}

// formatClockTime formats a time for people, with the date if it is not today.
func formatClockTime(now, at time.Time) string {
	at = at.In(now.Location())
	if now.Format(time.DateOnly) == at.Format(time.DateOnly) {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02 15:04")
}
