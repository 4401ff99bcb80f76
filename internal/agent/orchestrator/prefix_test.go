package orchestrator

import (
	"testing"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

func TestPrefixTellsWhereARequestPartsFromTheOneBefore(t *testing.T) {
	tools := []provider.ToolSpec{{Name: "read", Doc: "Reads.", Schema: []byte(`{}`)}, {Name: "edit", Doc: "Edits.", Schema: []byte(`{}`)}} // 12 bytes each
	hello, answer, more := chat.Say(chat.User, "hello"), chat.Say(chat.Assistant, "hi there"), chat.Say(chat.User, "more")
	base := provider.Request{Model: "m", System: "be kind", Tools: tools, Messages: []chat.Message{hello}}
	with := func(change func(*provider.Request)) provider.Request {
		r := base
		change(&r)
		return r
	}
	tests := []struct {
		name string
		now  provider.Request
		want *Break
	}{
		{"the same", base, nil},
		{"longer", with(func(r *provider.Request) { r.Messages = []chat.Message{hello, answer, more} }), nil},
		{"an equal message", with(func(r *provider.Request) { r.Messages = []chat.Message{chat.Say(chat.User, "hello")} }), nil},
		{"another reply limit", with(func(r *provider.Request) { r.MaxTokens = 7 }), nil},
		{"another system text", with(func(r *provider.Request) { r.System = "be brief" }), &Break{Byte: 3, Of: 8 + 24 + 5}},
		{"a tool less", with(func(r *provider.Request) { r.Tools = tools[:1] }), &Break{Tool: 2, Name: "edit", Byte: 7 + 12, Of: 7 + 12 + 5}},
		{"a tool more", with(func(r *provider.Request) {
			r.Tools = append(tools[:2:2], provider.ToolSpec{Name: "task"})
		}), &Break{Tool: 3, Name: "task", Byte: 7 + 24, Of: 7 + 24 + 4 + 5}},
		{"another description", with(func(r *provider.Request) {
			r.Tools = []provider.ToolSpec{tools[0], {Name: "edit", Doc: "Eats.", Schema: []byte(`{}`)}}
		}), &Break{Tool: 2, Name: "edit", Byte: 7 + 12 + 5, Of: 7 + 12 + 11 + 5}},
		{"a message replaced", with(func(r *provider.Request) { r.Messages = []chat.Message{chat.Say(chat.User, "help"), more} }), &Break{Message: 1, Byte: 7 + 24 + 3, Of: 7 + 24 + 8}},
		{"a message gone", with(func(r *provider.Request) { r.Messages = nil }), &Break{Message: 1, Byte: 7 + 24, Of: 7 + 24}},
	}
	for _, tt := range tests {
		var p prefix
		p.sent(base)
		p.sent(base)
		p.sent(tt.now)
		switch {
		case tt.want == nil && (p.Broken != nil || p.Requests != 2):
			t.Errorf("%s: %+v after %d", tt.name, p.Broken, p.Requests)
		case tt.want != nil && (p.Broken == nil || *p.Broken != *tt.want || p.Requests != 0):
			t.Errorf("%s: %+v, want %+v", tt.name, p.Broken, tt.want)
		}
	}
	var p prefix
	p.sent(base)
	p.sent(with(func(r *provider.Request) { r.Tools = nil }))
	p.sent(with(func(r *provider.Request) { r.Tools = nil }))
	if p.Requests != 1 || p.Broken == nil || p.Broken.Tool != 1 {
		t.Errorf("a break is forgotten by the next request: %+v", p.Prefix)
	}
	p.sent(with(func(r *provider.Request) { r.Model = "other" }))
	if p.Requests != 0 || p.Broken != nil {
		t.Errorf("another model is compared: %+v", p.Prefix)
	}
}
