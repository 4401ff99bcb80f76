package bang

import (
	"path"
	"slices"
	"strings"

	"coder/internal/policy/risk"
)

// wantsTerminal reports whether a command is one of programs or is interactive: an interpreter without
// a script, a container with -it. A program may be named with its first arguments: git commit.
func wantsTerminal(c risk.Command, words, programs []string) bool {
	named := slices.ContainsFunc(programs, func(p string) bool { return hasPrefixWords(words, strings.Fields(p)) })
	return named && !printsOnly(words, c.Output) || !c.Input && isInteractive(words) || opensTerminal(words)
}

// commandWords returns the words of a command, with its program named without
// a folder. It omits git options that may precede the subcommand.
func commandWords(c risk.Command) []string {
	words := append([]string{variableProgramKind(c.Word)}, c.Args...)
	if c.Name != "" {
		words[0] = path.Base(c.Name)
	}
	for words[0] == "git" && len(words) > 2 && strings.HasPrefix(words[1], "-") {
		n := 2
		if words[1] == "-C" || words[1] == "-c" {
			n = 3
		}
		words = append([]string{"git"}, words[n:]...)
	}
	return words
}

// variableProgramKind returns the kind of program that a variable names, or "": $EDITOR is some editor.
func variableProgramKind(word string) string {
	name, braced := strings.CutPrefix(strings.TrimPrefix(word, "$"), "{")
	if braced {
		name, _, _ = strings.Cut(strings.TrimSuffix(name, "}"), ":")
	}
	switch name {
	case "EDITOR", "VISUAL", "GIT_EDITOR":
		return "vi"
	case "PAGER", "MANPAGER", "GIT_PAGER":
		return "less"
	case "SHELL":
		return "sh"
	}
	return ""
}

// printsOnly reports whether a program that normally takes the terminal only prints
// something and ends: it prints help or plain text, or a pager's output goes elsewhere.
func printsOnly(words []string, heard bool) bool {
	asked := func(options ...string) bool {
		return slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(options, w) })
	}
	switch name := words[0]; {
	case name == "git":
		return heard && (asked("--help", "-h") || len(words) > 1 && words[1] == "help")
	case asked("--version", "--help"), name == "man" && asked("-w", "-k", "-f", "--where", "--path", "--apropos",
		"--whatis"):
		return true
	case slices.Contains([]string{"top", "htop", "atop"}, name):
		return heard || slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-b") })
	}
	return heard && slices.Contains([]string{"less", "more", "most", "man", "info", "pager", "sensible-pager", "watch"},
		words[0])
}

// hasPrefixWords reports whether words begin with names, ignoring options between them.
// An option in names may occur anywhere: git rebase HEAD~2 -i is git rebase -i.
func hasPrefixWords(words, names []string) bool {
	if len(names) == 0 || words[0] != names[0] {
		return false
	}
	rest := words[1:]
	for _, name := range names[1:] {
		at := slices.Index(rest, name)
		switch {
		case at < 0:
			return false
		case strings.HasPrefix(name, "-"):
		case slices.ContainsFunc(rest[:at], func(w string) bool { return !strings.HasPrefix(w, "-") }):
			return false
		default:
			rest = rest[at+1:]
		}
	}
	return true
}

// opensTerminal reports whether a program opens a terminal of its own for the program that it runs.
func opensTerminal(words []string) bool {
	return words[0] == "xargs" && (slices.Contains(words, "-o") || slices.Contains(words, "--open-tty"))
}

// isInteractive reports whether a program is interactive: an interpreter without a
// script, a shell builtin that reads a line, a container with a terminal.
func isInteractive(words []string) bool {
	args := words[1:]
	switch name := strings.TrimRight(words[0], "0123456789."); {
	case slices.Contains(args, "-i") && (slices.Contains(shells, name) || slices.Contains(interactiveAfterScript, name)):
		return true
	case name == "cat" && len(args) == 0, name == "python" && len(args) > 1 && args[0] == "-m" &&
		slices.Contains(interactiveModules, args[1]):
		return true
	case name == "perl" && slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "-d") }),
		name == "node" && len(args) > 0 && args[0] == "inspect":
		return true // debuggers
	case slices.Contains(shells, name) || slices.Contains(interpreters, name):
		return !slices.ContainsFunc(args, func(w string) bool { return !slices.Contains(interactiveOptions, w) })
	case name == "read":
		return true
	case slices.Contains(containerPrograms, name):
		short := func(c string) bool {
			return slices.ContainsFunc(args, func(w string) bool {
				return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && len(w) <= 4 && strings.Contains(w, c)
			})
		}
		return short("i") && short("t") || slices.Contains(args, "--tty")
	}
	return false
}

var (
	shells       = []string{"sh", "bash", "dash", "zsh", "fish", "ksh"}
	interpreters = []string{
		"python", "ipython", "bpython", "pypy", "node", "deno", "bun", "irb", "pry", "ghci", "lua", "luajit", "R", "julia",
		"jshell", "scala", "clj", "iex", "erl", "ocaml", "utop",
		"perl", "php", "tclsh", "guile", "racket", "sbcl", "swift", "octave", "gp", "bc", "dc", "ftp", "nslookup",
		"redis-cli", "mongosh", "duckdb", "clickhouse-client",
	}
	// with -i they become interactive after the script
	interactiveAfterScript = []string{"python", "ipython", "pypy", "node"}
	interactiveModules     = []string{"pdb", "ipdb", "pudb", "code", "asyncio", "IPython"} // Python modules
	containerPrograms      = []string{"docker", "podman", "nerdctl", "kubectl", "oc"}
	// interactiveOptions lists options that leave an interpreter interactive.
	interactiveOptions = []string{"-i", "-q", "-l", "-a", "-I", "-B", "-E", "--login", "--interactive", "--norc",
		"--noprofile", "--quiet", "--no-banner", "--posix"}
)
