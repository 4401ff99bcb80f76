package events

import (
	"time"

	"coder/internal/core/display"
	"coder/internal/core/event"
)

// native shows records as the logs have them, and transient events in the same envelope without a seq.
type native struct{ out *objectWriter }

func (n native) show(r event.Record) error {
	if event.LogOf(r.Event) == event.LogNone {
		name, payload := transientPayload(r.Event)
		return n.out.writeObject(jsonObject{"type", name, "v", SightVersion, "sessionId", r.Session, "streamId", r.Task}.
			withIf(r.Actor != "", "actor", r.Actor).withIf(true, "createdAt", r.Time).withIf(true, "payload", payload))
	}
	line, err := event.EncodeAround(r, &n.out.large)
	if err != nil {
		return err
	}
	n.out.buf.Write(line)
	return n.out.finish()
}

// SightVersion is the version of transient events. It increases when a payload changes its meaning.
const SightVersion = 1

// The payloads of transient events.
type (
	sessionOpened struct {
		Dir       string   `json:"dir"`
		Model     string   `json:"model"`
		Mode      string   `json:"mode"`
		Tools     []string `json:"tools"`
		Resumed   bool     `json:"resumed"`
		MaxTokens int      `json:"maxTokens"`
	}
	stateChanged struct {
		Busy bool `json:"busy"`
	}
	textPiece struct {
		Text string `json:"text"`
	}
	retrying struct {
		Attempt int    `json:"attempt"`
		Of      int    `json:"of"`
		WaitMs  int64  `json:"waitMs"`
		Why     string `json:"why"`
	}
	waiting struct {
		Why      string    `json:"why"`
		WaitedMs int64     `json:"waitedMs"`
		Read     int       `json:"read,omitzero"`
		Of       int       `json:"of,omitzero"`
		Until    time.Time `json:"until,omitzero"`
	}
	toolStarted struct {
		CallID string `json:"toolCallId"`
		Tool   string `json:"toolName"`
		Title  string `json:"title"`
	}
	toolOutput struct {
		CallID string `json:"toolCallId"`
		Text   string `json:"text"`
	}
	toolProgress struct {
		CallID string `json:"toolCallId"`
		Line   string `json:"line"`
		Lines  int    `json:"lines,omitzero"`
	}
	toolFinished struct {
		CallID     string `json:"toolCallId"`
		Tool       string `json:"toolName"`
		Title      string `json:"title"`
		Summary    string `json:"summary"`
		Show       any    `json:"show,omitempty"` // a block
		Result     string `json:"result"`
		Failed     bool   `json:"failed"`
		Denied     bool   `json:"denied"`
		DurationMs int64  `json:"durationMs"`
	}
	contextUsed struct {
		Used   int `json:"used"`
		Max    int `json:"max"`
		Prompt int `json:"prompt"`
	}
	notice struct {
		Level string `json:"level"`
		Text  string `json:"text"`
	}
)

// Transients returns a payload of each transient event, by the event's name.
func Transients() map[string]any {
	all := make(map[string]any)
	for _, e := range []event.Event{
		event.SessionOpened{}, event.StateChanged{}, event.TextDelta{}, event.ReasoningDelta{}, event.Retrying{},
		event.Waiting{},
		event.ToolStarted{}, event.ToolOutput{}, event.ToolProgress{}, event.ToolFinished{}, event.ContextUsed{},
		event.Interrupted{}, event.Notice{},
	} {
		name, payload := transientPayload(e)
		all[name] = payload
	}
	return all
}

// transientPayload returns the wire name and payload of a transient event.
func transientPayload(e event.Event) (name string, payload any) {
	switch e := e.(type) {
	case event.SessionOpened:
		return "SessionOpened", sessionOpened{e.Dir, e.Model, e.Mode, append([]string{}, e.Tools...), e.Resumed, e.MaxTokens}
	case event.StateChanged:
		return "StateChanged", stateChanged{e.Busy}
	case event.TextDelta:
		return "TextDelta", textPiece{e.Text}
	case event.ReasoningDelta:
		return "ReasoningDelta", textPiece{e.Text}
	case event.Retrying:
		return "Retrying", retrying{e.Attempt, e.MaxAttempts, e.Wait.Milliseconds(), e.Reason}
	case event.Waiting:
		return "Waiting", waiting{string(e.Reason), e.Waited.Milliseconds(), e.ReadTokens, e.TotalTokens, e.Until}
	case event.ToolStarted:
		return "ToolStarted", toolStarted{e.CallID, e.Tool, e.Title}
	case event.ToolOutput:
		return "ToolOutput", toolOutput{e.CallID, e.Text}
	case event.ToolProgress:
		return "ToolProgress", toolProgress{e.CallID, e.Line, e.Lines}
	case event.ToolFinished:
		return "ToolFinished", toolFinished{e.CallID, e.Tool, e.Title, e.Summary, display.ToWire(e.Content), e.Result.Text,
			e.Failed, e.Denied, e.Duration.Milliseconds()}
	case event.ContextUsed:
		return "ContextUsed", contextUsed{e.Used, e.Max, e.Prompt}
	case event.Interrupted:
		return "Interrupted", textPiece{e.Text}
	case event.Notice:
		return "Notice", notice{string(e.Level), e.Text}
	}
	return "Unknown", struct{}{}
}
