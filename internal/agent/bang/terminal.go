package bang

import (
	"path"
	"slices"
	"strings"

	"coder/internal/policy/risk"
)

// wantsTerminal reports whether a command is one of programs, or talks with the person
// at a terminal: an interpreter that is given nothing to run, a container with -it. A
// program may be named with its first arguments: git commit.
func wantsTerminal(c risk.Command, words, programs []string) bool {
	named := slices.ContainsFunc(programs, func(p string) bool { return begins(words, strings.Fields(p)) })
	return named && !onlyPrints(words, c.Output) || !c.Input && talks(words) || opens(words)
}

// wordsOf are the words of a command, its program named without its folder. Options of
// git that may stand before its subcommand are left out.
func wordsOf(c risk.Command) []string {
	words := append([]string{chosen(c.Word)}, c.Args...)
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

// chosen is the kind of program that a variable names by the person's choice, or "":
// $EDITOR is some editor.
func chosen(word string) string {
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

// onlyPrints reports whether a program that else takes the terminal prints something and
// ends: it is asked about itself, or for no more than text, or shows things and its output
// goes to another.
func onlyPrints(words []string, heard bool) bool {
	asked := func(options ...string) bool {
		return slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(options, w) })
	}
	switch name := words[0]; {
	case name == "git":
		return heard && (asked("--help", "-h") || len(words) > 1 && words[1] == "help")
	case asked("--version", "--help"), name == "man" && asked("-w", "-k", "-f", "--where", "--path", "--apropos", "--whatis"):
		return true
	case slices.Contains([]string{"top", "htop", "atop"}, name):
		return heard || slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-b") })
	}
	return heard && slices.Contains([]string{"less", "more", "most", "man", "info", "pager", "sensible-pager", "watch"}, words[0])
}

// begins reports whether words begin with names, whatever options stand between them. An
// option that is named may stand anywhere: git rebase HEAD~2 -i is git rebase -i.
func begins(words, names []string) bool {
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

// opens reports whether a program gives the one that it runs a terminal of its own.
func opens(words []string) bool {
	return words[0] == "xargs" && (slices.Contains(words, "-o") || slices.Contains(words, "--open-tty"))
}

// talks reports whether a program talks with the person at its terminal: an interpreter
// that is given nothing to run, a shell that reads a line, a container that is asked to.
func talks(words []string) bool {
	args := words[1:]
	switch name := strings.TrimRight(words[0], "0123456789."); {
	case slices.Contains(args, "-i") && (slices.Contains(shells, name) || slices.Contains(goOn, name)):
		return true
	case name == "cat" && len(args) == 0, name == "python" && len(args) > 1 && args[0] == "-m" && slices.Contains(talking, args[1]):
		return true
	case name == "perl" && slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "-d") }), name == "node" && len(args) > 0 && args[0] == "inspect":
		return true // debuggers
	case slices.Contains(shells, name) || slices.Contains(interpreters, name):
		return !slices.ContainsFunc(args, func(w string) bool { return !slices.Contains(stillTalks, w) })
	case name == "read":
		return true
	case slices.Contains(containers, name):
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
		"python", "ipython", "bpython", "pypy", "node", "deno", "bun", "irb", "pry", "ghci", "lua", "luajit", "R", "julia", "jshell", "scala", "clj", "iex", "erl", "ocaml", "utop",
		"perl", "php", "tclsh", "guile", "racket", "sbcl", "swift", "octave", "gp", "bc", "dc", "ftp", "nslookup", "redis-cli", "mongosh", "duckdb", "clickhouse-client",
	}
	goOn       = []string{"python", "ipython", "pypy", "node"}                 // with -i they talk when what they were given to run has ended
	talking    = []string{"pdb", "ipdb", "pudb", "code", "asyncio", "IPython"} // modules of Python
	containers = []string{"docker", "podman", "nerdctl", "kubectl", "oc"}
	// stillTalks are options with which an interpreter is given nothing to run.
	stillTalks = []string{"-i", "-q", "-l", "-a", "-I", "-B", "-E", "--login", "--interactive", "--norc", "--noprofile", "--quiet", "--no-banner", "--posix"}
)
