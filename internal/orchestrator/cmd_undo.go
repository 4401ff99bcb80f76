package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"coder/internal/event"
	"coder/internal/undo"
)

func undoCommand() command {
	return command{
		name: "undo", args: "[all|force|dry]", help: "take back what the last turn did to files",
		run: func(ctx context.Context, in invocation) (string, error) {
			return in.revert(ctx, "undo", in.Desk.Undo)
		},
	}
}

// revert walks one step through what turns did to files, and tells how it went.
func (in invocation) revert(ctx context.Context, name string, do func(context.Context, undo.Call) (undo.Report, error)) (string, error) {
	if do == nil {
		return "", notHere(name)
	}
	c, err := in.readUndo(name)
	if err != nil {
		return "", err
	}
	report, err := do(ctx, c)
	switch {
	case errors.Is(err, undo.ErrNothing), errors.Is(err, undo.ErrNothingUndone):
		return err.Error(), nil
	case err != nil:
		return "", &CommandError{name + ": " + err.Error()}
	}
	return undoReport(name, report), nil
}

func (in invocation) readUndo(name string) (undo.Call, error) {
	c := undo.Call{
		NewID: func() string { return in.NewID(name) },
		Emit:  func(ctx context.Context, e event.Event) error { return in.emit(ctx, in.st, ActorUser, e) },
	}
	for _, word := range strings.Fields(in.args) {
		switch word {
		case "all":
			c.All = true
		case "force":
			c.Force = true
		case "dry":
			c.DryRun = true
		default:
			return c, &CommandError{fmt.Sprintf("/%s takes the words all, force and dry, not %q", name, word)}
		}
	}
	return c, nil
}

// undoReport tells what came of undoing, or redoing, or what would.
func undoReport(name string, r undo.Report) string {
	lines := []string{outcome(name, r) + ": " + turnName(r.Turn)}
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
	add("restored: %s", without(r.Restored, r.Partly))
	add("restored to what someone else made of it meanwhile: %s", r.Partly)
	add("removed: %s", r.Removed)
	note("left as it is: %s (%s)", r.Kept)
	if len(r.Kept) > 0 {
		lines = append(lines, "  /"+name+" force overwrites it")
	}
	note("lost: %s (%s)", r.Lost)
	note("could not be written: %s (%s)", r.Failed)
	add("changed by commands and left as it is (all includes it): %s", r.NotUndone)
	add("what these commands did elsewhere stays: %s", slices.Compact(slices.Clone(r.Commands)))
	if len(lines) == 1 {
		lines = append(lines, "  no file had to be changed")
	}
	return strings.Join(lines, "\n")
}

// outcome says whether anything was done, or would be.
func outcome(name string, r undo.Report) string {
	done := map[string]string{"undo": "undone", "redo": "redone"}[name]
	nothing := len(r.Restored)+len(r.Removed) == 0 && len(r.Kept)+len(r.Lost)+len(r.Failed)+len(r.NotUndone) > 0
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

func turnName(t undo.Turn) string {
	if t.Title == "" {
		return "the last turn"
	}
	return t.Title
}

// without is all without some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}
