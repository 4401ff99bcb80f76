// Package bang reads the ! lines that the user types: which ones get
// the user's terminal, and what to tell the user about the others.
package bang

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// Line is a ! line that the user typed.
type Line struct {
	report         risk.Report
	needsTerminal  bool        // whether the line gets the terminal
	terminalWarned atomic.Bool // the user was told that the line needs the terminal
}

// Parse parses a line. The line gets the terminal if the user forces it,
// or if the line runs one of programs or any other interactive program.
func Parse(line string, forced bool, programs []string) *Line {
	l := &Line{report: risk.Inspect(line)}
	l.needsTerminal = forced || l.runsMatching(func(c risk.Command,
		words []string) bool {
		return wantsTerminal(c, words, programs)
	})
	return l
}

// runsMatching reports whether the line runs a command that matches.
func (l *Line) runsMatching(such func(c risk.Command, words []string) bool) bool {
	return slices.ContainsFunc(l.report.Simple, func(c risk.Command) bool {
		words := commandWords(c)
		if i := slices.Index(words, "-c"); c.Name == "" && words[0] == "sh" && i > 0 && i+1 < len(words) { // $SHELL -c …
			return (&Line{report: risk.Inspect(words[i+1])}).runsMatching(such)
		}
		return c.StartedBy != risk.StartedByOther && words[0] != "" && such(c, words)
	})
}

// WithTerminal gives the line's call the terminal if the line needs it.
func (l *Line) WithTerminal(ctx context.Context) context.Context {
	if l.needsTerminal {
		return tool.WithTerminal(ctx)
	}
	return ctx
}

// Unconfined reports whether the line runs a program as another user, which is impossible in a sandbox.
func (l *Line) Unconfined() bool {
	return l.runsMatching(func(_ risk.Command, words []string) bool {
		return slices.Contains(elevatingPrograms,
			words[0])
	})
}

// elevatingPrograms lists the programs that run a command as another user.
var elevatingPrograms = []string{"sudo", "su", "doas", "pkexec"}

const terminalHint = "it seems to need a terminal: put !! before the command"

// OutputHint returns what to tell the user when the line prints text, or "". A program
// that reports a missing terminal keeps running, and may wait for one forever.
func (l *Line) OutputHint(text string) string {
	text = strings.ToLower(text)
	says := strings.Contains(text, "output is not to a terminal") || strings.Contains(text, "input is not from a terminal")
	if says && l.terminalWarned.CompareAndSwap(false, true) {
		return terminalHint
	}
	return ""
}

// EndNotes returns notes for the user about how the line ended.
func (l *Line) EndNotes(r tool.ShellResult) (notes []string) {
	says := func(what string) bool { return strings.Contains(strings.ToLower(r.Stderr), what) }
	if r.ExitCode != 0 && !r.Terminal && slices.ContainsFunc(noTerminalMessages, says) && !l.terminalWarned.Load() {
		notes = append(notes, terminalHint)
	}
	if r.ExitCode == 0 && l.report.OnlyShell {
		notes = append(notes, "each ! line has its own shell: directory and variable changes end with it")
	}
	return notes
}

// noTerminalMessages lists what programs print if they fail for lack of a terminal.
var noTerminalMessages = []string{
	"eoferror", "not a tty", "not a terminal", "no tty", "inappropriate ioctl", "a terminal is required",
	"not from a terminal", "not to a terminal",
}
