package slash

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/agent/compact"
	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	tokens "coder/internal/agent/prompt"
	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/report/ledger"
)

// Context shows what fills the model's window. book reads the sources from the records, up to one record
// or, at 0, to the end.
func Context(session string, book func(ctx context.Context, session string, until uint64) (*ledger.Ledger,
	error)) Command {
	return Command{Name: "context", ShowsOnly: true,
		Help: "show what fills the context window, by part and source, and its cost",
		Run: func(ctx context.Context, c call) (outcome, error) {
			set, talk := c.Settings(), c.Conversation()
			used := c.ContextUsed()
			text := fmt.Sprintf("%d of %d tokens used (%s)", used, set.ContextLimit, percent(used, set.ContextLimit))
			if set.Compaction.Auto && set.ContextLimit > 0 {
				text += fmt.Sprintf("\ncoder shortens the conversation at %d tokens",
					int(compact.Limits{Tokens: set.ContextLimit, Threshold: set.Compaction.Threshold}.MaxTokens()))
			}
			if last, ok := talk.LastReplacement(); ok {
				text += describeReplacement(last)
			}
			b, err := book(ctx, session, 0)
			if err != nil {
				return outcome{}, err
			}
			b.Scale(used)
			return show(append(display.Blocks{display.Text(text + describeCache(c.PrefixStats())), showParts(c, set, used)},
				Sources(b, session)...)...)
		}}
}

// describeReplacement describes what the last replacement did to the conversation, and how to undo it.
func describeReplacement(last conversation.Replacement) (text string) {
	dropped, shortened := compact.CompareMessages(last.Hidden, last.By)
	switch {
	case dropped == 0:
	case last.Reason == event.ReplaceModeSwitched:
		text += fmt.Sprintf(display.Plural(dropped,
			"\nthe mode changed, and the model no longer sees %d earlier message; /compact undo restores it",
			"\nthe mode changed, and the model no longer sees %d earlier messages; /compact undo restores them"), dropped)
	default:
		text += fmt.Sprintf(display.Plural(dropped, "\na summary replaces %d earlier message; /compact undo restores it",
			"\na summary replaces %d earlier messages; /compact undo restores them"), dropped)
	}
	var asked []string // the user's requests in the hidden part
	for _, m := range last.Hidden[:dropped] {
		if m.Role == chat.User && !compact.IsSummary(m) {
			asked = append(asked, "\n  "+orchestrator.Title(m.Text()))
		}
	}
	if left := len(asked) - maxDropped; left > 0 {
		asked = append(asked[:maxDropped:maxDropped], fmt.Sprintf("\n  and %d more", left))
	}
	text += strings.Join(asked, "")
	if shortened > 0 {
		text += fmt.Sprintf(display.Plural(shortened, "\n%d message was shortened; /compact undo restores it in full",
			"\n%d messages were shortened; /compact undo restores them in full"), shortened)
	}
	if last.Done != "" {
		text += "\nlast: " + last.Done
	}
	return text
}

// describeCache describes how much the provider's cache can have served, and what broke it.
func describeCache(p orchestrator.PrefixStats) string {
	b := p.LastBreak
	switch {
	case b == nil && p.Requests == 0:
		return ""
	case b == nil && p.Requests == 1:
		return "\nthe last request began with the whole request before it"
	case b == nil:
		return fmt.Sprintf("\neach of the last %d requests began with the whole request before it", p.Requests)
	case b.ToolIndex > 0:
		return fmt.Sprintf(display.Plural(p.Requests+1, "\ntool %d (%s) changed %d request ago: re-read from byte %d of %d",
			"\ntool %d (%s) changed %d requests ago: re-read from byte %d of %d"), b.ToolIndex, b.ToolName, p.Requests+1,
			b.SameBytes, b.TotalBytes)
	case b.MessageIndex > 0:
		return fmt.Sprintf(display.Plural(p.Requests+1, "\nmessage %d changed %d request ago: re-read from byte %d of %d",
			"\nmessage %d changed %d requests ago: re-read from byte %d of %d"), b.MessageIndex, p.Requests+1, b.SameBytes,
			b.TotalBytes)
	}
	return fmt.Sprintf(display.Plural(p.Requests+1, "\nthe system text changed %d request ago: re-read from byte %d of %d",
		"\nthe system text changed %d requests ago: re-read from byte %d of %d"), p.Requests+1, b.SameBytes, b.TotalBytes)
}

// maxDropped is the most requests listed of those that a summary replaces.
const maxDropped = 8

// showParts shows the parts of the next request. The figures are estimates: a provider reports only the
// total. They add up to the tokens in use, and with the free tokens to the window.
func showParts(c call, set orchestrator.Settings, used int) display.Table {
	t := display.Table{Header: display.TextCells("part", "tokens (est.)", "of the window")}
	var names []string
	var sizes []int
	part := func(name string, n int) { names, sizes = append(names, name), append(sizes, n) }
	part("system prompt", tokens.EstimateTokens(set.System))
	part("tools", c.ToolTokens())
	eachMessagePart(c.Conversation().View(), part)
	names, sizes = append(names, "free"), append(ledger.Apportion(sizes, used), max(set.ContextLimit-used, 0))
	for i, n := range sizes {
		t.Rows = append(t.Rows, slices.Concat(display.TextCells(names[i]),
			display.DataCells(strconv.Itoa(n), percent(n, set.ContextLimit))))
	}
	return t
}

// WindowTable shows the parts of a conversation, and the tokens of the tool descriptions if recorded. The
// figures add up to used, unless that is unknown.
func WindowTable(talk *conversation.Conversation, tools, used int) display.Table {
	var names []string
	var sizes []int
	part := func(name string, n int) { names, sizes = append(names, name), append(sizes, n) }
	if tools > 0 {
		part("tools", tools)
	}
	EachPart(talk, part)
	if used > 0 {
		sizes = ledger.Apportion(sizes, used)
	}
	t := display.Table{Header: display.TextCells("part", "tokens (est.)")}
	for i, n := range sizes {
		t.Rows = append(t.Rows, slices.Concat(display.TextCells(names[i]), display.DataCells(strconv.Itoa(n))))
	}
	return t
}

// EachPart calls tell with the tokens of each part of a conversation.
func EachPart(talk *conversation.Conversation, tell func(name string, tokens int)) {
	tell("system prompt", tokens.EstimateTokens(talk.SystemText()))
	eachMessagePart(talk.View(), tell)
}

// eachMessagePart calls tell with the tokens of each part of messages.
func eachMessagePart(ms []chat.Message, tell func(name string, tokens int)) {
	said := make(map[string]int)
	for i, m := range ms {
		if m.Role == chat.Assistant && i > 0 && isOwnCommand(ms[i-1]) {
			said["tool results"] += tokens.EstimateMessageTokens(m)
			continue
		}
		countParts(said, m)
	}
	for _, name := range partNames {
		tell(name, said[name])
	}
}

// partNames lists the parts of messages in display order.
var partNames = []string{"your messages", "the model's replies", "the model's thinking", "tool calls", "tool results",
	"pictures"}

// countParts adds the parts of m to sums.
func countParts(sums map[string]int, m chat.Message) {
	for _, p := range m.Parts {
		n := tokens.EstimateMessageTokens(chat.Message{Parts: []chat.Part{p}})
		switch p.(type) {
		case chat.Text:
			if m.Role == chat.Assistant {
				sums["the model's replies"] += n
			} else {
				sums["your messages"] += n
			}
		case chat.Reasoning:
			sums["the model's thinking"] += n
		case chat.ToolCall:
			sums["tool calls"] += n
		case chat.ToolResult:
			sums["tool results"] += n
		case chat.Image:
			sums["pictures"] += n
		}
	}
}

func percent(n, of int) string {
	if of <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}
