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
	out           *objectWriter
	text, thought chunk                  // the main agent's arriving reply
	children      map[string]bool        // child tasks
	calls         map[callKey]*semaCall  // calls of running tasks
	openQuestions map[string]uip.Request // open questions by id

	pendingUsage *replyUsage // unsent usage of the main agent's last reply
	pendingReply jsonObject  // unsent reply without tool calls
	contextUsed  event.ContextUsed

	hadPartial, interrupted bool // this turn had a partial reply; an interruption

	programRunning, taskRunning bool // whether the program, and the main task, is running
	lastState                   string
}

type callKey struct{ task, id string }

type semaCall struct {
	name         string
	endSent      bool // its end was sent
	done, failed bool // its end is on record; it failed
}

// replyUsage is a usage; nil if the provider reported none.
type replyUsage struct{ usage *chat.Usage }

func (s *sema) send(name string, data any) error {
	return s.out.writeObject(jsonObject{"event", name, "data", data})
}

// mainAgent is the agentId of every agent that is not a subagent.
const mainAgent = "main"

func (s *sema) agentID(r event.Record) string {
	if s.children[r.Task] {
		return r.Task
	}
	return mainAgent
}

func (s *sema) main(r event.Record) bool { return !s.children[r.Task] }

func (s *sema) show(r event.Record) error {
	if e, ok := r.Event.(event.ContextUsed); ok && s.main(r) {
		s.contextUsed = e
		return s.sendReplyUsage(&e)
	}
	if err := s.sendReplyUsage(nil); err != nil {
		return err
	}
	switch r.Event.(type) { // the turn did not end with the held reply
	case event.TextDelta, event.ReasoningDelta, event.Retrying, event.MessageAdded, event.Interrupted,
		event.TaskStarted, event.TaskFailed, event.SessionOpened:
		if s.main(r) {
			if err := s.sendPending(); err != nil {
				return err
			}
		}
	}
	switch e := r.Event.(type) {
	case event.TextDelta:
		if s.main(r) {
			return s.text.appendText(s.out, e.Text)
		}
	case event.ReasoningDelta:
		if s.main(r) {
			return s.thought.appendText(s.out, e.Text)
		}
	case event.Retrying:
		return s.discardPartial(r)
	case event.MessageAdded:
		switch e.Message.Role {
		case chat.Assistant:
			return s.sendReply(r, e)
		case chat.Tool:
			for res := range chat.PartsOf[chat.ToolResult](e.Message) {
				if err := s.closeCall(r, res); err != nil {
					return err
				}
			}
		}
	case event.ToolCallRequested:
		s.startCall(r, e.CallID, e.Tool)
	case event.ToolCallCompleted:
		c := s.findCall(r, e.CallID, e.Tool)
		c.done, c.failed = true, e.IsError
	case event.ToolFinished:
		return s.toolFinished(r, e)
	case event.InteractionRequested:
		return s.sendQuestion(r, e.Request)
	case event.InteractionResponded:
		return s.sendAnswer(r, e.Response)
	case event.TaskCreated, event.TaskStarted, event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		if e, ok := r.Event.(event.TaskCreated); ok && e.ParentID != "" {
			s.children[r.Task] = true
			return s.send("task:agent:start", jsonObject{"taskId", e.TaskID, "subagent_type", e.AgentID, "description", e.Title,
				"prompt", e.Intent})
		}
		if s.main(r) {
			return s.mainTask(r)
		}
		return s.childTask(r)
	case event.SessionOpened:
		if e.MaxTokens > 0 {
			s.contextUsed.Max = e.MaxTokens
		}
		return s.send("session:ready", jsonObject{"workingDir", e.Dir, "sessionId", r.Session, "historyLoaded", e.Resumed,
			"usage", s.tokenCounts(), "projectInputHistory", []string{}})
	case event.StateChanged:
		if !s.main(r) {
			return nil
		}
		s.programRunning = e.Busy
		if e.Busy {
			return s.sendState("processing")
		}
		return s.sendIdle()
	case event.Interrupted:
		return s.sendInterruption(r, e)
	case event.TodosChanged:
		if !s.main(r) {
			return nil
		}
		list := []jsonObject{}
		for _, t := range e.Todos {
			list = append(list, jsonObject{"content", t.Content, "status", t.Status, "activeForm", t.Content})
		}
		return s.send("todos:update", list)
	case event.ContextReplaced:
		if e.Reason != event.ReplaceCompacted || !s.main(r) {
			return nil
		}
		rate := 0.0
		if e.TokensBefore > 0 {
			rate = float64(e.TokensAfter) / float64(e.TokensBefore)
		}
		return s.send("compact:exec", jsonObject{"tokenBefore", e.TokensBefore, "tokenCompact", e.TokensAfter,
			"compactRate", rate})
	}
	return nil // Sema has no word for the others
}

// discardPartial withdraws the part of a reply that is requested again: the content so far becomes empty.
func (s *sema) discardPartial(r event.Record) error {
	if !s.main(r) {
		return nil
	}
	for _, c := range []*chunk{&s.thought, &s.text} {
		if c.empty() {
			continue
		}
		c.reset()
		if err := c.appendText(s.out, ""); err != nil {
			return err
		}
	}
	return nil
}

func (s *sema) sendReply(r event.Record, e event.MessageAdded) error {
	var calls []jsonObject
	for _, c := range e.Message.Calls() {
		calls = append(calls, jsonObject{"name", c.Name, "args", objectOrEmpty(c.Args)})
		s.startCall(r, c.ID, c.Name)
	}
	m := jsonObject{"agentId", s.agentID(r), "reasoning", e.Message.Reasoning(), "content", e.Message.Text(),
		"hasToolCalls", len(calls) > 0}.
		withIf(len(calls) > 0, "toolCalls", calls)
	if !s.main(r) {
		return s.send("message:complete", m)
	}
	s.text.reset()
	s.thought.reset()
	if !e.Interrupted || !s.interrupted {
		s.pendingUsage = &replyUsage{e.Usage}
	}
	s.hadPartial = s.hadPartial || e.Interrupted
	s.pendingReply = m
	if len(calls) > 0 {
		return s.sendPending()
	}
	return nil
}

// sendPending sends the held reply, if any.
func (s *sema) sendPending() error {
	if s.pendingReply == nil {
		return nil
	}
	m := s.pendingReply
	s.pendingReply = nil
	return s.send("message:complete", m)
}

// objectOrEmpty returns raw, or an empty object if raw is empty.
func objectOrEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// sendReplyUsage sends the usage of the last reply, if still unsent; now has the numbers right after it, if
// any.
func (s *sema) sendReplyUsage(now *event.ContextUsed) error {
	if s.pendingUsage == nil {
		return nil
	}
	said := s.pendingUsage.usage
	s.pendingUsage = nil
	if now == nil && said != nil {
		s.contextUsed.Used, s.contextUsed.Prompt = said.In+said.Out, said.In
	}
	return s.sendUsage()
}

func (s *sema) sendUsage() error {
	return s.send("conversation:usage", jsonObject{"usage", s.tokenCounts()})
}

func (s *sema) tokenCounts() jsonObject {
	return jsonObject{"useTokens", s.contextUsed.Used, "maxTokens", s.contextUsed.Max, "promptTokens",
		s.contextUsed.Prompt}
}

// startCall registers a tool call. Some models reuse an id in a later reply.
func (s *sema) startCall(r event.Record, id, name string) *semaCall {
	c := &semaCall{name: name}
	s.calls[callKey{r.Task, id}] = c
	return c
}

// findCall returns the state of a tool call, registering it if new.
func (s *sema) findCall(r event.Record, id, name string) *semaCall {
	if c := s.calls[callKey{r.Task, id}]; c != nil {
		return c
	}
	return s.startCall(r, id, name)
}

func (s *sema) toolFinished(r event.Record, e event.ToolFinished) error {
	c := s.findCall(r, e.CallID, e.Tool)
	if c.endSent {
		return nil
	}
	c.endSent = true
	if e.Failed || e.Denied {
		content := semaContent(e.Content, "")
		if content == "" {
			content = e.Result.ErrorText() // nothing was shown, as for an interrupted command
		}
		return s.sendCallEnd(r, true, e.Tool, e.Title, "", content)
	}
	return s.sendCallEnd(r, false, e.Tool, e.Title, e.Summary, semaContent(e.Content, e.Result.Text))
}

// closeCall closes a call. If its finish was not seen, as in the logs of an earlier run, the audit record
// shows how it ended.
func (s *sema) closeCall(r event.Record, res chat.ToolResult) error {
	c := s.calls[callKey{r.Task, res.CallID}]
	if c == nil || c.endSent || !c.done {
		return nil
	}
	c.endSent = true
	if c.failed {
		return s.sendCallEnd(r, true, c.name, "", "", res.ErrorText())
	}
	return s.sendCallEnd(r, false, c.name, "", "", res.Text)
}

// sendCallEnd sends how a call ended. A failure has no summary.
func (s *sema) sendCallEnd(r event.Record, failed bool, tool, title, summary string, content any) error {
	name := "tool:execution:complete"
	if failed {
		name = "tool:execution:error"
	}
	return s.send(name, jsonObject{"agentId", s.agentID(r), "toolName", tool, "title", title}.withIf(!failed, "summary",
		summary).withIf(true, "content", content))
}

// semaContent returns b in Sema's form, text or a diff, or text if b is nil.
func semaContent(b display.Block, text string) any {
	switch b := b.(type) {
	case display.Text:
		return string(b)
	case display.Code:
		return b.Source
	case display.Diff:
		return jsonObject{"type", "diff", "diffText", b.Unified, "additions", b.Added, "deletions", b.Deleted}
	case display.Table:
		return b.JoinCells("\t")
	}
	return text
}

// forgetTask drops what is only needed while task runs.
func (s *sema) forgetTask(task string) {
	maps.DeleteFunc(s.calls, func(k callKey, _ *semaCall) bool { return k.task == task })
	maps.DeleteFunc(s.openQuestions, func(_ string, q uip.Request) bool { return q.TaskID == task })
}
