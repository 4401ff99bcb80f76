package risk

import (
	"iter"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// run judges a command by its words, the first of which is its name.
func (w *walker) run(args []arg) {
	if len(args) == 0 {
		w.changes("runs no known command")
		return
	}
	if w.work += perCommand + len(args); w.work > maxWork || w.depth > maxDepth {
		w.unknown("too many commands to be judged", args[0].text)
		return
	}
	w.depth++
	at := w.record(args)
	was := w.standing
	w.behind++
	if !args[0].exact() || !passing.has(base(args[0].text)) {
		w.doubtful++
	}
	defer func() { w.depth, w.standing = w.depth-1, was }()
	if !args[0].exact() || args[0].text == "" {
		w.unknown("the command's name cannot be known in advance", args[0].text)
		return
	}
	name := family(base(args[0].text))
	if asks := asksVersion(args); asks || len(args) == 2 && args[1].is("--help", "--version") {
		if w.report.Simple[at].ReadOnly = asks && !w.switched(); !w.report.Simple[at].ReadOnly {
			w.changes(shortly(args))
		}
		return
	}
	rows := harmful()[name]
	if strings.HasPrefix(name, "clickhouse") {
		rows = harmful()["clickhouse*"]
	}
	for _, h := range rows {
		if h.matches(args[1:]) {
			w.find(Approve, h.why, joined(args))
			break
		}
	}
	if judge := senders()[name]; judge != nil {
		judge(w, args)
	}
	only := false // it may run others, and itself only reads
	if look := lookers()[name]; look != nil {
		only = look(w, args)
	} else if handle := handlers()[name]; handle != nil {
		handle(w, args)
	} else if wrap, ok := wrappers()[name]; ok {
		only = w.wrapped(wrap, args)
	} else {
		w.report.Simple[at].ReadOnly = w.plainCommand(name, args)
		return
	}
	if only = only && properName(args[0].text); !only {
		w.changes(shortly(args))
	}
	w.report.Simple[at].ReadOnly = only
	if len(w.report.Simple) > at+1 {
		w.report.Simple[at].Wraps = true
	}
}

// plainCommand judges a command that probably runs no other, and reports whether it only reads.
func (w *walker) plainCommand(name string, args []arg) bool {
	switch name {
	case "cd", "pushd", "popd":
		if name != "cd" {
			w.changes(shortly(args))
		}
		return w.cd(args) && name == "cd"
	}
	if name == "tee" {
		fs, files, ok := known("aip", "", "append ignore-interrupts output-error[=").interspersed(args[1:])
		if !ok || !properName(args[0].text) {
			w.changes(shortly(args))
		}
		for _, a := range files {
			w.redirected(a, !has(fs, "a", "append"))
		}
		return ok && properName(args[0].text)
	}
	if arithmetic.has(name) {
		for _, a := range args[1:] {
			if w.index(a); !a.exact() {
				w.calculates = true
			}
		}
	}
	w.dangers(name, args)
	if readsOnly(name, args) {
		return true
	}
	w.changes(shortly(args))
	told := operandsOnly(args[1:])
	if slices.ContainsFunc(told[:min(3, len(told))], func(a arg) bool {
		return a.exact() && telling.has(a.text[strings.LastIndexByte(a.text, ':')+1:]) // as in db:drop
	}) {
		w.find(Approve, "its description suggests that it deletes or publishes something", joined(args))
	}
	// The program may run what follows "--" if that is a known command.
	if i := indexOf(args, "--"); i >= 0 && i+1 < len(args) && args[i+1].exact() {
		if name := base(args[i+1].text); named(name) || shells.has(family(name)) || len(harmful()[name]) > 0 {
			w.perhaps(func() { w.run(args[i+1:]) })
		}
	}
	return false
}

// shortly returns a short form of a command: its name and its subcommand.
func shortly(args []arg) string {
	if len(args) > 1 && args[1].exact() && strings.Trim(args[1].text, "abcdefghijklmnopqrstuvwxyz-") == "" {
		return plain(args[0].text + " " + args[1].text)
	}
	return plain(args[0].text)
}

// arithmetic are the builtins that may interpret a word as a variable with an index.
var arithmetic = words("test [ printf read unset wait declare typeset local export readonly let getopts")

func (w *walker) record(args []arg) int {
	c := Command{Exact: true, Args: make([]string, 0, len(args)-1), Word: args[0].text, Place: w.here()}
	if !w.lost && len(w.dirs) == 1 {
		c.Dir = w.dirs[0]
	}
	if args[0].exact() {
		c.Name = args[0].text
	}
	for i, a := range args {
		c.Exact = c.Exact && a.exact()
		if i > 0 {
			c.Args = append(c.Args, a.text)
		}
	}
	w.report.Simple = append(w.report.Simple, c)
	return len(w.report.Simple) - 1
}

// base returns the name of a program without its directory, in
// lower case: on some systems case does not distinguish files.
func base(name string) string {
	if strings.IndexByte(name, '/') >= 0 {
		name = path.Base(name)
	}
	return strings.ToLower(name)
}

// family returns the name of a shell or an interpreter without its version: python for python3.12.
func family(name string) string {
	if shells.has(name) || interpreters.has(name) {
		return name
	}
	short := strings.TrimRight(strings.TrimSuffix(name, ".exe"), "0123456789.-")
	if shells.has(short) || interpreters.has(short) {
		return short
	}
	return name
}

// words is a list of words, separated by white space. It stays text and is not parsed, so that startup
// does not pay for lists that most runs never use.
type words string

// has reports whether a word is in the list.
func (w words) has(word string) bool {
	if word == "" || strings.ContainsAny(word, " \t\n") {
		return false
	}
	for list := string(w); ; {
		i := strings.Index(list, word)
		if i < 0 {
			return false
		}
		end := i + len(word)
		if (i == 0 || isBlank(list[i-1])) && (end == len(list) || isBlank(list[end])) {
			return true
		}
		list = list[end:]
		if list != "" && !isBlank(list[0]) { // skip to the next word
			if i = strings.IndexAny(list, " \t\n"); i < 0 {
				return false
			}
			list = list[i:]
		}
	}
}

// all yields the words in order.
func (w words) all() iter.Seq[string] { return strings.FieldsSeq(string(w)) }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for s := range strings.FieldsSeq(words) {
		m[s] = true
	}
	return m
}

// assign judges an assignment to a variable. Some variables are commands themselves, others affect
// later commands. Alone, an assignment to an ordinary variable changes nothing.
func (w *walker) assign(a *syntax.Assign, alone bool) {
	value := w.word(a.Value)
	w.holds(value)
	w.arithmetic(a.Index)
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			w.arithmetic(e.Index)
			w.holds(w.word(e.Value))
		}
	}
	if a.Name == nil || a.Naked {
		w.changes("it sets variables")
		w.setsAny()
		return
	}
	if a.Append || a.Array != nil || a.Index != nil {
		w.changes("it sets " + a.Name.Value)
	}
	if w.mayRead(value); !alone || value.known == dynamic || !harmlessVariable(a.Name.Value) {
		w.variable(a.Name.Value, value)
	}
}

// sets records that a variable gets a value other than by an assignment.
func (w *walker) sets(name string, value arg) {
	if !harmlessVariable(name) {
		w.variable(name, value)
	}
}

// setsAny records that unknown variables are set.
func (w *walker) setsAny() {
	if !slices.Contains(w.report.Sets, anyVariable) {
		w.report.Sets = append(w.report.Sets, anyVariable)
	}
}

func (w *walker) variable(name string, value arg) {
	if !value.exact() || !reporting.has(name) && !strings.HasPrefix(name, "LC_") {
		w.report.Sets = append(w.report.Sets, name)
	}
	switch {
	case name == "LANG" || strings.HasPrefix(name, "LC_") || name == "NO_COLOR":
		if !value.exact() || strings.ContainsAny(value.text, "/ %") {
			w.changes("it sets " + plain(name))
		}
	case loaders.has(name):
		w.find(Approve, "changes what every program loads", name+"="+value.text)
	case commands.has(name):
		if value.is("cat", "") {
			return
		}
		w.changes("it sets " + plain(name))
		w.line(value)
	case name == "SHELL" && !(value.exact() && shells.has(base(value.text)) && properName(value.text)), makes.has(name) && !onlyHurries(value):
		w.find(Approve, "changes what programs run", name+"="+value.text)
	default:
		w.changes("it sets " + plain(name))
	}
}

// reporting are the variables that only affect a program's output or build target.
var reporting = words("LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI DEBUG VERBOSE LOG_LEVEL NODE_ENV RUST_BACKTRACE RUST_LOG " +
	"PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE GOOS GOARCH CGO_ENABLED")

// loaders are the variables whose value is code that programs load.
var loaders = words("LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV")

// commands are the variables whose value is a command line.
var commands = words("PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF " +
	"GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_ASKPASS GIT_PROXY_COMMAND BROWSER LESSOPEN LESSCLOSE PROMPT_COMMAND")

// harmlessVariable reports whether a loop may use name as a variable without affecting programs.
func harmlessVariable(name string) bool {
	return name != "" && name != "_" && name == strings.ToLower(name) && !strings.HasSuffix(name, "_proxy")
}

// line judges a word that another program runs as a command line. It ignores a word with an unknown value.
func (w *walker) line(a arg) {
	w.changes("makes another program run commands")
	if a.exact() {
		w.doubtful++
		w.inShell(false, func() { w.script(a.text) })
		w.doubtful--
	}
}

// code judges words that a shell runs. An unknown word is never harmless.
func (w *walker) code(as ...arg) {
	var texts []string
	for _, a := range as {
		if !a.exact() {
			w.unknown("runs text that cannot be known in advance", a.text)
			return
		}
		texts = append(texts, a.text)
	}
	w.script(strings.Join(texts, " "))
}

// fed judges a program that runs its input.
func (w *walker) fed(name string) {
	switch w.feed.kind {
	case given:
		w.script(w.feed.text)
	case computed:
		w.unknown("runs text that cannot be known in advance", name)
	case piped, fetched:
		w.unknown("runs the output of another command", name)
	}
}

func anyIs(args []arg, words ...string) bool {
	return slices.ContainsFunc(args, func(a arg) bool { return a.is(words...) })
}
