package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/sanitize"
	"coder/internal/record/undo"
)

// Revert undoes turns' file changes, or redoes them.
type Revert func(context.Context, undo.Call) (undo.Plan, error)

// Undo undoes the file changes of the last turn, of one call, or the last change of one file.
func Undo(do Revert) Command {
	return Command{
		Name: "undo", Args: "[all|#N|FILE] [force] [dry]", Help: "undo file changes of the last turn, of call #N, or of one file",
		Run: func(ctx context.Context, c call) (outcome, error) { return revert(ctx, c, "undo", do) },
	}
}

// Redo reverts the last Undo.
func Redo(do Revert) Command {
	return Command{
		Name: "redo", Args: "[force] [dry]", Help: "undo the last /undo",
		Run: func(ctx context.Context, c call) (outcome, error) { return revert(ctx, c, "redo", do) },
	}
}

// revert undoes or redoes one step and reports the result.
func revert(ctx context.Context, c call, name string, do Revert) (outcome, error) {
	what, rest := options(c.Args)
	what.NewID, what.Emit = func() string { return c.NewID(name) }, c.Emit
	switch {
	case name == "redo" && (what.All || rest != ""):
		return wrong("/redo takes force and dry, not %q", cmp.Or(rest, "all"))
	case strings.HasPrefix(rest, "#"):
		n, err := strconv.ParseUint(rest[1:], 10, 64)
		if err != nil {
			return wrong("/undo takes a call's record number, such as #48, not %q", rest)
		}
		what.Only.Record = n
	default:
		what.Only.File = rest
	}
	plan, err := do(ctx, what)
	switch {
	case err != nil && what.Only != undo.Only{}:
		return wrong("%v", err)
	case errors.Is(err, undo.ErrNothing), errors.Is(err, undo.ErrNothingUndone):
		return say(err.Error())
	case err != nil:
		return wrong("%s: %v", name, err)
	}
	return say(undoReport(name, forced(name, what, rest), plan))
}

// options parses the words all, force and dry at either end of the arguments, and returns the rest: a
// file, whose name may contain spaces and be quoted.
func options(args string) (c undo.Call, rest string) {
	rest = strings.TrimSpace(args)
	take := func(word string) bool {
		switch word {
		case "all":
			c.All = true
		case "force":
			c.Force = true
		case "dry":
			c.DryRun = true
		default:
			return false
		}
		return true
	}
	for {
		first, after, _ := strings.Cut(rest, " ")
		before, last := "", rest
		if at := strings.LastIndexByte(rest, ' '); at >= 0 {
			before, last = rest[:at], rest[at+1:]
		}
		switch {
		case take(first):
			rest = strings.TrimSpace(after)
		case take(last):
			rest = strings.TrimSpace(before)
		default:
			if n := len(rest); n > 2 && rest[0] == '"' && rest[n-1] == '"' {
				rest = rest[1 : n-1]
			}
			return c, rest
		}
	}
}

// forced returns the command that also changes what the given one skips.
func forced(name string, c undo.Call, rest string) string {
	words := []string{"/" + name}
	if c.All {
		words = append(words, "all")
	}
	if rest != "" {
		words = append(words, sanitize.Line(rest, 200))
	}
	return strings.Join(append(words, "force"), " ")
}

// undoReport describes the result of an undo or redo, or what it would do.
func undoReport(name, force string, p undo.Plan) string {
	lines := indented(p.Lines(force))
	switch {
	case len(lines) == 0 && p.DryRun:
		lines = []string{"  no file would change"}
	case len(lines) == 0:
		lines = []string{"  no file had to change"}
	}
	lines = append(lines, commandsLeft(p.Commands)...)
	for _, t := range slices.Backward(p.Own) {
		lines = append([]string{"  skipped, your own command (all includes it): " + sanitize.Line(t.Title, 200)}, lines...)
	}
	switch n := len(p.Skipped); n {
	case 0:
	case 1:
		lines = append([]string{"  skipped (no files changed): " + cmp.Or(sanitize.Line(p.Skipped[0].Title, 200), "the last turn")}, lines...)
	default:
		lines = append([]string{fmt.Sprintf("  skipped (no files changed): %d turns", n)}, lines...)
	}
	return joined(append([]string{upshot(name, p) + ": " + cmp.Or(p.Turn.Title, "the last turn")}, lines...))
}

func joined(lines []string) string { return strings.Join(lines, "\n") }

func indented(lines []string) []string {
	for i, l := range lines {
		lines[i] = "  " + l
	}
	return lines
}

// commandRunes is the most shown of a command.
const commandRunes = 80

// commandsLeft lists the commands whose effects outside the workspace are not undone.
func commandsLeft(commands []string) []string {
	if len(commands) == 0 {
		return nil
	}
	commands = slices.Clone(commands)
	for i, c := range commands {
		commands[i] = sanitize.Line(c, commandRunes)
	}
	return []string{"  not undone outside this folder: " + strings.Join(slices.Compact(commands), ", ")}
}

// upshot says whether anything was changed, or would be.
func upshot(name string, p undo.Plan) string {
	done := map[string]string{"undo": "undone", "redo": "redone"}[name]
	switch {
	case !p.Changes() && p.DryRun:
		return "nothing would be " + done
	case !p.Changes():
		return "nothing was " + done
	case p.DryRun:
		return "would be " + done
	}
	return done
}
