// Package slash holds the commands of the program's own that a person types
// behind a slash, one file each: what it takes, what it does, what it says.
// Each is made with just what it works on.
package slash

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

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

// aligned writes a table as text in columns.
func aligned(t display.Table) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	rows := t.Rows
	if len(t.Head) > 0 {
		rows = slices.Concat([][]string{t.Head}, t.Rows)
	}
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Builder never fails
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}

// Item is a thing that has a name, and what it is for.
type Item struct{ Name, About string }

// listed writes items down, and below them what was wrong with others.
func listed(items []Item, warnings []string, none string) string {
	text := none
	if len(items) > 0 {
		var t display.Table
		for _, item := range items {
			t.Rows = append(t.Rows, []string{item.Name, orchestrator.Title(item.About)})
		}
		text = aligned(t)
	}
	for _, w := range warnings {
		text += "\nnot usable: " + w
	}
	return strings.TrimPrefix(text, "\n")
}
