package rerun

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/model/provider"
	"coder/internal/tool"
)

// Stream gives the reply that is on record at this place.
func (f *Follower) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
			return
		}
		deltas, err := f.reply(ctx, req)
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func (f *Follower) reply(ctx context.Context, req provider.Request) ([]provider.Delta, error) {
	f.mu.Lock()
	stream := f.streamFor(tool.CallID(ctx))
	r, ok := f.next(stream)
	var then event.Record // what comes after that
	if list := f.take.streams[stream]; f.at[stream]+1 < len(list) {
		then = f.take.Records[list[f.at[stream]+1]]
	}
	cancel := f.cancel
	if ok && f.beyond(r) { // the process ended before the reply was there
		f.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	defer f.mu.Unlock()
	stop := func() error {
		cancel()
		return ctx.Err()
	}
	if req.System == compact.SummarySystem {
		if e, ok := r.Event.(event.ContextReplaced); ok && len(e.Messages) > 0 && compact.IsSummary(e.Messages[0]) {
			return f.said(compact.Summary(e.Messages[0])), nil
		}
		return nil, f.unexpected(r, stream)
	}
	switch e := r.Event.(type) {
	case event.MessageAdded:
		switch {
		case isReply(e) && e.Interrupted:
			if err := failure(then.Event); err != nil {
				return f.deltas(e), err
			}
			return f.deltas(e), stop()
		case isReply(e):
			return append(f.deltas(e), provider.Done{Stop: provider.Stop(e.Stop), Usage: e.Usage, Model: e.Model, Sent: e.Sent}), nil
		case endsCanceled(then): // the model is told of the interruption first
			return nil, stop()
		}
	case event.TaskCanceled:
		return nil, stop()
	case event.TaskFailed:
		if err := failure(e); err != nil {
			return nil, err
		}
	case event.ContextReplaced: // the provider found it too long
		f.window = cmp.Or(e.Window, f.window)
		return nil, &provider.Error{Kind: provider.ErrContextTooLong, Status: 400, Window: e.Window, Err: errors.New("as it is on record")}
	}
	return nil, f.unexpected(r, stream)
}

// unexpected reports a request of the model where the record has something else.
func (f *Follower) unexpected(r event.Record, stream string) error {
	if r.Event == nil {
		r.Seq = f.last(stream)
	}
	return f.part(r, event.Record{Event: event.MessageAdded{Message: chat.Say(chat.Assistant, "")}})
}

// streamFor is the stream of whoever works for a call; the session's own if it is
// none.
func (f *Follower) streamFor(callID string) string {
	if callID == "" {
		return main
	}
	stream := callID
	for f.at[stream+"+"] > 0 {
		stream += "+"
	}
	return stream
}

// here is a text with the paths of the rerun.
func (f *Follower) here(text string) string { return swap(text, f.take.Root, f.world.root) }

func (f *Follower) said(text string) []provider.Delta {
	return []provider.Delta{provider.TextDelta(f.here(text)), provider.Done{Stop: provider.StopEnd}}
}

// deltas are a reply as it arrives, but for its end.
func (f *Follower) deltas(e event.MessageAdded) (list []provider.Delta) {
	calls := 0
	if e.Window > 0 {
		f.window = e.Window
		list = append(list, provider.Window(e.Window))
	}
	for _, p := range e.Message.Parts {
		switch p := p.(type) {
		case chat.Reasoning:
			list = append(list, provider.ReasoningDelta{Text: p.Text, Field: p.Field, Details: p.Details})
		case chat.Text:
			list = append(list, provider.TextDelta(f.here(string(p))))
		case chat.ToolCall:
			list = append(list, provider.CallDelta{Index: calls, ID: p.ID, Name: p.Name, Args: f.here(cmp.Or(p.Broken, string(p.Args))), Extra: p.Extra})
			calls++
		}
	}
	return list
}

func endsCanceled(r event.Record) bool {
	_, ok := r.Event.(event.TaskCanceled)
	return ok && r.Actor == event.ActorUser
}

// failure is the failure of a provider that ended a task, in the words of the
// record.
func failure(e event.Event) error {
	failed, ok := e.(event.TaskFailed)
	if !ok || failed.Says == "" {
		return nil
	}
	return &provider.Error{Err: failureError(failed)}
}

// failureError is such a failure, of the kind that the record has.
type failureError event.TaskFailed

func (e failureError) Error() string        { return e.Says }
func (e failureError) Is(target error) bool { return provider.Code(target) == e.Code && e.Code != "" }
