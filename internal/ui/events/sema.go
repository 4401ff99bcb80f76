package events

import (
	"encoding/json"
	"maps"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

// sema shows a session as Sema's events. Three rules shape it:
//
//   - Every reply of the main agent is followed by one conversation:usage,
//     with the numbers of the ContextUsed right after it, otherwise the
//     provider's.
//   - A turn ends with message:complete and then state:update idle. So the
//     message:complete of a reply without tool calls is held until it is known
//     whether the conversation continues: its usage, and a check after an
//     edit, come before it.
//   - Every tool call ends in one tool:execution:complete or :error.
type sema struct {
	out           *lines
	text, thought chunk                  // the main agent's arriving reply
	children      map[string]bool        // child tasks
	calls         map[callKey]*semaCall  // calls of running tasks
	asked         map[string]uip.Request // open questions by id

	owed *owed // unsent usage of the main agent's last reply
	held obj   // unsent reply without tool calls
	used event.ContextUsed

	half, stopped bool // this turn had a partial reply; an interruption

	busy, running bool // whether the program, and the main task, is running
	state         string
}

type callKey struct{ task, id string }

type semaCall struct {
	name         string
	told         bool // its end was sent
	done, failed bool // its end is on record; it failed
}

// owed is a usage; nil if the provider reported none.
type owed struct{ usage *chat.Usage }

func (s *sema) put(name string, data any) error { return s.out.put(obj{"event", name, "data", data}) }

// mainAgent is the agentId of every agent that is not a subagent.
const mainAgent = "main"

func (s *sema) agent(r event.Record) string {
	if s.children[r.Task] {
		return r.Task
	}
	return mainAgent
}

func (s *sema) main(r event.Record) bool { return !s.children[r.Task] }

func (s *sema) show(r event.Record) error {
	if e, ok := r.Event.(event.ContextUsed); ok && s.main(r) {
		s.used = e
		return s.tellUsage(&e)
	}
	if err := s.tellUsage(nil); err != nil {
		return err
	}
	switch r.Event.(type) { // the turn did not end with the held reply
	case event.TextDelta, event.ReasoningDelta, event.Retrying, event.MessageAdded, event.Interrupted,
		event.TaskStarted, event.TaskFailed, event.SessionOpened:
		if s.main(r) {
			if err := s.release(); err != nil {
				return err
			}
		}
	}
	switch e := r.Event.(type) {
	case event.TextDelta:
		if s.main(r) {
			return s.text.grow(s.out, e.Text)
		}
	case event.ReasoningDelta:
		if s.main(r) {
			return s.thought.grow(s.out, e.Text)
		}
	case event.Retrying:
		return s.void(r)
	case event.MessageAdded:
		switch e.Message.Role {
		case chat.Assistant:
			return s.reply(r, e)
		case chat.Tool:
			for res := range chat.Select[chat.ToolResult](e.Message) {
				if err := s.result(r, res); err != nil {
					return err
				}
			}
		}
	case event.ToolCallRequested:
		s.begin(r, e.CallID, e.Tool)
	case event.ToolCallCompleted:
		c := s.call(r, e.CallID, e.Tool)
		c.done, c.failed = true, e.IsError
	case event.ToolFinished:
		return s.toolFinished(r, e)
	case event.InteractionRequested:
		return s.requested(r, e.Request)
	case event.InteractionResponded:
		return s.responded(r, e.Response)
	case event.TaskCreated, event.TaskStarted, event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
			s.children[r.Task] = true
			return s.put("task:agent:start", obj{"taskId", e.TaskID, "subagent_type", e.AgentID, "description", e.Title, "prompt", e.Intent})
		}
		if s.main(r) {
			return s.mainTask(r)
		}
		return s.childTask(r)
	case event.SessionOpened:
		if e.MaxTokens > 0 {
			s.used.Max = e.MaxTokens
		}
		return s.put("session:ready", obj{"workingDir", e.Dir, "sessionId", r.Session, "historyLoaded", e.Resumed, "usage", s.tokens(), "projectInputHistory", []string{}})
	case event.StateChanged:
		if !s.main(r) {
			return nil
		}
		s.busy = e.Busy
		if e.Busy {
			return s.tell("processing")
		}
		return s.rest()
	case event.Interrupted:
		return s.interruption(r, e)
	case event.TodosChanged:
		if !s.main(r) {
			return nil
		}
		list := []obj{}
		for _, t := range e.Todos {
			list = append(list, obj{"content", t.Content, "status", t.Status, "activeForm", t.Content})
		}
		return s.put("todos:update", list)
	case event.ContextReplaced:
		if e.Reason != event.Compacted || !s.main(r) {
			return nil
		}
		rate := 0.0
		if e.TokensBefore > 0 {
			rate = float64(e.TokensAfter) / float64(e.TokensBefore)
		}
		return s.put("compact:exec", obj{"tokenBefore", e.TokensBefore, "tokenCompact", e.TokensAfter, "compactRate", rate})
	}
	return nil // Sema has no word for the others
}

// void withdraws the part of a reply that is requested again: the content so far becomes empty.
func (s *sema) void(r event.Record) error {
	if !s.main(r) {
		return nil
	}
	for _, c := range []*chunk{&s.thought, &s.text} {
		if c.empty() {
			continue
		}
		c.reset()
		if err := c.grow(s.out, ""); err != nil {
			return err
		}
	}
	return nil
}

func (s *sema) reply(r event.Record, e event.MessageAdded) error {
	var calls []obj
	for _, c := range e.Message.Calls() {
		calls = append(calls, obj{"name", c.Name, "args", object(c.Args)})
		s.begin(r, c.ID, c.Name)
	}
	m := obj{"agentId", s.agent(r), "reasoning", e.Message.Reasoning(), "content", e.Message.Text(), "hasToolCalls", len(calls) > 0}.
		and(len(calls) > 0, "toolCalls", calls)
	if !s.main(r) {
		return s.put("message:complete", m)
	}
	s.text.reset()
	s.thought.reset()
	if !e.Interrupted || !s.stopped {
		s.owed = &owed{e.Usage}
	}
	s.half = s.half || e.Interrupted
	s.held = m
	if len(calls) > 0 {
		return s.release()
	}
	return nil
}

// release sends the held reply, if any.
func (s *sema) release() error {
	if s.held == nil {
		return nil
	}
	m := s.held
	s.held = nil
	return s.put("message:complete", m)
}

// object returns raw, or an empty object if raw is empty.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// tellUsage sends the usage of the last reply, if still unsent; now has the numbers right after it, if
// any.
func (s *sema) tellUsage(now *event.ContextUsed) error {
	if s.owed == nil {
		return nil
	}
	said := s.owed.usage
	s.owed = nil
	if now == nil && said != nil {
		s.used.Used, s.used.Prompt = said.In+said.Out, said.In
	}
	return s.usage()
}

func (s *sema) usage() error {
	return s.put("conversation:usage", obj{"usage", s.tokens()})
}

func (s *sema) tokens() obj {
	return obj{"useTokens", s.used.Used, "maxTokens", s.used.Max, "promptTokens", s.used.Prompt}
}

// begin registers a tool call. Some models reuse an id in a later reply.
func (s *sema) begin(r event.Record, id, name string) *semaCall {
	c := &semaCall{name: name}
	s.calls[callKey{r.Task, id}] = c
	return c
}

// call returns the state of a tool call, registering it if new.
func (s *sema) call(r event.Record, id, name string) *semaCall {
	if c := s.calls[callKey{r.Task, id}]; c != nil {
		return c
	}
	return s.begin(r, id, name)
}

func (s *sema) toolFinished(r event.Record, e event.ToolFinished) error {
	c := s.call(r, e.CallID, e.Tool)
	if c.told {
		return nil
	}
	c.told = true
	if e.Failed || e.Denied {
		content := contentOf(e.Show, "")
		if content == "" {
			content = e.Result.Complaint() // nothing was shown, as for an interrupted command
		}
		return s.ended(r, true, e.Tool, e.Title, "", content)
	}
	return s.ended(r, false, e.Tool, e.Title, e.Summary, contentOf(e.Show, e.Result.Text))
}

// result closes a call. If its finish was not seen, as in the logs of an earlier run, the audit record
// shows how it ended.
func (s *sema) result(r event.Record, res chat.ToolResult) error {
	c := s.calls[callKey{r.Task, res.CallID}]
	if c == nil || c.told || !c.done {
		return nil
	}
	c.told = true
	if c.failed {
		return s.ended(r, true, c.name, "", "", res.Complaint())
	}
	return s.ended(r, false, c.name, "", "", res.Text)
}

// ended sends how a call ended. A failure has no summary.
func (s *sema) ended(r event.Record, failed bool, tool, title, summary string, content any) error {
	name := "tool:execution:complete"
	if failed {
		name = "tool:execution:error"
	}
	return s.put(name, obj{"agentId", s.agent(r), "toolName", tool, "title", title}.and(!failed, "summary", summary).and(true, "content", content))
}

// contentOf returns b in Sema's form, text or a diff, or text if b is nil.
func contentOf(b display.Block, text string) any {
	switch b := b.(type) {
	case display.Text:
		return string(b)
	case display.Code:
		return b.Source
	case display.Diff:
		return obj{"type", "diff", "diffText", b.Unified, "additions", b.Added, "deletions", b.Deleted}
	case display.Table:
		return b.Joined("\t")
	}
	return text
}

// forget drops what is only needed while task runs.
func (s *sema) forget(task string) {
	maps.DeleteFunc(s.calls, func(k callKey, _ *semaCall) bool { return k.task == task })
	maps.DeleteFunc(s.asked, func(_ string, q uip.Request) bool { return q.TaskID == task })
}
