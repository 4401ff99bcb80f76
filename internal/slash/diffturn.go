package slash

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
)

// ReadDiff returns the changes of the session's files from one record to a later one; zero is the last.
type ReadDiff func(ctx context.Context, from, to uint64) (diff string, err error)

// Turn is a turn that changed files.
type Turn struct {
	Title    string
	task     string
	from, to uint64 // its first and last record; to is zero while it runs
	names    []string
}

// Files returns the number of files that the turn changed.
func (t Turn) Files() string {
	return fmt.Sprintf(display.Plural(len(t.names), "%d file", "%d files"), len(t.names))
}

// addTurnRecord finds the turns and the files that each of them changed.
func (d *Changes) addTurnRecord(r event.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := r.Event.(type) {
	case event.TaskCreated:
		if e.ParentID == "" {
			d.turns = append(d.turns, Turn{Title: sanitize.Line(e.Title, 200), task: e.TaskID, from: r.Seq})
		}
	case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
		if n := len(d.turns); n > 0 && d.turns[n-1].task == r.Task {
			d.turns[n-1].to = r.Seq
		}
	case event.ToolCallCompleted:
		if len(d.turns) == 0 || d.turns[len(d.turns)-1].to != 0 {
			return
		}
		t := &d.turns[len(d.turns)-1]
		for _, c := range e.Changes {
			if name := cmp.Or(c.Before.Path, c.After.Path); name != "" && !slices.Contains(t.names, name) {
				t.names = append(t.names, name)
			}
		}
	}
}

// Turns returns the turns that changed files, oldest first.
func (d *Changes) Turns() []Turn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.turns), func(t Turn) bool { return len(t.names) == 0 })
}

// diffTurn shows what the turn with a number changed; without a number it lists the turns.
func (d *Changes) diffTurn(ctx context.Context, number string, read ReadDiff) (outcome, error) {
	turns := d.Turns()
	if len(turns) == 0 {
		return showText("no turn changed a file")
	}
	if number == "" {
		var t display.Table
		for i, one := range turns {
			t.Rows = append(t.Rows, append(display.DataCells(strconv.Itoa(i+1), one.Title),
				display.TextCells(one.Files())...))
		}
		return show(t, display.Text("/diff turn N shows what a turn changed"))
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(turns) {
		return usageError("/diff turn takes a number from 1 to %d, not %q", len(turns), number)
	}
	turn := turns[n-1]
	diff, err := read(ctx, turn.from, turn.to)
	switch {
	case err != nil:
		return usageError("%v", err)
	case diff == "":
		return showText("nothing of this turn remains: " + turn.Title)
	}
	cut := len(diff) > maxDiff
	if cut {
		diff = diff[:strings.LastIndexByte(diff[:maxDiff], '\n')+1]
	}
	blocks := []display.Block{display.NewDiff(strings.TrimRight(diff, "\n"))}
	if cut {
		blocks = append(blocks, display.Text(moreChangesText))
	}
	return show(blocks...)
}
