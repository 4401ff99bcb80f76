package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/core/sanitize"
	"coder/internal/record/undo"
)

// Revert takes back what turns did to files, or takes that back.
type Revert func(context.Context, undo.Call) (undo.Report, error)

// Undo takes back what the last turn did to files.
func Undo(do Revert) Command {
	return Command{
		Name: "undo", Args: "[all] [force] [dry]", Help: "take back what the last turn did to files",
		Run: func(ctx context.Context, c call) (outcome, error) { return revert(ctx, c, "undo", do) },
	}
}

// Redo takes the last Undo back.
func Redo(do Revert) Command {
	return Command{
		Name: "redo", Args: "[force] [dry]", Help: "take the last /undo back",
		Run: func(ctx context.Context, c call) (outcome, error) { return revert(ctx, c, "redo", do) },
	}
}

// revert walks one step through what turns did to files, and tells how it went.
func revert(ctx context.Context, c call, name string, do Revert) (outcome, error) {
	what := undo.Call{NewID: func() string { return c.NewID(name) }, Emit: c.Emit}
	for _, word := range strings.Fields(c.Args) {
		switch {
		case word == "all" && name == "undo":
			what.All = true
		case word == "force":
			what.Force = true
		case word == "dry":
			what.DryRun = true
		case name == "redo":
			return wrong("/redo takes the words force and dry, not %q", word)
		default:
			return wrong("/undo takes the words all, force and dry, not %q", word)
		}
	}
	report, err := do(ctx, what)
	switch {
	case errors.Is(err, undo.ErrNothing), errors.Is(err, undo.ErrNothingUndone):
		return say(err.Error())
	case err != nil:
		return wrong("%s: %v", name, err)
	}
	return say(undoReport(name, report))
}

// undoReport tells what came of undoing, or redoing, or what would.
func undoReport(name string, r undo.Report) string {
	lines := undoLines(name, r)
	switch {
	case len(lines) == 0 && r.DryRun:
		lines = []string{"  no file would have to be changed"}
	case len(lines) == 0:
		lines = []string{"  no file had to be changed"}
	}
	lines = append(lines, commandsLeft(r.Commands)...)
	for _, t := range slices.Backward(r.Own) {
		lines = append([]string{"  passed over, a command of your own (all includes it): " + sanitize.Line(t.Title, 200)}, lines...)
	}
	switch n := len(r.Skipped); n {
	case 0:
	case 1:
		lines = append([]string{"  passed over, since it changed no file: " + cmp.Or(sanitize.Line(r.Skipped[0].Title, 200), "the last turn")}, lines...)
	default:
		lines = append([]string{fmt.Sprintf("  passed over, since they changed no file: %d turns", n)}, lines...)
	}
	return joined(append([]string{upshot(name, r) + ": " + cmp.Or(r.Turn.Title, "the last turn")}, lines...))
}

func joined(lines []string) string { return strings.Join(lines, "\n") }

// commandRunes is how much of a command is named.
const commandRunes = 80

// undoLines tell what became of files.
func undoLines(name string, r undo.Report) (lines []string) {
	add := func(format string, paths []string) {
		if len(paths) > 0 {
			lines = append(lines, "  "+fmt.Sprintf(format, strings.Join(paths, ", ")))
		}
	}
	note := func(format string, notes []undo.Note) {
		for _, n := range notes {
			lines = append(lines, "  "+fmt.Sprintf(format, n.Path, n.Why))
		}
	}
	restored := slices.DeleteFunc(slices.Clone(r.Restored), func(s string) bool { return slices.Contains(r.Partly, s) })
	if r.DryRun {
		add("to be restored: %s", restored)
		add("to be restored to what someone else made of it meanwhile: %s", r.Partly)
		add("to be removed: %s", r.Removed)
	} else {
		add("restored: %s", restored)
		add("restored to what someone else made of it meanwhile: %s", r.Partly)
		add("removed: %s", r.Removed)
	}
	note("left as it is: %s (%s)", r.Kept)
	if slices.ContainsFunc(r.Kept, func(n undo.Note) bool { return n.Why != undo.HoldsOthers }) {
		lines = append(lines, "  /"+name+" force overwrites it")
	}
	note("lost: %s (%s)", r.Lost)
	note("could not be written: %s (%s)", r.Failed)
	add("changed by commands and left as it is (all includes it): %s", r.NotUndone)
	return lines
}

// commandsLeft tell of commands that what they did outside the workspace is not undone.
func commandsLeft(commands []string) []string {
	if len(commands) == 0 {
		return nil
	}
	commands = slices.Clone(commands)
	for i, c := range commands {
		commands[i] = sanitize.Line(c, commandRunes)
	}
	return []string{"  what these commands did elsewhere stays: " + strings.Join(slices.Compact(commands), ", ")}
}

// upshot says whether anything was done, or would be.
func upshot(name string, r undo.Report) string {
	done := map[string]string{"undo": "undone", "redo": "redone"}[name]
	nothing := len(r.Restored)+len(r.Removed) == 0
	switch {
	case nothing && r.DryRun:
		return "nothing would be " + done
	case nothing:
		return "nothing was " + done
	case r.DryRun:
		return "would be " + done
	}
	return done
}
