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
func (f *Replayer) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
			return
		}
		deltas, err := f.nextReply(ctx, req)
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

func (f *Replayer) nextReply(ctx context.Context, req provider.Request) ([]provider.Delta, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stream := f.callStream(tool.CallID(ctx))
	r, ok := f.nextRecord(stream)
	if !ok && f.endsEarly { // the process ended before the reply was there
		return nil, f.waitForEnd(ctx)
	}
	var then event.Record
	if list := f.pending[stream]; len(list) > 1 {
		then = list[1]
	}
	stop := func() error {
		f.cancel()
		return ctx.Err()
	}
	said, replied := event.AsReply(r.Event)
	summarises := req.System == compact.SummarySystem
	switch e := r.Event.(type) {
	case event.ContextReplaced:
		switch summed := len(e.Messages) > 0 && compact.IsSummary(e.Messages[0]); {
		case summarises && summed:
			text := f.localizePaths(compact.SummaryText(e.Messages[0]))
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
		if err := providerFailure(e); err != nil {
			return nil, err
		}
	case event.MessageAdded:
		failed, _ := then.Event.(event.TaskFailed)
		switch _, canceled := then.Event.(event.TaskCanceled); {
		case replied && summarises:
		case replied && !said.Interrupted:
			end := provider.Done{Stop: provider.Stop(said.StopReason), Usage: said.Usage, Model: said.Model, Sent: said.Request}
			return append(f.replyDeltas(said), end), nil
		case replied && providerFailure(failed) != nil:
			return f.replyDeltas(said), providerFailure(failed)
		case replied:
			return f.replyDeltas(said), stop()
		case canceled && then.Actor == event.ActorUser: // the model is told of the interruption first
			return nil, stop()
		}
	}
	return nil, f.diverge(stream, event.Record{Event: event.MessageAdded{Message: chat.TextMessage(chat.Assistant, "")}})
}

// waitForEnd waits for the end of the process, or of the turn.
func (f *Replayer) waitForEnd(ctx context.Context) error {
	f.mu.Unlock()
	defer f.mu.Lock()
	<-ctx.Done()
	return ctx.Err()
}

// callStream is the stream of whoever works for a call; the session's own if it is
// none.
func (f *Replayer) callStream(callID string) string {
	stream := callID
	for next := stream + "+"; callID != "" && f.streamNames["\x00"+next] != ""; next += "+" {
		stream = next
	}
	return stream
}

// localizePaths is a text of the record with the paths of the rerun.
func (f *Replayer) localizePaths(text string) string {
	return paths.Map{f.recording.Root: f.workCopy.Dir()}.Text(text)
}

// replyDeltas are a reply as it arrives, but for its end.
func (f *Replayer) replyDeltas(e event.MessageAdded) (list []provider.Delta) {
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
			list = append(list, provider.TextDelta(f.localizePaths(string(p))))
		case chat.ToolCall:
			args := f.localizePaths(cmp.Or(p.Broken, string(p.Args)))
			list = append(list, provider.CallDelta{Index: calls, ID: p.ID, Name: p.Name, Args: args, Extra: p.Extra})
			calls++
		}
	}
	return list
}

// providerFailure is the failure of a provider that ended a task; nil if something else did. Older
// records have it as the reason alone.
func providerFailure(e event.TaskFailed) error {
	e.ErrorText = cmp.Or(e.ErrorText, e.Reason)
	if e.ErrorText == "" || e.Steps > 0 {
		return nil
	}
	return &provider.Error{Err: recordedError(e)}
}

// recordedError is such a failure, of the kind that the record has.
type recordedError event.TaskFailed

func (e recordedError) Error() string        { return e.ErrorText }
func (e recordedError) Is(target error) bool { return provider.Code(target) == e.Code && e.Code != "" }
