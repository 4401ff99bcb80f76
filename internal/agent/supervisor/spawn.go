package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

// Limits on what a turn may delegate to subagents.
const (
	SubtasksAtOnce  = 4
	SubtasksPerTurn = 16
)

// ErrTooManySubtasks reports a turn that has used up its subtasks.
var ErrTooManySubtasks = fmt.Errorf("this turn has already delegated work to other agents %d times, the most allowed", SubtasksPerTurn)

// Subtask is work for a subagent. It belongs to the current turn.
type Subtask struct {
	Agent, Title, Objective string
	Settings                orchestrator.Settings
	Runner                  *toolrun.Runner
}

// SubtaskReport is the result of a subtask.
type SubtaskReport struct {
	Task    string     // its id; empty if it never began
	Summary string     // its answer, or its last message
	Usage   chat.Usage // of all its requests to models
	Wrote   []string   // paths, without duplicates
	Err     error      // why it failed, or nil
}

// Spawn is [Session.Spawn].
type Spawn func(context.Context, Subtask) (SubtaskReport, error)

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
	free, err := s.subtasks.wait(ctx)
	if err != nil {
		return SubtaskReport{}, err
	}
	defer free()
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer s.subtasks.run(c.id, stop)()
	answer, err := c.run(working)
	report := c.report(answer)
	switch {
	case working.Err() != nil && ctx.Err() == nil:
		report.Err = errStopped
		return report, nil
	case ctx.Err() != nil:
		return report, ctx.Err()
	case errors.Is(err, uip.ErrParked) || errors.Is(err, toolrun.ErrRefused) || tool.IsFatal(err):
		return report, err
	}
	report.Err = err
	return report, nil
}

// errStopped reports a subtask that the user stopped without stopping the turn.
var errStopped = errors.New("the user stopped this task")

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

// subtasks are the running subagents of the current turn.
type subtasks struct {
	slots chan struct{} // one slot per running subtask; made before the first turn

	mu      sync.Mutex // guards the fields below
	out     event.Sink
	parent  string                        // the turn's task
	made    int                           // started in this turn
	left    []*child                      // by an earlier process, and not yet resumed
	running map[string]context.CancelFunc // stops a running subtask, by task
}

// run registers a running task until done is called.
func (c *subtasks) run(task string, stop context.CancelFunc) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	put(&c.running, task, stop)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, task)
	}
}

// begin prepares for a turn shown on out.
func (c *subtasks) begin(out event.Sink, left []*child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.made, c.left = out, 0, left
	if c.slots == nil {
		c.slots = make(chan struct{}, SubtasksAtOnce)
	}
}

// observe notes the turn's task.
func (c *subtasks) observe(r event.Record) {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.parent = r.Task
	}
}

// wait returns when another subtask may run.
func (c *subtasks) wait(ctx context.Context) (free func(), err error) {
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
	job          Subtask
	id           string
	parent       string // the parent task
	call         string // the call in the parent task
	out          event.Sink
	conversation *conversation.Conversation
	earlier      *unfinished // its state from an earlier process

	mu    sync.Mutex // guards the fields below
	usage chat.Usage
	wrote []string
	calls map[string]event.ToolCallRequested // running
}

// newChild begins a subtask, or finds the one left unfinished.
func (s *Session) newChild(job Subtask, call string) (*child, error) {
	s.subtasks.mu.Lock()
	defer s.subtasks.mu.Unlock()
	if s.subtasks.out == nil {
		return nil, errors.New("no turn is running that could delegate work")
	}
	if i := slices.IndexFunc(s.subtasks.left, func(c *child) bool { return c.call == call && c.earlier.agent == job.Agent }); i >= 0 {
		c := s.subtasks.left[i]
		s.subtasks.left = slices.Delete(s.subtasks.left, i, i+1)
		c.job, c.out = job, s.subtasks.out
		return c, nil
	}
	if s.subtasks.made >= SubtasksPerTurn {
		return nil, ErrTooManySubtasks
	}
	s.subtasks.made++
	id := s.sup.NewID("task")
	return &child{Session: s, job: job, id: id, parent: s.subtasks.parent, call: call, out: s.subtasks.out, conversation: conversation.Of(id)}, nil
}

// run runs the subtask to its answer.
func (c *child) run(ctx context.Context) (string, error) {
	s := c.Session
	orch := orchestrator.New(orchestrator.Config{
		Engine: orchestrator.Engine{
			Provider: s.engine.Provider, Runner: c.job.Runner, Mode: s.engine.Mode, PutAside: s.engine.PutAside, Hooks: s.engine.Hooks, Sleep: s.engine.Sleep, Conceals: s.engine.Conceals,
			Settings: func() orchestrator.Settings { return c.job.Settings },
		},
		Talk: c.conversation, Through: c.through, Person: s.broker.On, Save: func(context.Context) error { return nil },
		Child: &orchestrator.Subtask{ID: c.id, Parent: c.parent, CallID: c.call, Agent: c.job.Agent, Title: c.job.Title},
		NewID: s.sup.NewID, Now: s.sup.Now,
	})
	if c.earlier == nil {
		return orch.RunTurn(ctx, c.job.Objective, c.out)
	}
	if err := s.resolveCalls(ctx, c.thread(), true, c.through(c.out)); err != nil {
		return "", err
	}
	return orch.ContinueTurn(ctx, orchestrator.Unfinished{
		Task: c.id, Input: c.job.Objective, Started: c.earlier.task.Status != task.Open, Heard: c.earlier.past.heard,
		Doubted: c.thread().doubted(),
	}, c.out)
}

// through returns the subtask's sink: the session's, without events that only a whole turn may emit.
func (c *child) through(out event.Sink) event.Sink {
	sink := c.Session.through(out)
	return event.SinkFunc(func(ctx context.Context, r event.Record) error {
		switch r.Event.(type) {
		case event.StateChanged, event.Interrupted, event.ContextUsed:
			return nil
		}
		if err := sink.Emit(ctx, r); err != nil {
			return err
		}
		c.count(r)
		return nil
	})
}

// count updates the subtask's report.
func (c *child) count(r event.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, used, _ := event.Used(r.Event)
	c.usage = c.usage.Add(used)
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		put(&c.calls, e.CallID, e)
	case event.ToolCallCompleted:
		asked := c.calls[e.CallID]
		for _, f := range asked.Effects {
			if tool.Edits(e.Tool, f) && !event.Untouched(asked, e) && !slices.Contains(c.wrote, f.Target) {
				c.wrote = append(c.wrote, f.Target)
			}
		}
		delete(c.calls, e.CallID)
	}
}

func (c *child) report(answer string) SubtaskReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := SubtaskReport{Task: c.id, Summary: answer, Usage: c.usage, Wrote: slices.Clone(c.wrote)}
	for _, m := range slices.Backward(c.conversation.View()) {
		if r.Summary == "" && m.Role == chat.Assistant {
			r.Summary = strings.TrimSpace(m.Text())
		}
	}
	return r
}

// unfinished is a subtask that an earlier process left unfinished.
type unfinished struct {
	task         task.Task
	created      event.Record
	agent, call  string
	conversation *conversation.Conversation
	past         history
	usage        chat.Usage
}

// unfinishedSubtasks returns the subtasks that an earlier process left unfinished.
func (s *Session) unfinishedSubtasks() []*child {
	var all []*child
	for _, t := range s.past.tasks.All() {
		if l := s.past.children[t.ID]; l != nil {
			l.task = t
			all = append(all, &child{Session: s, id: t.ID, parent: t.Parent, call: l.call, conversation: l.conversation, earlier: l, usage: l.usage})
		}
	}
	return all
}

// announceSubtasks shows a new face the beginnings of unfinished
// subtasks, so that it can tell their work from the turn's.
func announceSubtasks(ctx context.Context, left []*child, out event.Sink) error {
	for _, c := range left {
		if err := out.Emit(ctx, c.earlier.created); err != nil {
			return err
		}
	}
	return nil
}

func (c *child) thread() thread {
	return thread{
		task: c.id, agent: c.earlier.agent, conversation: c.conversation, past: &c.earlier.past,
		runner: c.job.Runner, settings: func() orchestrator.Settings { return c.job.Settings },
	}
}

// closeSubtasks closes subtasks that nobody will resume.
func (s *Session) closeSubtasks(ctx context.Context, left []*child, sink event.Sink) error {
	for _, c := range left {
		err := s.closeThread(ctx, c.thread(), sink)
		if err == nil {
			err = s.cancel(ctx, c.id, sink)
		}
		if err != nil {
			return fmt.Errorf("settle the subtask %s: %w", c.id, err)
		}
	}
	return nil
}

// closeUnclaimed ends a resumed turn: it closes the subtasks that the
// turn did not resume, unless the turn waits for an answer and still may.
func (s *Session) closeUnclaimed(ctx context.Context, turnErr error, out event.Sink) error {
	s.subtasks.mu.Lock()
	left := s.subtasks.left
	s.subtasks.left = nil
	s.subtasks.mu.Unlock()
	if errors.Is(turnErr, uip.ErrParked) || len(left) == 0 {
		return turnErr
	}
	if err := s.closeSubtasks(context.WithoutCancel(ctx), left, s.through(out)); turnErr == nil {
		return err
	}
	return turnErr
}
