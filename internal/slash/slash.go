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
	call    = *orchestrator.CommandCall
	outcome = orchestrator.Outcome
)

func showText(text string) (outcome, error) { return outcome{Text: text}, nil }

// usageError rejects a command with invalid arguments.
func usageError(format string, args ...any) (outcome, error) {
	return outcome{}, &orchestrator.CommandError{Text: fmt.Sprintf(format, args...)}
}

// show returns an outcome with blocks.
func show(blocks ...display.Block) (outcome, error) {
	return outcome{Text: display.Blocks(blocks).PlainText(), Blocks: blocks}, nil
}

// Item is a thing with a name and a description.
type Item struct {
	Name, Description string
	UserText          bool // About is not in coder's own words
}

// showItems shows items, and below them warnings about invalid files.
func showItems(items []Item, warnings []string) (blocks []display.Block) {
	if len(items) > 0 {
		var t display.Table
		for _, item := range items {
			t.Rows = append(t.Rows, []display.Cell{{Text: item.Name},
				{Text: orchestrator.Title(item.Description), Words: !item.UserText}})
		}
		blocks = append(blocks, t)
	}
	for _, w := range warnings {
		blocks = append(blocks, display.Text(w))
	}
	return blocks
}
