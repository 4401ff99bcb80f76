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
	report   risk.Report
	terminal bool        // whether the line gets the terminal
	warned   atomic.Bool // the user was told that the line needs the terminal
}

// Read parses a line. The line gets the terminal if the user forces it,
// or if the line runs one of programs or any other interactive program.
func Read(line string, forced bool, programs []string) *Line {
	l := &Line{report: risk.Read(line)}
	l.terminal = forced || l.runs(func(c risk.Command, words []string) bool { return wantsTerminal(c, words, programs) })
	return l
}

// runs reports whether the line runs a command that matches.
func (l *Line) runs(such func(c risk.Command, words []string) bool) bool {
	return slices.ContainsFunc(l.report.Simple, func(c risk.Command) bool {
		words := wordsOf(c)
		if i := slices.Index(words, "-c"); c.Name == "" && words[0] == "sh" && i > 0 && i+1 < len(words) { // $SHELL -c …
			return (&Line{report: risk.Read(words[i+1])}).runs(such)
		}
		return c.By != risk.Another && words[0] != "" && such(c, words)
	})
}

// Context gives the line's call the terminal if the line needs it.
func (l *Line) Context(ctx context.Context) context.Context {
	if l.terminal {
		return tool.WithTerminal(ctx)
	}
	return ctx
}

// Unconfined reports whether the line runs a program as another user, which is impossible in a sandbox.
func (l *Line) Unconfined() bool {
	return l.runs(func(_ risk.Command, words []string) bool { return slices.Contains(elevated, words[0]) })
}

// elevated lists the programs that run a command as another user.
var elevated = []string{"sudo", "su", "doas", "pkexec"}

const wantsIt = "it seems to need a terminal: put !! before the command"

// Hears returns what to tell the user when the line prints text, or "". A program
// that reports a missing terminal keeps running, and may wait for one forever.
func (l *Line) Hears(text string) string {
	text = strings.ToLower(text)
	says := strings.Contains(text, "output is not to a terminal") || strings.Contains(text, "input is not from a terminal")
	if says && l.warned.CompareAndSwap(false, true) {
		return wantsIt
	}
	return ""
}

// Ended returns notes for the user about how the line ended.
func (l *Line) Ended(r tool.ShellResult) (notes []string) {
	says := func(what string) bool { return strings.Contains(strings.ToLower(r.Stderr), what) }
	if r.ExitCode != 0 && !r.Terminal && slices.ContainsFunc(lacked, says) && !l.warned.Load() {
		notes = append(notes, wantsIt)
	}
	if r.ExitCode == 0 && l.report.OnlyShell {
		notes = append(notes, "each ! line has its own shell: directory and variable changes end with it")
	}
	return notes
}

// lacked lists what programs print if they fail for lack of a terminal.
var lacked = []string{
	"eoferror", "not a tty", "not a terminal", "no tty", "inappropriate ioctl", "a terminal is required", "not from a terminal", "not to a terminal",
}
