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

// Check is a session's last check, and the changes since.
type Check struct {
	Command  string // the command; empty if no check ran
	ExitCode int
	Untold   string // why it says nothing about the code; empty if it does, see [Judge]
	Edits    int    // later calls that changed files a check could look at
	Others   int    // later calls that changed only other files, such as texts
	Edited   bool   // whether any call changed files a check could look at

	root string // of the project
	call string // the call that ran it
}

// Among reports whether one of these calls was the check.
func (c Check) Among(calls []string) bool { return c.call != "" && slices.Contains(calls, c.call) }

// Verified reports whether no edit is unchecked.
func (c Check) Verified() bool {
	return !c.Edited || c.Command != "" && c.ExitCode == 0 && c.Edits == 0
}

// Passed reports whether a check ran and passed, and nothing changed since.
func (c Check) Passed() bool {
	return c.Command != "" && c.ExitCode == 0 && c.Untold == "" && c.Edits == 0
}

// Checks tracks in a session's records the last check and the changes since. It looks only
// at what happened, not at who did it or what they say. The zero Checks has seen nothing.
type Checks struct {
	Root string // of the project

	mu      sync.Mutex
	edits   []edit
	running map[string]begun // running checks, by call
	last    Check
	at      int // number of edits when the last check began

	declined map[string]bool // automatic checks that the user declined last time
}

// Declined reports whether the user declined an automatic check when last asked about it.
func (c *Checks) Declined(command string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.declined[command]
}

// edit is a call that changed files: each file's content
// before and after. Files that were undone do not count.
type edit struct{ files []edited }

type edited struct {
	path, found, left string
	undone            bool
}

func (e edit) inForce() bool {
	return slices.ContainsFunc(e.files, func(f edited) bool { return !f.undone })
}

// matters reports whether a check could look at its changes.
func (e edit) matters() bool {
	return slices.ContainsFunc(e.files, func(f edited) bool { return !f.undone && IsCode(f.path) })
}

// begun is a running check.
type begun struct {
	command string
	beside  beside
	edits   int
}

// Add processes the session's next record.
func (c *Checks) Add(r event.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := r.Event.(type) {
	case event.ToolCallRequested:
		var in struct{ Command string }
		if json.Unmarshal(e.Input, &in) != nil {
			return
		}
		if e.Author == event.ActorVerifier && (e.Verdict == event.Allowed || e.DecidedBy == event.ActorUser) {
			if c.declined == nil {
				c.declined = make(map[string]bool)
			}
			c.declined[in.Command] = e.Verdict != event.Allowed
		}
		if e.Verdict != event.Allowed {
			return
		}
		others, ok := readCheck(in.Command)
		if !ok {
			return
		}
		if c.running == nil {
			c.running = make(map[string]begun)
		}
		c.running[e.CallID] = begun{in.Command, others, len(c.edits)}
	case event.ToolCallCompleted:
		check, ran := c.running[e.CallID]
		delete(c.running, e.CallID)
		var out struct {
			ExitCode       *int `json:"exit_code"`
			Stdout, Stderr string
			Cancelled      bool // the user stopped it
		}
		ended := ran && json.Unmarshal(e.Output, &out) == nil && out.ExitCode != nil && *out.ExitCode >= 0 && !e.Unknown
		if ended {
			c.last, c.at = Check{Command: check.command, ExitCode: *out.ExitCode, call: e.CallID}, check.edits
			if v := Judge(*out.ExitCode, out.Stdout, out.Stderr); v.Outcome == Environment {
				c.last.Untold = v.Reason
			}
			if out.Cancelled {
				c.last.Untold = "you stopped it"
			}
		}
		if ran && check.beside == alone {
			return // its own changes are its output
		}
		restores, own := e.Author == event.ActorUser && (e.Tool == "undo" || e.Tool == "redo"), edit{}
		for _, f := range e.Changes {
			name := cmp.Or(f.After.Path, f.Before.Path)
			if !f.Folder() && !(restores && c.restore(name, f.After.Hash)) {
				own.files = append(own.files, edited{path: name, found: f.Before.Hash, left: f.After.Hash})
			}
		}
		switch {
		case len(own.files) == 0:
		case ended && check.beside == before: // the check saw these changes
			c.edits = slices.Insert(c.edits, c.at, own)
			c.at++
		default:
			c.edits = append(c.edits, own)
		}
	}
}

// restore marks a file's edits as undone or redone if that restores its content. It covers only edits since
// the last check began, because the earlier ones were checked. It reports whether it found such edits.
func (c *Checks) restore(name, hash string) bool {
	since := c.at
	for _, b := range c.running {
		since = max(since, b.edits)
	}
	var list []*edited // oldest first
	for i := range c.edits[since:] {
		for j := range c.edits[since+i].files {
			if f := &c.edits[since+i].files[j]; f.path == name {
				list = append(list, f)
			}
		}
	}
	for i, f := range slices.Backward(list) {
		if !f.undone && f.found == hash {
			for _, later := range list[i:] {
				later.undone = true
			}
			return true
		}
	}
	for i, f := range slices.Backward(list) {
		if f.undone && f.left == hash {
			for _, earlier := range list[:i+1] {
				earlier.undone = false
			}
			return true
		}
	}
	return false
}

// Last returns the last check and the changes since.
func (c *Checks) Last() Check {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last
	last.root = c.Root
	for i, e := range c.edits {
		switch {
		case e.matters():
			last.Edited = true
			if i >= c.at {
				last.Edits++
			}
		case e.inForce() && i >= c.at:
			last.Others++
		}
	}
	return last
}

// beside says whether a check's line runs other commands that could change its result.
type beside int

const (
	alone beside = iota
	before
	after // the check
)

// IsCheck reports whether a command line is a check whose outcome is the line's.
func IsCheck(line string) bool {
	_, ok := readCheck(line)
	return ok
}

// readCheck reports whether a command line is a check whose outcome is the
// line's: a check before a pipe or a ; does not decide the line's outcome.
func readCheck(line string) (others beside, ok bool) {
	if !mayCheck(line) {
		return alone, false
	}
	r, seen := risk.Read(line), false
	for _, c := range r.Simple {
		words := append([]string{c.Name}, c.Args...)
		switch {
		case c.By != risk.Line:
		case checks(words):
			if seen, ok = true, ok || c.Decides; others == after {
				others = before
			}
		case !looksUp(words) && (slices.Contains(diverting, c.Name) || noexec(c)):
			return alone, false
		case !c.Writes && (looksUp(words) || slices.Contains(quiet, c.Name)):
		case seen:
			others = after
		default:
			others = before
		}
	}
	return others, ok && !r.Functions // functions can replace commands
}

// mayCheck reports whether a line contains the name of a checker.
func mayCheck(line string) bool {
	for name := range checkers() {
		if strings.Contains(line, name) {
			return true
		}
	}
	return false
}

// diverting lists shell words after which a check may not run, or may be another command.
var diverting = []string{"alias", "trap", "exit", "exec", "return", "break", "continue", "logout", "kill", "eval", "source", ".", "enable", "hash", "builtin", "command"}

// noexec reports whether a command makes the shell read the rest without running it.
func noexec(c risk.Command) bool {
	return c.Name == "set" && (!c.Exact || slices.ContainsFunc(c.Args, func(w string) bool {
		return w == "" || w == "noexec" || strings.HasPrefix(w, "-") && strings.Contains(w, "n")
	}))
}

// looksUp reports whether words only look up a program.
func looksUp(words []string) bool {
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

// quiet lists programs that change no file.
var quiet = []string{"cd", "echo", "printf", "export", "set", "pwd", "ls", "cat", "true", "test", "[", "[[", "sleep", "date"}

// wrappers lists programs that run another program.
var wrappers = []string{"env", "time", "nice", "timeout", "npx", "bunx", "uv", "poetry", "pipenv", "pdm", "hatch", "bundle", "xvfb-run", "run", "exec", "dlx"}

// checkers maps programs to the words that make them check; programs without words always check.
var checkers = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"go": "test vet build", "cargo": "test check build clippy nextest", "npm": "test t lint build check typecheck", "pnpm": "test t lint build check typecheck",
		"yarn": "test lint build check typecheck", "bun": "test lint build check typecheck", "deno": "test check lint", "make": "test check lint build quick all vet ci",
		"just": "test check lint build", "task": "test check lint build", "mvn": "test verify compile package", "mvnw": "test verify compile package",
		"gradle": "test check build", "gradlew": "test check build", "dotnet": "test build", "swift": "test build", "zig": "test build", "mix": "test compile",
		"bazel": "test build", "python": "pytest unittest mypy compileall tox", "python3": "pytest unittest mypy compileall tox", "rake": "test spec",
		"ninja": "test", "cmake": "--build", "flutter": "test analyze", "dart": "test analyze", "rails": "test", "php": "-l", "node": "--test --check",
		"pytest": "", "tox": "", "nox": "", "ctest": "", "rspec": "", "jest": "", "vitest": "", "mocha": "", "tsc": "", "eslint": "", "ruff": "check --check", "mypy": "", "pyright": "",
		"flake8": "", "pylint": "", "golangci-lint": "run", "staticcheck": "", "shellcheck": "", "phpunit": "", "phpstan": "", "ava": "", "playwright": "test", "sbt": "test compile",
		"gofmt": "-l", "biome": "check lint", "prettier": "--check",
	}
})

// checks reports whether the words of a command are a check.
func checks(words []string) bool {
	for len(words) > 1 && (slices.Contains(wrappers, path.Base(words[0])) || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") || isDuration(words[0])) {
		words = words[1:]
	}
	name := path.Base(words[0])
	with, ok := checkers()[name]
	if !ok || slices.ContainsFunc(words[1:], func(w string) bool { return onlyTells(name, w) }) {
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

// onlyTells reports whether a word makes a checker only describe itself or its plan, without checking.
func onlyTells(name, word string) bool {
	switch word, _, _ = strings.Cut(word, "="); word {
	case "-h", "-help", "--help", "-V", "-version", "--version", "--dry-run", "--just-print", "--recon", "--touch", "--question", "--ignore-errors",
		"--collect-only", "--co", "--fixtures", "--markers", "--setup-plan", "--notest", "--showconfig", "--showConfig", "--print-config", "--init",
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
