package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/record/session"
	"coder/internal/tool"
)

// errUnknownOutcome is the model's result for a call that was running when the process ended.
var errUnknownOutcome = errors.New("interrupted: the program ended while this call was running; its outcome is unknown, check before you repeat it")

// errNeverBegan is the model's result for a call that did not begin before the process ended.
var errNeverBegan = errors.New("not run: the program ended before this call began, and the user has moved on")

// history is what the logs say about the work of earlier processes, as far as it may still matter.
type history struct {
	tasks     task.Tasks
	subtasks  map[string]bool        // all, including ended ones
	children  map[string]*unfinished // subtasks without an end
	subtaskOf map[string]string      // subtask by the call it was started for
	run       event.Run              // how the last task ran
	heard     bool                   // the last task's input is in the conversation
	wanted    bool                   // the last task's creation is vouched
	replied   bool                   // the reply with the last calls is vouched
	concluded bool                   // the last message is the last task's answer
	edited    []string               // files that the last task wrote
	requested map[string]event.ToolCallRequested
	completed map[string]event.ToolCallCompleted
	asked     map[string]uip.Request  // by call
	answered  map[string]uip.Response // by interaction
	disowned  map[string]bool         // interactions whose answer is not vouched
}

func (h *history) add(r event.Record) {
	_ = h.tasks.Add(r) // one invalid record must not lose all others
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
		put(&h.subtasks, r.Task, true)
		put(&h.children, r.Task, &unfinished{created: r, agent: e.AgentID, call: e.CallID, conversation: conversation.Of(r.Task)})
		put(&h.subtaskOf, e.CallID, r.Task)
	}
	if !h.subtasks[r.Task] {
		h.note(r)
		return
	}
	if l := h.children[r.Task]; l != nil {
		l.conversation.Add(r)
		l.past.note(r)
		_, used, _ := event.Used(r.Event)
		l.usage = l.usage.Add(used)
	}
	if h.tasks.Get(r.Task).Status.Ended() {
		delete(h.children, r.Task)
	}
}

// note applies one record of the thread that h is about.
func (h *history) note(r event.Record) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		put(&h.requested, e.CallID, e)
		delete(h.completed, e.CallID) // the call runs again
	case event.ToolCallCompleted:
		put(&h.completed, e.CallID, e)
		asked := h.requested[e.CallID]
		for _, f := range asked.Effects {
			if tool.Edits(e.Tool, f) && !event.Untouched(asked, e) && e.Author != event.ActorVerifier {
				h.edited = append(h.edited, f.Target)
			}
		}
	case event.InteractionRequested:
		put(&h.asked, e.CallID(), e.Request)
		for _, part := range e.Parts {
			if id := part.CallID(); id != "" {
				put(&h.asked, id, e.Request)
			}
		}
	case event.InteractionResponded:
		switch {
		case withdrawn(e.Response):
			maps.DeleteFunc(h.asked, func(_ string, q uip.Request) bool { return q.ID == e.ID })
		case r.Vouched:
			put(&h.answered, e.ID, e.Response)
		default:
			put(&h.disowned, e.ID, true)
		}
	case event.MessageAdded:
		switch e.Message.Role {
		case chat.Assistant:
			// The calls are settled, and a model may use their ids again.
			h.requested, h.completed, h.asked, h.answered, h.disowned, h.subtaskOf = nil, nil, nil, nil, nil, nil
			h.replied, h.concluded = r.Vouched, len(e.Message.Calls()) == 0
		case chat.User:
			h.heard, h.concluded = true, false
			delete(h.asked, "") // a question without a call was answered
		case chat.System, chat.Tool:
		}
	case event.TaskCreated:
		h.heard, h.wanted, h.run = false, r.Vouched, event.Run{}
		h.concluded, h.edited = false, nil
		if e.Run != nil {
			h.run = *e.Run
		}
	case event.TaskStarted:
		if e.Run != nil {
			h.run = *e.Run
		}
	}
}

func put[V any](m *map[string]V, k string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[k] = v
}

// unfinished returns the user's last task, and whether it has no end.
func (h *history) unfinished() (task.Task, bool) {
	for _, t := range slices.Backward(h.tasks.All()) {
		if t.Parent == "" {
			return t, !t.Status.Ended()
		}
	}
	return task.Task{}, false
}

// thread is a conversation with its recorded past: the session's own or a subtask's.
type thread struct {
	task, agent  string
	conversation *conversation.Conversation
	past         *history
	runner       *toolrun.Runner
	settings     func() orchestrator.Settings
}

// doubted reports whether the work to resume is not vouched.
func (th thread) doubted() bool {
	return !th.past.wanted || len(th.conversation.Open()) > 0 && !th.past.replied
}

// main returns the thread of the session's own conversation, for a task.
func (s *Session) main(taskID string) thread {
	return thread{
		task: taskID, agent: orchestrator.ActorAgent, conversation: &s.conversation, past: &s.past,
		runner: s.engine.Runner, settings: s.engine.Settings,
	}
}

// threads returns the conversations with calls to settle.
func (s *Session) threads(taskID string) []thread {
	all := []thread{s.main(taskID)}
	for _, c := range s.unfinishedSubtasks() {
		all = append(all, c.thread())
	}
	return all
}

// recall gives the broker the recorded questions and answers about calls
// that have not run, so that it asks nothing twice and loses no answer.
func (s *Session) recall(th thread) {
	ids := []string{th.past.check()}
	for _, c := range th.conversation.Open() {
		ids = append(ids, c.ID)
	}
	for _, id := range ids {
		q, ok := th.past.asked[id]
		if req, began := th.past.requested[id]; !ok || began && !th.past.repeatable(req) {
			continue
		}
		a, answered := th.past.answered[q.ID]
		switch {
		case answered:
			s.broker.Recall(id, q, &a)
		case th.past.disowned[q.ID]:
			s.ignored.answers++
		default:
			s.broker.Recall(id, q, nil)
		}
	}
	if q := th.past.circle(); q != nil {
		if a, ok := th.past.answered[q.ID]; ok {
			s.broker.Recall(q.ID, *q, &a)
		} else {
			s.broker.Recall(q.ID, *q, nil)
		}
	}
	if calls := len(th.conversation.Open()); calls > 0 && !th.past.replied {
		s.ignored.calls += calls
	}
}

// check returns the call of a check that needed approval and has not run, or "".
func (h *history) check() string {
	for id, q := range h.asked {
		if _, began := h.requested[id]; q.Author == event.ActorVerifier && !began {
			return id
		}
	}
	return ""
}

// circle returns the question about a loop if no request to the model followed it, otherwise nil.
func (h *history) circle() *uip.Request {
	if q, ok := h.asked[""]; ok && orchestrator.AsksAboutCircle(q) {
		return &q
	}
	return nil
}

// repeatable reports whether an interrupted call can run again without harm:
// it only reads, or asks, or writes coder's own notes. A call that delegated
// to a subagent can, until the subtask has ended: coder resumes the subtask.
func (h *history) repeatable(req event.ToolCallRequested) bool {
	if req.ReadOnly {
		return true
	}
	if id, ok := h.subtaskOf[req.CallID]; ok && h.children[id] == nil {
		return false
	}
	return event.Harmless(req.Effects)
}

// errRunAgain closes the record of a call that runs again.
var errRunAgain = errors.New("interrupted: the program ended while this call was running; it runs again")

// resolveCalls gives a result to every call that began before the process ended. It leaves
// calls open that had not begun. If the turn continues, it also leaves calls open that can run
// again without harm, unless a later call must be settled: results keep the order of the calls.
func (s *Session) resolveCalls(ctx context.Context, th thread, goesOn bool, sink event.Sink) error {
	var errs []error // for calls that are not the model's: nothing waits for their results
	for _, d := range s.uncertainCalls(task.Task{ID: th.task}) {
		if d.direct && d.th.task == th.task {
			res := toolrun.Failed(chat.ToolCall{ID: d.call.CallID, Name: d.call.Tool}, errCutOff)
			errs = append(errs, s.completeUnknown(ctx, th, res, sink))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	open := th.conversation.Open()
	last := len(open) - 1
	for goesOn && last >= 0 && th.mayRunAgain(ctx, open[last]) {
		last--
	}
	for i, c := range open {
		if _, began := th.past.requested[c.ID]; !began {
			continue
		}
		var err error
		if i > last {
			err = s.completeUnknown(ctx, th, toolrun.Failed(c, errRunAgain), sink)
		} else {
			err = s.resolveCall(ctx, th, c, sink)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayRunAgain reports whether a call is not settled and may stay open. The record
// alone does not prove it harmless: the call must be harmless as prepared now.
func (th thread) mayRunAgain(ctx context.Context, c chat.ToolCall) bool {
	req, began := th.past.requested[c.ID]
	_, known := th.past.completed[c.ID]
	return !began || !known && (th.retried(c.ID) || th.past.repeatable(req) && th.runner.Harmless(ctx, th.settings().Tools, c))
}

// resolveCall gives a call that began its recorded result, or the result that its outcome is unknown.
func (s *Session) resolveCall(ctx context.Context, th thread, c chat.ToolCall, sink event.Sink) error {
	done, known := th.past.completed[c.ID]
	res := toolrun.Failed(c, errUnknownOutcome)
	if known {
		res = chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(done.Output), Failed: done.IsError}
	} else if err := s.completeUnknown(ctx, th, res, sink); err != nil {
		return err
	}
	return s.say(ctx, th, sink, chat.Answer(res))
}

// completeUnknown closes the audit record of a call with an unknown end.
func (s *Session) completeUnknown(ctx context.Context, th thread, res chat.ToolResult, sink event.Sink) error {
	req := th.past.requested[res.CallID]
	return sink.Emit(ctx, event.Record{Task: th.task, Actor: event.ActorRecovery, Event: event.ToolCallCompleted{
		CallID: res.CallID, Tool: req.Tool, Author: req.Author, TaskID: th.task,
		Output: json.RawMessage(res.Text), IsError: true, Unknown: true, Timestamp: s.sup.Now().UnixMilli(),
	}})
}

func (s *Session) say(ctx context.Context, th thread, sink event.Sink, m chat.Message) error {
	r := event.Record{Task: th.task, Actor: event.ActorRecovery, Event: event.Masked(event.MessageAdded{Message: m}, s.engine.Conceals)}
	err := sink.Emit(ctx, r)
	if event.Kept(err) {
		th.conversation.Add(r)
	}
	return err
}

// abandon closes everything that an earlier process left unfinished.
func (s *Session) abandon(ctx context.Context, out event.Sink) error {
	if err := s.endUndoing(ctx, s.through(out)); err != nil {
		return err
	}
	t, ok := s.past.unfinished()
	left := s.unfinishedSubtasks()
	if !ok && len(s.conversation.Open()) == 0 && len(left) == 0 {
		return s.endRequests(ctx, nobody, s.through(out))
	}
	if err := announceSubtasks(ctx, left, out); err != nil {
		return err
	}
	sink := s.through(out)
	if err := s.closeSubtasks(ctx, left, sink); err != nil {
		return err
	}
	if err := s.closeThread(ctx, s.main(t.ID), sink); err != nil {
		return fmt.Errorf("settle the last turn: %w", err)
	}
	if err := s.endRequests(ctx, nobody, sink); err != nil {
		return err
	}
	s.past = history{}
	if !ok {
		return nil
	}
	return s.cancel(ctx, t.ID, sink)
}

// closeThread gives every call in a conversation its result.
func (s *Session) closeThread(ctx context.Context, th thread, sink event.Sink) error {
	if err := s.resolveCalls(ctx, th, false, sink); err != nil {
		return err
	}
	for _, c := range th.conversation.Open() {
		res := toolrun.Failed(c, errNeverBegan)
		now := s.sup.Now().UnixMilli()
		for _, e := range []event.Event{
			event.ToolCallRequested{CallID: c.ID, Tool: c.Name, Author: th.agent, TaskID: th.task, Input: c.Args, Timestamp: now, Verdict: event.Cancelled, DecidedBy: event.ActorRecovery},
			event.ToolCallCompleted{CallID: c.ID, Tool: c.Name, Author: th.agent, TaskID: th.task, Output: json.RawMessage(res.Text), IsError: true, Timestamp: now},
		} {
			if err := sink.Emit(ctx, event.Record{Task: th.task, Actor: event.ActorRecovery, Event: e}); err != nil {
				return err
			}
		}
		if err := s.say(ctx, th, sink, chat.Answer(res)); err != nil {
			return err
		}
	}
	return nil
}

// cancel ends a task that nobody continues.
func (s *Session) cancel(ctx context.Context, taskID string, sink event.Sink) error {
	return sink.Emit(ctx, event.Record{Task: taskID, Actor: event.ActorRecovery, Event: event.TaskCanceled{
		TaskID: taskID, Reason: "the program ended before the task finished", Author: orchestrator.ActorUser,
	}})
}

// markUnsure records that calls without a recorded beginning may have begun: their records may be
// among the lost ones. These calls are then settled as calls with an unknown outcome, and do not run.
func (s *Session) markUnsure(ctx context.Context) error {
	t, _ := s.past.unfinished()
	for _, th := range s.threads(t.ID) {
		for _, c := range th.conversation.Open() {
			if _, began := th.past.requested[c.ID]; began {
				continue
			}
			r := event.Record{Task: th.task, Actor: event.ActorRecovery, Event: event.ToolCallRequested{
				CallID: c.ID, Tool: c.Name, Author: th.agent, TaskID: th.task, Input: c.Args,
				Timestamp: s.sup.Now().UnixMilli(), Verdict: event.Unsure, DecidedBy: event.ActorRecovery,
			}}
			if err := s.through(event.Discard).Emit(ctx, r); err != nil {
				return fmt.Errorf("suspect call %s: %w", c.ID, err)
			}
			th.past.note(r)
		}
	}
	return nil
}

// restore adds messages from the snapshot that the logs have lost. It saves a snapshot
// that does not begin like the logs under another name instead of overwriting it.
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
	if len(missing) > 0 {
		s.past.replied = false // a snapshot does not vouch for a model's reply
	}
	for _, m := range missing {
		if err := s.say(ctx, s.main(t.ID), s.through(event.Discard), m); err != nil {
			return fmt.Errorf("restore session %s: %w", s.ID, err)
		}
	}
	if !open || len(missing) == 0 {
		return nil
	}
	if last := missing[len(missing)-1]; last.Role == chat.Assistant && len(last.Calls()) == 0 { // it ends with an answer
		s.past = history{}
		sink := s.through(event.Discard)
		if t.Status == task.Open { // its start was lost too
			started := event.TaskStarted{TaskID: t.ID, AgentID: orchestrator.ActorAgent, Author: orchestrator.ActorAgent}
			if err := sink.Emit(ctx, event.Record{Task: t.ID, Actor: event.ActorRecovery, Event: started}); err != nil {
				return err
			}
		}
		return sink.Emit(ctx, event.Record{
			Task: t.ID, Actor: event.ActorRecovery, Event: event.TaskCompleted{TaskID: t.ID, Author: orchestrator.ActorAgent},
		})
	}
	return nil
}
