// Package risk determines what a command line would do before it runs. It reads the syntax tree, never
// the text: it finds every command that would run anywhere in the line (in chains, pipes, groups,
// control flow, behind wrappers, in text for another shell) and judges it with its options. What cannot
// be parsed or resolved is never harmless, and wrapping a command never makes it look safer than it is.
//
// The package has no side effects: it gets the few facts it needs about the world through [Facts].
package risk

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"coder/internal/host/program"

	"mvdan.cc/sh/v3/syntax"
)

// Level is how dangerous a command line is.
type Level uint8

// The levels, from harmless to refused.
const (
	None    Level = iota // no objection
	Approve              // needs the user's approval, every time
	Block                // denied: it would destroy a disk or the root, or stop the machine
)

func (l Level) String() string { return [...]string{"none", "approve", "block"}[l] }

// Facts answers questions about the world. A missing function gives the safest answer.
type Facts struct {
	Exists   func(path string) bool // does this absolute path exist?
	IsInside func(path string) bool // is this absolute path in the workspace?
	// ReadGit returns the settings under which git, started in this absolute path, runs nothing that the
	// repository there configures. It fails if there are none.
	ReadGit func(dir string) ([]program.Setting, error)
	// Real returns an absolute path with links resolved, as far as the path exists.
	Real func(path string) string
	// Led, which may be nil, reports whether a link in the user's home, or the
	// user's environment, makes a program use the path for its settings.
	Led  func(path string) bool
	Home string // absolute
	Cwd  string // absolute: where the command would start
	Bash bool   // bash runs the line; otherwise any shell may
}

func (f Facts) exists(p string) bool   { return f.Exists == nil || f.Exists(p) }
func (f Facts) isInside(p string) bool { return f.IsInside != nil && f.IsInside(p) }
func (f Facts) readGit(p string) ([]program.Setting, error) {
	if f.ReadGit == nil || !path.IsAbs(p) {
		return nil, errors.New("nothing is known about the repository")
	}
	return f.ReadGit(p)
}
func (f Facts) real(p string) string {
	if f.Real == nil || !path.IsAbs(p) {
		return p
	}
	return f.Real(p)
}

// Report is what a command line would do. There is one for each call, carried on its plan: see [Of].
type Report struct {
	Command  string // the line as written
	line     string // the line as parsed; empty if it was not
	Level    Level
	Findings []Finding
	// ReadOnly is set if every part certainly only reads, as written.
	ReadOnly bool
	// Why says briefly why the line is not read-only.
	Why string
	// Unknown is set if it may run unknown commands.
	Unknown bool
	// Substituted is set if a command's output becomes part of the line.
	Substituted bool
	// Redirected is set if output goes to an unknown file, or to one outside the workspace.
	Redirected bool
	// Redirects are the workspace files that output goes to, absolute: each counts like any written file.
	// OnlyWrites is set if the line would be read-only without them.
	Redirects  []string
	OnlyWrites bool
	// Sets are the variables it sets that may affect programs; see [Report.MaySet].
	Sets []string
	// Functions is set if the line defines functions: names may mean something else.
	Functions bool
	// OnlyShell is set if it only changes the shell that runs it.
	OnlyShell bool
	// Simple has every simple command that would run, a wrapper before the command it wraps.
	Simple []Command
	// git are the settings with which a read-only line runs git.
	git []program.Setting
	// Writes and Reads are the files it opens, if their names are
	// known: absolute, or as written if the directory is unknown.
	Writes, Reads []string

	facts Facts
	more  bool // it does more than read and redirect
}

// Finding is one objection to running the line.
type Finding struct {
	Level Level
	Text  string // the objection
	Where string // the part it is about, made safe to show
}

// Outward reports whether the finding means that the line only sends something out, without local changes.
func (f Finding) Outward() bool {
	return f.Level == Approve && (f.Text == publishes || f.Text == sendsData || f.Text == connects)
}

func (f Finding) String() string {
	if f.Where == "" {
		return f.Text
	}
	return f.Text + ": " + f.Where
}

// Command is a simple command. Words with values known only at
// run time are in Args as written, and Exact is false.
type Command struct {
	Name  string // as written, without quotes; empty if unknown
	Args  []string
	Exact bool
	Wraps bool // it runs another command, which follows
	Fed   bool // it gets more words at run time: file names found by another command

	ReadOnly bool   // it certainly only reads
	Dir      string // where it runs, absolute; empty if unknown
	Word     string // its first word; as written if Name is empty
	Place

	git   gitPlaces
	local bool // a function that the line itself defines
}

func (c Command) String() string {
	if len(c.Args) == 0 {
		return c.Name
	}
	return c.Name + " " + strings.Join(c.Args, " ")
}

const (
	maxCommand  = 64 << 10 // bytes of a judged line
	maxBrackets = 200      // nesting
	maxDepth    = 12       // shells within shells
	maxWork     = 250_000  // judged words of commands, in all readings
	perCommand  = 8        // extra words that a command counts for
	maxText     = 1 << 20  // parsed bytes, including shells within shells
	maxFindings = 64       // per level
)

// Analyse judges a command line for the shell.
func Analyse(command string, facts Facts) Report {
	w := &walker{facts: facts, bash: facts.Bash, report: Report{Command: command, ReadOnly: true, facts: facts}}
	w.place.Decides = true
	if facts.Cwd == "" {
		w.lost = true
	} else {
		w.dirs = []string{facts.Cwd}
	}
	w.script(command)
	// A function that runs itself may do so until the machine runs out of processes.
	done := make(map[string]bool, len(w.functions))
	for name := range w.functions {
		if w.circles(name, done) {
			w.find(Approve, RunsItself, name)
			break
		}
	}
	w.report.Functions = len(w.functions) > 0
	for i, c := range w.report.Simple {
		_, w.report.Simple[i].local = w.functions[c.Name]
	}
	if w.calculates && w.holdsCommand {
		w.unknown("a variable that may run commands when evaluated as an expression", w.report.Command)
	}
	if len(w.report.Simple) == 0 || w.report.Level > None || w.report.Unknown {
		w.changes("runs no known command")
	}
	w.report.OnlyWrites = !w.report.more && len(w.report.Redirects) > 0
	return w.report
}

// walker walks a syntax tree and tracks the shell's state as far as it is known.
type walker struct {
	facts  Facts
	report Report

	src     string   // the text the current tree was parsed from
	depth   int      // of nested shells
	dirs    []string // where the shell may be by now
	lost    bool     // the shell may be anywhere
	arrived []string // where the last change of directory leads if it succeeds
	feed    feed     // the content of standard input
	bash    bool     // bash runs the current text, not any shell
	dialect dialect  // what shells read differently in the current tree
	within  uint     // end of the current substitution; 0 if there is none
	work    int      // words judged so far
	parsed  int      // bytes parsed so far
	bounded int      // while positive, a block counts only as approve

	standing

	calculates   bool // it evaluates values of variables as expressions
	holdsCommand bool // a variable gets text that would run a command there

	asked     []string            // where git's read settings were looked up
	functions map[string][]string // commands run by the line's functions, by function
	defining  []string            // the functions whose bodies are being judged
}

// A dialect records which constructs are data to one shell and commands to another.
type dialect struct{ differs, hides bool }

// script judges text as a shell would run it. If shells of different
// dialects may disagree on what is a command, both readings count.
func (w *walker) script(text string) {
	w.parsed += len(text)
	switch {
	case len(text) > maxCommand:
		w.unknown("too long to be judged", text)
		return
	case nesting(text) > maxBrackets:
		w.unknown("nested too deeply to be judged", text)
		return
	case w.depth >= maxDepth, w.parsed > maxText:
		w.unknown("too many nested shells to be judged", text)
		return
	// Parser and shell disagree about some of these, and the user could see something other than what runs.
	case !utf8.ValidString(text):
		w.unknown("not valid UTF-8", text)
	case strings.ContainsFunc(text, deceives):
		w.unknown("contains control characters", text)
	}
	text, file, err := parseJoined(text)
	if err != nil {
		w.unknown(unreadable(err), text)
		return
	}
	if w.depth == 0 {
		w.report.line, w.report.OnlyShell = text, changesOnlyShell(file.Stmts)
	}
	src, was, within := w.src, w.dialect, w.within
	w.src, w.dialect, w.within, w.depth = text, dialect{}, 0, w.depth+1
	dirs, lost := w.dirs, w.lost
	w.stmts(file.Stmts)
	if d := w.dialect; d.differs {
		after, nowhere := w.dirs, w.lost
		w.dirs, w.lost = dirs, lost
		w.changes(otherwiseRead)
		if file, err := parse(text, syntax.LangPOSIX); err == nil {
			w.stmts(file.Stmts)
		} else if d.hides {
			w.unknown(otherwiseRead, text)
		}
		w.dirs, w.lost = union(after, w.dirs), nowhere || w.lost
	}
	w.src, w.dialect, w.within, w.depth = src, was, within, w.depth-1
}

// differs records a construct that not every shell knows; hides means that text to one shell may be a
// command to another. If bash runs the line, its reading applies.
func (w *walker) differs(hides bool) {
	if w.bash {
		return
	}
	w.changes(otherwiseRead)
	w.dialect.differs = true
	w.dialect.hides = w.dialect.hides || hides
}

const otherwiseRead = "shells may read this differently"

// inShell judges text that another shell runs: bash, or any.
func (w *walker) inShell(bash bool, judge func()) {
	was := w.bash
	w.bash = bash
	w.apart(judge)
	w.bash = was
}

// parse returns an error for whatever the parser rejects, even if it panics.
func parse(text string, lang syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("parse: %v", r)
		}
	}()
	return syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
}

func (w *walker) find(l Level, text, where string) {
	if w.bounded > 0 {
		l = min(l, Approve)
	}
	w.changes(text)
	f := Finding{Level: l, Text: text, Where: plain(where)}
	if slices.Contains(w.report.Findings, f) {
		return
	}
	if len(w.report.Findings) < maxFindings || l > w.report.Level {
		w.report.Findings = append(w.report.Findings, f)
	}
	w.report.Level = max(w.report.Level, l)
}

func (w *walker) unknown(text, where string) {
	w.report.Unknown = true
	w.find(Approve, text, where)
}

// changes records that the line does more than read, or may, and the first reason.
func (w *walker) changes(why string) {
	w.report.more = true
	w.doesMore(why)
}

// doesMore records that the line is not read-only, although it may only write to known files.
func (w *walker) doesMore(why string) {
	w.report.ReadOnly = false
	w.report.Why = cmp.Or(w.report.Why, why, "unknown command")
}

// anyVariable represents unknown variables in [Report.Sets].
const anyVariable = "variables"

// MaySet reports whether the line may set a variable.
func (r Report) MaySet(name string) bool {
	return slices.Contains(r.Sets, name) || slices.Contains(r.Sets, anyVariable)
}
