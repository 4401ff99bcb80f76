package risk

import (
	"slices"
	"strings"
)

// editor judges the startup commands of an editor.
func (w *walker) editor(args []arg) {
	for i, a := range args[1:] {
		switch {
		case strings.HasPrefix(a.text, "+"):
			w.editorLine(a.text[1:], args)
		case a.is("--cmd") || a.option() && a.text[1] != '-' && strings.HasSuffix(a.text, "c"):
			if i+2 < len(args) {
				w.editorLine(args[i+2].text, args)
			}
		case strings.HasPrefix(a.text, "-c"):
			w.editorLine(a.text[2:], args)
		}
	}
	if w.feed.kind == given {
		for line := range strings.Lines(w.feed.text) {
			w.editorLine(strings.TrimSuffix(line, "\n"), args)
		}
	}
}

// editorLine finds a ! that passes the rest of the line to a shell: not one at the end of a command's
// name, as in q!, and not one that compares.
func (w *walker) editorLine(text string, args []arg) {
	runs := strings.Contains(text, "system(") || strings.Contains(text, "systemlist(") || strings.Contains(text, "terminal")
	for i := range len(text) {
		ends := i > 0 && (text[i-1]|0x20 >= 'a' && text[i-1]|0x20 <= 'z' || text[i-1] == '\\')
		if text[i] != '!' || ends || strings.HasPrefix(text[i:], "!=") || strings.HasPrefix(text[i:], "!~") {
			continue
		}
		runs = true
		w.line(arg{text: text[i+1:]})
		break
	}
	if runs {
		w.find(Approve, "runs a command from the editor", joined(args))
	}
}

// makes are the variables that affect what make runs.
var makes = words("MAKEFLAGS GNUMAKEFLAGS MAKEFILES")

// make judges the words that replace commands of its makefile.
func (w *walker) make(args []arg) {
	for i, a := range args[1:] {
		name, value, sets := strings.Cut(a.text, "=")
		name = strings.TrimRight(name, ":?+!")
		shell := name == "SHELL" || name == ".SHELLFLAGS"
		input := a.is("-f-", "-f/dev/stdin") || i+2 < len(args) && a.is("-f", "--file", "--makefile") && isInput(args[i+2])
		switch {
		case sets && (shell || makes.has(name) && !onlyHurries(arg{text: value, known: a.known})), a.is("--eval", "-E"), strings.HasPrefix(a.text, "--eval="):
			w.find(Approve, "changes what programs run", joined(args))
		case input && w.feed.kind > given:
			w.unknown("runs the output of another command", joined(args))
		}
	}
}

// onlyHurries reports whether flags of make only affect speed and output.
func onlyHurries(flags arg) bool {
	return flags.exact() && strings.Trim(flags.text, "-jksB0123456789 ") == ""
}

var (
	// ipValues are the options of ip with a value.
	ipValues = words("-f -family -n -netns -rc -rcvbuf -l -loops")
	// ipShows are the words after an object that only show it.
	ipShows = words("show list lst ls sh get help save identify pids monitor")
)

// ip judges a change of the network, and a command run in another network namespace.
func (w *walker) ip(args []arg) {
	rest := args[1:]
	for len(rest) > 0 && rest[0].option() {
		if rest[0].is("-b", "-batch", "-force") {
			w.find(Approve, "changes the network", joined(args))
		}
		n := 1
		if ipValues.has(rest[0].text) {
			n = 2
		}
		rest = rest[min(n, len(rest)):]
	}
	if len(rest) < 2 || rest[0].is("monitor", "help") {
		return
	}
	brief := rest[1].is("s") && rest[0].is("a", "addr", "address", "r", "route", "n", "neigh")
	if rest[1].is("exec") && rest[0].is("netns", "vrf") {
		w.find(Approve, "runs in another namespace", joined(args))
		w.inner(rest[min(3, len(rest)):])
	} else if !brief && !(rest[1].exact() && ipShows.has(rest[1].text)) {
		w.find(Approve, "changes the network", joined(args))
	}
}

// unlessShowing allows listing the rules of a firewall.
func unlessShowing(_ *walker, args []arg) Level {
	shows := func(a arg) bool {
		switch {
		case a.is("--list", "--list-rules", "list", "status", "--version", "-V", "--list-all"):
			return true
		case !a.exact() || !a.option() || a.text[1] == '-':
			return false
		}
		return strings.ContainsAny(a.text, "LS") && strings.Trim(a.text, "-LSnvxt46") == ""
	}
	changes := func(a arg) bool {
		return a.is("add", "delete", "flush", "insert", "replace", "create", "destroy", "-f") ||
			a.option() && a.text[1] != '-' && strings.ContainsAny(a.text, "ADIRFXZNPE") ||
			abbreviates(a, "--append", "--delete", "--insert", "--replace", "--flush", "--zero", "--new-chain", "--delete-chain", "--policy", "--rename-chain")
	}
	if slices.ContainsFunc(args[1:], shows) && !slices.ContainsFunc(args[1:], changes) {
		return None
	}
	return Approve
}

// abbreviates reports whether a word is a long option, in full or abbreviated.
func abbreviates(a arg, longs ...string) bool {
	name, _, _ := strings.Cut(a.text, "=")
	return len(name) > 3 && slices.ContainsFunc(longs, func(l string) bool { return strings.HasPrefix(l, name) })
}

func anyAbbreviates(args []arg, longs ...string) bool {
	return slices.ContainsFunc(args, func(a arg) bool { return abbreviates(a, longs...) })
}

// asksIf returns a judge of a command that needs approval if says reports true for its words.
func asksIf(why string, says func(args []arg) bool) func(*walker, []arg) {
	return func(w *walker, args []arg) {
		if says(args) {
			w.find(Approve, why, joined(args))
		}
	}
}

// tells is for programs that show a value unless told to change it:
// it reports whether there are more than this many operands.
func tells(more int) func(args []arg) bool {
	return func(args []arg) bool {
		operands := operandsOnly(args[1:])
		return len(operands) > more && !operands[0].is("get")
	}
}

var dmesgOptions = known("CcDEdeHkLPprSTtuwWxhV", "FfJlns", "")

func clearsLog(args []arg) bool {
	fs, _, _ := dmesgOptions.interspersed(args[1:])
	return has(fs, "c", "C", "D", "E", "n") || anyAbbreviates(args[1:], "--clear", "--read-clear", "--console-off", "--console-on", "--console-level")
}

func cutsJournal(args []arg) bool {
	return withPrefix(args[1:], "--va", "--rot", "--fl", "--relinquish", "--smart-relinquish", "--setup-keys", "--update-catalog")
}

func setsKernel(args []arg) bool {
	sets := func(a arg) bool { return strings.Contains(a.text, "=") && !a.option() }
	return letter(args[1:], "wp", "--write") || anyAbbreviates(args[1:], "--write", "--load", "--system") || slices.ContainsFunc(args[1:], sets)
}

func endsConnections(args []arg) bool {
	return letter(args[1:], "K", "--kill") || anyAbbreviates(args[1:], "--kill")
}
