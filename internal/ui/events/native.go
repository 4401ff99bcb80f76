package events

import (
	"coder/internal/core/display"
	"coder/internal/core/event"
)

// native shows records as the logs have them, and transient events in the same envelope without a seq.
type native struct{ out *lines }

func (n native) show(r event.Record) error {
	if event.LogOf(r.Event) == event.Transient {
		name, payload := payloadOf(r.Event)
		return n.out.put(obj{"type", name, "v", sightVersion, "sessionId", r.Session, "streamId", r.Task}.
			and(r.Actor != "", "actor", r.Actor).and(true, "createdAt", r.Time).and(true, "payload", payload))
	}
	line, err := event.EncodeAround(r, &n.out.large)
	if err != nil {
		return err
	}
	n.out.buf.Write(line)
	return n.out.finish()
}

const sightVersion = 1 // increases when a payload changes its meaning

// payloadOf returns the wire name and payload of a transient event.
func payloadOf(e event.Event) (string, obj) {
	switch e := e.(type) {
	case event.SessionOpened:
		return "SessionOpened", obj{
			"dir", e.Dir, "model", e.Model, "mode", e.Mode, "tools", append([]string{}, e.Tools...), "resumed", e.Resumed, "maxTokens", e.MaxTokens,
		}
	case event.StateChanged:
		return "StateChanged", obj{"busy", e.Busy}
	case event.TextDelta:
		return "TextDelta", obj{"text", e.Text}
	case event.ReasoningDelta:
		return "ReasoningDelta", obj{"text", e.Text}
	case event.Retrying:
		return "Retrying", obj{"attempt", e.Attempt, "of", e.Of, "waitMs", e.Wait.Milliseconds(), "why", e.Why}
	case event.Waiting:
		return "Waiting", obj{"why", e.Why, "waitedMs", e.Waited.Milliseconds()}.
			and(e.Read != 0, "read", e.Read).and(e.Of != 0, "of", e.Of).and(!e.Until.IsZero(), "until", e.Until)
	case event.ToolStarted:
		return "ToolStarted", obj{"toolCallId", e.CallID, "toolName", e.Tool, "title", e.Title}
	case event.ToolOutput:
		return "ToolOutput", obj{"toolCallId", e.CallID, "text", e.Text}
	case event.ToolProgress:
		return "ToolProgress", obj{"toolCallId", e.CallID, "line", e.Line}.and(e.Lines != 0, "lines", e.Lines)
	case event.ToolFinished:
		shown := display.Wire(e.Show)
		return "ToolFinished", obj{"toolCallId", e.CallID, "toolName", e.Tool, "title", e.Title, "summary", e.Summary}.
			and(shown != nil, "show", shown).
			and(true, "result", e.Result.Text).and(true, "failed", e.Failed).and(true, "denied", e.Denied).and(true, "durationMs", e.Took.Milliseconds())
	case event.ContextUsed:
		return "ContextUsed", obj{"used", e.Used, "max", e.Max, "prompt", e.Prompt}
	case event.Interrupted:
		return "Interrupted", obj{"text", e.Text}
	case event.Notice:
		return "Notice", obj{"level", e.Level, "text", e.Text}
	}
	return "Unknown", obj{}
}
