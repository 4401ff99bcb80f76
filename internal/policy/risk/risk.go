// Package risk says what a command line would do before it runs. It reads the
// syntax tree, never the text: every command that would run anywhere in it is
// found (in chains, pipes, groups, control flow, behind wrappers, in text
// handed to another shell) and judged with its options. What cannot be parsed
// or resolved is never harmless, and wrapping a command never makes it look
// safer than it is.
//
// The package does nothing itself: the few facts it needs about the world are
// asked through [Facts].
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
	None    Level = iota // nothing speaks against it
	Approve              // a person must say yes, every time
	Block                // refused: it would destroy a disk, the root or stop the machine
)

func (l Level) String() string { return [...]string{"none", "approve", "block"}[l] }

// Facts is what must be asked of the world. A function that is missing gives
// the answer that is safest to assume.
type Facts struct {
	Exists   func(path string) bool // is there a file at this absolute path?
	IsInside func(path string) bool // is this absolute path in the workspace?
	// ReadGit returns the settings under which git, started in this absolute
	// path, runs nothing that the repository there configures. It fails if there
	// are none.
	ReadGit func(dir string) ([]program.Setting, error)
	// Real is where an absolute path leads once links are followed; a path that
	// leads nowhere yet is taken as far as it exists.
	Real func(path string) string
	// Led, which may be nil, reports whether a link in the person's home, or their
	// environment, leads a program of theirs to a path for its settings.
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

// Report is what a command line would do. It is made once for each call and
// carried on its plan: see [Of].
type Report struct {
	Command  string // the line as it was written
	line     string // the same as it was parsed; empty if it was not
	Level    Level
	Findings []Finding
	// ReadOnly is set if every part is known to only read, as written.
	ReadOnly bool
	// Why says in a few words why it is not read-only, if it is not.
	Why string
	// Unknown is set if it may run commands that could not be told.
	Unknown bool
	// Substituted is set if the output of a command becomes part of the line.
	Substituted bool
	// Redirected is set if output goes to a file that is not known, or not one
	// of the workspace.
	Redirected bool
	// Redirects are the files of the workspace that output goes to, absolute:
	// each is written like any other file. OnlyWrites is set if the line would
	// be read-only without them.
	Redirects  []string
	OnlyWrites bool
	// Sets are the variables it sets that may change what programs do; see [Report.MaySet].
	Sets []string
	// Functions is set if the line defines any: names may mean something else.
	Functions bool
	// OnlyShell is set if it changes the shell that runs it and nothing else.
	OnlyShell bool
	// Simple holds every simple command that would run, a wrapper before what
	// it wraps.
	Simple []Command
	// git are the settings with which a line that only reads runs git.
	git []program.Setting
	// Writes and Reads are the files it is known to open, where their names
	// can be told: absolute, or as written if the directory is unknown.
	Writes, Reads []string

	facts Facts
	more  bool // it does more than read and redirect
}

// Finding is one thing that speaks against running the line.
type Finding struct {
	Level Level
	Text  string // what is wrong
	Where string // the part it is about, made safe to show
}

// Outward reports whether the line only sends something out by that: what is here
// stays as it is.
func (f Finding) Outward() bool {
	return f.Level == Approve && (f.Text == publishes || f.Text == sendsData || f.Text == connects)
}

func (f Finding) String() string {
	if f.Where == "" {
		return f.Text
	}
	return f.Text + ": " + f.Where
}

// Command is a simple command. Words whose value is only known when it runs
// stand in Args as they were written, and Exact is false.
type Command struct {
	Name  string // as written, after quotes are removed; empty if it cannot be told
	Args  []string
	Exact bool
	Wraps bool // it runs another command, which follows
	Fed   bool // it gets more words when it runs: names of files that another command finds

	ReadOnly bool   // it is known to only read
	Dir      string // where it runs, absolute; empty if that cannot be told
	Word     string // its first word; as it was written where Name is empty
	Place

	git   gitPlaces
	local bool // it is a function that the line itself defines
}

func (c Command) String() string {
	if len(c.Args) == 0 {
		return c.Name
	}
	return c.Name + " " + strings.Join(c.Args, " ")
}

const (
	maxCommand  = 64 << 10 // bytes of a line that is judged
	maxBrackets = 200      // nesting that is followed
	maxDepth    = 12       // shells within shells
	maxWork     = 250_000  // words of commands that are judged, in all their readings
	perCommand  = 8        // words that a command counts for besides its own
	maxText     = 1 << 20  // bytes that are parsed, shells within shells included
	maxFindings = 64       // kept, of those that weigh the same
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
	// A function that runs itself may do so until the machine has no more processes to give.
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

// walker goes through a syntax tree and keeps the shell's state as far as it
// can be known.
type walker struct {
	facts  Facts
	report Report

	src     string   // the text the current tree was parsed from
	depth   int      // of shells within shells
	dirs    []string // where the shell may be by now
	lost    bool     // it may be anywhere
	arrived []string // where the last change of directory leads if it succeeds
	feed    feed     // what standard input holds
	bash    bool     // the current text is run by bash, not by any shell
	dialect dialect  // what shells read differently in the current tree
	within  uint     // where the substitution ends that is being judged; 0 if there is none
	work    int      // words judged so far
	parsed  int      // bytes parsed so far
	bounded int      // while positive, a block only counts as approve

	standing

	calculates   bool // it takes values of variables for expressions
	holdsCommand bool // a variable is given text that would run a command there

	asked     []string            // where git was asked how it can be let read
	functions map[string][]string // what the functions of the line run, by name
	defining  []string            // the functions whose bodies are being judged
}

// A dialect notes which constructs one shell takes for data and another for
// commands.
type dialect struct{ differs, hides bool }

// script judges text as a shell would run it. Where shells of different
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
	// Parser and shell disagree about some of these, and a person could be shown
	// something other than what runs.
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

// differs notes a construct that not every shell knows; hides, that what is
// text to one may be a command to another. Where bash runs the line it means
// what it means to bash.
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

// parse fails on whatever the parser does not like, should it even panic.
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

// changes notes that the line does more than read, as far as is known, and the
// first reason for it.
func (w *walker) changes(why string) {
	w.report.more = true
	w.doesMore(why)
}

// doesMore notes that the line is not read-only, though it may do no more than
// write to files that are known.
func (w *walker) doesMore(why string) {
	w.report.ReadOnly = false
	w.report.Why = cmp.Or(w.report.Why, why, "unknown command")
}

// anyVariable stands in [Report.Sets] for variables that nobody can tell.
const anyVariable = "variables"

// MaySet reports whether the line may set a variable.
func (r Report) MaySet(name string) bool {
	return slices.Contains(r.Sets, name) || slices.Contains(r.Sets, anyVariable)
}
