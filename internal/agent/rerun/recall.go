package rerun

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/tool"
	"coder/internal/tool/bash"
)

// Tools of other programs: how their names begin, by which a message gets what it names of
// theirs, which runs commands on events, and those of language servers, which answer when they are ready.
const (
	ofOthers  = "mcp__"
	ofServers = "lsp_"
	resources = "mcp_resource"
	onEvents  = "hook"
)

// OfOthers reports whether a tool is one of another program.
func OfOthers(name string) bool { return strings.HasPrefix(name, ofOthers) || name == resources }

// outside reports whether a call reached beyond this machine's confined
// commands and files: it is not made again, and its result is on record.
func outside(e event.ToolCallRequested) bool {
	if Keyed(e) || e.Tool == resources || e.Tool == onEvents || strings.HasPrefix(e.Tool, ofServers) {
		return true
	}
	if _, unconfined := bash.Asks(e.Input); unconfined {
		return true
	}
	return slices.ContainsFunc(e.Effects, func(f event.Effect) bool {
		return f.Kind == event.EffectNet || f.Kind == event.EffectUnknown
	})
}

// Keyed reports whether a call cannot be made again because the keys that it was made
// with are not on record. What it notes down has none.
func Keyed(e event.ToolCallRequested) bool {
	return secret.Marked(e.Input) && !event.Harmless(e.Effects)
}

// interrupted reports whether the person interrupted while a call ran.
func interrupted(e event.ToolCallCompleted) bool {
	var out struct {
		Cancelled bool `json:"cancelled"`
	}
	return json.Unmarshal(e.Output, &out) == nil && out.Cancelled
}

// Recall is what came of a call that is not made again. The error is for one that
// did not come to its end.
func (f *Follower) Recall(ctx context.Context, callID string) (res tool.Result, known bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.asked[callID]
	asked, found := c.Event.(event.ToolCallRequested)
	r, done := f.take.done(c)
	completed := r.Event != nil && r.Actor != event.ActorRecovery
	switch {
	case !found:
		return res, true, errDiffers
	case !completed && f.handedOn(callID): // what was done for it is on record
		return res, false, nil
	case !completed:
		return res, true, f.cutOff(ctx, c)
	case interrupted(done):
		f.cancel()
		err := f.wait(ctx)
		return tool.Result{Value: done.Output}, true, errors.Join(f.copy.Put(context.WithoutCancel(ctx), done.Changes), err)
	case !outside(asked):
		return res, false, nil
	}
	res.Value, res.Failed, res.Saw = json.RawMessage(f.here(string(done.Output))), done.IsError, make(map[string]string)
	for _, s := range done.Saw {
		res.Saw[s.Path] = s.Hash
	}
	return res, true, f.copy.Put(ctx, done.Changes)
}

// handedOn reports whether there is more on record of a subtask that works for a
// call, before the process under way ends.
func (f *Follower) handedOn(callID string) bool {
	for stream := callID; len(f.take.streams[stream]) > 0; stream += "+" {
		if len(f.left[stream]) > 0 {
			return true
		}
	}
	return false
}

// cutOff waits with a call that the end of the process cut off. If the record goes on
// in its stream as if the call had come to its end, that is a difference.
func (f *Follower) cutOff(ctx context.Context, c made) error {
	goesOn := slices.ContainsFunc(f.left[c.stream], func(r event.Record) bool {
		switch r.Event.(type) {
		case event.ToolCallRequested, event.ToolCallCompleted, event.InteractionRequested, event.InteractionResponded:
			return false // of a call beside this one
		}
		return true
	})
	if !goesOn && f.cut {
		return f.wait(ctx)
	}
	return f.part(c.stream, event.Record{Event: event.ToolCallCompleted{Tool: keyOf(c.Event).about, Unknown: true}})
}

// upcoming is the first request that is still to come of a call with an id, or else of a tool.
func (f *Follower) upcoming(id, name string) (first event.ToolCallRequested, ok bool) {
	for _, list := range f.left {
		for _, e := range each[event.ToolCallRequested](list) {
			if e.CallID == id {
				return e, true
			}
			if e.Tool == name && !ok {
				first, ok = e, true
			}
		}
	}
	return first, ok
}

// Planned is the request on record of a call that is being prepared.
func (f *Follower) Planned(ctx context.Context, name string) (event.ToolCallRequested, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.upcoming(tool.CallID(ctx), name)
}

// LetPass reports whether a call that would be asked about now was let pass
// unasked: by a flag of that run, or because its tool, which is not there to be
// judged, was always allowed. Risky says that it may not be let pass for good.
func (f *Follower) LetPass(id, name string, risky bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.upcoming(id, name)
	if !ok || e.Verdict != event.Allowed || e.DecidedBy != event.ActorPolicy {
		return false
	}
	switch e.Unasked {
	case event.RisksUnasked:
		return true
	case event.WaivableUnasked:
		return !risky
	}
	return len(e.Reasons) > 0 || strings.HasPrefix(e.Tool, ofOthers) // an older record has reasons for what was let pass
}

// Ask answers a question as it was answered.
func (f *Follower) Ask(ctx context.Context, q uip.Request) (uip.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.next(f.streams[q.TaskID])
	a, answered := r.Event.(event.InteractionResponded)
	if !answered {
		f.cancel() // it was withdrawn, or the process ended
		return uip.Response{}, f.wait(ctx)
	}
	answer := a.Response
	asked, _ := f.asked[q.ID].Event.(event.InteractionRequested)
	answer.ID, answer.TaskID = q.ID, q.TaskID
	answer.Parts = slices.Clone(answer.Parts)
	for i, part := range answer.Parts {
		n := slices.IndexFunc(asked.Parts, func(p uip.Request) bool { return p.ID == part.ID })
		if n >= 0 && n < len(q.Parts) {
			answer.Parts[i].ID, answer.Parts[i].TaskID = q.Parts[n].ID, q.TaskID
		}
	}
	if answer.Args != nil {
		answer.Args = json.RawMessage(f.here(string(answer.Args)))
	}
	return answer, nil
}

// byPerson reports whether the first of some records is a message that the person wrote. That
// they interrupted the turn is told just before its end.
func byPerson(list []event.Record) (chat.Message, bool) {
	if len(list) == 0 {
		return chat.Message{}, false
	}
	m, ok := list[0].Event.(event.MessageAdded)
	if len(list) > 1 {
		if _, canceled := list[1].Event.(event.TaskCanceled); canceled && list[1].Actor == event.ActorUser {
			return chat.Message{}, false
		}
	}
	return m.Message, ok && list[0].Actor == event.ActorUser && m.Message.Role == chat.User
}

// steer is what the person said in the middle of a turn.
func (f *Follower) steer() []chat.Words {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := byPerson(f.left[main]); ok {
		return []chat.Words{chat.From(chat.Typed, f.here(m.Text()))}
	}
	return nil
}

// Ended is what the model was told of commands in the background that had ended.
func (f *Follower) Ended() (text string, names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.next(main)
	m, ok := r.Event.(event.MessageAdded)
	if !ok || len(m.Reminded) == 0 || !strings.HasPrefix(m.Reminded[0], event.JobReminder) {
		return "", nil
	}
	text = strings.TrimSuffix(strings.TrimPrefix(m.Message.Text(), "<reminder>\n"), "\n</reminder>")
	return f.here(text), m.Reminded
}
