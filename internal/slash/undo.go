package slash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/policy/risk"
	"coder/internal/record/undo"
)

// RevertFunc undoes turns' file changes, or redoes them.
type RevertFunc func(context.Context, undo.Request) (undo.Plan, error)

// Undo undoes the file changes of the last turn, of one call, or the last change of one file.
func Undo(do RevertFunc) Command {
	return Command{
		Name: "undo", Args: "[all|#N|FILE] [force] [dry]",
		Help: "undo file changes of the last turn, of call #N, or of one file",
		Run:  func(ctx context.Context, c call) (outcome, error) { return revert(ctx, c, "undo", do) },
	}
}

// Redo reverts the last Undo.
func Redo(do RevertFunc) Command {
	return Command{
		Name: "redo", Args: "[force] [dry]", Help: "undo the last /undo",
		Run: func(ctx context.Context, c call) (outcome, error) { return revert(ctx, c, "redo", do) },
	}
}

// revert undoes or redoes one step and reports the result.
func revert(ctx context.Context, c call, name string, do RevertFunc) (outcome, error) {
	what, rest := parseUndoArgs(c.Args)
	what.NewID, what.Emit = func() string { return c.NewID(name) }, c.Emit
	switch {
	case name == "redo" && (what.All || rest != ""):
		return usageError("/redo takes force and dry, not %q", cmp.Or(rest, "all"))
	case strings.HasPrefix(rest, "#"):
		n, err := strconv.ParseUint(rest[1:], 10, 64)
		if err != nil {
			return usageError("/undo takes a call's record number, such as #48, not %q", rest)
		}
		what.Selection.Record = n
	default:
		what.Selection.File = rest
	}
	plan, err := do(ctx, what)
	switch {
	case err != nil && what.Selection != undo.Selection{}:
		return usageError("%v", err)
	case errors.Is(err, undo.ErrNothingToUndo), errors.Is(err, undo.ErrNothingToRedo):
		return showText(err.Error())
	case err != nil:
		return usageError("%s: %v", name, err)
	}
	return showText(undoReport(name, forceCommand(name, what, rest), plan))
}

// parseUndoArgs parses the words all, force and dry at either end of the arguments, and returns the rest: a
// file, whose name may contain spaces and be quoted.
func parseUndoArgs(args string) (c undo.Request, rest string) {
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

// forceCommand returns the command that also changes what the given one skips.
func forceCommand(name string, c undo.Request, rest string) string {
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
	lines := indentLines(p.Describe(force))
	switch {
	case len(lines) == 0 && p.DryRun:
		lines = []string{"  no file would change"}
	case len(lines) == 0:
		lines = []string{"  no file had to change"}
	}
	lines = append(lines, listRemainingEffects(p.Commands)...)
	for _, t := range slices.Backward(p.OwnCommands) {
		lines = append([]string{"  skipped, your own command (all includes it): " + sanitize.Line(t.Title, 200)}, lines...)
	}
	switch n := len(p.Skipped); n {
	case 0:
	case 1:
		lines = append([]string{"  skipped (no files changed): " +
			cmp.Or(sanitize.Line(p.Skipped[0].Title, 200), "the last turn")}, lines...)
	default:
		lines = append([]string{fmt.Sprintf("  skipped (no files changed): %d turns", n)}, lines...)
	}
	return joinLines(append([]string{undoSummary(name, p) + ": " + cmp.Or(p.Turn.Title, "the last turn")}, lines...))
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") }

func indentLines(lines []string) []string {
	for i, l := range lines {
		lines[i] = "  " + l
	}
	return lines
}

// maxCommandRunes is the most shown of a command.
const maxCommandRunes = 80

// listRemainingEffects lists the commands that had effects which are not undone, and counts those that may have had
// such effects.
func listRemainingEffects(commands []string) (lines []string) {
	var named []string
	others := 0
	for _, c := range commands {
		if !actsElsewhere(c) {
			others++
		} else if c = sanitize.Line(c, maxCommandRunes); !slices.Contains(named, c) {
			named = append(named, c)
		}
	}
	if len(named) > 0 {
		lines = append(lines, "  not undone outside this folder: "+strings.Join(named, ", "))
	}
	if others > 0 {
		lines = append(lines, "  "+fmt.Sprintf(display.Plural(others,
			"not undone: what %d command did outside this folder, if anything",
			"not undone: what %d commands did outside this folder, if anything"), others))
	}
	return lines
}

// elsewherePrograms work on a repository's own files, on other machines or on what is installed.
var elsewherePrograms = strings.Fields("git gh glab hg svn jj curl wget http https xh ssh scp sftp rsync docker podman kubectl " +
	"helm terraform tofu ansible aws gcloud az npm pnpm yarn bun pip pip3 pipx uv poetry cargo gem brew apt apt-get dnf " +
	"psql mysql redis-cli mongosh sudo systemctl crontab")

// actsElsewhere reports whether a command line has a sign of an effect that no file of the workspace shows.
func actsElsewhere(line string) bool {
	report := risk.Inspect(line)
	return report.Level > risk.None || report.Redirected || slices.ContainsFunc(report.Simple, func(c risk.Command) bool {
		return !c.ReadOnly && slices.Contains(elsewherePrograms, c.Name)
	})
}

// undoSummary says whether anything was changed, or would be.
func undoSummary(name string, p undo.Plan) string {
	done := map[string]string{"undo": "undone", "redo": "redone"}[name]
	switch {
	case !p.HasChanges() && p.DryRun:
		return "nothing would be " + done
	case !p.HasChanges():
		return "nothing was " + done
	case p.DryRun:
		return "would be " + done
	}
	return done
}
