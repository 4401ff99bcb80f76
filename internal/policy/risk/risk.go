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
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"coder/internal/core/message"
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
	// IsLinked, which may be nil, reports whether a link in the user's home, or the
	// user's environment, makes a program use the path for its settings.
	IsLinked func(path string) bool
	Home     string // absolute
	Cwd      string // absolute: where the command would start
	Bash     bool   // bash runs the line; otherwise any shell may
}

func (f Facts) exists(p string) bool   { return f.Exists == nil || f.Exists(p) }
func (f Facts) isInside(p string) bool { return f.IsInside != nil && f.IsInside(p) }
func (f Facts) readGit(p string) ([]program.Setting, error) {
	if f.ReadGit == nil || !path.IsAbs(p) {
		return nil, errors.New("the repository is unknown")
	}
	return f.ReadGit(p)
}
func (f Facts) real(p string) string {
	if f.Real == nil || !path.IsAbs(p) {
		return p
	}
	return f.Real(p)
}

// Report is what a command line would do. There is one for each call, carried on its plan: see [ReportOf].
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
	// SetVars are the variables it sets that may affect programs; see [Report.MaySet].
	SetVars []string
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

	facts      Facts
	hasEffects bool // it does more than read and redirect
}

// Finding is one objection to running the line.
type Finding struct {
	Level Level
	Text  string // the objection
	Where string // the part it is about, made safe to show
}

// IsOutward reports whether the finding means that the line only sends something out, without local changes.
func (f Finding) IsOutward() bool {
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
	Name      string // as written, without quotes; empty if unknown
	Args      []string
	Exact     bool
	IsWrapper bool // it runs another command, which follows
	AddsArgs  bool // it gets more words at run time: file names found by another command

	ReadOnly bool   // it certainly only reads
	Dir      string // where it runs, absolute; empty if unknown
	Word     string // its first word; as written if Name is empty
	Position

	git     gitOffsets
	isLocal bool // a function that the line itself defines
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
	commandCost = 8        // extra words that a command counts for
	maxText     = 1 << 20  // parsed bytes, including shells within shells
	maxFindings = 64       // per level
)

// Analyse judges a command line for the shell.
func Analyse(command string, facts Facts) Report {
	w := &walker{facts: facts, bash: facts.Bash, report: Report{Command: command, ReadOnly: true, facts: facts}}
	w.position.DecidesResult = true
	if facts.Cwd == "" {
		w.dirUnknown = true
	} else {
		w.dirs = []string{facts.Cwd}
	}
	w.judgeScript(command)
	// A function that runs itself may do so until the machine runs out of processes.
	done := make(map[string]bool, len(w.functions))
	for name := range w.functions {
		if w.isRecursive(name, done) {
			w.addFinding(Approve, RecursionFinding, name)
			break
		}
	}
	w.report.Functions = len(w.functions) > 0
	for i, c := range w.report.Simple {
		_, w.report.Simple[i].isLocal = w.functions[c.Name]
	}
	if w.evaluatesVars && w.holdsCommand {
		w.addUnknown("a variable that may run commands when evaluated as an expression", w.report.Command)
	}
	if len(w.report.Simple) == 0 || w.report.Level > None || w.report.Unknown {
		w.recordEffect("runs no known command")
	}
	w.report.OnlyWrites = !w.report.hasEffects && len(w.report.Redirects) > 0
	return w.report
}

// walker walks a syntax tree and tracks the shell's state as far as it is known.
type walker struct {
	facts  Facts
	report Report

	src             string   // the text the current tree was parsed from
	depth           int      // of nested shells
	dirs            []string // where the shell may be by now
	dirUnknown      bool     // the shell may be anywhere
	nextDirs        []string // where the last change of directory leads if it succeeds
	stdin           stdin    // the content of standard input
	bash            bool     // bash runs the current text, not any shell
	dialect         dialect  // what shells read differently in the current tree
	substitutionEnd uint     // end of the current substitution; 0 if there is none
	work            int      // words judged so far
	parsed          int      // bytes parsed so far
	remoteDepth     int      // while positive, a block counts only as approve

	walkPosition

	evaluatesVars bool // it evaluates values of variables as expressions
	holdsCommand  bool // a variable gets text that would run a command there

	gitDirs   []string            // where git's read settings were looked up
	functions map[string][]string // commands run by the line's functions, by function
	defining  []string            // the functions whose bodies are being judged
}

// A dialect records which constructs are data to one shell and commands to another.
type dialect struct{ differs, hides bool }

// judgeScript judges text as a shell would run it. If shells of different
// dialects may disagree on what is a command, both readings count.
func (w *walker) judgeScript(text string) {
	w.parsed += len(text)
	switch {
	case len(text) > maxCommand:
		w.addUnknown("too long to be judged", text)
		return
	case nestingDepth(text) > maxBrackets:
		w.addUnknown("nested too deeply to be judged", text)
		return
	case w.depth >= maxDepth, w.parsed > maxText:
		w.addUnknown("too many nested shells to be judged", text)
		return
	// Parser and shell disagree about some of these, and the user could see something other than what runs.
	case !utf8.ValidString(text):
		w.addUnknown("not valid UTF-8", text)
	case strings.ContainsFunc(text, isDeceptive):
		w.addUnknown("contains control characters", text)
	}
	text, file, err := parseJoined(text)
	if err != nil {
		w.addUnknown(describeParseError(err), text)
		return
	}
	if w.depth == 0 {
		w.report.line, w.report.OnlyShell = text, changesOnlyShell(file.Stmts)
	}
	src, was, within := w.src, w.dialect, w.substitutionEnd
	w.src, w.dialect, w.substitutionEnd, w.depth = text, dialect{}, 0, w.depth+1
	dirs, lost := w.dirs, w.dirUnknown
	w.walkStmts(file.Stmts)
	if d := w.dialect; d.differs {
		after, nowhere := w.dirs, w.dirUnknown
		w.dirs, w.dirUnknown = dirs, lost
		w.recordEffect(dialectReason)
		if file, err := parse(text, syntax.LangPOSIX); err == nil {
			w.walkStmts(file.Stmts)
		} else if d.hides {
			w.addUnknown(dialectReason, text)
		}
		w.dirs, w.dirUnknown = union(after, w.dirs), nowhere || w.dirUnknown
	}
	w.src, w.dialect, w.substitutionEnd, w.depth = src, was, within, w.depth-1
}

// recordDialect records a construct that not every shell knows; hides means that text to one shell may be a
// command to another. If bash runs the line, its reading applies.
func (w *walker) recordDialect(hides bool) {
	if w.bash {
		return
	}
	w.recordEffect(dialectReason)
	w.dialect.differs = true
	w.dialect.hides = w.dialect.hides || hides
}

const dialectReason = "shells may read this differently"

// judgeInShell judges text that another shell runs: bash, or any.
func (w *walker) judgeInShell(bash bool, judge func()) {
	was := w.bash
	w.bash = bash
	w.judgeSubshell(judge)
	w.bash = was
}

// parse returns an error for whatever the parser rejects, even if it panics.
func parse(text string, lang syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = message.Errorf("parse: %v", r)
		}
	}()
	return syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
}

func (w *walker) addFinding(l Level, text, where string) {
	if w.remoteDepth > 0 {
		l = min(l, Approve)
	}
	w.recordEffect(text)
	f := Finding{Level: l, Text: text, Where: plainText(where)}
	if slices.Contains(w.report.Findings, f) {
		return
	}
	if len(w.report.Findings) < maxFindings || l > w.report.Level {
		w.report.Findings = append(w.report.Findings, f)
	}
	w.report.Level = max(w.report.Level, l)
}

func (w *walker) addUnknown(text, where string) {
	w.report.Unknown = true
	w.addFinding(Approve, text, where)
}

// recordEffect records that the line does more than read, or may, and the first reason.
func (w *walker) recordEffect(why string) {
	w.report.hasEffects = true
	w.recordNotReadOnly(why)
}

// recordNotReadOnly records that the line is not read-only, although it may only write to known files.
func (w *walker) recordNotReadOnly(why string) {
	w.report.ReadOnly = false
	w.report.Why = cmp.Or(w.report.Why, why, "unknown command")
}

// anyVariable represents unknown variables in [Report.SetVars].
const anyVariable = "variables"

// MaySet reports whether the line may set a variable.
func (r Report) MaySet(name string) bool {
	return slices.Contains(r.SetVars, name) || slices.Contains(r.SetVars, anyVariable)
}
