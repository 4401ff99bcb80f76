package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"coder/internal/agent/broker"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/record/timeline"
)

// errCopiedUpToHere is the model's result for a call without one,
// because the session was begun from a record before it.
var errCopiedUpToHere = errors.New("cancelled: this session starts from an earlier record of another session, before this call had a result; files are as they were before the call")

// CloseCopied ends everything unfinished in a session that was copied up to one of its
// records, and switches to a mode if one is named. It cancels each call without
// a result, withdraws each open question, and cancels each task without an end.
func (s *Supervisor) CloseCopied(ctx context.Context, id, mode, preset string) (err error) {
	ss := &Session{ID: id, supervisor: s, broker: broker.New(s.User), doubtReason: func() string { return "" }}
	ss.notary = s.newNotary(id)
	ss.timeline, err = timeline.Open(ctx, s.Store, id, timeline.Options{Now: s.Now, Fold: ss.applyPast,
		Seal: ss.notary.Seal})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ss.timeline.Close()) }()
	sink := ss.recordingSink(event.Discard)
	for _, c := range ss.unfinishedSubtasks() {
		if err := ss.closeCopiedThread(ctx, c.thread(), sink); err != nil {
			return err
		}
		if err := ss.closeCopiedTask(ctx, c.id, sink); err != nil {
			return err
		}
	}
	t, open := ss.past.unfinishedTask()
	if err := ss.closeCopiedThread(ctx, ss.main(t.ID), sink); err != nil {
		return err
	}
	if open {
		if err := ss.closeCopiedTask(ctx, t.ID, sink); err != nil {
			return err
		}
	}
	if mode == "" {
		return nil
	}
	return sink.Emit(ctx, event.Record{Actor: event.ActorUser, Event: event.ModeChanged{Mode: mode, Preset: preset}})
}

// closeCopiedThread gives every call in a conversation without a result one.
func (s *Session) closeCopiedThread(ctx context.Context, th thread, sink event.Sink) error {
	open := th.conversation.OpenCalls()
	now := s.supervisor.Now().UnixMilli()
	end := func(id, name, author string) error {
		res := toolrun.FailedResult(chat.ToolCall{ID: id, Name: name}, errCopiedUpToHere)
		return sink.Emit(ctx, event.Record{Task: th.task, Actor: event.ActorRecovery, Event: event.ToolCallCompleted{
			CallID: id, Tool: name, Author: author, TaskID: th.task, Output: json.RawMessage(res.Text), IsError: true,
			Timestamp: now,
		}})
	}
	for _, id := range slices.Sorted(maps.Keys(th.past.requested)) {
		asked := th.past.requested[id]
		if _, done := th.past.completed[id]; done {
			continue
		}
		if err := end(id, asked.Tool, asked.Author); err != nil {
			return err
		}
	}
	for _, c := range open {
		res := toolrun.FailedResult(c, errCopiedUpToHere)
		if done, ok := th.past.completed[c.ID]; ok {
			res = chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(done.Output), Failed: done.IsError}
		} else if _, asked := th.past.requested[c.ID]; !asked {
			err := sink.Emit(ctx, event.Record{Task: th.task, Actor: event.ActorRecovery, Event: event.ToolCallRequested{
				CallID: c.ID, Tool: c.Name, Author: th.agent, TaskID: th.task, Input: c.Args, Timestamp: now,
				Verdict: event.VerdictCancelled, DecidedBy: event.ActorRecovery,
			}})
			if err == nil {
				err = end(c.ID, c.Name, th.agent)
			}
			if err != nil {
				return err
			}
		}
		told := event.Record{Task: th.task, Actor: event.ActorRecovery,
			Event: event.MessageAdded{Message: chat.ToolMessage(res)}}
		if err := sink.Emit(ctx, told); err != nil {
			return message.Errorf("end the call %s: %w", c.ID, err)
		}
	}
	return nil
}

func (s *Session) closeCopiedTask(ctx context.Context, id string, sink event.Sink) error {
	return sink.Emit(ctx, event.Record{Task: id, Actor: event.ActorRecovery, Event: event.TaskCanceled{
		TaskID: id, Reason: "a new session begins here", Author: event.ActorUser,
	}})
}
