// Package slash holds the commands of the program's own that a person types
// behind a slash, one file each: what it takes, what it does, what it says.
// Each is made with just what it works on.
package slash

import (
	"fmt"

	"coder/internal/agent/orchestrator"
	"coder/internal/core/display"
)

// Short names for what every command is made of.
type (
	Command = orchestrator.Command
	call    = *orchestrator.Call
	outcome = orchestrator.Outcome
)

func say(text string) (outcome, error) { return outcome{Text: text}, nil }

// wrong refuses a command that cannot be run as it was written.
func wrong(format string, args ...any) (outcome, error) {
	return outcome{}, &orchestrator.CommandError{Text: fmt.Sprintf(format, args...)}
}

// show lets a command say more than sentences.
func show(blocks ...display.Block) (outcome, error) {
	return outcome{Text: display.Blocks(blocks).Plain(), Blocks: blocks}, nil
}

// Item is a thing that has a name, and what it is for.
type Item struct {
	Name, About string
	Authored    bool // About is not the program's own words
}

// listed shows items, and below them what is to be said of files that are not as they should be.
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
