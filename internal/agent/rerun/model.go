package rerun

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"coder/internal/agent/compact"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/paths"
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

var errAsRecorded = errors.New("as recorded")

func (f *Follower) reply(ctx context.Context, req provider.Request) ([]provider.Delta, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stream := f.streamFor(tool.CallID(ctx))
	r, ok := f.next(stream)
	if !ok && f.cut { // the process ended before the reply was there
		return nil, f.wait(ctx)
	}
	var then event.Record
	if list := f.left[stream]; len(list) > 1 {
		then = list[1]
	}
	stop := func() error {
		f.cancel()
		return ctx.Err()
	}
	said, replied := event.Reply(r.Event)
	summarises := req.System == compact.SummarySystem
	switch e := r.Event.(type) {
	case event.ContextReplaced:
		switch summed := len(e.Messages) > 0 && compact.IsSummary(e.Messages[0]); {
		case summarises && summed:
			text := f.here(compact.Summary(e.Messages[0]))
			return []provider.Delta{provider.TextDelta(text), provider.Done{Stop: provider.StopEnd}}, nil
		case !summarises: // the provider found it too long
			f.window = cmp.Or(e.Window, f.window)
			return nil, &provider.Error{Kind: provider.ErrContextTooLong, Status: 400, Window: e.Window, Err: errAsRecorded}
		}
	case event.LocalAdded: // a command to make a summary, which failed
		if summarises && e.Failed {
			return nil, &provider.Error{Err: errAsRecorded}
		}
	case event.TaskCanceled:
		return nil, stop()
	case event.TaskFailed:
		if err := failure(e); err != nil {
			return nil, err
		}
	case event.MessageAdded:
		failed, _ := then.Event.(event.TaskFailed)
		switch _, canceled := then.Event.(event.TaskCanceled); {
		case replied && summarises:
		case replied && !said.Interrupted:
			end := provider.Done{Stop: provider.Stop(said.Stop), Usage: said.Usage, Model: said.Model, Sent: said.Sent}
			return append(f.deltas(said), end), nil
		case replied && failure(failed) != nil:
			return f.deltas(said), failure(failed)
		case replied:
			return f.deltas(said), stop()
		case canceled && then.Actor == event.ActorUser: // the model is told of the interruption first
			return nil, stop()
		}
	}
	return nil, f.part(stream, event.Record{Event: event.MessageAdded{Message: chat.Say(chat.Assistant, "")}})
}

// wait waits for the end of the process, or of the turn.
func (f *Follower) wait(ctx context.Context) error {
	f.mu.Unlock()
	defer f.mu.Lock()
	<-ctx.Done()
	return ctx.Err()
}

// streamFor is the stream of whoever works for a call; the session's own if it is
// none.
func (f *Follower) streamFor(callID string) string {
	stream := callID
	for next := stream + "+"; callID != "" && f.streams["\x00"+next] != ""; next += "+" {
		stream = next
	}
	return stream
}

// here is a text of the record with the paths of the rerun.
func (f *Follower) here(text string) string { return paths.Map{f.take.Root: f.copy.Dir()}.Text(text) }

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
			args := f.here(cmp.Or(p.Broken, string(p.Args)))
			list = append(list, provider.CallDelta{Index: calls, ID: p.ID, Name: p.Name, Args: args, Extra: p.Extra})
			calls++
		}
	}
	return list
}

// failure is the failure of a provider that ended a task; nil if something else did. Older
// records have it as the reason alone.
func failure(e event.TaskFailed) error {
	e.Says = cmp.Or(e.Says, e.Reason)
	if e.Says == "" || e.Steps > 0 {
		return nil
	}
	return &provider.Error{Err: failureError(e)}
}

// failureError is such a failure, of the kind that the record has.
type failureError event.TaskFailed

func (e failureError) Error() string        { return e.Says }
func (e failureError) Is(target error) bool { return provider.Code(target) == e.Code && e.Code != "" }
