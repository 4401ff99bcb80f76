package supervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

// Limits on what a turn may delegate to subagents.
const (
	MaxParallelSubtasks = 4
	MaxSubtasksPerTurn  = 16
)

// ErrTooManySubtasks reports a turn that has used up its subtasks.
var ErrTooManySubtasks = message.Errorf(
	"this turn has already delegated work to other agents %d times, the most allowed",
	MaxSubtasksPerTurn)

// Subtask is work for a subagent. It belongs to the current turn.
type Subtask struct {
	Agent, Title, Objective string
	Settings                orchestrator.Settings
	Runner                  *toolrun.Runner
}

// SubtaskReport is the result of a subtask.
type SubtaskReport struct {
	Task         string     // its id; empty if it never began
	Summary      string     // its answer, or its last message
	Usage        chat.Usage // of all its requests to models
	WrittenFiles []string   // paths, without duplicates
	Err          error      // why it failed, or nil
}

// SpawnFunc is [Session.Spawn].
type SpawnFunc func(context.Context, Subtask) (SubtaskReport, error)

// Spawn runs a subtask on the same timeline and with the same interactor, and waits for
// it. A subagent's failure is part of the report. The error is for what ends or parks the
// turn: an interruption, a denial that stops the turn, a question to be answered later.
//
// Spawn must be called from the call that the subtask is for. If an earlier
// process left a subtask unfinished, Spawn resumes it when that call runs again.
func (s *Session) Spawn(ctx context.Context, job Subtask) (SubtaskReport, error) {
	c, err := s.newChild(job, tool.CallID(ctx))
	if err != nil {
		return SubtaskReport{}, err
	}
	free, err := s.subtasks.acquireSlot(ctx)
	if err != nil {
		return SubtaskReport{}, err
	}
	defer free()
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer s.subtasks.register(c.id, stop)()
	answer, err := c.run(working)
	report := c.report(answer)
	switch {
	case working.Err() != nil && ctx.Err() == nil:
		report.Err = errSubtaskStopped
		return report, nil
	case ctx.Err() != nil:
		return report, ctx.Err()
	case errors.Is(err, uip.ErrAnswerPending) || errors.Is(err, toolrun.ErrDeniedAndStopped) || tool.IsFatal(err):
		return report, err
	}
	report.Err = err
	return report, nil
}

// errSubtaskStopped reports a subtask that the user stopped without stopping the turn.
var errSubtaskStopped = errors.New("the user stopped this task")

// StopSubtask stops the subtask id of the current turn, and
// reports whether it was running. The turn continues.
func (s *Session) StopSubtask(id string) bool {
	s.subtasks.mu.Lock()
	defer s.subtasks.mu.Unlock()
	stop, ok := s.subtasks.running[id]
	if ok {
		stop()
	}
	return ok
}

// subtaskPool are the running subagents of the current turn.
type subtaskPool struct {
	slots chan struct{} // one slot per running subtask; made before the first turn

	mu         sync.Mutex // guards the fields below
	out        event.Sink
	parent     string                        // the turn's task
	started    int                           // started in this turn
	unfinished []*child                      // by an earlier process, and not yet resumed
	running    map[string]context.CancelFunc // stops a running subtask, by task
}

// register registers a running task until done is called.
func (c *subtaskPool) register(task string, stop context.CancelFunc) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	putIn(&c.running, task, stop)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, task)
	}
}

// beginTurn prepares for a turn shown on out.
func (c *subtaskPool) beginTurn(out event.Sink, left []*child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.started, c.unfinished = out, 0, left
	if c.slots == nil {
		c.slots = make(chan struct{}, MaxParallelSubtasks)
	}
}

// observe notes the turn's task.
func (c *subtaskPool) observe(r event.Record) {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.parent = r.Task
	}
}

// acquireSlot returns when another subtask may run.
func (c *subtaskPool) acquireSlot(ctx context.Context) (free func(), err error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if ctx.Err() != nil { // both cases were ready
		<-c.slots
		return nil, ctx.Err()
	}
	return func() { <-c.slots }, nil
}

// child is a subtask with its agent.
type child struct {
	*Session
	subtask      Subtask
	id           string
	parent       string // the parent task
	callID       string // the call in the parent task
	out          event.Sink
	conversation *conversation.Conversation
	unfinished   *unfinishedSubtask // its state from an earlier process

	mu           sync.Mutex // guards the fields below
	usage        chat.Usage
	writtenFiles []string
	runningCalls map[string]event.ToolCallRequested // running
}

// newChild begins a subtask, or finds the one left unfinished.
func (s *Session) newChild(job Subtask, call string) (*child, error) {
	s.subtasks.mu.Lock()
	defer s.subtasks.mu.Unlock()
	if s.subtasks.out == nil {
		return nil, errors.New("no turn is running that could delegate work")
	}
	if i := slices.IndexFunc(s.subtasks.unfinished, func(c *child) bool {
		return c.callID == call &&
			c.unfinished.agent == job.Agent
	}); i >= 0 {
		c := s.subtasks.unfinished[i]
		s.subtasks.unfinished = slices.Delete(s.subtasks.unfinished, i, i+1)
		c.subtask, c.out = job, s.subtasks.out
		return c, nil
	}
	if s.subtasks.started >= MaxSubtasksPerTurn {
		return nil, ErrTooManySubtasks
	}
	s.subtasks.started++
	id := s.supervisor.NewID("task")
	return &child{Session: s, subtask: job, id: id, parent: s.subtasks.parent, callID: call, out: s.subtasks.out,
		conversation: conversation.New(id)}, nil
}

// run runs the subtask to its answer.
func (c *child) run(ctx context.Context) (string, error) {
	s := c.Session
	orch := orchestrator.New(orchestrator.Config{
		Engine: orchestrator.Engine{
			Provider: s.engine.Provider, Runner: c.subtask.Runner, Mode: s.engine.Mode, SaveResult: s.engine.SaveResult,
			Hooks: s.engine.Hooks, Sleep: s.engine.Sleep, Concealer: s.engine.Concealer,
			Settings: func() orchestrator.Settings { return c.subtask.Settings },
		},
		Conversation: c.conversation, RecordingSink: c.childSink, NewInteractor: s.broker.WithSink,
		Save: func(context.Context) error { return nil },
		Subtask: &orchestrator.Subtask{ID: c.id, Parent: c.parent, CallID: c.callID, Agent: c.subtask.Agent,
			Title: c.subtask.Title},
		NewID: s.supervisor.NewID, Now: s.supervisor.Now,
	})
	if c.unfinished == nil {
		return orch.RunTurn(ctx, c.subtask.Objective, c.out)
	}
	if err := s.resolveCalls(ctx, c.thread(), true, c.childSink(c.out)); err != nil {
		return "", err
	}
	return orch.ContinueTurn(ctx, orchestrator.UnfinishedTurn{
		Task: c.id, Input: c.subtask.Objective, Started: c.unfinished.task.Status != task.StatusOpen,
		InputRecorded: c.unfinished.past.inputRecorded,
		Unvouched:     c.thread().isUnvouched(),
	}, c.out)
}

// childSink returns the subtask's sink: the session's, without events that only a whole turn may emit.
func (c *child) childSink(out event.Sink) event.Sink {
	sink := c.Session.recordingSink(out)
	return event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch r.Event.(type) {
		case event.StateChanged, event.Interrupted, event.ContextUsed:
			return nil
		}
		if err := sink.Emit(ctx, r); err != nil {
			return err
		}
		c.updateReport(r)
		return nil
	})
}

// updateReport updates the subtask's report.
func (c *child) updateReport(r event.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, used, _ := event.UsageOf(r.Event)
	c.usage = c.usage.Add(used)
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		putIn(&c.runningCalls, e.CallID, e)
	case event.ToolCallCompleted:
		asked := c.runningCalls[e.CallID]
		for _, f := range asked.Effects {
			if tool.ChangesFile(e.Tool, f) && !event.IsUntouched(asked, e) && !slices.Contains(c.writtenFiles, f.Target) {
				c.writtenFiles = append(c.writtenFiles, f.Target)
			}
		}
		delete(c.runningCalls, e.CallID)
	}
}

func (c *child) report(answer string) SubtaskReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := SubtaskReport{Task: c.id, Summary: answer, Usage: c.usage, WrittenFiles: slices.Clone(c.writtenFiles)}
	for _, m := range slices.Backward(c.conversation.View()) {
		if r.Summary == "" && m.Role == chat.Assistant {
			r.Summary = strings.TrimSpace(m.Text())
		}
	}
	return r
}

// unfinishedSubtask is a subtask that an earlier process left unfinished.
type unfinishedSubtask struct {
	task          task.Task
	created       event.Record
	agent, callID string
	conversation  *conversation.Conversation
	past          history
	usage         chat.Usage
}

// unfinishedSubtasks returns the subtasks that an earlier process left unfinished.
func (s *Session) unfinishedSubtasks() []*child {
	var all []*child
	for _, t := range s.past.tasks.All() {
		if l := s.past.children[t.ID]; l != nil {
			l.task = t
			all = append(all, &child{Session: s, id: t.ID, parent: t.Parent, callID: l.callID, conversation: l.conversation,
				unfinished: l, usage: l.usage})
		}
	}
	return all
}

// announceSubtasks shows a new face the beginnings of unfinished
// subtasks, so that it can tell their work from the turn's.
func announceSubtasks(ctx context.Context, left []*child, out event.Sink) error {
	for _, c := range left {
		if err := out.Emit(ctx, c.unfinished.created); err != nil {
			return err
		}
	}
	return nil
}

func (c *child) thread() thread {
	return thread{
		task: c.id, agent: c.unfinished.agent, conversation: c.conversation, past: &c.unfinished.past,
		runner: c.subtask.Runner, settings: func() orchestrator.Settings { return c.subtask.Settings },
	}
}

// closeSubtasks closes subtasks that nobody will resume.
func (s *Session) closeSubtasks(ctx context.Context, left []*child, sink event.Sink) error {
	for _, c := range left {
		err := s.closeThread(ctx, c.thread(), sink)
		if err == nil {
			err = s.cancelTask(ctx, c.id, sink)
		}
		if err != nil {
			return message.Errorf("settle the subtask %s: %w", c.id, err)
		}
	}
	return nil
}

// closeUnclaimed ends a resumed turn: it closes the subtasks that the
// turn did not resume, unless the turn waits for an answer and still may.
func (s *Session) closeUnclaimed(ctx context.Context, turnErr error, out event.Sink) error {
	s.subtasks.mu.Lock()
	left := s.subtasks.unfinished
	s.subtasks.unfinished = nil
	s.subtasks.mu.Unlock()
	if errors.Is(turnErr, uip.ErrAnswerPending) || len(left) == 0 {
		return turnErr
	}
	if err := s.closeSubtasks(context.WithoutCancel(ctx), left, s.recordingSink(out)); turnErr == nil {
		return err
	}
	return turnErr
}
