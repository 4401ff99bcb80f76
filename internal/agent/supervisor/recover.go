package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/record/session"
	"coder/internal/tool"
)

// errUnknownOutcome is the model's result for a call that was running when the process ended.
var errUnknownOutcome = errors.New("interrupted: the program ended while this call was running; its outcome is unknown, check before you repeat it")

// errNeverStarted is the model's result for a call that did not begin before the process ended.
var errNeverStarted = errors.New("not run: the program ended before this call began, and the user has moved on")

// history is what the logs say about the work of earlier processes, as far as it may still matter.
type history struct {
	tasks            task.Tasks
	subtasks         map[string]bool               // all, including ended ones
	children         map[string]*unfinishedSubtask // subtasks without an end
	subtaskOf        map[string]string             // subtask by the call it was started for
	run              event.RunOptions              // how the last task ran
	inputRecorded    bool                          // the last task's input is in the conversation
	creationVouched  bool                          // the last task's creation is vouched
	replyVouched     bool                          // the reply with the last calls is vouched
	isAnswered       bool                          // the last message is the last task's answer
	editedFiles      []string                      // files that the last task wrote
	requested        map[string]event.ToolCallRequested
	completed        map[string]event.ToolCallCompleted
	questions        map[string]uip.Request  // by call
	answers          map[string]uip.Response // by interaction
	unvouchedAnswers map[string]bool         // interactions whose answer is not vouched
}

func (h *history) addRecord(r event.Record) {
	_ = h.tasks.Add(r) // one invalid record must not lose all others
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
		putIn(&h.subtasks, r.Task, true)
		putIn(&h.children, r.Task, &unfinishedSubtask{created: r, agent: e.AgentID, callID: e.CallID,
			conversation: conversation.New(r.Task)})
		putIn(&h.subtaskOf, e.CallID, r.Task)
	}
	if !h.subtasks[r.Task] {
		h.applyRecord(r)
		return
	}
	if l := h.children[r.Task]; l != nil {
		l.conversation.Add(r)
		l.past.applyRecord(r)
		_, used, _ := event.UsageOf(r.Event)
		l.usage = l.usage.Add(used)
	}
	if h.tasks.Get(r.Task).Status.IsEnded() {
		delete(h.children, r.Task)
	}
}

// applyRecord applies one record of the thread that h is about.
func (h *history) applyRecord(r event.Record) {
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		putIn(&h.requested, e.CallID, e)
		delete(h.completed, e.CallID) // the call runs again
	case event.ToolCallCompleted:
		putIn(&h.completed, e.CallID, e)
		asked := h.requested[e.CallID]
		for _, f := range asked.Effects {
			if tool.ChangesFile(e.Tool, f) && !event.IsUntouched(asked, e) && e.Author != event.ActorVerifier {
				h.editedFiles = append(h.editedFiles, f.Target)
			}
		}
	case event.InteractionRequested:
		putIn(&h.questions, e.CallID(), e.Request)
		for _, part := range e.Parts {
			if id := part.CallID(); id != "" {
				putIn(&h.questions, id, e.Request)
			}
		}
	case event.InteractionResponded:
		switch {
		case isWithdrawal(e.Response):
			maps.DeleteFunc(h.questions, func(_ string, q uip.Request) bool { return q.ID == e.ID })
		case r.Vouched:
			putIn(&h.answers, e.ID, e.Response)
		default:
			putIn(&h.unvouchedAnswers, e.ID, true)
		}
	case event.MessageAdded:
		switch e.Message.Role {
		case chat.Assistant:
			// The calls are settled, and a model may use their ids again.
			h.requested, h.completed, h.questions, h.answers, h.unvouchedAnswers, h.subtaskOf = nil, nil, nil, nil, nil, nil
			h.replyVouched, h.isAnswered = r.Vouched, len(e.Message.Calls()) == 0
		case chat.User:
			h.inputRecorded, h.isAnswered = true, false
			delete(h.questions, "") // a question without a call was answered
		case chat.System, chat.Tool:
		}
	case event.TaskCreated:
		h.inputRecorded, h.creationVouched, h.run = false, r.Vouched, event.RunOptions{}
		h.isAnswered, h.editedFiles = false, nil
		if e.Run != nil {
			h.run = *e.Run
		}
	case event.TaskStarted:
		if e.Run != nil {
			h.run = *e.Run
		}
	}
}

func putIn[V any](m *map[string]V, k string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[k] = v
}

// unfinishedTask returns the user's last task, and whether it has no end.
func (h *history) unfinishedTask() (task.Task, bool) {
	for _, t := range slices.Backward(h.tasks.All()) {
		if t.Parent == "" {
			return t, !t.Status.IsEnded()
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

// isUnvouched reports whether the work to resume is not vouched.
func (th thread) isUnvouched() bool {
	return !th.past.creationVouched || len(th.conversation.OpenCalls()) > 0 && !th.past.replyVouched
}

// main returns the thread of the session's own conversation, for a task.
func (s *Session) main(taskID string) thread {
	return thread{
		task: taskID, agent: orchestrator.ActorAgent, conversation: &s.conversation, past: &s.past,
		runner: s.engine.Runner, settings: s.engine.Settings,
	}
}

// unsettledThreads returns the conversations with calls to settle.
func (s *Session) unsettledThreads(taskID string) []thread {
	all := []thread{s.main(taskID)}
	for _, c := range s.unfinishedSubtasks() {
		all = append(all, c.thread())
	}
	return all
}

// restoreQuestions gives the broker the recorded questions and answers about calls
// that have not run, so that it asks nothing twice and loses no answer.
func (s *Session) restoreQuestions(th thread) {
	ids := []string{th.past.pendingCheck()}
	for _, c := range th.conversation.OpenCalls() {
		ids = append(ids, c.ID)
	}
	for _, id := range ids {
		q, ok := th.past.questions[id]
		if req, began := th.past.requested[id]; !ok || began && !th.past.isRepeatable(req) {
			continue
		}
		a, answered := th.past.answers[q.ID]
		switch {
		case answered:
			s.broker.Restore(id, q, &a)
		case th.past.unvouchedAnswers[q.ID]:
			s.unvouched.answers++
		default:
			s.broker.Restore(id, q, nil)
		}
	}
	if q := th.past.loopQuestion(); q != nil {
		if a, ok := th.past.answers[q.ID]; ok {
			s.broker.Restore(q.ID, *q, &a)
		} else {
			s.broker.Restore(q.ID, *q, nil)
		}
	}
	if calls := len(th.conversation.OpenCalls()); calls > 0 && !th.past.replyVouched {
		s.unvouched.calls += calls
	}
}

// pendingCheck returns the call of a check that needed approval and has not run, or "".
func (h *history) pendingCheck() string {
	for id, q := range h.questions {
		if _, began := h.requested[id]; q.Author == event.ActorVerifier && !began {
			return id
		}
	}
	return ""
}

// loopQuestion returns the question about a loop if no request to the model followed it, otherwise nil.
func (h *history) loopQuestion() *uip.Request {
	if q, ok := h.questions[""]; ok && orchestrator.IsLoopQuestion(q) {
		return &q
	}
	return nil
}

// isRepeatable reports whether an interrupted call can run again without harm:
// it only reads, or asks, or writes coder's own notes. A call that delegated
// to a subagent can, until the subtask has ended: coder resumes the subtask.
func (h *history) isRepeatable(req event.ToolCallRequested) bool {
	if req.ReadOnly {
		return true
	}
	if id, ok := h.subtaskOf[req.CallID]; ok && h.children[id] == nil {
		return false
	}
	return event.AreHarmless(req.Effects)
}

// errRunAgain closes the record of a call that runs again.
var errRunAgain = errors.New("interrupted: the program ended while this call was running; it runs again")

// resolveCalls gives a result to every call that began before the process ended. It leaves
// calls open that had not begun. If the turn continues, it also leaves calls open that can run
// again without harm, unless a later call must be settled: results keep the order of the calls.
func (s *Session) resolveCalls(ctx context.Context, th thread, goesOn bool, sink event.Sink) error {
	var errs []error // for calls that are not the model's: nothing waits for their results
	for _, d := range s.uncertainCalls(task.Task{ID: th.task}) {
		if d.notFromModel && d.thread.task == th.task {
			res := toolrun.FailedResult(chat.ToolCall{ID: d.call.CallID, Name: d.call.Tool}, errNotAwaited)
			errs = append(errs, s.completeUnknown(ctx, th, res, sink))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	open := th.conversation.OpenCalls()
	last := len(open) - 1
	for goesOn && last >= 0 && th.canStayOpen(ctx, open[last]) {
		last--
	}
	for i, c := range open {
		if _, began := th.past.requested[c.ID]; !began {
			continue
		}
		var err error
		if i > last {
			err = s.completeUnknown(ctx, th, toolrun.FailedResult(c, errRunAgain), sink)
		} else {
			err = s.resolveCall(ctx, th, c, sink)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// canStayOpen reports whether a call is not settled and may stay open. The record
// alone does not prove it harmless: the call must be harmless as prepared now.
func (th thread) canStayOpen(ctx context.Context, c chat.ToolCall) bool {
	req, began := th.past.requested[c.ID]
	_, known := th.past.completed[c.ID]
	return !began || !known && (th.isRetried(c.ID) || th.past.isRepeatable(req) &&
		th.runner.IsHarmless(ctx, th.settings().Tools, c))
}

// resolveCall gives a call that began its recorded result, or the result that its outcome is unknown.
func (s *Session) resolveCall(ctx context.Context, th thread, c chat.ToolCall, sink event.Sink) error {
	done, known := th.past.completed[c.ID]
	res := toolrun.FailedResult(c, errUnknownOutcome)
	if known {
		res = chat.ToolResult{CallID: c.ID, Name: c.Name, Text: string(done.Output), Failed: done.IsError}
	} else if err := s.completeUnknown(ctx, th, res, sink); err != nil {
		return err
	}
	return s.addMessage(ctx, th, sink, chat.ToolMessage(res))
}

// completeUnknown closes the audit record of a call with an unknown end.
func (s *Session) completeUnknown(ctx context.Context, th thread, res chat.ToolResult, sink event.Sink) error {
	req := th.past.requested[res.CallID]
	return sink.Emit(ctx, event.Record{Task: th.task, Actor: event.ActorRecovery, Event: event.ToolCallCompleted{
		CallID: res.CallID, Tool: req.Tool, Author: req.Author, TaskID: th.task,
		Output: json.RawMessage(res.Text), IsError: true, OutcomeUnknown: true, Timestamp: s.supervisor.Now().UnixMilli(),
	}})
}

func (s *Session) addMessage(ctx context.Context, th thread, sink event.Sink, m chat.Message) error {
	r := event.Record{Task: th.task, Actor: event.ActorRecovery,
		Event: event.Mask(event.MessageAdded{Message: m}, s.engine.Concealer)}
	err := sink.Emit(ctx, r)
	if event.IsSaved(err) {
		th.conversation.Add(r)
	}
	return err
}

// closeUnfinished closes everything that an earlier process left unfinished.
func (s *Session) closeUnfinished(ctx context.Context, out event.Sink) error {
	if err := s.closeInterruptedUndo(ctx, s.recordingSink(out)); err != nil {
		return err
	}
	t, ok := s.past.unfinishedTask()
	left := s.unfinishedSubtasks()
	if !ok && len(s.conversation.OpenCalls()) == 0 && len(left) == 0 {
		return s.endRequests(ctx, noRequest, s.recordingSink(out))
	}
	if err := announceSubtasks(ctx, left, out); err != nil {
		return err
	}
	sink := s.recordingSink(out)
	if err := s.closeSubtasks(ctx, left, sink); err != nil {
		return err
	}
	if err := s.closeThread(ctx, s.main(t.ID), sink); err != nil {
		return message.Errorf("settle the last turn: %w", err)
	}
	if err := s.endRequests(ctx, noRequest, sink); err != nil {
		return err
	}
	s.past = history{}
	if !ok {
		return nil
	}
	return s.cancelTask(ctx, t.ID, sink)
}

// closeThread gives every call in a conversation its result.
func (s *Session) closeThread(ctx context.Context, th thread, sink event.Sink) error {
	if err := s.resolveCalls(ctx, th, false, sink); err != nil {
		return err
	}
	for _, c := range th.conversation.OpenCalls() {
		res := toolrun.FailedResult(c, errNeverStarted)
		now := s.supervisor.Now().UnixMilli()
		for _, e := range []event.Event{
			event.ToolCallRequested{CallID: c.ID, Tool: c.Name, Author: th.agent, TaskID: th.task, Input: c.Args, Timestamp: now,
				Verdict: event.VerdictCancelled, DecidedBy: event.ActorRecovery},
			event.ToolCallCompleted{CallID: c.ID, Tool: c.Name, Author: th.agent, TaskID: th.task,
				Output: json.RawMessage(res.Text), IsError: true, Timestamp: now},
		} {
			if err := sink.Emit(ctx, event.Record{Task: th.task, Actor: event.ActorRecovery, Event: e}); err != nil {
				return err
			}
		}
		if err := s.addMessage(ctx, th, sink, chat.ToolMessage(res)); err != nil {
			return err
		}
	}
	return nil
}

// cancelTask ends a task that nobody continues.
func (s *Session) cancelTask(ctx context.Context, taskID string, sink event.Sink) error {
	return sink.Emit(ctx, event.Record{Task: taskID, Actor: event.ActorRecovery, Event: event.TaskCanceled{
		TaskID: taskID, Reason: "the program ended before the task finished", Author: orchestrator.ActorUser,
	}})
}

// markUnsureCalls records that calls without a recorded beginning may have begun: their records may be
// among the lost ones. These calls are then settled as calls with an unknown outcome, and do not run.
func (s *Session) markUnsureCalls(ctx context.Context) error {
	t, _ := s.past.unfinishedTask()
	for _, th := range s.unsettledThreads(t.ID) {
		for _, c := range th.conversation.OpenCalls() {
			if _, began := th.past.requested[c.ID]; began {
				continue
			}
			r := event.Record{Task: th.task, Actor: event.ActorRecovery, Event: event.ToolCallRequested{
				CallID: c.ID, Tool: c.Name, Author: th.agent, TaskID: th.task, Input: c.Args,
				Timestamp: s.supervisor.Now().UnixMilli(), Verdict: event.VerdictUnsure, DecidedBy: event.ActorRecovery,
			}}
			if err := s.recordingSink(event.Discard).Emit(ctx, r); err != nil {
				return message.Errorf("suspect call %s: %w", c.ID, err)
			}
			th.past.applyRecord(r)
		}
	}
	return nil
}

// restoreMessages adds messages from the snapshot that the logs have lost. It saves a snapshot
// that does not begin like the logs under another name instead of overwriting it.
func (s *Session) restoreMessages(ctx context.Context) error {
	snap, err := s.supervisor.Sessions.Load(ctx, s.ID)
	if errors.Is(err, session.ErrNotFound) && s.timeline.Last() > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	missing, ok, err := s.projection.missingMessages(snap)
	switch {
	case err != nil:
		return message.Errorf("restore session %s: %w", s.ID, err)
	case !ok:
		snap.ID += "-before-damage"
		return s.supervisor.Sessions.Save(ctx, snap)
	}
	t, open := s.past.unfinishedTask()
	if len(missing) > 0 {
		s.past.replyVouched = false // a snapshot does not vouch for a model's reply
	}
	for _, m := range missing {
		if err := s.addMessage(ctx, s.main(t.ID), s.recordingSink(event.Discard), m); err != nil {
			return message.Errorf("restore session %s: %w", s.ID, err)
		}
	}
	if !open || len(missing) == 0 {
		return nil
	}
	if last := missing[len(missing)-1]; last.Role == chat.Assistant && len(last.Calls()) == 0 { // it ends with an answer
		s.past = history{}
		sink := s.recordingSink(event.Discard)
		if t.Status == task.StatusOpen { // its start was lost too
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
