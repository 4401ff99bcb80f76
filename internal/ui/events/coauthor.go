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
	out            *objectWriter
	agents         map[string]string           // the agent of each task
	messageCounts  map[string]int              // messages of a task so far
	streamingTasks map[string]bool             // tasks whose reply is arriving
	inputs         map[callKey]json.RawMessage // unanswered calls
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
		var calls []jsonObject
		for _, call := range e.Message.Calls() {
			calls = append(calls, jsonObject{"toolCallId", call.ID, "toolName", call.Name, "arguments",
				objectOrEmpty(call.Args)})
			c.inputs[callKey{r.Task, call.ID}] = call.Args
		}
		for res := range chat.PartsOf[chat.ToolResult](e.Message) {
			answered, content = res.CallID, res.Text
			delete(c.inputs, callKey{r.Task, res.CallID})
		}
		index := c.messageCounts[r.Task]
		c.messageCounts[r.Task]++
		said := e.Message.Reasoning()
		m := jsonObject{"role", e.Message.Role, "content", content}.
			withIf(len(calls) > 0, "toolCalls", calls).withIf(said != "", "reasoning", said).withIf(answered != "", "toolCallId",
			answered)
		// counted from 0 among the messages shown of its task
		return c.out.writeObject(jsonObject{"id", rowID(r), "taskId", r.Task, "index", index, "message", m, "createdAt",
			r.Time})
	case event.LocalAdded:
		kind := "text"
		if e.Failed {
			kind = "error"
		}
		return c.sendOutput(r, kind, e.Output)
	case event.TodosChanged:
		return c.writeNamedRow(r, "TaskTodoUpdated", jsonObject{"taskId", r.Task, "todos", e.Todos})
	case event.TaskCreated:
		c.agents[r.Task] = e.AgentID
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		defer func() { // only needed while the task runs
			delete(c.agents, r.Task)
			delete(c.messageCounts, r.Task)
			delete(c.streamingTasks, r.Task)
			maps.DeleteFunc(c.inputs, func(k callKey, _ json.RawMessage) bool { return k.task == r.Task })
		}()
	case event.Unknown:
		return c.writeRow(r, objectOrEmpty(e.Payload))
	case event.ToolCallRequested:
		c.inputs[callKey{r.Task, e.CallID}] = e.Input
		return c.writeRow(r, jsonObject{ // CoAuthor has no key for effects, verdict and decider
			"toolCallId", e.CallID, "toolName", e.Tool, "authorActorId", e.Author, "taskId", e.TaskID, "input",
			objectOrEmpty(e.Input), "timestamp", e.Timestamp,
		})
	}
	if event.LogOf(r.Event) != event.LogNone {
		return c.writeRow(r, r.Event)
	}
	switch e := r.Event.(type) {
	case event.TextDelta:
		return c.sendDelta(r, "text", e.Text)
	case event.ReasoningDelta:
		return c.sendDelta(r, "reasoning", e.Text)
	case event.Retrying:
		if err := c.endStream(r); err != nil {
			return err
		}
		return c.sendOutput(r, "verbose", fmt.Sprintf("%s; attempt %d of %d follows, discard the reply so far", e.Reason,
			e.Attempt, e.MaxAttempts))
	case event.ToolStarted:
		return c.sendMessage("tool_call_start", append(c.source(r), "toolCallId", e.CallID, "toolName", e.Tool, "arguments",
			objectOrEmpty(c.inputs[callKey{r.Task, e.CallID}])))
	case event.ToolOutput:
		return c.sendOutput(r, "verbose", e.Text)
	case event.ToolFinished:
		var output any = json.RawMessage(e.Result.Text)
		if !startsWithByte(e.Result.Text, '{') {
			output = jsonObject{"text", e.Result.Text}
		}
		return c.sendMessage("tool_call_end", append(c.source(r), "toolCallId", e.CallID, "toolName", e.Tool,
			"output", output, "isError", e.Failed || e.Denied, "durationMs", e.Duration.Milliseconds()))
	case event.Interrupted:
		return c.sendOutput(r, "verbose", e.Text)
	case event.Notice:
		kind := "verbose"
		if e.Level == event.LevelError {
			kind = "error"
		}
		return c.sendOutput(r, kind, e.Text)
	}
	return nil // CoAuthor's bus has no word for the others
}

// writeRow writes a stored event. The id is unique among all sessions; seq orders the rows of a session, not
// only those of its stream.
func (c *coauthor) writeRow(r event.Record, payload any) error {
	name, _ := event.WireName(r.Event)
	return c.writeNamedRow(r, name, payload)
}

func (c *coauthor) writeNamedRow(r event.Record, name string, payload any) error {
	return c.out.writeObject(jsonObject{"id", rowID(r), "streamId", r.Task, "seq", r.Seq, "type", name, "payload", payload,
		"createdAt", r.Time})
}

func rowID(r event.Record) string { return r.Session + ":" + strconv.FormatUint(r.Seq, 10) }

// sendMessage sends a message on the interface bus.
func (c *coauthor) sendMessage(name string, payload jsonObject) error {
	return c.out.writeObject(jsonObject{"type", name, "payload", payload})
}

func (c *coauthor) source(r event.Record) jsonObject {
	return jsonObject{"taskId", r.Task, "agentId", cmp.Or(c.agents[r.Task], mainAgent)}
}

func (c *coauthor) sendDelta(r event.Record, kind, text string) error {
	c.streamingTasks[r.Task] = true
	return c.sendMessage("stream_delta", append(c.source(r), "kind", kind, "content", text))
}

func (c *coauthor) endStream(r event.Record) error {
	if !c.streamingTasks[r.Task] {
		return nil
	}
	delete(c.streamingTasks, r.Task)
	return c.sendMessage("stream_end", c.source(r))
}

func (c *coauthor) sendOutput(r event.Record, kind, text string) error {
	return c.sendMessage("agent_output", append(c.source(r), "kind", kind, "content", text))
}
