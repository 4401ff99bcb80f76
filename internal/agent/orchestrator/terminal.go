package orchestrator

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wantsTerminal reports whether a line runs one of programs, or one that talks with who
// sits at a terminal: an interpreter that is given nothing to run, a container with -it.
// A program may be named with its first arguments: git commit.
func wantsTerminal(line string, programs []string) bool {
	return asksFor(line, func(words []string, fed, heard bool) bool {
		named := slices.ContainsFunc(programs, func(p string) bool { return begins(words, strings.Fields(p)) })
		return named && !onlyPrints(words, heard) || !fed && talks(words) || opens(words)
	})
}

// endsWithItsShell reports whether a line does nothing but change the shell it runs in.
func endsWithItsShell(line string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return false
	}
	switch c := file.Stmts[0].Cmd.(type) {
	case *syntax.DeclClause:
		return len(c.Args) > 0 && !slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return a.Name == nil })
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return len(c.Assigns) > 0
		}
		return slices.Contains([]string{"cd", "pushd", "popd", "unset", "umask"}, plain(c.Args[0])) && (len(c.Args) > 1 || plain(c.Args[0]) == "cd")
	}
	return false
}

// becomesAnother reports whether a line runs a program as another user.
func becomesAnother(line string) bool {
	return asksFor(line, func(words []string, _, _ bool) bool { return slices.Contains(elevated, words[0]) })
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

// asksFor reports whether any of the commands of a line does something, given its words,
// whether its input comes from elsewhere and whether its output goes there. What cannot be
// read as a line does not.
func asksFor(line string, does func(words []string, fed, heard bool) bool) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return false
	}
	found := false
	var look func(n syntax.Node, fed, heard bool)
	look = func(n syntax.Node, fed, heard bool) {
		syntax.Walk(n, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Stmt:
				in, out := fed || slices.ContainsFunc(n.Redirs, reads), heard || slices.ContainsFunc(n.Redirs, sends)
				if in != fed || out != heard {
					look(n, in, out)
					return false
				}
			case *syntax.BinaryCmd:
				if (!fed || !heard) && (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) {
					look(n.X, fed, true)
					look(n.Y, true, heard)
					return false
				}
			case *syntax.CmdSubst:
				if !heard {
					look(n, fed, true)
					return false
				}
			case *syntax.CallExpr:
				words := run(n.Args)
				if len(words) == 0 {
					return true
				}
				inner, ok := inShell(words)
				found = found || does(words, fed, heard) || ok && asksFor(inner, func(words []string, in, out bool) bool { return does(words, fed || in, heard || out) })
			}
			return !found
		})
	}
	look(file, false, false)
	return found
}

// sends reports whether a redirection takes a program's output elsewhere.
func sends(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		return r.N == nil || r.N.Value == "1"
	}
	return false
}

func reads(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	}
	return false
}

// run are the words of a command from its program on, which is named without its folder;
// words that are more than plain text are empty. Options of git that may stand before its
// subcommand are left out.
func run(args []*syntax.Word) (words []string) {
	for _, a := range args {
		words = append(words, cmp.Or(plain(a), byVariable(a)))
	}
	words = withoutPrefix(words)
	if len(words) == 0 {
		return nil
	}
	words[0] = path.Base(strings.TrimPrefix(words[0], `\`))
	for words[0] == "git" && len(words) > 2 && strings.HasPrefix(words[1], "-") {
		n := 2
		if words[1] == "-C" || words[1] == "-c" {
			n = 3
		}
		words = append([]string{"git"}, words[n:]...)
	}
	return words
}

// plain is the text of a word without its quotes, or "" if the shell makes it.
func plain(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, in := range p.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return b.String()
}

// byVariable is what a word stands for that is nothing but a variable which names a program
// of the person's choice: $EDITOR is some editor.
func byVariable(w *syntax.Word) string {
	parts := w.Parts
	if len(parts) == 1 {
		if quoted, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = quoted.Parts
		}
	}
	if len(parts) != 1 {
		return ""
	}
	v, ok := parts[0].(*syntax.ParamExp)
	if !ok || v.Param == nil {
		return ""
	}
	switch v.Param.Value {
	case "EDITOR", "VISUAL", "GIT_EDITOR":
		return "vi"
	case "PAGER", "MANPAGER", "GIT_PAGER":
		return "less"
	case "SHELL":
		return "sh"
	}
	return ""
}

// withoutPrefix leaves out what stands before a program: settings of variables, and
// programs that run the one they are given, with their options.
func withoutPrefix(words []string) []string {
	for len(words) > 0 && (strings.Contains(words[0], "=") || slices.Contains(before, path.Base(words[0]))) {
		words = words[1:]
		for len(words) > 0 && words[0] != "" && strings.Contains("-0123456789", words[0][:1]) {
			words = words[1:] // an option, the value of one, or how long it may take
		}
	}
	return words
}

// before are programs that run the one they are given.
var before = []string{"env", "command", "exec", "nice", "ionice", "time", "timeout", "stdbuf"}

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

// inShell is the line that a shell is given to run.
func inShell(words []string) (line string, ok bool) {
	if !slices.Contains(shells, words[0]) {
		return "", false
	}
	for i, w := range words[1:] {
		if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c") && len(words) > i+2 {
			return words[i+2], true
		}
	}
	return "", false
}

// opens reports whether a program gives the one that it runs a terminal of its own.
func opens(words []string) bool {
	return words[0] == "xargs" && (slices.Contains(words, "-o") || slices.Contains(words, "--open-tty"))
}

// talks reports whether a program talks with whoever sits at its terminal: an interpreter
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
