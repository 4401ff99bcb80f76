package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/agent/conversation"
	"coder/internal/agent/orchestrator"
	"coder/internal/core/display"
	"coder/internal/record/undo"
)

// maxPrompts is the most messages listed to go back to.
const maxPrompts = 20

// Rewind sets conversation and files back to before an earlier message, or undoes that.
func Rewind(undoes, redoes RevertFunc, past *undo.History) Command {
	return Command{
		Name: "rewind", Args: "[N [dry]|undo]",
		Help: "rewind conversation and files to before one of your messages, or undo that",
		Run: func(ctx context.Context, c call) (outcome, error) {
			switch {
			case c.Args == "":
				return listPrompts(c)
			case c.Args == "undo":
				return unrewind(ctx, c, redoes, past)
			}
			number, word, _ := strings.Cut(c.Args, " ")
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || word != "" && word != "dry" {
				return usageError("/rewind takes a message number or undo, not %q", c.Args)
			}
			to := c.Conversation().LastPrompt()
			for ; to != nil && n > 1; n-- {
				to = to.Before
			}
			if to == nil {
				return usageError("fewer messages than that; /rewind lists the messages")
			}
			return rewind(ctx, c, to, undoes, past, word == "dry")
		},
	}
}

// listPrompts lists the messages to go back to, newest first.
func listPrompts(c call) (outcome, error) {
	var t display.Table
	n := 0
	for p := c.Conversation().LastPrompt(); p != nil && n < maxPrompts; p = p.Before {
		n++
		t.Rows = append(t.Rows, display.DataCells(strconv.Itoa(n), orchestrator.Title(p.Text)))
	}
	if n == 0 {
		return showText("no message to go back to")
	}
	return show(t, display.Text("/rewind N goes back to before message N: conversation, todos and files. /rewind undo reverts that."))
}

// rewind undoes the turns back to to, last first, and then rewinds the conversation. Turns that an
// earlier rewind removed from the conversation are undone too if their changes were redone. It reports
// what cannot be undone.
func rewind(ctx context.Context, c call, to *conversation.Prompt, undoes RevertFunc, past *undo.History,
	dry bool) (outcome, error) {
	what := undo.Request{All: true, DryRun: dry, NewID: func() string { return c.NewID("undo") }, Emit: c.Emit}
	for _, t := range past.TurnsSince(to.Task) {
		what.Turns = append(what.Turns, t.ID)
	}
	for p := c.Conversation().LastPrompt(); p != to.Before; p = p.Before {
		if !slices.Contains(what.Turns, p.Task) {
			what.Turns = append(what.Turns, p.Task)
		}
	}
	before := past.RedoCount()
	plan, err := undoes(ctx, what)
	lines := indentLines(plan.Describe(""))
	switch {
	case errors.Is(err, undo.ErrNotSaved), errors.Is(err, undo.ErrTooOld):
		lines = append(lines, "  files unchanged: "+err.Error())
	case err != nil && !errors.Is(err, undo.ErrNothingToUndo):
		return usageError("undo: %v", err)
	}
	lines = append(lines, listRemainingEffects(plan.Commands)...)
	title := cmp.Or(orchestrator.Title(to.Text), "the first message")
	if dry {
		return showText(joinLines(append([]string{"would rewind to before: " + title}, lines...)))
	}
	if err := c.Rewind(ctx, to, max(0, past.RedoCount()-before), past.RedoCount()); err != nil {
		return outcome{}, err
	}
	o, err := showText(joinLines(append([]string{"rewound to before: " + title}, lines...)))
	o.Draft = to.Text
	return o, err
}

// unrewind undoes the last rewind. Changes redone since are not redone again.
func unrewind(ctx context.Context, c call, redoes RevertFunc, past *undo.History) (outcome, error) {
	e, ok := c.Conversation().LastRewind()
	switch {
	case e.ToSeq == 0:
		return showText("no /rewind to undo")
	case !ok:
		return usageError("messages were sent since, so the rewind stays; the whole conversation is still on record (coder replay)")
	}
	lines := []string{fmt.Sprintf(display.Plural(e.Messages, "%d message counts again", "%d messages count again"),
		e.Messages)}
	turns := e.Turns
	if e.RedoableTurns > 0 {
		turns = min(turns, past.RedoCount()-(e.RedoableTurns-e.Turns))
	}
	var plans []undo.Plan
	var nothing []string
	for range max(0, turns) {
		plan, err := redoes(ctx, undo.Request{NewID: func() string { return c.NewID("redo") }, Emit: c.Emit})
		if errors.Is(err, undo.ErrNothingToRedo) {
			nothing = []string{"  " + err.Error()}
			break
		}
		if err != nil {
			return usageError("redo: %v", err)
		}
		plans = append(plans, plan)
	}
	if err := c.UndoRewind(ctx, e); err != nil {
		return outcome{}, err
	}
	all := undo.MergePlans(plans...)
	lines = slices.Concat(lines, indentLines(all.Describe("")), nothing, listRemainingEffects(all.Commands))
	return showText(joinLines(lines))
}
