package events

import (
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
)

// native shows records as the logs keep them, and transient sights in the same
// envelope without a seq.
type native struct{ out *lines }

func (n native) show(r event.Record) error {
	if event.LogOf(r.Event) == event.Transient {
		s := sight{Version: sightVersion, Session: r.Session, Task: r.Task, Actor: r.Actor, Time: r.Time}
		s.Type, s.Payload = payloadOf(r.Event)
		return n.out.put(s)
	}
	line, err := event.Encode(r)
	if err != nil {
		return err
	}
	return n.out.write(append(line, '\n'))
}

// sight is the envelope of a transient event.
type sight struct {
	Type    string    `json:"type"`
	Version int       `json:"v"`
	Session string    `json:"sessionId"`
	Task    string    `json:"streamId"`
	Actor   string    `json:"actor,omitempty"`
	Time    time.Time `json:"createdAt"`
	Payload any       `json:"payload"`
}

const sightVersion = 1 // grows when a payload changes its meaning

type (
	textPayload struct {
		Text string `json:"text"`
	}
	statePayload struct {
		Busy bool `json:"busy"`
	}
	openedPayload struct {
		Dir       string   `json:"dir"`
		Model     string   `json:"model"`
		Mode      string   `json:"mode"`
		Tools     []string `json:"tools"`
		Resumed   bool     `json:"resumed"`
		MaxTokens int      `json:"maxTokens"`
	}
	retryPayload struct {
		Attempt int    `json:"attempt"`
		Of      int    `json:"of"`
		WaitMs  int64  `json:"waitMs"`
		Why     string `json:"why"`
	}
	waitingPayload struct {
		Why    event.WaitReason `json:"why"`
		Waited int64            `json:"waitedMs"`
		Read   int              `json:"read,omitzero"`
		Of     int              `json:"of,omitzero"`
		Until  time.Time        `json:"until,omitzero"`
	}
	startedPayload struct {
		CallID string `json:"toolCallId"`
		Tool   string `json:"toolName"`
		Title  string `json:"title"`
	}
	outputPayload struct {
		CallID string `json:"toolCallId"`
		Text   string `json:"text"`
	}
	progressPayload struct {
		CallID string `json:"toolCallId"`
		Line   string `json:"line"`
		Lines  int    `json:"lines,omitempty"`
	}
	finishedPayload struct {
		CallID     string `json:"toolCallId"`
		Tool       string `json:"toolName"`
		Title      string `json:"title"`
		Summary    string `json:"summary"`
		Show       any    `json:"show,omitempty"`
		Result     string `json:"result"`
		Failed     bool   `json:"failed"`
		Denied     bool   `json:"denied"`
		DurationMs int64  `json:"durationMs"`
	}
	usedPayload struct {
		Used   int `json:"used"`
		Max    int `json:"max"`
		Prompt int `json:"prompt"`
	}
	noticePayload struct {
		Level event.Level `json:"level"`
		Text  string      `json:"text"`
	}
)

// payloadOf gives the wire name and payload of a transient event.
func payloadOf(e event.Event) (string, any) {
	switch e := e.(type) {
	case event.SessionOpened:
		return "SessionOpened", openedPayload{e.Dir, e.Model, e.Mode, append([]string{}, e.Tools...), e.Resumed, e.MaxTokens}
	case event.StateChanged:
		return "StateChanged", statePayload(e)
	case event.TextDelta:
		return "TextDelta", textPayload(e)
	case event.ReasoningDelta:
		return "ReasoningDelta", textPayload(e)
	case event.Retrying:
		return "Retrying", retryPayload{e.Attempt, e.Of, e.Wait.Milliseconds(), e.Why}
	case event.Waiting:
		return "Waiting", waitingPayload{e.Why, e.Waited.Milliseconds(), e.Read, e.Of, e.Until}
	case event.ToolStarted:
		return "ToolStarted", startedPayload(e)
	case event.ToolOutput:
		return "ToolOutput", outputPayload(e)
	case event.ToolProgress:
		return "ToolProgress", progressPayload(e)
	case event.ToolFinished:
		return "ToolFinished", finishedPayload{
			e.CallID, e.Tool, e.Title, e.Summary, display.Wire(e.Show), e.Result.Text, e.Failed, e.Denied, e.Took.Milliseconds(),
		}
	case event.ContextUsed:
		return "ContextUsed", usedPayload(e)
	case event.Interrupted:
		return "Interrupted", textPayload(e)
	case event.Notice:
		return "Notice", noticePayload(e)
	}
	return "Unknown", struct{}{}
}
