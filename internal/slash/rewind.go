package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/core/display"
	"coder/internal/record/undo"
)

// maxPrompts is how many messages are listed to go back to.
const maxPrompts = 20

// Rewind takes conversation and files back to before an earlier message, or
// takes that back. Undone counts what can be redone.
func Rewind(undoes, redoes Revert, undone func() int) Command {
	return Command{
		Name: "rewind", Args: "[N|undo]", Help: "go back to before one of your messages, with conversation and files, or undo that",
		Run: func(ctx context.Context, c call) (outcome, error) {
			switch {
			case c.Args == "":
				return prompts(c)
			case c.Args == "undo":
				return unrewind(ctx, c, redoes)
			}
			n, err := strconv.Atoi(c.Args)
			if err != nil || n < 1 {
				return wrong("/rewind takes the number of a message, or undo, not %q", c.Args)
			}
			to := c.Conversation().Last()
			for ; to != nil && n > 1; n-- {
				to = to.Before
			}
			if to == nil {
				return wrong("there are not that many messages; /rewind lists them")
			}
			return rewind(ctx, c, to, undoes, undone)
		},
	}
}

// prompts lists the messages that one can go back to, the newest first.
func prompts(c call) (outcome, error) {
	var t display.Table
	n := 0
	for p := c.Conversation().Last(); p != nil && n < maxPrompts; p = p.Before {
		n++
		t.Rows = append(t.Rows, display.Data(strconv.Itoa(n), orchestrator.Title(p.Text)))
	}
	if n == 0 {
		return say("there is no message to go back to")
	}
	return show(t, display.Text("/rewind N goes back to before message N: conversation, todos and files. /rewind undo takes that back."))
}

// rewind undoes the turns from to on, the last first, and then takes the
// conversation back. What cannot be undone is told.
func rewind(ctx context.Context, c call, to *conversation.Prompt, undoes Revert, undone func() int) (outcome, error) {
	before := undone()
	lines := []string{"gone back to before: " + cmp.Or(orchestrator.Title(to.Text), "the first message")}
	for p := c.Conversation().Last(); ; p = p.Before {
		report, err := undoes(ctx, undo.Call{Turn: p.Task, All: true, NewID: func() string { return c.NewID("undo") }, Emit: c.Emit})
		switch {
		case err == nil:
			lines = withNew(lines, undoLines("undo", report)...)
		case errors.Is(err, undo.ErrNotKept), errors.Is(err, undo.ErrTooOld):
			lines = withNew(lines, "  files stay as they are: "+err.Error())
		case !errors.Is(err, undo.ErrNothing):
			return wrong("undo: %v", err)
		}
		if p == to {
			break
		}
	}
	if err := c.Rewind(ctx, to, max(0, undone()-before)); err != nil {
		return outcome{}, err
	}
	return say(joined(lines))
}

// unrewind takes the last return back.
func unrewind(ctx context.Context, c call, redoes Revert) (outcome, error) {
	e, ok := c.Conversation().Rewound()
	switch {
	case e.To == 0:
		return say("there was no /rewind to take back")
	case !ok:
		return wrong("something was said since; /rewind goes back to before that")
	}
	lines := []string{fmt.Sprintf("%d messages count again", e.Messages)}
	for range e.Turns {
		report, err := redoes(ctx, undo.Call{NewID: func() string { return c.NewID("redo") }, Emit: c.Emit})
		if errors.Is(err, undo.ErrNothingUndone) {
			lines = append(lines, "  "+err.Error())
			break
		}
		if err != nil {
			return wrong("redo: %v", err)
		}
		lines = withNew(lines, undoLines("redo", report)...)
	}
	if err := c.Unrewind(ctx, e); err != nil {
		return outcome{}, err
	}
	return say(joined(lines))
}

// withNew adds those lines that are not there yet: several turns change the same
// files.
func withNew(lines []string, more ...string) []string {
	for _, l := range more {
		if !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	return lines
}
