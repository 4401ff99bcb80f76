// Package bang reads the command lines that a person types behind !: which of them
// get the person's terminal, and what the person should know about the rest.
package bang

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// Line is a command line of the person's.
type Line struct {
	report   risk.Report
	terminal bool        // it gets the terminal
	warned   atomic.Bool // the person knows that it wants the terminal
}

// Read reads a line. It gets the terminal if it runs one of programs, or a program that
// talks with the person at a terminal, or if the person says so.
func Read(line string, forced bool, programs []string) *Line {
	l := &Line{report: risk.Read(line)}
	l.terminal = forced || l.runs(func(c risk.Command, words []string) bool { return wantsTerminal(c, words, programs) })
	return l
}

// runs reports whether the line runs such a command.
func (l *Line) runs(such func(c risk.Command, words []string) bool) bool {
	return slices.ContainsFunc(l.report.Simple, func(c risk.Command) bool {
		words := wordsOf(c)
		if i := slices.Index(words, "-c"); c.Name == "" && words[0] == "sh" && i > 0 && i+1 < len(words) { // $SHELL -c …
			return (&Line{report: risk.Read(words[i+1])}).runs(such)
		}
		return c.By != risk.Another && words[0] != "" && such(c, words)
	})
}

// Context gives the line's call the terminal if the line is to have it.
func (l *Line) Context(ctx context.Context) context.Context {
	if l.terminal {
		return tool.WithTerminal(ctx)
	}
	return ctx
}

// Unconfined reports whether the line runs a program as another user, which no sandbox lets
// anybody become.
func (l *Line) Unconfined() bool {
	return l.runs(func(_ risk.Command, words []string) bool { return slices.Contains(elevated, words[0]) })
}

// elevated are the programs that make one another user.
var elevated = []string{"sudo", "su", "doas", "pkexec"}

const wantsIt = "it seems to need a terminal: put !! before the command"

// Hears is what the person is told when the line prints text, or "": a program that says
// that its terminal is none goes on, and may wait for one without end.
func (l *Line) Hears(text string) string {
	text = strings.ToLower(text)
	says := strings.Contains(text, "output is not to a terminal") || strings.Contains(text, "input is not from a terminal")
	if says && l.warned.CompareAndSwap(false, true) {
		return wantsIt
	}
	return ""
}

// Ended is what the person is told of how the line ended.
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

// lacked is what programs say that fail because nobody is there to ask.
var lacked = []string{
	"eoferror", "not a tty", "not a terminal", "no tty", "inappropriate ioctl", "a terminal is required", "not from a terminal", "not to a terminal",
}
