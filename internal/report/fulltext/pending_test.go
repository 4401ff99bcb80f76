package fulltext

import (
	"testing"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/uip"
)

func TestACallThatWaitsForApprovalIsFound(t *testing.T) {
	asked := chat.Message{Role: chat.Assistant, Parts: []chat.Part{chat.ToolCall{ID: "c", Name: "bash", Args: []byte(`{"command":"deploy the zebra"}`)}}}
	records := []event.Record{
		{Seq: 1, Event: event.MessageAdded{Message: asked}},
		{Seq: 2, Event: event.InteractionRequested{Request: uip.Request{ID: "q"}.BindToCall("c")}},
	}
	doc := Build("s", func(yield func(event.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if hit, ok := doc.Find([]string{"zebra"}); !ok {
		t.Errorf("found %+v, %v", hit, ok)
	}
}
