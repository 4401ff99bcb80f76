package app

import (
	"context"

	"coder/internal/agent/conversation"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/host/workspace"
	"coder/internal/record/asof"
	"coder/internal/record/provenance"
)

// Standing tells how a session stood at each of the records named, zero being its
// end, and hands these and the contents of files to do. Unlike [App.AsOf] it holds
// no more of the records than that takes.
func (a *App) Standing(ctx context.Context, id string, at []uint64, do func([]AsOf, provenance.Contents) error) error {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return inputf("open the workspace: %v", err)
	}
	defer ws.Close()
	kept := a.kept(ws)
	var states []AsOf
	for _, seq := range at {
		s := AsOf{Conversation: new(conversation.Conversation)}
		s.State, err = asof.Fold(ctx, func(yield func(event.Record, error) bool) {
			for r, err := range asof.Until(a.Store().Logs.Read(ctx, id, 0), seq) {
				if err == nil {
					s.Conversation.Add(r)
				}
				if !yield(r, err) {
					return
				}
			}
		}, kept)
		if err != nil {
			return err
		}
		if seq > s.Seq {
			return inputf("session %s has %d records", id, s.Seq)
		}
		states = append(states, s)
	}
	return do(states, kept)
}

// Priced is a use of a model with what it cost, if that is known.
func (a *App) Priced(model string, u chat.Usage) chat.Usage { return a.newMeter().Priced(model, u) }
