package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"coder/internal/chat"
	"coder/internal/event"
	"coder/internal/orchestrator"
	"coder/internal/session"
	"coder/internal/task"
	"coder/internal/toolrun"
	"coder/internal/uip"
)

// errUnknownOutcome is what the model is told of a call that was under way
// when the process ended.
var errUnknownOutcome = errors.New("interrupted: the program ended while this call was running; " +
	"its outcome is unknown, look before you repeat it")

// errNeverBegan is what the model is told of a call that the end of the
// process kept from beginning.
var errNeverBegan = errors.New("not run: the program ended before this call began, and the user has gone on to something else")

// history is what the logs say about the work of earlier processes, as far as
// it may still matter.
type history struct {
	tasks     task.Tasks
	heard     bool // the last task's input is in the conversation
	requested map[string]event.ToolCallRequested
	completed map[string]event.ToolCallCompleted
	asked     map[string]uip.Request  // by call
	answered  map[string]uip.Response // by interaction
}

func (h *history) add(r event.Record) error {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		put(&h.requested, e.CallID, e)
		delete(h.completed, e.CallID) // a call that is run again
	case event.ToolCallCompleted:
		put(&h.completed, e.CallID, e)
	case event.InteractionRequested:
		put(&h.asked, e.CallID(), e.Request)
		for _, part := range e.Parts {
			if id := part.CallID(); id != "" {
				put(&h.asked, id, e.Request)
			}
		}
	case event.InteractionResponded:
		put(&h.answered, e.ID, e.Response)
	case event.MessageAdded:
		switch e.Message.Role {
		case chat.Assistant:
			h.forget()
		case chat.User:
			h.heard = true
		case chat.System, chat.Tool:
		}
	case event.TaskCreated:
		h.heard = false
	}
	return h.tasks.Add(r)
}

// forget drops what is known of calls before a new reply: they are settled,
// and a model may use their ids again.
func (h *history) forget() {
	h.requested, h.completed, h.asked, h.answered = nil, nil, nil, nil
}

func put[V any](m *map[string]V, k string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[k] = v
}

// unfinished is the last task, if it has no end.
func (h *history) unfinished() (task.Task, bool) {
	all := h.tasks.All()
	if len(all) == 0 || all[len(all)-1].Status.Ended() {
		return task.Task{}, false
	}
	return all[len(all)-1], true
}

// recallQuestions tells the broker what was asked about calls that have not
// run, so that nothing is asked twice and no answer is lost.
func (s *Session) recallQuestions() {
	for _, c := range s.talk.Open() {
		q, ok := s.past.asked[c.ID]
		if req, began := s.past.requested[c.ID]; !ok || began && !repeatable(req) {
			continue
		}
		if a, ok := s.past.answered[q.ID]; ok {
			s.broker.Recall(q, &a)
		} else {
			s.broker.Recall(q, nil)
		}
	}
}

// repeatable reports whether a call that was under way can be run again
// without harm: it only reads, or asks, or writes the program's own notes.
func repeatable(req event.ToolCallRequested) bool {
	if req.ReadOnly {
		return true
	}
	for _, e := range req.Effects {
		if kind, _, _ := strings.Cut(e, " "); kind != "read" && kind != "note" {
			return false
		}
	}
	return len(req.Effects) > 0
}

// errRunAgain closes the record of a call that is run again.
var errRunAgain = errors.New("interrupted: the program ended while this call was running; it is run again")

// settleCalls gives a result to every call that began before the process
// ended. Calls that had not begun are left open, and so are those that can be
// run again without harm, if the turn goes on.
func (s *Session) settleCalls(ctx context.Context, taskID string, goesOn bool, sink event.Sink) error {
	for _, c := range s.talk.Open() {
		req, began := s.past.requested[c.ID]
		if !began {
			continue
		}
		done, known := s.past.completed[c.ID]
		if !known && goesOn && repeatable(req) {
			if err := s.completeUnknown(ctx, c, toolrun.Failed(c, errRunAgain), taskID, sink); err != nil {
				return err
			}
			continue
		}
		res := toolrun.Failed(c, errUnknownOutcome)
		if known {
			res = chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(done.Output), Failed: done.IsError}
		} else if err := s.completeUnknown(ctx, c, res, taskID, sink); err != nil {
			return err
		}
		if err := s.say(ctx, taskID, sink, chat.Answer(res)); err != nil {
			return err
		}
	}
	return nil
}

// dropCall closes the books on a call that never began.
func (s *Session) dropCall(ctx context.Context, c chat.ToolCall, taskID string, sink event.Sink) error {
	res := toolrun.Failed(c, errNeverBegan)
	now := s.sup.Now().UnixMilli()
	for _, e := range []event.Event{
		event.ToolCallRequested{CallID: c.ID, Tool: c.Name, Author: orchestrator.ActorAgent, TaskID: taskID, Input: c.Args, Timestamp: now, Verdict: "cancelled", DecidedBy: "recovery"},
		event.ToolCallCompleted{CallID: c.ID, Tool: c.Name, Author: orchestrator.ActorAgent, TaskID: taskID, Output: json.RawMessage(res.Text), IsError: true, Timestamp: now},
	} {
		if err := sink.Emit(ctx, event.Record{Task: taskID, Actor: "recovery", Event: e}); err != nil {
			return err
		}
	}
	return s.say(ctx, taskID, sink, chat.Answer(res))
}

// completeUnknown closes the audit record of a call nobody saw the end of.
func (s *Session) completeUnknown(ctx context.Context, c chat.ToolCall, res chat.ToolResult, taskID string, sink event.Sink) error {
	req := s.past.requested[c.ID]
	return sink.Emit(ctx, event.Record{Task: taskID, Actor: "recovery", Event: event.ToolCallCompleted{
		CallID: c.ID, Tool: req.Tool, Author: req.Author, TaskID: taskID,
		Output: json.RawMessage(res.Text), IsError: true, Timestamp: s.sup.Now().UnixMilli(),
	}})
}

func (s *Session) say(ctx context.Context, taskID string, sink event.Sink, m chat.Message) error {
	r := event.Record{Task: taskID, Actor: "recovery", Event: event.MessageAdded{Message: m}}
	if err := sink.Emit(ctx, r); err != nil {
		return err
	}
	s.talk.Add(r)
	return nil
}

// abandon closes the books on what an earlier process left unfinished.
func (s *Session) abandon(ctx context.Context, out event.Sink) error {
	t, ok := s.past.unfinished()
	open := s.talk.Open()
	if !ok && len(open) == 0 {
		return nil
	}
	sink := s.through(out)
	if err := s.settleCalls(ctx, t.ID, false, sink); err != nil {
		return fmt.Errorf("settle the last turn: %w", err)
	}
	for _, c := range s.talk.Open() {
		if err := s.dropCall(ctx, c, t.ID, sink); err != nil {
			return fmt.Errorf("settle the last turn: %w", err)
		}
	}
	s.past = history{}
	if !ok {
		return nil
	}
	return sink.Emit(ctx, event.Record{Task: t.ID, Actor: "recovery", Event: event.TaskCanceled{
		TaskID: t.ID, Reason: "the program ended before the task did", Author: orchestrator.ActorUser,
	}})
}

// restore takes from the snapshot what the logs no longer have. A snapshot
// that does not begin as the logs do is kept under another name rather than
// overwritten.
func (s *Session) restore(ctx context.Context) error {
	snap, err := s.sup.Sessions.Load(ctx, s.ID)
	if errors.Is(err, session.ErrNotFound) && s.line.Last() > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	missing, ok, err := s.view.missing(snap)
	switch {
	case err != nil:
		return fmt.Errorf("restore session %s: %w", s.ID, err)
	case !ok:
		snap.ID += "-before-damage"
		return s.sup.Sessions.Save(ctx, snap)
	}
	t, open := s.past.unfinished()
	for _, m := range missing {
		if err := s.say(ctx, t.ID, s.through(event.Discard), m); err != nil {
			return fmt.Errorf("restore session %s: %w", s.ID, err)
		}
	}
	if open && len(missing) > 0 && answered(missing) {
		return s.closeRestored(ctx, t)
	}
	return nil
}

// answered reports whether a conversation ends with an answer.
func answered(ms []chat.Message) bool {
	last := ms[len(ms)-1]
	return last.Role == chat.Assistant && len(last.Calls()) == 0
}

// closeRestored gives the task whose answer the snapshot held its end.
func (s *Session) closeRestored(ctx context.Context, t task.Task) error {
	s.past = history{}
	return s.through(event.Discard).Emit(ctx, event.Record{
		Task: t.ID, Actor: "recovery", Event: event.TaskCompleted{TaskID: t.ID, Author: orchestrator.ActorAgent},
	})
}
