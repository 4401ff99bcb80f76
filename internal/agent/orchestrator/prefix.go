package orchestrator

import (
	"bytes"
	"cmp"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// Prefix is how requests follow each other as a provider's cache sees it: what
// begins like a request before is not read anew.
type Prefix struct {
	Requests int    // the last so many began with all of the one before them
	Broken   *Break // where the one before those did not; nil if there was none
}

// Break is where a request stopped being like the one before it.
type Break struct {
	Tool    int    // which tool it is, from 1; 0 if it is none
	Name    string // of that tool
	Message int    // which message it is, from 1; 0 if it is none
	// Byte is how many bytes are the same, of as many as the request has: the
	// system text, the tools and what was said, in that order.
	Byte, Of int
}

// prefix watches the requests of one conversation.
type prefix struct {
	Prefix
	last provider.Request
}

// sent takes note of a request.
func (p *prefix) sent(req provider.Request) {
	before := p.last
	p.last = req
	if before.Model != req.Model { // which has a cache of its own
		p.Prefix = Prefix{}
		return
	}
	if b := parting(before, req); b != nil {
		p.Prefix = Prefix{Broken: b}
		return
	}
	p.Requests++
}

// parting is where now stops being like before; nil if it begins with all of it.
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

// alike is how many bytes two texts have in common at their beginning.
func alike(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// size is how many bytes a request has, by the count of [Break].
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

// messageText is what the model reads of a message, its pictures by their data.
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
