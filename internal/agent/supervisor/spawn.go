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

// The bounds of what a turn may hand to other agents.
const (
	SubtasksAtOnce  = 4
	SubtasksPerTurn = 16
)

// ErrTooManySubtasks reports a turn that has handed out all it may.
var ErrTooManySubtasks = fmt.Errorf("a turn may delegate work to other agents at most %d times, and it has", SubtasksPerTurn)

// Subtask is work for an agent of its own. It belongs to the turn under way.
type Subtask struct {
	Agent, Title, Objective string
	Settings                orchestrator.Settings
	Runner                  *toolrun.Runner
}

// SubtaskReport is what became of a subtask.
type SubtaskReport struct {
	Task    string     // on record; empty if it never began
	Summary string     // its answer, or the last it said
	Usage   chat.Usage // of all it asked models for
	Wrote   []string   // paths, each once
	Err     error      // why it failed; nil if it did not
}

// Spawn is [Session.Spawn].
type Spawn func(context.Context, Subtask) (SubtaskReport, error)

// Spawn has work done by another agent, on the same timeline and with the same
// people to ask, and waits for it. That the agent failed is part of the report.
// The error is for what ends the turn, or leaves it waiting: an interruption, a
// refusal that stops, a question whose answer comes later.
//
// It is to be called by the call whose work the subtask does. A subtask that an
// earlier process left unfinished is taken up when that call is run again.
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

// errStopped reports a subtask that the person stopped, and not the turn.
var errStopped = errors.New("the user stopped this task")

// StopSubtask stops an agent that works for the turn under way, and reports
// whether there is one of that id. The turn goes on.
func (s *Session) StopSubtask(id string) bool {
	s.subtasks.mu.Lock()
	defer s.subtasks.mu.Unlock()
	stop, ok := s.subtasks.running[id]
	if ok {
		stop()
	}
	return ok
}

// subtasks is the agents that work for the turn under way.
type subtasks struct {
	slots chan struct{} // holds those at work; made before the first turn

	mu      sync.Mutex // guards the fields below
	out     event.Sink
	parent  string                        // the task of the turn
	made    int                           // in this turn
	left    []*child                      // by an earlier process, and not yet taken up
	running map[string]context.CancelFunc // what stops those at work, by task
}

// run takes down that a task is at work; done says that it is no more.
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

// begin makes ready for a turn that is shown on out.
func (c *subtasks) begin(out event.Sink, left []*child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.made, c.left = out, 0, left
	if c.slots == nil {
		c.slots = make(chan struct{}, SubtasksAtOnce)
	}
}

// observe learns which task the turn is.
func (c *subtasks) observe(r event.Record) {
	if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.parent = r.Task
	}
}

// wait returns when there is room for one more at work.
func (c *subtasks) wait(ctx context.Context) (free func(), err error) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if ctx.Err() != nil { // both were the case
		<-c.slots
		return nil, ctx.Err()
	}
	return func() { <-c.slots }, nil
}

// child is a subtask and the agent that does it.
type child struct {
	*Session
	job          Subtask
	id           string
	parent       string // the task it belongs to
	call         string // and the call there
	out          event.Sink
	conversation *conversation.Conversation
	earlier      *unfinished // what an earlier process did of it

	mu    sync.Mutex // guards the fields below
	usage chat.Usage
	wrote []string
	calls map[string]event.ToolCallRequested // under way
}

// newChild begins a subtask, or finds the one that was left.
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

// run takes the subtask to its answer.
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

// through returns the sink of the subtask: that of the session, without what
// only a turn as a whole may say.
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

// count keeps the account of the subtask.
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

// unfinished is a subtask as an earlier process left it.
type unfinished struct {
	task         task.Task
	created      event.Record
	agent, call  string
	conversation *conversation.Conversation
	past         history
	usage        chat.Usage
}

// unfinishedSubtasks are the subtasks that an earlier process left unfinished.
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

// announceSubtasks shows how the subtasks that were left began to a face that was not
// there: it could not tell their work from that of the turn itself.
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

// closeSubtasks closes the books on subtasks that nobody takes up any more.
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

// closeUnclaimed ends a turn that was taken up: subtasks that it did not take up in
// turn are closed, unless the turn waits and may yet do so.
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
