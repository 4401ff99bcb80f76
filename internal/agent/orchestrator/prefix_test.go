package orchestrator

import (
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

func TestPrefixTellsWhereARequestPartsFromTheOneBefore(t *testing.T) {
	tools := []provider.ToolSpec{{Name: "read", Doc: "Reads.", Schema: []byte(`{}`)}, {Name: "edit", Doc: "Edits.", Schema: []byte(`{}`)}} // 12 bytes each
	hello, answer, more := chat.TextMessage(chat.User, "hello"), chat.TextMessage(chat.Assistant, "hi there"), chat.TextMessage(chat.User, "more")
	base := provider.Request{Model: "m", System: "be kind", Tools: tools, Messages: []chat.Message{hello}}
	with := func(change func(*provider.Request)) provider.Request {
		r := base
		change(&r)
		return r
	}
	tests := []struct {
		name string
		now  provider.Request
		want *PrefixBreak
	}{
		{"the same", base, nil},
		{"longer", with(func(r *provider.Request) { r.Messages = []chat.Message{hello, answer, more} }), nil},
		{"an equal message", with(func(r *provider.Request) { r.Messages = []chat.Message{chat.TextMessage(chat.User, "hello")} }), nil},
		{"another reply limit", with(func(r *provider.Request) { r.MaxTokens = 7 }), nil},
		{"another system text", with(func(r *provider.Request) { r.System = "be brief" }), &PrefixBreak{SameBytes: 3, TotalBytes: 8 + 24 + 5}},
		{"a tool less", with(func(r *provider.Request) { r.Tools = tools[:1] }), &PrefixBreak{ToolIndex: 2, ToolName: "edit", SameBytes: 7 + 12, TotalBytes: 7 + 12 + 5}},
		{"a tool more", with(func(r *provider.Request) {
			r.Tools = append(tools[:2:2], provider.ToolSpec{Name: "task"})
		}), &PrefixBreak{ToolIndex: 3, ToolName: "task", SameBytes: 7 + 24, TotalBytes: 7 + 24 + 4 + 5}},
		{"another description", with(func(r *provider.Request) {
			r.Tools = []provider.ToolSpec{tools[0], {Name: "edit", Doc: "Eats.", Schema: []byte(`{}`)}}
		}), &PrefixBreak{ToolIndex: 2, ToolName: "edit", SameBytes: 7 + 12 + 5, TotalBytes: 7 + 12 + 11 + 5}},
		{"a message replaced", with(func(r *provider.Request) { r.Messages = []chat.Message{chat.TextMessage(chat.User, "help"), more} }), &PrefixBreak{MessageIndex: 1, SameBytes: 7 + 24 + 3, TotalBytes: 7 + 24 + 8}},
		{"a message gone", with(func(r *provider.Request) { r.Messages = nil }), &PrefixBreak{MessageIndex: 1, SameBytes: 7 + 24, TotalBytes: 7 + 24}},
	}
	for _, tt := range tests {
		var p prefixTracker
		p.update(base)
		p.update(base)
		p.update(tt.now)
		switch {
		case tt.want == nil && (p.LastBreak != nil || p.Requests != 2):
			t.Errorf("%s: %+v after %d", tt.name, p.LastBreak, p.Requests)
		case tt.want != nil && (p.LastBreak == nil || *p.LastBreak != *tt.want || p.Requests != 0):
			t.Errorf("%s: %+v, want %+v", tt.name, p.LastBreak, tt.want)
		}
	}
	var p prefixTracker
	p.update(base)
	p.update(with(func(r *provider.Request) { r.Tools = nil }))
	p.update(with(func(r *provider.Request) { r.Tools = nil }))
	if p.Requests != 1 || p.LastBreak == nil || p.LastBreak.ToolIndex != 1 {
		t.Errorf("a break is forgotten by the next request: %+v", p.PrefixStats)
	}
	p.update(with(func(r *provider.Request) { r.Model = "other" }))
	if p.Requests != 0 || p.LastBreak != nil {
		t.Errorf("another model is compared: %+v", p.PrefixStats)
	}
}
