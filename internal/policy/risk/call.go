package risk

import (
	"iter"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// judgeCommand judges a command by its words, the first of which is its name.
func (w *walker) judgeCommand(args []arg) {
	if len(args) == 0 {
		w.recordEffect("runs no known command")
		return
	}
	if w.work += commandCost + len(args); w.work > maxWork || w.depth > maxDepth {
		w.addUnknown("too many commands to be judged", args[0].text)
		return
	}
	w.depth++
	at := w.recordCommand(args)
	was := w.walkPosition
	w.starters++
	if !args[0].isExact() || !passThrough.has(programName(args[0].text)) {
		w.uncertain++
	}
	defer func() { w.depth, w.walkPosition = w.depth-1, was }()
	if !args[0].isExact() || args[0].text == "" {
		w.addUnknown("the command's name cannot be known in advance", args[0].text)
		return
	}
	name := programFamily(programName(args[0].text))
	if asks := isVersionQuery(args); asks || len(args) == 2 && args[1].isOneOf("--help", "--version") {
		if w.report.Simple[at].ReadOnly = asks && !w.hasVersionManagerFile(); !w.report.Simple[at].ReadOnly {
			w.recordEffect(shortForm(args))
		}
		return
	}
	rows := harmsByProgram()[name]
	if strings.HasPrefix(name, "clickhouse") {
		rows = harmsByProgram()["clickhouse*"]
	}
	for _, h := range rows {
		if h.matches(args[1:]) {
			w.addFinding(Approve, h.reason, joinWords(args))
			break
		}
	}
	if judge := senderHandlers()[name]; judge != nil {
		judge(w, args)
	}
	only := false // it may run others, and itself only reads
	if look := readingHandlers()[name]; look != nil {
		only = look(w, args)
	} else if handle := handlers()[name]; handle != nil {
		handle(w, args)
	} else if wrap, ok := wrappers()[name]; ok {
		only = w.judgeWrapped(wrap, args)
	} else {
		w.report.Simple[at].ReadOnly = w.judgePlain(name, args)
		return
	}
	if only = only && isSystemProgram(args[0].text); !only {
		w.recordEffect(shortForm(args))
	}
	w.report.Simple[at].ReadOnly = only
	if len(w.report.Simple) > at+1 {
		w.report.Simple[at].IsWrapper = true
	}
}

// judgePlain judges a command that probably runs no other, and reports whether it only reads.
func (w *walker) judgePlain(name string, args []arg) bool {
	switch name {
	case "cd", "pushd", "popd":
		if name != "cd" {
			w.recordEffect(shortForm(args))
		}
		return w.judgeCd(args) && name == "cd"
	}
	if name == "tee" {
		fs, files, ok := newOptions("aip", "", "append ignore-interrupts output-error[=").parseInterspersed(args[1:])
		if !ok || !isSystemProgram(args[0].text) {
			w.recordEffect(shortForm(args))
		}
		for _, a := range files {
			w.judgeOutputFile(a, !hasOption(fs, "a", "append"))
		}
		return ok && isSystemProgram(args[0].text)
	}
	if arithmeticBuiltins.has(name) {
		for _, a := range args[1:] {
			if w.judgeIndex(a); !a.isExact() {
				w.evaluatesVars = true
			}
		}
	}
	w.judgeDangers(name, args)
	if readsOnly(name, args) {
		return true
	}
	w.recordEffect(shortForm(args))
	told := dropOptions(args[1:])
	if slices.ContainsFunc(told[:min(3, len(told))], func(a arg) bool {
		return a.isExact() && irreversibleWords.has(a.text[strings.LastIndexByte(a.text, ':')+1:]) // as in db:drop
	}) {
		w.addFinding(Approve, "the description suggests that the tool deletes or publishes something", joinWords(args))
	}
	// The program may run what follows "--" if that is a known command.
	if i := indexOf(args, "--"); i >= 0 && i+1 < len(args) && args[i+1].isExact() {
		if name := programName(args[i+1].text); isDangerousName(name) || shellNames.has(programFamily(name)) ||
			len(harmsByProgram()[name]) > 0 {
			w.judgeOptional(func() { w.judgeCommand(args[i+1:]) })
		}
	}
	return false
}

// shortForm returns a short form of a command: its name and its subcommand.
func shortForm(args []arg) string {
	if len(args) > 1 && args[1].isExact() && strings.Trim(args[1].text, "abcdefghijklmnopqrstuvwxyz-") == "" {
		return plainText(args[0].text + " " + args[1].text)
	}
	return plainText(args[0].text)
}

// arithmeticBuiltins are the builtins that may interpret a word as a variable with an index.
var arithmeticBuiltins = wordList("test [ printf read unset wait declare typeset local export readonly let getopts")

func (w *walker) recordCommand(args []arg) int {
	c := Command{Exact: true, Args: make([]string, 0, len(args)-1), Word: args[0].text, Position: w.current()}
	if !w.dirUnknown && len(w.dirs) == 1 {
		c.Dir = w.dirs[0]
	}
	if args[0].isExact() {
		c.Name = args[0].text
	}
	for i, a := range args {
		c.Exact = c.Exact && a.isExact()
		if i > 0 {
			c.Args = append(c.Args, a.text)
		}
	}
	w.report.Simple = append(w.report.Simple, c)
	return len(w.report.Simple) - 1
}

// programName returns the name of a program without its directory, in
// lower case: on some systems case does not distinguish files.
func programName(name string) string {
	if strings.IndexByte(name, '/') >= 0 {
		name = path.Base(name)
	}
	return strings.ToLower(name)
}

// programFamily returns the name of a shell or an interpreter without its version: python for python3.12.
func programFamily(name string) string {
	if shellNames.has(name) || interpreterNames.has(name) {
		return name
	}
	short := strings.TrimRight(strings.TrimSuffix(name, ".exe"), "0123456789.-")
	if shellNames.has(short) || interpreterNames.has(short) {
		return short
	}
	return name
}

// wordList is a list of words, separated by white space. It stays text and is not parsed, so that startup
// does not pay for lists that most runs never use.
type wordList string

// has reports whether a word is in the list.
func (w wordList) has(word string) bool {
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
func (w wordList) all() iter.Seq[string] { return strings.FieldsSeq(string(w)) }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func newSet(words string) map[string]bool {
	m := make(map[string]bool)
	for s := range strings.FieldsSeq(words) {
		m[s] = true
	}
	return m
}

// judgeAssign judges an assignment to a variable. Some variables are commands themselves, others affect
// later commands. Alone, an assignment to an ordinary variable changes nothing.
func (w *walker) judgeAssign(a *syntax.Assign, alone bool) {
	value := w.evalWord(a.Value)
	w.recordValue(value)
	w.judgeArithmetic(a.Index)
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			w.judgeArithmetic(e.Index)
			w.recordValue(w.evalWord(e.Value))
		}
	}
	if a.Name == nil || a.Naked {
		w.recordEffect("it sets variables")
		w.recordUnknownSet()
		return
	}
	if a.Append || a.Array != nil || a.Index != nil {
		w.recordEffect("it sets " + a.Name.Value)
	}
	if w.mayRead(value); !alone || value.certainty == dynamic || !isHarmlessVariable(a.Name.Value) {
		w.judgeVariable(a.Name.Value, value)
	}
}

// recordSet records that a variable gets a value other than by an assignment.
func (w *walker) recordSet(name string, value arg) {
	if !isHarmlessVariable(name) {
		w.judgeVariable(name, value)
	}
}

// recordUnknownSet records that unknown variables are set.
func (w *walker) recordUnknownSet() {
	if !slices.Contains(w.report.SetVars, anyVariable) {
		w.report.SetVars = append(w.report.SetVars, anyVariable)
	}
}

func (w *walker) judgeVariable(name string, value arg) {
	if !value.isExact() || !outputVars.has(name) && !strings.HasPrefix(name, "LC_") {
		w.report.SetVars = append(w.report.SetVars, name)
	}
	switch {
	case name == "LANG" || strings.HasPrefix(name, "LC_") || name == "NO_COLOR":
		if !value.isExact() || strings.ContainsAny(value.text, "/ %") {
			w.recordEffect("it sets " + plainText(name))
		}
	case loaderVars.has(name):
		w.addFinding(Approve, "changes what every program loads", name+"="+value.text)
	case commandVars.has(name):
		if value.isOneOf("cat", "") {
			return
		}
		w.recordEffect("it sets " + plainText(name))
		w.judgeLine(value)
	case name == "SHELL" && !(value.isExact() && shellNames.has(programName(value.text)) && isSystemProgram(value.text)),
		makeVars.has(name) && !affectsOnlySpeed(value):
		w.addFinding(Approve, "changes what programs run", name+"="+value.text)
	default:
		w.recordEffect("it sets " + plainText(name))
	}
}

// outputVars are the variables that only affect a program's output or build target.
var outputVars = wordList("LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI DEBUG VERBOSE LOG_LEVEL NODE_ENV RUST_BACKTRACE RUST_LOG " +
	"PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE GOOS GOARCH CGO_ENABLED")

// loaderVars are the variables whose value is code that programs load.
var loaderVars = wordList("LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV")

// commandVars are the variables whose value is a command line.
var commandVars = wordList("PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF " +
	"GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_ASKPASS GIT_PROXY_COMMAND BROWSER LESSOPEN LESSCLOSE PROMPT_COMMAND")

// isHarmlessVariable reports whether a loop may use name as a variable without affecting programs.
func isHarmlessVariable(name string) bool {
	return name != "" && name != "_" && name == strings.ToLower(name) && !strings.HasSuffix(name, "_proxy")
}

// judgeLine judges a word that another program runs as a command line. It ignores a word with an unknown value.
func (w *walker) judgeLine(a arg) {
	w.recordEffect("makes another program run commands")
	if a.isExact() {
		w.uncertain++
		w.judgeInShell(false, func() { w.judgeScript(a.text) })
		w.uncertain--
	}
}

// judgeCode judges words that a shell runs. An unknown word is never harmless.
func (w *walker) judgeCode(as ...arg) {
	var texts []string
	for _, a := range as {
		if !a.isExact() {
			w.addUnknown("runs text that cannot be known in advance", a.text)
			return
		}
		texts = append(texts, a.text)
	}
	w.judgeScript(strings.Join(texts, " "))
}

// judgeInput judges a program that runs its input.
func (w *walker) judgeInput(name string) {
	switch w.stdin.kind {
	case stdinLiteral:
		w.judgeScript(w.stdin.text)
	case stdinComputed:
		w.addUnknown("runs text that cannot be known in advance", name)
	case stdinPiped, stdinFetched:
		w.addUnknown("runs the output of another command", name)
	}
}

func anyEquals(args []arg, words ...string) bool {
	return slices.ContainsFunc(args, func(a arg) bool { return a.isOneOf(words...) })
}
