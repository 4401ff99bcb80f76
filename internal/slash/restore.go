package slash

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/record/undo"
)

// Restore restores files to a record.
func Restore(do func(ctx context.Context, at uint64, c undo.Request) (undo.Plan, error)) Command {
	return Command{
		Name: "restore", Args: "RECORD [dry] [force]", Help: "restore files to a record of the session; /undo reverts that",
		Run: func(ctx context.Context, c call) (outcome, error) {
			words := strings.Fields(c.Args)
			if len(words) == 0 {
				return usageError("/restore needs a record number; coder replay and coder web show them")
			}
			at, err := strconv.ParseUint(strings.TrimPrefix(words[0], "#"), 10, 32)
			if err != nil || at == 0 {
				return usageError("/restore needs a record number, not %q", words[0])
			}
			what := undo.Request{NewID: func() string { return c.NewID("restore") }, Emit: c.Emit}
			for _, word := range words[1:] {
				switch word {
				case "dry":
					what.DryRun = true
				case "force":
					what.Force = true
				default:
					return usageError("/restore takes dry and force, not %q", word)
				}
			}
			plan, err := do(ctx, at, what)
			if err != nil {
				return usageError("%v", err)
			}
			return show(RestorePlan(plan, at, fmt.Sprintf("/restore %d force", at)))
		},
	}
}

// RestorePlan describes what restoring files to a record did, or would do. force is the command that
// also restores the skipped files.
func RestorePlan(plan undo.Plan, at uint64, force string) display.Block {
	head := "Files match record %d."
	nothing := len(plan.Restored)+len(plan.Removed) == 0
	switch {
	case nothing && plan.DryRun:
		head = "No file would change for record %d."
	case nothing:
		head = "No file had to change for record %d."
	case plan.DryRun:
		head = "Files would match record %d."
	case len(plan.Unchanged)+len(plan.Lost)+len(plan.Failed) > 0:
		head = "Files match record %d, except for some:"
	}
	return display.Text(joinLines(append([]string{fmt.Sprintf(head, at)}, plan.Describe(force)...)))
}
