package orchestrator

import (
	"bytes"
	"cmp"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// Prefix describes how requests follow each other for a provider's
// cache: the cache saves rereading a beginning it has seen.
type Prefix struct {
	Requests int    // how many requests in a row began with all of the previous one
	Broken   *Break // the last break before those; nil if there was none
}

// Break is where a request begins to differ from the one before.
type Break struct {
	Tool    int    // the tool's number, from 1; 0 if it is none
	Name    string // the tool's name
	Message int    // the message's number, from 1; 0 if it is none
	// Byte is how many of the request's Of bytes are the same: the
	// system text, the tools and the messages, in that order.
	Byte, Of int
}

// prefix tracks the requests of one conversation.
type prefix struct {
	Prefix
	last provider.Request
}

// sent updates the prefix with a request.
func (p *prefix) sent(req provider.Request) {
	before := p.last
	p.last = req
	if before.Model != req.Model { // another model has its own cache
		p.Prefix = Prefix{}
		return
	}
	if b := parting(before, req); b != nil {
		p.Prefix = Prefix{Broken: b}
		return
	}
	p.Requests++
}

// parting returns where now begins to differ from before; nil if it begins with all of it.
func parting(before, now provider.Request) *Break {
	if before.System != now.System {
		return &Break{Byte: alike(before.System, now.System), Of: size(now)}
	}
	at := len(now.System)
	for i := range max(len(before.Tools), len(now.Tools)) {
		var was, is provider.ToolSpec
		if i < len(before.Tools) {
			was = before.Tools[i]
		}
		if i < len(now.Tools) {
			is = now.Tools[i]
		}
		if was.Name != is.Name || was.Doc != is.Doc || !bytes.Equal(was.Schema, is.Schema) {
			return &Break{Tool: i + 1, Name: cmp.Or(is.Name, was.Name), Byte: at + alike(toolText(was), toolText(is)), Of: size(now)}
		}
		at += len(is.Name) + len(is.Doc) + len(is.Schema)
	}
	for i, m := range before.Messages {
		if i < len(now.Messages) && chat.Same(m, now.Messages[i]) {
			continue
		}
		is := ""
		if i < len(now.Messages) {
			is = messageText(now.Messages[i])
		}
		if was := messageText(m); was != is {
			for _, m := range now.Messages[:min(i, len(now.Messages))] {
				at += len(messageText(m))
			}
			return &Break{Message: i + 1, Byte: at + alike(was, is), Of: size(now)}
		}
	}
	return nil
}

// alike returns the length of the common beginning of two texts in bytes.
func alike(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// size returns a request's size in bytes, as [Break] counts.
func size(req provider.Request) int {
	n := len(req.System)
	for _, t := range req.Tools {
		n += len(toolText(t))
	}
	for _, m := range req.Messages {
		n += len(messageText(m))
	}
	return n
}

func toolText(t provider.ToolSpec) string { return t.Name + t.Doc + string(t.Schema) }

// messageText returns what the model reads of a message, with pictures as their data.
func messageText(m chat.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case chat.Text:
			b.WriteString(string(p))
		case chat.Reasoning:
			b.WriteString(p.Text)
		case chat.Image:
			b.Write(p.Data)
		case chat.ToolCall:
			b.WriteString(p.Name + string(p.Args))
		case chat.ToolResult:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
