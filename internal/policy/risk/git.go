package risk

import (
	"path"
	"slices"
	"strings"
)

// gitPlaces are offsets in the line after git's name and after its subcommand,
// where more options can be put. They are zero if there is no such place.
type gitPlaces struct {
	name, sub uint
	off       string // the options that keep the subcommand from running what is configured
}

var gitGlobal = known("pPvh", "Cc", "no-pager paginate bare version help no-replace-objects literal-pathspecs no-optional-locks glob-pathspecs icase-pathspecs noglob-pathspecs html-path man-path info-path exec-path[= git-dir= work-tree= namespace= config-env= super-prefix= attr-source= list-cmds=")

// git judges a git command: what it discards, the commands its options name,
// and whether it only reads.
func (w *walker) git(args []arg) bool {
	at := len(w.report.Simple) - 1
	fs, rest, ok := gitGlobal.lead(args[1:])
	if !ok || len(rest) > 0 && !rest[0].exact() {
		return false
	}
	for _, f := range fs {
		if f.name == "c" {
			w.gitSetting(f.value)
		}
	}
	if len(rest) == 0 {
		return len(args) == 2 && args[1].is("--version", "-v")
	}
	sub, operands := rest[0].text, rest[1:]
	w.gitRuns(sub, operands)
	if why := discards(sub, operands); why != "" {
		w.find(Approve, why, joined(args))
	}
	if !w.gitReads(fs, sub, operands) {
		return false
	}
	for _, dir := range w.gitDirs(fs) {
		if slices.Contains(w.asked, dir) {
			continue
		}
		settings, err := w.facts.readGit(dir)
		if err != nil {
			w.changes("git may run what the repository configures")
			return false
		}
		w.asked = append(w.asked, dir)
		w.report.git = append(w.report.git, settings...)
	}
	w.report.Simple[at].git = gitPlaces{name: args[0].end, sub: rest[0].end, off: helpersOff[sub]}
	return true
}

// gitDirs are the directories where git may start.
func (w *walker) gitDirs(global []found) []string {
	to := arg{text: "."}
	for _, f := range global {
		if f.name == "C" {
			to.text = path.Join(to.text, f.value.text)
			if path.IsAbs(f.value.text) {
				to.text = f.value.text
			}
		}
	}
	return w.places(to)
}

// gitSetting judges key=value where the value names a program.
func (w *walker) gitSetting(a arg) {
	key, value, _ := strings.Cut(a.text, "=")
	w.gitValue(strings.ToLower(key), arg{text: value, known: a.known})
}

var gitPrograms = set("pager editor sshcommand fsmonitor external textconv command cmd helper program askpass clean smudge process driver diffcommand")

func (w *walker) gitValue(key string, value arg) {
	last := key[strings.LastIndexByte(key, '.')+1:]
	line, bang := strings.CutPrefix(value.text, "!")
	if bang || gitPrograms[last] || strings.HasPrefix(key, "pager.") {
		w.line(arg{text: line, known: value.known})
	}
}

// gitRuns judges the commands that a subcommand was given to run.
func (w *walker) gitRuns(sub string, args []arg) {
	switch sub {
	case "config":
		w.gitConfig(args)
	case "submodule":
		if i := indexOf(args, "foreach"); i >= 0 {
			w.gitLine(operandsOnly(args[i+1:]))
		}
	case "bisect":
		if len(args) > 1 && args[0].is("run") {
			w.run(args[1:])
		}
	case "rebase", "filter-branch", "difftool", "mergetool", "grep":
		w.gitOptionRuns(args)
	}
}

func (w *walker) gitLine(args []arg) {
	if len(args) > 0 {
		w.line(literalOr(args))
	}
}

// gitOptionRuns judges the values of options that are command lines.
func (w *walker) gitOptionRuns(args []arg) {
	for i, a := range args {
		name, value, has := strings.Cut(a.text, "=")
		line := arg{text: value, known: a.known}
		switch {
		case name == "--exec" || name == "--extcmd" || strings.HasPrefix(name, "--") && strings.HasSuffix(name, "-filter"):
		case a.is("-x") || a.is("-c"):
		case strings.HasPrefix(a.text, "-O") || strings.HasPrefix(a.text, "-x"):
			line, has = arg{text: a.text[2:], known: a.known}, true
		default:
			continue
		}
		if !has && i+1 < len(args) {
			line = args[i+1]
		}
		w.line(line)
	}
}

func indexOf(args []arg, word string) int {
	return slices.IndexFunc(args, func(a arg) bool { return a.is(word) })
}

// discards says what work a git command would throw away; empty if none.
func discards(sub string, args []arg) string {
	switch sub {
	case "reset":
		return when(anyIs(args, "--hard", "--merge"), "discards changes that are not committed")
	case "clean":
		return when(letter(args, "f", "--force") && !letter(args, "n", "--dry-run"), "removes files that are not tracked")
	case "checkout":
		return when(letter(args, "f", "--force") || anyIs(args, "--", ".") || anyIs(args, "--pathspec-from-file"), "discards changes that are not committed")
	case "switch":
		return when(letter(args, "f", "--force") || anyIs(args, "--discard-changes"), "discards changes that are not committed")
	case "restore":
		return when(!letter(args, "S", "--staged") || letter(args, "W", "--worktree"), "discards changes that are not committed")
	case "stash":
		return when(len(args) > 0 && args[0].is("drop", "clear"), "discards stashed changes")
	case "branch":
		return when(letter(args, "D", "") || letter(args, "d", "--delete") && letter(args, "f", "--force"), "deletes a branch that may not be merged")
	case "push":
		return when(letter(args, "fd", "--force") || anyIs(args, "--mirror", "--delete", "--prune") || withPrefix(args, "--force", "+", ":"), "rewrites what others have")
	case "reflog", "update-ref":
		return when(anyIs(args, "expire", "delete", "-d"), "discards history")
	case "filter-branch", "filter-repo":
		return "rewrites history"
	case "gc", "prune":
		return when(withPrefix(args, "--prune=now", "--prune=all") || sub == "prune", "discards history")
	case "worktree":
		return when(anyIs(args, "remove") && letter(args, "f", "--force"), "removes a work tree with its changes")
	}
	return ""
}

func when(yes bool, why string) string {
	if yes {
		return why
	}
	return ""
}

// letter reports whether one of the short options, alone or among others, or
// the long one is given.
func letter(args []arg, letters, long string) bool {
	for _, a := range args {
		if a.is("--") {
			return false
		}
		if long != "" && a.is(long) || a.exact() && a.option() && a.text[1] != '-' && strings.ContainsAny(a.text[1:], letters) {
			return true
		}
	}
	return false
}

func withPrefix(args []arg, prefixes ...string) bool {
	return slices.ContainsFunc(args, func(a arg) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a.text, p) })
	})
}
