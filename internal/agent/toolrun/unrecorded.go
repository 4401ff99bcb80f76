package toolrun

import (
	"context"
	"fmt"
	"sync/atomic"

	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// RecordWaiver lets calls run without a record, once the user has agreed.
type RecordWaiver struct {
	// Waive is called when the user agrees; it returns an error if that is impossible.
	Waive func() error

	wasAsked atomic.Bool
}

// askContinueUnrecorded asks the user once whether to continue without a record.
func (r *run) askContinueUnrecorded(ctx context.Context, e *event.NotRecordableError) bool {
	if r.Waiver == nil || r.Waiver.wasAsked.Swap(true) {
		return false
	}
	answer, err := r.User.Ask(ctx, uip.Request{
		ID: r.NewID(), TaskID: r.Task, Author: r.Actor, Kind: uip.KindSelect, Purpose: uip.PurposeConfirmRiskyAction,
		Display: uip.Display{
			Title:       "Continue without a record?",
			Description: fmt.Sprintf("%v. From now on nothing done in this session would be saved: it could not be undone, and would be lost after a restart", e),
			Metadata: map[string]string{uip.MetaOnEnter: uip.OptionReject, uip.MetaOnYes: uip.OptionApprove,
				uip.MetaOnNo: uip.OptionReject},
		},
		Options: []uip.Option{
			{ID: uip.OptionReject, Label: "No", Style: uip.StylePlain, Default: true},
			{ID: uip.OptionApprove, Label: "Yes, continue without a record", Style: uip.StyleDanger},
		},
	})
	if err != nil || answer.Option != uip.OptionApprove {
		return false
	}
	if err := r.Waiver.Waive(); err != nil {
		r.notice(ctx, event.LevelWarn,
			fmt.Sprintf("it cannot continue without a record: %v; restart with --no-session-persistence", err))
		return false
	}
	return true
}
