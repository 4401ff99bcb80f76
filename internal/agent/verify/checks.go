package verify

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/event"
	"coder/internal/policy/risk"
)

// LastCheck is a session's last check, and the changes since.
type LastCheck struct {
	Command            string // the command; empty if no check ran
	ExitCode           int
	InconclusiveReason string // why it says nothing about the code; empty if it does, see [Judge]
	EditsSince         int    // later calls that changed files a check could look at
	OtherChangesSince  int    // later calls that changed only other files, such as texts
	AnyEdits           bool   // whether any call changed files a check could look at

	root   string // of the project
	callID string // the call that ran it
}

// IsOneOf reports whether one of these calls was the check.
func (c LastCheck) IsOneOf(calls []string) bool {
	return c.callID != "" && slices.Contains(calls, c.callID)
}

// IsVerified reports whether no edit is unchecked.
func (c LastCheck) IsVerified() bool {
	return !c.AnyEdits || c.Command != "" && c.ExitCode == 0 && c.EditsSince == 0
}

// HasPassed reports whether a check ran and passed, and nothing changed since.
func (c LastCheck) HasPassed() bool {
	return c.Command != "" && c.ExitCode == 0 && c.InconclusiveReason == "" && c.EditsSince == 0
}

// CheckTracker tracks in a session's records the last check and the changes since. It looks only
// at what happened, not at who did it or what they say. The zero Checks has seen nothing.
type CheckTracker struct {
	Root string // of the project

	mu           sync.Mutex
	edits        []editCall
	running      map[string]runningCheck // running checks, by call
	last         LastCheck
	editsAtStart int // number of edits when the last check began

	declined map[string]bool // automatic checks that the user declined last time
}

// IsDeclined reports whether the user declined an automatic check when last asked about it.
func (c *CheckTracker) IsDeclined(command string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.declined[command]
}

// editCall is a call that changed files: each file's content
// before and after. Files that were undone do not count.
type editCall struct{ files []editedFile }

type editedFile struct {
	path, hashBefore, hashAfter string
	undone                      bool
}

func (e editCall) isApplied() bool {
	return slices.ContainsFunc(e.files, func(f editedFile) bool { return !f.undone })
}

// affectsChecks reports whether a check could look at its changes.
func (e editCall) affectsChecks() bool {
	return slices.ContainsFunc(e.files, func(f editedFile) bool { return !f.undone && IsCode(f.path) })
}

// runningCheck is a running check.
type runningCheck struct {
	command string
	others  companions
	edits   int
}

// Add processes the session's next record.
func (c *CheckTracker) Add(r event.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		var in struct{ Command string }
		if json.Unmarshal(e.Input, &in) != nil {
			return
		}
		if e.Author == event.ActorVerifier && (e.Verdict == event.VerdictAllowed || e.DecidedBy == event.ActorUser) {
			if c.declined == nil {
				c.declined = make(map[string]bool)
			}
			c.declined[in.Command] = e.Verdict != event.VerdictAllowed
		}
		if e.Verdict != event.VerdictAllowed {
			return
		}
		others, ok := parseCheckLine(in.Command)
		if !ok {
			return
		}
		if c.running == nil {
			c.running = make(map[string]runningCheck)
		}
		c.running[e.CallID] = runningCheck{in.Command, others, len(c.edits)}
	case event.ToolCallCompleted:
		check, ran := c.running[e.CallID]
		delete(c.running, e.CallID)
		var out struct {
			ExitCode       *int `json:"exit_code"`
			Stdout, Stderr string
			Cancelled      bool // the user stopped it
		}
		ended := ran && json.Unmarshal(e.Output, &out) == nil && out.ExitCode != nil && *out.ExitCode >= 0 &&
			!e.OutcomeUnknown
		if ended {
			c.last, c.editsAtStart = LastCheck{Command: check.command, ExitCode: *out.ExitCode, callID: e.CallID}, check.edits
			if v := Interpret(*out.ExitCode, out.Stdout, out.Stderr); v.Outcome == OutcomeEnvironment {
				c.last.InconclusiveReason = v.Reason
			}
			if out.Cancelled {
				c.last.InconclusiveReason = "you stopped it"
			}
		}
		if ran && check.others == companionsNone {
			return // its own changes are its output
		}
		restores, own := e.Author == event.ActorUser && (e.Tool == "undo" || e.Tool == "redo"), editCall{}
		for _, f := range e.Changes {
			name := cmp.Or(f.After.Path, f.Before.Path)
			if !f.IsFolder() && !(restores && c.markRestored(name, f.After.Hash)) {
				own.files = append(own.files, editedFile{path: name, hashBefore: f.Before.Hash, hashAfter: f.After.Hash})
			}
		}
		switch {
		case len(own.files) == 0:
		case ended && check.others == companionsBefore: // the check saw these changes
			c.edits = slices.Insert(c.edits, c.editsAtStart, own)
			c.editsAtStart++
		default:
			c.edits = append(c.edits, own)
		}
	}
}

// markRestored marks a file's edits as undone or redone if that restores its content. It covers only edits since
// the last check began, because the earlier ones were checked. It reports whether it found such edits.
func (c *CheckTracker) markRestored(name, hash string) bool {
	since := c.editsAtStart
	for _, b := range c.running {
		since = max(since, b.edits)
	}
	var list []*editedFile // oldest first
	for i := range c.edits[since:] {
		for j := range c.edits[since+i].files {
			if f := &c.edits[since+i].files[j]; f.path == name {
				list = append(list, f)
			}
		}
	}
	for i, f := range slices.Backward(list) {
		if !f.undone && f.hashBefore == hash {
			for _, later := range list[i:] {
				later.undone = true
			}
			return true
		}
	}
	for i, f := range slices.Backward(list) {
		if f.undone && f.hashAfter == hash {
			for _, earlier := range list[:i+1] {
				earlier.undone = false
			}
			return true
		}
	}
	return false
}

// Last returns the last check and the changes since.
func (c *CheckTracker) Last() LastCheck {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last
	last.root = c.Root
	for i, e := range c.edits {
		switch {
		case e.affectsChecks():
			last.AnyEdits = true
			if i >= c.editsAtStart {
				last.EditsSince++
			}
		case e.isApplied() && i >= c.editsAtStart:
			last.OtherChangesSince++
		}
	}
	return last
}

// companions says whether a check's line runs other commands that could change its result.
type companions int

const (
	companionsNone companions = iota
	companionsBefore
	companionsAfter // the check
)

// IsCheck reports whether a command line is a check whose outcome is the line's.
func IsCheck(line string) bool {
	_, ok := parseCheckLine(line)
	return ok
}

// parseCheckLine reports whether a command line is a check whose outcome is the
// line's: a check before a pipe or a ; does not decide the line's outcome.
func parseCheckLine(line string) (others companions, ok bool) {
	if !mentionsChecker(line) {
		return companionsNone, false
	}
	r, seen := risk.Inspect(line), false
	for _, c := range r.Simple {
		words := append([]string{c.Name}, c.Args...)
		switch {
		case c.StartedBy != risk.StartedByLine:
		case isCheckCommand(words):
			if seen, ok = true, ok || c.DecidesResult; others == companionsAfter {
				others = companionsBefore
			}
		case !isLookup(words) && (slices.Contains(divertingWords, c.Name) || disablesExecution(c)):
			return companionsNone, false
		case !c.Writes && (isLookup(words) || slices.Contains(readOnlyPrograms, c.Name)):
		case seen:
			others = companionsAfter
		default:
			others = companionsBefore
		}
	}
	return others, ok && !r.Functions // functions can replace commands
}

// mentionsChecker reports whether a line contains the name of a checker.
func mentionsChecker(line string) bool {
	for name := range checkerPrograms() {
		if strings.Contains(line, name) {
			return true
		}
	}
	return false
}

// divertingWords lists shell words after which a check may not run, or may be another command.
var divertingWords = []string{"alias", "trap", "exit", "exec", "return", "break", "continue", "logout", "kill", "eval",
	"source", ".", "enable", "hash", "builtin", "command"}

// disablesExecution reports whether a command makes the shell read the rest without running it.
func disablesExecution(c risk.Command) bool {
	return c.Name == "set" && (!c.Exact || slices.ContainsFunc(c.Args, func(w string) bool {
		return w == "" || w == "noexec" || strings.HasPrefix(w, "-") && strings.Contains(w, "n")
	}))
}

// isLookup reports whether words only look up a program.
func isLookup(words []string) bool {
	option := ""
	if len(words) > 1 {
		option = words[1]
	}
	switch words[0] {
	case "which", "type":
		return true
	case "command":
		return option == "-v" || option == "-V"
	case "hash":
		return option != "" && !strings.HasPrefix(option, "-")
	}
	return false
}

// readOnlyPrograms lists programs that change no file.
var readOnlyPrograms = []string{"cd", "echo", "printf", "export", "set", "pwd", "ls", "cat", "true", "test", "[", "[[",
	"sleep", "date"}

// wrapperPrograms lists programs that run another program.
var wrapperPrograms = []string{"env", "time", "nice", "timeout", "npx", "bunx", "uv", "poetry", "pipenv", "pdm",
	"hatch", "bundle", "xvfb-run", "run", "exec", "dlx"}

// checkerPrograms maps programs to the words that make them check; programs without words always check.
var checkerPrograms = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"go": "test vet build", "cargo": "test check build clippy nextest", "npm": "test t lint build check typecheck",
		"pnpm": "test t lint build check typecheck",
		"yarn": "test lint build check typecheck", "bun": "test lint build check typecheck", "deno": "test check lint",
		"make": "test check lint build quick all vet ci",
		"just": "test check lint build", "task": "test check lint build", "mvn": "test verify compile package",
		"mvnw":   "test verify compile package",
		"gradle": "test check build", "gradlew": "test check build", "dotnet": "test build", "swift": "test build",
		"zig": "test build", "mix": "test compile",
		"bazel": "test build", "python": "pytest unittest mypy compileall tox",
		"python3": "pytest unittest mypy compileall tox", "rake": "test spec",
		"ninja": "test", "cmake": "--build", "flutter": "test analyze", "dart": "test analyze", "rails": "test", "php": "-l",
		"node":   "--test --check",
		"pytest": "", "tox": "", "nox": "", "ctest": "", "rspec": "", "jest": "", "vitest": "", "mocha": "", "tsc": "",
		"eslint": "", "ruff": "check --check", "mypy": "", "pyright": "",
		"flake8": "", "pylint": "", "golangci-lint": "run", "staticcheck": "", "shellcheck": "", "phpunit": "", "phpstan": "",
		"ava": "", "playwright": "test", "sbt": "test compile",
		"gofmt": "-l", "biome": "check lint", "prettier": "--check",
	}
})

// isCheckCommand reports whether the words of a command are a check.
func isCheckCommand(words []string) bool {
	for len(words) > 1 && (slices.Contains(wrapperPrograms, path.Base(words[0])) || strings.HasPrefix(words[0], "-") ||
		strings.Contains(words[0], "=") || isDuration(words[0])) {
		words = words[1:]
	}
	name := path.Base(words[0])
	with, ok := checkerPrograms()[name]
	if !ok || slices.ContainsFunc(words[1:], func(w string) bool { return isDescribeOption(name, w) }) {
		return false
	}
	if with == "" {
		return true
	}
	return slices.ContainsFunc(words[1:], func(w string) bool {
		w, _, _ = strings.Cut(w, ":") // test:unit
		return w != "" && slices.Contains(strings.Fields(with), w)
	})
}

// isDescribeOption reports whether a word makes a checker only describe itself or its plan, without checking.
func isDescribeOption(name, word string) bool {
	switch word, _, _ = strings.Cut(word, "="); word {
	case "-h", "-help", "--help", "-V", "-version", "--version", "--dry-run", "--just-print", "--recon", "--touch",
		"--question", "--ignore-errors",
		"--collect-only", "--co", "--fixtures", "--markers", "--setup-plan", "--notest", "--showconfig", "--showConfig",
		"--print-config", "--init",
		"-list", "--list", "--list-tests", "--listTests", "--listenvs", "--print-labels", "--show-only":
		return true
	case "-l":
		return name == "tox" || name == "nox"
	case "-N":
		return name == "ctest"
	case "-t": // lists tests; only touches files
		return slices.Contains([]string{"dotnet", "ninja", "make"}, name)
	case "-m":
		return strings.HasPrefix(name, "gradle")
	case "-n":
		return slices.Contains([]string{"make", "go", "ninja", "just", "task", "rake"}, name)
	}
	if name != "make" || !strings.HasPrefix(word, "-") || strings.HasPrefix(word, "--") {
		return false
	}
	flags := word[1:]
	if end := strings.IndexAny(flags, "CfIjloW"); end >= 0 { // the rest is the flag's value
		flags = flags[:end]
	}
	return strings.ContainsAny(flags, "ntqiv")
}

func isDuration(word string) bool {
	return word != "" && strings.Trim(word, "0123456789.smhd") == ""
}
