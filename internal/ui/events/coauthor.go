package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// coauthor shows domain and audit records as CoAuthor's rows, messages as rows of its conversation
// store, and the rest as messages of its interface bus. A row has an id; a bus message has only type and
// payload.
type coauthor struct {
	out       *lines
	agents    map[string]string           // the agent of each task
	said      map[string]int              // messages of a task so far
	streaming map[string]bool             // tasks whose reply is arriving
	inputs    map[callKey]json.RawMessage // unanswered calls
}

func (c *coauthor) show(r event.Record) error {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		if e.Message.Role == chat.Assistant {
			if err := c.endStream(r); err != nil {
				return err
			}
		}
		content, answered := e.Message.Text(), ""
		var calls []obj
		for _, call := range e.Message.Calls() {
			calls = append(calls, obj{"toolCallId", call.ID, "toolName", call.Name, "arguments", object(call.Args)})
			c.inputs[callKey{r.Task, call.ID}] = call.Args
		}
		for res := range chat.Select[chat.ToolResult](e.Message) {
			answered, content = res.CallID, res.Text
			delete(c.inputs, callKey{r.Task, res.CallID})
		}
		index := c.said[r.Task]
		c.said[r.Task]++
		said := e.Message.Reasoning()
		m := obj{"role", e.Message.Role, "content", content}.
			and(len(calls) > 0, "toolCalls", calls).and(said != "", "reasoning", said).and(answered != "", "toolCallId", answered)
		return c.out.put(obj{"id", rowID(r), "taskId", r.Task, "index", index, "message", m, "createdAt", r.Time}) // counted from 0 among the messages shown of its task
	case event.LocalAdded:
		kind := "text"
		if e.Failed {
			kind = "error"
		}
		return c.output(r, kind, e.Output)
	case event.TodosChanged:
		return c.rowNamed(r, "TaskTodoUpdated", obj{"taskId", r.Task, "todos", e.Todos})
	case event.TaskCreated:
		c.agents[r.Task] = e.AgentID
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		defer func() { // only needed while the task runs
			delete(c.agents, r.Task)
			delete(c.said, r.Task)
			delete(c.streaming, r.Task)
			maps.DeleteFunc(c.inputs, func(k callKey, _ json.RawMessage) bool { return k.task == r.Task })
		}()
	case event.Unknown:
		return c.row(r, object(e.Payload))
	case event.ToolCallRequested:
		c.inputs[callKey{r.Task, e.CallID}] = e.Input
		return c.row(r, obj{ // CoAuthor has no key for effects, verdict and decider
			"toolCallId", e.CallID, "toolName", e.Tool, "authorActorId", e.Author, "taskId", e.TaskID, "input", object(e.Input), "timestamp", e.Timestamp,
		})
	}
	if event.LogOf(r.Event) != event.Transient {
		return c.row(r, r.Event)
	}
	switch e := r.Event.(type) {
	case event.TextDelta:
		return c.delta(r, "text", e.Text)
	case event.ReasoningDelta:
		return c.delta(r, "reasoning", e.Text)
	case event.Retrying:
		if err := c.endStream(r); err != nil {
			return err
		}
		return c.output(r, "verbose", fmt.Sprintf("%s; attempt %d of %d follows, discard the reply so far", e.Why, e.Attempt, e.Of))
	case event.ToolStarted:
		return c.tell("tool_call_start", append(c.source(r), "toolCallId", e.CallID, "toolName", e.Tool, "arguments", object(c.inputs[callKey{r.Task, e.CallID}])))
	case event.ToolOutput:
		return c.output(r, "verbose", e.Text)
	case event.ToolFinished:
		var output any = json.RawMessage(e.Result.Text)
		if !startsWith(e.Result.Text, '{') {
			output = obj{"text", e.Result.Text}
		}
		return c.tell("tool_call_end", append(c.source(r), "toolCallId", e.CallID, "toolName", e.Tool,
			"output", output, "isError", e.Failed || e.Denied, "durationMs", e.Took.Milliseconds()))
	case event.Interrupted:
		return c.output(r, "verbose", e.Text)
	case event.Notice:
		kind := "verbose"
		if e.Level == event.Error {
			kind = "error"
		}
		return c.output(r, kind, e.Text)
	}
	return nil // CoAuthor's bus has no word for the others
}

// row writes a stored event. The id is unique among all sessions; seq orders the rows of a session, not
// only those of its stream.
func (c *coauthor) row(r event.Record, payload any) error {
	name, _ := event.Name(r.Event)
	return c.rowNamed(r, name, payload)
}

func (c *coauthor) rowNamed(r event.Record, name string, payload any) error {
	return c.out.put(obj{"id", rowID(r), "streamId", r.Task, "seq", r.Seq, "type", name, "payload", payload, "createdAt", r.Time})
}

func rowID(r event.Record) string { return r.Session + ":" + strconv.FormatUint(r.Seq, 10) }

// tell sends a message on the interface bus.
func (c *coauthor) tell(name string, payload obj) error {
	return c.out.put(obj{"type", name, "payload", payload})
}

func (c *coauthor) source(r event.Record) obj {
	return obj{"taskId", r.Task, "agentId", cmp.Or(c.agents[r.Task], mainAgent)}
}

func (c *coauthor) delta(r event.Record, kind, text string) error {
	c.streaming[r.Task] = true
	return c.tell("stream_delta", append(c.source(r), "kind", kind, "content", text))
}

func (c *coauthor) endStream(r event.Record) error {
	if !c.streaming[r.Task] {
		return nil
	}
	delete(c.streaming, r.Task)
	return c.tell("stream_end", c.source(r))
}

func (c *coauthor) output(r event.Record, kind, text string) error {
	return c.tell("agent_output", append(c.source(r), "kind", kind, "content", text))
}
