// Package slash implements coder's own slash commands, one file each: arguments, action and output. Each
// constructor receives only what its command works on.
package slash

import (
	"fmt"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/display"
)

// Short names for the parts of every command.
type (
	Command = orchestrator.Command
	call    = *orchestrator.Call
	outcome = orchestrator.Outcome
)

func say(text string) (outcome, error) { return outcome{Text: text}, nil }

// wrong rejects a command with invalid arguments.
func wrong(format string, args ...any) (outcome, error) {
	return outcome{}, &orchestrator.CommandError{Text: fmt.Sprintf(format, args...)}
}

// show returns an outcome with blocks.
func show(blocks ...display.Block) (outcome, error) {
	return outcome{Text: display.Blocks(blocks).Plain(), Blocks: blocks}, nil
}

// Item is a thing with a name and a description.
type Item struct {
	Name, About string
	Authored    bool // About is not in coder's own words
}

// listed shows items, and below them warnings about invalid files.
func listed(items []Item, warnings []string) (blocks []display.Block) {
	if len(items) > 0 {
		var t display.Table
		for _, item := range items {
			t.Rows = append(t.Rows, []display.Cell{{Text: item.Name}, {Text: orchestrator.Title(item.About), Words: !item.Authored}})
		}
		blocks = append(blocks, t)
	}
	for _, w := range warnings {
		blocks = append(blocks, display.Text(w))
	}
	return blocks
}
