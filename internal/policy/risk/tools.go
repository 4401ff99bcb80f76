package risk

import (
	"slices"
	"strings"
)

// judgeEditor judges the startup commands of an editor.
func (w *walker) judgeEditor(args []arg) {
	for i, a := range args[1:] {
		switch {
		case strings.HasPrefix(a.text, "+"):
			w.judgeEditorLine(a.text[1:], args)
		case a.isOneOf("--cmd") || a.isOption() && a.text[1] != '-' && strings.HasSuffix(a.text, "c"):
			if i+2 < len(args) {
				w.judgeEditorLine(args[i+2].text, args)
			}
		case strings.HasPrefix(a.text, "-c"):
			w.judgeEditorLine(a.text[2:], args)
		}
	}
	if w.stdin.kind == stdinLiteral {
		for line := range strings.Lines(w.stdin.text) {
			w.judgeEditorLine(strings.TrimSuffix(line, "\n"), args)
		}
	}
}

// judgeEditorLine finds a ! that passes the rest of the line to a shell: not one at the end of a command's
// name, as in q!, and not one that compares.
func (w *walker) judgeEditorLine(text string, args []arg) {
	runs := strings.Contains(text, "system(") || strings.Contains(text, "systemlist(") ||
		strings.Contains(text, "terminal")
	for i := range len(text) {
		ends := i > 0 && (text[i-1]|0x20 >= 'a' && text[i-1]|0x20 <= 'z' || text[i-1] == '\\')
		if text[i] != '!' || ends || strings.HasPrefix(text[i:], "!=") || strings.HasPrefix(text[i:], "!~") {
			continue
		}
		runs = true
		w.judgeLine(arg{text: text[i+1:]})
		break
	}
	if runs {
		w.addFinding(Approve, "runs a command from the editor", joinWords(args))
	}
}

// makeVars are the variables that affect what make runs.
var makeVars = wordList("MAKEFLAGS GNUMAKEFLAGS MAKEFILES")

// judgeMakeArgs judges the words that replace commands of its makefile.
func (w *walker) judgeMakeArgs(args []arg) {
	for i, a := range args[1:] {
		name, value, sets := strings.Cut(a.text, "=")
		name = strings.TrimRight(name, ":?+!")
		shell := name == "SHELL" || name == ".SHELLFLAGS"
		input := a.isOneOf("-f-", "-f/dev/stdin") || i+2 < len(args) && a.isOneOf("-f", "--file", "--makefile") &&
			isInput(args[i+2])
		switch {
		case sets && (shell || makeVars.has(name) && !affectsOnlySpeed(arg{text: value, certainty: a.certainty})),
			a.isOneOf("--eval", "-E"), strings.HasPrefix(a.text, "--eval="):
			w.addFinding(Approve, "changes what programs run", joinWords(args))
		case input && w.stdin.kind > stdinLiteral:
			w.addUnknown("runs the output of another command", joinWords(args))
		}
	}
}

// affectsOnlySpeed reports whether flags of make only affect speed and output.
func affectsOnlySpeed(flags arg) bool {
	return flags.isExact() && strings.Trim(flags.text, "-jksB0123456789 ") == ""
}

var (
	// ipValues are the options of ip with a value.
	ipValues = wordList("-f -family -n -netns -rc -rcvbuf -l -loops")
	// ipShowWords are the words after an object that only show it.
	ipShowWords = wordList("show list lst ls sh get help save identify pids monitor")
)

// judgeIP judges a change of the network, and a command run in another network namespace.
func (w *walker) judgeIP(args []arg) {
	rest := args[1:]
	for len(rest) > 0 && rest[0].isOption() {
		if rest[0].isOneOf("-b", "-batch", "-force") {
			w.addFinding(Approve, "changes the network", joinWords(args))
		}
		n := 1
		if ipValues.has(rest[0].text) {
			n = 2
		}
		rest = rest[min(n, len(rest)):]
	}
	if len(rest) < 2 || rest[0].isOneOf("monitor", "help") {
		return
	}
	brief := rest[1].isOneOf("s") && rest[0].isOneOf("a", "addr", "address", "r", "route", "n", "neigh")
	if rest[1].isOneOf("exec") && rest[0].isOneOf("netns", "vrf") {
		w.addFinding(Approve, "runs in another namespace", joinWords(args))
		w.judgeInner(rest[min(3, len(rest)):])
	} else if !brief && !(rest[1].isExact() && ipShowWords.has(rest[1].text)) {
		w.addFinding(Approve, "changes the network", joinWords(args))
	}
}

// unlessShowing allows listing the rules of a firewall.
func unlessShowing(_ *walker, args []arg) Level {
	shows := func(a arg) bool {
		switch {
		case a.isOneOf("--list", "--list-rules", "list", "status", "--version", "-V", "--list-all"):
			return true
		case !a.isExact() || !a.isOption() || a.text[1] == '-':
			return false
		}
		return strings.ContainsAny(a.text, "LS") && strings.Trim(a.text, "-LSnvxt46") == ""
	}
	changes := func(a arg) bool {
		return a.isOneOf("add", "delete", "flush", "insert", "replace", "create", "destroy", "-f") ||
			a.isOption() && a.text[1] != '-' && strings.ContainsAny(a.text, "ADIRFXZNPE") ||
			isAbbreviation(a, "--append", "--delete", "--insert", "--replace", "--flush", "--zero", "--new-chain",
				"--delete-chain", "--policy", "--rename-chain")
	}
	if slices.ContainsFunc(args[1:], shows) && !slices.ContainsFunc(args[1:], changes) {
		return None
	}
	return Approve
}

// isAbbreviation reports whether a word is a long option, in full or abbreviated.
func isAbbreviation(a arg, longs ...string) bool {
	name, _, _ := strings.Cut(a.text, "=")
	return len(name) > 3 && slices.ContainsFunc(longs, func(l string) bool { return strings.HasPrefix(l, name) })
}

func anyAbbreviation(args []arg, longs ...string) bool {
	return slices.ContainsFunc(args, func(a arg) bool { return isAbbreviation(a, longs...) })
}

// approveIf returns a judge of a command that needs approval if says reports true for its words.
func approveIf(why string, says func(args []arg) bool) func(*walker, []arg) {
	return func(w *walker, args []arg) {
		if says(args) {
			w.addFinding(Approve, why, joinWords(args))
		}
	}
}

// hasMoreOperands is for programs that show a value unless told to change it:
// it reports whether there are more than this many operands.
func hasMoreOperands(more int) func(args []arg) bool {
	return func(args []arg) bool {
		operands := dropOptions(args[1:])
		return len(operands) > more && !operands[0].isOneOf("get")
	}
}

var dmesgOptions = newOptions("CcDEdeHkLPprSTtuwWxhV", "FfJlns", "")

func clearsLog(args []arg) bool {
	fs, _, _ := dmesgOptions.parseInterspersed(args[1:])
	return hasOption(fs, "c", "C", "D", "E", "n") || anyAbbreviation(args[1:], "--clear", "--read-clear", "--console-off",
		"--console-on", "--console-level")
}

func cutsJournal(args []arg) bool {
	return anyHasPrefix(args[1:], "--va", "--rot", "--fl", "--relinquish", "--smart-relinquish", "--setup-keys",
		"--update-catalog")
}

func setsKernel(args []arg) bool {
	sets := func(a arg) bool { return strings.Contains(a.text, "=") && !a.isOption() }
	return hasFlag(args[1:], "wp", "--write") || anyAbbreviation(args[1:], "--write", "--load", "--system") ||
		slices.ContainsFunc(args[1:], sets)
}

func endsConnections(args []arg) bool {
	return hasFlag(args[1:], "K", "--kill") || anyAbbreviation(args[1:], "--kill")
}
