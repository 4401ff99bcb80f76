package toolrun

import (
	"context"
	"fmt"
	"sync/atomic"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// Waiver lets calls run without a record, once the user has agreed.
type Waiver struct {
	// Waive is called when the user agrees; it returns an error if that is impossible.
	Waive func() error

	asked atomic.Bool
}

// mayGoOn asks the user once whether to continue without a record.
func (r *run) mayGoOn(ctx context.Context, e *event.UnkeptError) bool {
	if r.Waiver == nil || r.Waiver.asked.Swap(true) {
		return false
	}
	answer, err := r.Person.Ask(ctx, uip.Request{
		ID: r.NewID(), TaskID: r.Task, Author: r.Actor, Kind: uip.Select, Purpose: uip.ConfirmRiskyAction,
		Display: uip.Display{
			Title:       "Continue without a record?",
			Description: fmt.Sprintf("%v. From now on nothing done in this session would be saved: it could not be undone, and would be lost after a restart", e),
			Metadata:    map[string]string{uip.OnEnter: uip.Reject, uip.OnYes: uip.Approve, uip.OnNo: uip.Reject},
		},
		Options: []uip.Option{
			{ID: uip.Reject, Label: "No", Style: uip.Plain, Default: true},
			{ID: uip.Approve, Label: "Yes, continue without a record", Style: uip.Danger},
		},
	})
	if err != nil || answer.Option != uip.Approve {
		return false
	}
	if err := r.Waiver.Waive(); err != nil {
		r.notice(ctx, event.Warn, fmt.Sprintf("it cannot continue without a record: %v; restart with --no-session-persistence", err))
		return false
	}
	return true
}
