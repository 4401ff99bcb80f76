package orchestrator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"coder/internal/chat"
	"coder/internal/compact"
	tokens "coder/internal/prompt"
	"coder/internal/show"
)

func contextCommand() command {
	return command{name: "context", help: "show what fills the model's window, by part", run: func(_ context.Context, in invocation) (string, error) {
		set := in.Settings()
		used := in.contextUsed(set)
		text := fmt.Sprintf("%d of %d tokens are in use (%s)", used, set.ContextLimit, percent(used, set.ContextLimit))
		if hidden, ok := in.Talk.Replaced(); ok {
			text += fmt.Sprintf("\na summary stands for %d earlier messages; /compact undo brings them back", hidden) + in.dropped()
			if done := in.Talk.Done(); done != "" {
				text += "\nlast: " + done
			}
		}
		return text + "\n" + aligned(in.parts(set)), nil
	}}
}

// mostDropped is how many of the requests that a summary stands for are named.
const mostDropped = 8

// dropped lists what the person asked for in the part that is not seen.
func (in invocation) dropped() string {
	var asked []string
	for _, m := range in.Talk.Hidden() {
		if m.Role == chat.User && !compact.IsSummary(m) {
			asked = append(asked, "\n  "+Title(m.Text()))
		}
	}
	if left := len(asked) - mostDropped; left > 0 {
		asked = append(asked[:mostDropped:mostDropped], fmt.Sprintf("\n  and %d more", left))
	}
	return strings.Join(asked, "")
}

// parts tells what the next request is made of. The figures are estimates: a
// provider reports the whole only.
func (in invocation) parts(set Settings) show.Table {
	system := tokens.Tokens(set.System)
	_, fixed := in.specs(set)
	tools := fixed - system
	said := make(map[string]int)
	for _, m := range in.Talk.View() {
		countParts(said, m)
	}
	t := show.Table{Head: []string{"part", "tokens, about", "of the window"}}
	row := func(name string, n int) {
		t.Rows = append(t.Rows, []string{name, strconv.Itoa(n), percent(n, set.ContextLimit)})
	}
	row("system prompt", system)
	row("tools", tools)
	sum := system + tools
	for _, name := range partNames {
		row(name, said[name])
		sum += said[name]
	}
	row("free", max(set.ContextLimit-sum, 0))
	return t
}

// partNames are what messages are made of, in the order people are shown it.
var partNames = []string{"your words", "the model's words", "the model's thinking", "tool calls", "tool results", "pictures"}

// countParts adds what m is made of to sums.
func countParts(sums map[string]int, m chat.Message) {
	for _, p := range m.Parts {
		n := tokens.MessageTokens(chat.Message{Parts: []chat.Part{p}})
		switch p.(type) {
		case chat.Text:
			if m.Role == chat.Assistant {
				sums["the model's words"] += n
			} else {
				sums["your words"] += n
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
