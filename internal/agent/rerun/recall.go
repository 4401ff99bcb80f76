package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

// Recall is what came of a call that is not made again. The error is for one that
// did not come to its end.
func (f *Follower) Recall(ctx context.Context, callID string) (res tool.Result, known bool, err error) {
	f.mu.Lock()
	asked, found := f.calls[callID]
	i, completed := f.take.done[asked.seq]
	var (
		call event.ToolCallRequested
		done event.ToolCallCompleted
	)
	if found {
		call, _ = f.take.Records[f.index(asked.seq)].Event.(event.ToolCallRequested)
	}
	if completed {
		done, _ = f.take.Records[i].Event.(event.ToolCallCompleted)
		completed = f.take.Records[i].Actor != event.ActorRecovery
	}
	cancel := f.cancel
	if found && !completed {
		defer f.mu.Unlock()
		if f.handedOn(callID) { // what was done for it is on record
			return res, false, nil
		}
		return res, true, f.rest(ctx, asked.stream, call)
	}
	f.mu.Unlock()
	switch {
	case !found:
		return res, true, errDiffers
	case isInterrupted(done):
		cancel()
		<-ctx.Done()
		return tool.Result{Value: done.Output}, true, errors.Join(f.world.put(context.WithoutCancel(ctx), done.Changes), ctx.Err())
	case !outside(call):
		return res, false, nil
	}
	output := swap(string(done.Output), f.take.Root, f.world.root)
	res = tool.Result{Value: json.RawMessage(output), Failed: done.IsError}
	for _, s := range done.Saw {
		if res.Saw == nil {
			res.Saw = make(map[string]string)
		}
		res.Saw[s.Path] = s.Hash
	}
	return res, true, f.world.put(ctx, done.Changes)
}

// handedOn reports whether there is more on record of a subtask that works for a
// call, before the process under way ends.
func (f *Follower) handedOn(callID string) bool {
	for stream := callID; len(f.take.streams[stream]) > 0; stream += "+" {
		if r, ok := f.next(stream); ok && !f.beyond(r) {
			return true
		}
	}
	return false
}

// rest waits with a call that the end of the process cut off. If the record goes on
// in its stream as if the call had come to its end, that is a difference: it would be
// waited for in vain.
func (f *Follower) rest(ctx context.Context, stream string, call event.ToolCallRequested) error {
	f.resting[stream] = call.Tool
	if f.stuck(stream) {
		return errDiffers
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	delete(f.resting, stream)
	return ctx.Err()
}

// stuck takes note of a difference if a stream rests with a call, and the record has
// more of it than what calls beside that one came to.
func (f *Follower) stuck(stream string) bool {
	tool, rests := f.resting[stream]
	r, more := f.next(stream)
	if !rests || f.ended {
		return false
	}
	if len(f.ends) > 0 && (!more || f.beyond(r)) {
		return false
	}
	switch r.Event.(type) {
	case event.ToolCallRequested, event.ToolCallCompleted, event.InteractionRequested, event.InteractionResponded:
		return false
	}
	if !more {
		r.Seq = f.last(stream)
	}
	_ = f.part(r, event.Record{Event: event.ToolCallCompleted{Tool: tool, Unknown: true}})
	return true
}

// Intended is the plan of a call that cannot be prepared again, for the keys that it
// was made with are not on record: what it was to do is.
func (f *Follower) Intended(name string, args []byte) (plan tool.Plan, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := words(json.RawMessage(swap(string(args), f.world.root, f.take.Root)))
	for stream, list := range f.take.streams {
		for _, i := range list[f.at[stream]:] {
			e, is := f.take.Records[i].Event.(event.ToolCallRequested)
			if is && e.Tool == name && e.Verdict != event.Invalid && keyed(e) && words(e.Input) == want {
				return tool.Plan{Title: e.Title, Effects: e.Effects}, true
			}
		}
	}
	return plan, false
}

// LetPass reports whether a call that would be asked about now was let pass
// unasked: by a flag of that run, or because its tool, which is not there to be
// judged, was always allowed. Risky says that it may not be let pass for good.
func (f *Follower) LetPass(name string, args []byte, risky bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := words(json.RawMessage(swap(string(args), f.world.root, f.take.Root)))
	for stream, list := range f.take.streams {
		for _, i := range list[f.at[stream]:] {
			switch e := f.take.Records[i].Event.(type) {
			case event.ToolCallRequested:
				if e.Tool != name || words(e.Input) != want {
					continue
				}
				flag := e.Unasked == event.RisksUnasked || e.Unasked == event.WaivableUnasked && !risky
				return e.Verdict == event.Allowed && e.DecidedBy == event.ActorPolicy && (flag || strings.HasPrefix(name, ofOthers))
			case event.InteractionRequested:
				if _, about, _ := strings.Cut(e.Display.Title, " "); e.Display.Metadata["toolName"] == name && about != "" {
					return false // it was asked about
				}
			}
		}
	}
	return false
}

// Ask answers a question as it was answered.
func (f *Follower) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	f.mu.Lock()
	r, ok := f.next(f.streamOf[q.TaskID])
	a, answered := r.Event.(event.InteractionResponded)
	cancel, asked := f.cancel, f.asked[q.ID]
	f.mu.Unlock()
	if !ok || !answered {
		cancel() // it was withdrawn, or the process ended
		<-ctx.Done()
		return uip.Response{}, ctx.Err()
	}
	answer := a.Response
	answer.ID, answer.TaskID = q.ID, q.TaskID
	answer.Parts = slices.Clone(answer.Parts)
	for i, part := range answer.Parts {
		if n := slices.IndexFunc(asked.Parts, func(p uip.Request) bool { return p.ID == part.ID }); n >= 0 && n < len(q.Parts) {
			answer.Parts[i].ID, answer.Parts[i].TaskID = q.Parts[n].ID, q.TaskID
		}
	}
	if answer.Args != nil {
		answer.Args = json.RawMessage(swap(string(answer.Args), f.take.Root, f.world.root))
	}
	return answer, nil
}

// steer is what the person said in the middle of a turn.
func (f *Follower) steer() []chat.Words {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.next(main)
	if m, is := r.Event.(event.MessageAdded); ok && is && !f.beyond(r) && event.ByPerson(r) {
		return []chat.Words{chat.From(chat.Typed, swap(m.Message.Text(), f.take.Root, f.world.root))}
	}
	return nil
}
