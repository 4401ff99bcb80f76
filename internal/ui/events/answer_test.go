package events_test

import (
	"encoding/json"
	"testing"

	"coder/internal/core/uip"
	"coder/internal/ui/events"
)

// TestAnswersInTheWordsOfSema are those that its programs send back.
func TestAnswersInTheWordsOfSema(t *testing.T) {
	options := []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionAlways}, {ID: uip.OptionReject}}
	call := uip.Request{ID: "q", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Options: options, Display: uip.Display{Metadata: map[string]string{"toolName": "bash"}}}
	once := uip.Request{ID: "q", Kind: uip.KindConfirm, Purpose: uip.PurposeConfirmRiskyAction, Options: []uip.Option{{ID: uip.OptionApprove}, {ID: uip.OptionReject}}}
	colour := uip.Request{ID: "q", Kind: uip.KindSelect, Purpose: uip.PurposeRequestInfo, Display: uip.Display{Title: "Which?"}, Options: []uip.Option{{ID: "1", Label: "Red"}, {ID: "2", Label: "Blue"}}}
	plan := uip.Request{ID: "q", Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy, Options: []uip.Option{{ID: "startEditing", Label: "Go"}, {ID: "clearContextAndStart"}, {ID: "keepPlanning"}}}
	for name, tt := range map[string]struct {
		q           uip.Request
		event, data string
		want        uip.Response
	}{
		"yes":             {call, "tool:permission:response", `{"toolName":"bash","selected":"agree"}`, uip.Response{Option: uip.OptionApprove}},
		"always":          {call, "tool:permission:response", `{"selected":"allow"}`, uip.Response{Option: uip.OptionAlways}},
		"always, if only": {once, "tool:permission:response", `{"selected":"allow"}`, uip.Response{Option: uip.OptionApprove}},
		"no":              {call, "tool:permission:response", `{"selected":"refuse"}`, uip.Response{Option: uip.OptionReject, Stop: true}},
		"advice":          {call, "tool:permission:response", `{"selected":"use make"}`, uip.Response{Option: uip.OptionReject, Comment: "use make"}},
		"nothing":         {call, "tool:permission:response", `{}`, uip.Response{Option: uip.OptionReject}},
		"a choice":        {colour, "ask:question:response", `{"answers":{"Which?":"Blue"}}`, uip.Response{Option: "2"}},
		"own words":       {colour, "ask:question:response", `{"answers":{"Which?":"green"}}`, uip.Response{Input: "green"}},
		"no answer":       {colour, "ask:question:response", `{}`, uip.Response{Dismissed: true}},
		"go":              {plan, "plan:exit:response", `{"selected":"startEditing"}`, uip.Response{Option: "startEditing"}},
		"go, anew":        {plan, "plan:exit:response", `{"selected":"clearContextAndStart"}`, uip.Response{Option: "clearContextAndStart"}},
		"not yet":         {plan, "plan:exit:response", `{}`, uip.Response{Option: "keepPlanning"}},
	} {
		var got uip.Response
		whole, err := events.SemaReply{Event: tt.event, Data: json.RawMessage(tt.data)}.ParseAnswer(tt.q, &got)
		if err != nil || !whole || got.Option != tt.want.Option || got.Input != tt.want.Input || got.Comment != tt.want.Comment || got.Stop != tt.want.Stop || got.Dismissed != tt.want.Dismissed {
			t.Errorf("%s: %+v, %v, %v", name, got, whole, err)
		}
		if err := uip.CheckResponse(tt.q, got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, tt := range map[string]struct {
		q           uip.Request
		event, data string
	}{
		"to another question": {call, "ask:question:response", `{"answers":{"x":"agree"}}`}, "to a plan": {plan, "tool:permission:response", `{"selected":"agree"}`},
		"to a call of another tool": {call, "tool:permission:response", `{"toolName":"write","selected":"agree"}`},
		"no to another tool":        {call, "tool:permission:response", `{"toolName":"edit","selected":"refuse"}`},
		"to an earlier question":    {colour, "ask:question:response", `{"answers":{"How many?":"Blue"}}`},
		"to none":                   {colour, "session:ready", `{}`}, "no data": {call, "tool:permission:response", `5`},
	} {
		var got uip.Response
		if whole, err := (events.SemaReply{Event: tt.event, Data: json.RawMessage(tt.data)}).ParseAnswer(tt.q, &got); err == nil || whole {
			t.Errorf("%s: it was taken as %+v", name, got)
		}
	}
	card := uip.Request{ID: "q", Kind: uip.KindComposite, Purpose: uip.PurposeConfirmRiskyAction, Parts: []uip.Request{call, once}}
	card.Parts[0].ID, card.Parts[1].ID = "q.1", "q.2"
	var got uip.Response
	for i, selected := range []string{"refuse", "agree"} {
		whole, err := events.SemaReply{Event: "tool:permission:response", Data: json.RawMessage(`{"selected":"` + selected + `"}`)}.ParseAnswer(card, &got)
		if err != nil || whole != (i == 1) {
			t.Errorf("part %d: %v, %v", i, whole, err)
		}
	}
	if uip.CheckResponse(card, got) != nil || got.PartAnswer(card.Parts[0]).Option != uip.OptionReject || got.PartAnswer(card.Parts[1]).Option != uip.OptionApprove {
		t.Errorf("%+v", got)
	}
	got, card.Parts[1].Display.Metadata = uip.Response{}, map[string]string{"toolName": "write"}
	for i, data := range []string{`{"toolName":"write","selected":"refuse"}`, `{"toolName":"write","selected":"agree"}`, `{"toolName":"bash","selected":"agree"}`} {
		whole, err := events.SemaReply{Event: "tool:permission:response", Data: json.RawMessage(data)}.ParseAnswer(card, &got)
		if (err != nil) != (i == 1) || whole != (i == 2) {
			t.Errorf("reply %d: %v, %v", i, whole, err)
		}
	}
	if got.PartAnswer(card.Parts[0]).Option != uip.OptionApprove || got.PartAnswer(card.Parts[1]).Option != uip.OptionReject {
		t.Errorf("each answer goes to the call of its tool: %+v", got)
	}
}
