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
// takes that back.
func Rewind(undoes, redoes Revert, past *undo.History) Command {
	return Command{
		Name: "rewind", Args: "[N|undo]", Help: "go back to before one of your messages, with conversation and files, or undo that",
		Run: func(ctx context.Context, c call) (outcome, error) {
			switch {
			case c.Args == "":
				return prompts(c)
			case c.Args == "undo":
				return unrewind(ctx, c, redoes, past)
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
			return rewind(ctx, c, to, undoes, past)
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
// conversation back. Turns that are out of the conversation since an earlier return
// are among them if their changes were brought back. What cannot be undone is told.
func rewind(ctx context.Context, c call, to *conversation.Prompt, undoes Revert, past *undo.History) (outcome, error) {
	var turns []string
	for _, t := range past.Since(to.Task) {
		turns = append(turns, t.ID)
	}
	for p := c.Conversation().Last(); p != to.Before; p = p.Before {
		if !slices.Contains(turns, p.Task) {
			turns = append(turns, p.Task)
		}
	}
	before := past.Undone()
	lines := []string{"gone back to before: " + cmp.Or(orchestrator.Title(to.Text), "the first message")}
	var commands []string
	for _, turn := range turns {
		report, err := undoes(ctx, undo.Call{Turn: turn, All: true, NewID: func() string { return c.NewID("undo") }, Emit: c.Emit})
		switch {
		case err == nil:
			lines, commands = withNew(lines, undoLines("undo", report)...), withNew(commands, report.Commands...)
		case errors.Is(err, undo.ErrNotKept), errors.Is(err, undo.ErrTooOld):
			lines = withNew(lines, "  files stay as they are: "+err.Error())
		case !errors.Is(err, undo.ErrNothing):
			return wrong("undo: %v", err)
		}
	}
	if err := c.Rewind(ctx, to, max(0, past.Undone()-before), past.Undone()); err != nil {
		return outcome{}, err
	}
	o, err := say(joined(append(lines, commandsLeft(commands)...)))
	o.Draft = to.Text
	return o, err
}

// unrewind takes the last return back. What of it was redone since is not redone again.
func unrewind(ctx context.Context, c call, redoes Revert, past *undo.History) (outcome, error) {
	e, ok := c.Conversation().Rewound()
	switch {
	case e.To == 0:
		return say("there was no /rewind to take back")
	case !ok:
		return wrong("something was said since, so the return before it stays; all that was said is still on record (coder replay)")
	}
	lines := []string{fmt.Sprintf(display.Form(e.Messages, "%d message counts again", "%d messages count again"), e.Messages)}
	turns, commands := e.Turns, []string(nil)
	if e.Undone > 0 {
		turns = min(turns, past.Undone()-(e.Undone-e.Turns))
	}
	for range max(0, turns) {
		report, err := redoes(ctx, undo.Call{NewID: func() string { return c.NewID("redo") }, Emit: c.Emit})
		if errors.Is(err, undo.ErrNothingUndone) {
			lines = append(lines, "  "+err.Error())
			break
		}
		if err != nil {
			return wrong("redo: %v", err)
		}
		lines, commands = withNew(lines, undoLines("redo", report)...), withNew(commands, report.Commands...)
	}
	if err := c.Unrewind(ctx, e); err != nil {
		return outcome{}, err
	}
	return say(joined(append(lines, commandsLeft(commands)...)))
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
