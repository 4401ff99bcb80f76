package orchestrator

import (
	"bytes"
	"cmp"
	"strings"

	"coder/internal/core/chat"
	"coder/internal/model/provider"
)

// PrefixStats describes how requests follow each other for a provider's
// cache: the cache saves rereading a beginning it has seen.
type PrefixStats struct {
	Requests  int          // how many requests in a row began with all of the previous one
	LastBreak *PrefixBreak // the last break before those; nil if there was none
}

// PrefixBreak is where a request begins to differ from the one before.
type PrefixBreak struct {
	ToolIndex    int    // the tool's number, from 1; 0 if it is none
	ToolName     string // the tool's name
	MessageIndex int    // the message's number, from 1; 0 if it is none
	// SameBytes is how many of the request's Of bytes are the same: the
	// system text, the tools and the messages, in that order.
	SameBytes, TotalBytes int
}

// prefixTracker tracks the requests of one conversation.
type prefixTracker struct {
	PrefixStats
	lastRequest provider.Request
}

// update updates the prefix with a request.
func (p *prefixTracker) update(req provider.Request) {
	before := p.lastRequest
	p.lastRequest = req
	if before.Model != req.Model { // another model has its own cache
		p.PrefixStats = PrefixStats{}
		return
	}
	if b := findBreak(before, req); b != nil {
		p.PrefixStats = PrefixStats{LastBreak: b}
		return
	}
	p.Requests++
}

// findBreak returns where now begins to differ from before; nil if it begins with all of it.
func findBreak(before, now provider.Request) *PrefixBreak {
	if before.System != now.System {
		return &PrefixBreak{SameBytes: commonPrefixLen(before.System, now.System), TotalBytes: requestSize(now)}
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
			return &PrefixBreak{ToolIndex: i + 1, ToolName: cmp.Or(is.Name, was.Name),
				SameBytes: at + commonPrefixLen(toolText(was), toolText(is)), TotalBytes: requestSize(now)}
		}
		at += len(is.Name) + len(is.Doc) + len(is.Schema)
	}
	for i, m := range before.Messages {
		if i < len(now.Messages) && chat.IsSame(m, now.Messages[i]) {
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
			return &PrefixBreak{MessageIndex: i + 1, SameBytes: at + commonPrefixLen(was, is), TotalBytes: requestSize(now)}
		}
	}
	return nil
}

// commonPrefixLen returns the length of the common beginning of two texts in bytes.
func commonPrefixLen(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// requestSize returns a request's size in bytes, as [PrefixBreak] counts.
func requestSize(req provider.Request) int {
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
