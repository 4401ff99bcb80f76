package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/event"
)

// coauthor shows domain and audit records as CoAuthor's rows, messages as rows
// of its conversation store, and the rest as messages of its interface bus. A
// row has an id; a bus message has only type and payload.
type coauthor struct {
	out       *lines
	agents    map[string]string           // who works on a task
	said      map[string]int              // messages of a task so far
	streaming map[string]bool             // tasks whose reply is arriving
	inputs    map[callKey]json.RawMessage // calls asked for and not yet answered
}

func (c *coauthor) show(r event.Record) error {
	switch e := r.Event.(type) {
	case event.MessageAdded:
		if e.Message.Role == chat.Assistant {
			if err := c.endStream(r); err != nil {
				return err
			}
		}
		m := coauthorMessage{Role: e.Message.Role, Content: e.Message.Text(), Reasoning: e.Message.Reasoning()}
		for _, call := range e.Message.Calls() {
			m.Calls = append(m.Calls, coauthorCall{call.ID, call.Name, object(call.Args)})
			c.inputs[callKey{r.Task, call.ID}] = call.Args
		}
		for res := range chat.Select[chat.ToolResult](e.Message) {
			m.CallID, m.Content = res.CallID, res.Text
			delete(c.inputs, callKey{r.Task, res.CallID})
		}
		index := c.said[r.Task]
		c.said[r.Task]++
		return c.out.put(conversationRow{rowID(r), r.Task, index, m, r.Time})
	case event.LocalAdded:
		kind := "text"
		if e.Failed {
			kind = "error"
		}
		return c.output(r, kind, e.Output)
	case event.TodosChanged:
		return c.rowNamed(r, "TaskTodoUpdated", todosPayload{r.Task, e.Todos})
	case event.TaskCreated:
		c.agents[r.Task] = e.AgentID
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		defer func() { // what was only of use while the task ran
			delete(c.agents, r.Task)
			delete(c.said, r.Task)
			delete(c.streaming, r.Task)
			maps.DeleteFunc(c.inputs, func(k callKey, _ json.RawMessage) bool { return k.task == r.Task })
		}()
	case event.Unknown:
		return c.row(r, object(e.Payload))
	case event.ToolCallRequested:
		c.inputs[callKey{r.Task, e.CallID}] = e.Input
		return c.row(r, requestedPayload{e.CallID, e.Tool, e.Author, e.TaskID, object(e.Input), e.Timestamp})
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
		return c.output(r, "verbose", fmt.Sprintf("%s; attempt %d of %d follows, what was said so far is void", e.Why, e.Attempt, e.Of))
	case event.ToolStarted:
		args := object(c.inputs[callKey{r.Task, e.CallID}])
		return c.out.put(busMessage{"tool_call_start", busCallStart{busCall{c.source(r), e.CallID, e.Tool}, args}})
	case event.ToolOutput:
		return c.output(r, "verbose", e.Text)
	case event.ToolFinished:
		output := json.RawMessage(e.Result.Text)
		if !startsWith(e.Result.Text, '{') {
			output, _ = json.Marshal(textPayload{e.Result.Text}) // a string always marshals
		}
		end := busCallEnd{busCall{c.source(r), e.CallID, e.Tool}, output, e.Failed || e.Denied, e.Took.Milliseconds()}
		return c.out.put(busMessage{"tool_call_end", end})
	case event.Interrupted:
		return c.output(r, "verbose", e.Text)
	case event.Notice:
		kind := "verbose"
		if e.Level == event.Error {
			kind = "error"
		}
		return c.output(r, kind, e.Text)
	}
	return nil // CoAuthor's bus has no word for the rest
}

// row is a stored event. Its id is unique among all sessions; its seq orders
// the rows of a session, not only those of its stream.
type row struct {
	ID      string    `json:"id"`
	Stream  string    `json:"streamId"`
	Seq     uint64    `json:"seq"`
	Type    string    `json:"type"`
	Payload any       `json:"payload"`
	Time    time.Time `json:"createdAt"`
}

func (c *coauthor) row(r event.Record, payload any) error {
	name, _ := event.Name(r.Event)
	return c.rowNamed(r, name, payload)
}

func (c *coauthor) rowNamed(r event.Record, name string, payload any) error {
	return c.out.put(row{rowID(r), r.Task, r.Seq, name, payload, r.Time})
}

func rowID(r event.Record) string { return r.Session + ":" + strconv.FormatUint(r.Seq, 10) }

// requestedPayload leaves out what CoAuthor has no key for: effects, verdict
// and who decided.
type requestedPayload struct {
	CallID    string          `json:"toolCallId"`
	Tool      string          `json:"toolName"`
	Author    string          `json:"authorActorId"`
	TaskID    string          `json:"taskId"`
	Input     json.RawMessage `json:"input"`
	Timestamp int64           `json:"timestamp"`
}

// todosPayload is the list of a task, under the name the task model has for it.
type todosPayload struct {
	Task  string       `json:"taskId"`
	Todos []event.Todo `json:"todos"`
}

type conversationRow struct {
	ID      string          `json:"id"`
	Task    string          `json:"taskId"`
	Index   int             `json:"index"` // from 0, among those shown of its task
	Message coauthorMessage `json:"message"`
	Time    time.Time       `json:"createdAt"`
}

type coauthorMessage struct {
	Role      chat.Role      `json:"role"`
	Content   string         `json:"content"`
	Calls     []coauthorCall `json:"toolCalls,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	CallID    string         `json:"toolCallId,omitempty"`
}

type coauthorCall struct {
	ID   string          `json:"toolCallId"`
	Tool string          `json:"toolName"`
	Args json.RawMessage `json:"arguments"`
}

type busMessage struct {
	Type    string `json:"type"`
	Payload any    `json:"payload"`
}

type busSource struct {
	Task  string `json:"taskId"`
	Agent string `json:"agentId"`
}

type busText struct {
	busSource
	Kind    string `json:"kind"`
	Content string `json:"content"`
}

type busCall struct {
	busSource
	CallID string `json:"toolCallId"`
	Tool   string `json:"toolName"`
}

type busCallStart struct {
	busCall
	Args json.RawMessage `json:"arguments"`
}

type busCallEnd struct {
	busCall
	Output     json.RawMessage `json:"output"`
	IsError    bool            `json:"isError"`
	DurationMs int64           `json:"durationMs"`
}

func (c *coauthor) source(r event.Record) busSource {
	if agent := c.agents[r.Task]; agent != "" {
		return busSource{r.Task, agent}
	}
	return busSource{r.Task, mainAgent}
}

func (c *coauthor) delta(r event.Record, kind, text string) error {
	c.streaming[r.Task] = true
	return c.out.put(busMessage{"stream_delta", busText{c.source(r), kind, text}})
}

func (c *coauthor) endStream(r event.Record) error {
	if !c.streaming[r.Task] {
		return nil
	}
	delete(c.streaming, r.Task)
	return c.out.put(busMessage{"stream_end", c.source(r)})
}

func (c *coauthor) output(r event.Record, kind, text string) error {
	return c.out.put(busMessage{"agent_output", busText{c.source(r), kind, text}})
}
