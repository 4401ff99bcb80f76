package risk

import (
	"slices"
	"strings"
	"sync"

	"coder/internal/core/lazy"
)

// handlers are the programs that run commands in their own way. Each function judges all words. No
// handler is read-only; lookers may be, and report it.
var (
	handlers        func() map[string]func(*walker, []arg)
	readingHandlers func() map[string]func(*walker, []arg) bool
)

func init() { // built on first use: the functions refer back to the tables
	handlers = sync.OnceValue(allHandlers)
	readingHandlers = sync.OnceValue(func() map[string]func(*walker, []arg) bool {
		return map[string]func(*walker, []arg) bool{
			"env": (*walker).judgeEnv, "command": (*walker).judgeCommandBuiltin, "git": (*walker).judgeGit,
			"find": (*walker).judgeFind, "gfind": (*walker).judgeFind, "fd": (*walker).judgeFd, "fdfind": (*walker).judgeFd,
			"xargs": (*walker).judgeXargs, "gxargs": (*walker).judgeXargs,
			"arch": (*walker).judgeArch, "setarch": (*walker).judgeArch,
			"tar": (*walker).judgeTar, "gtar": (*walker).judgeTar, "bsdtar": (*walker).judgeTar,
			"awk": (*walker).judgeAwk, "gawk": (*walker).judgeAwk, "mawk": (*walker).judgeAwk, "nawk": (*walker).judgeAwk,
		}
	})
}

func allHandlers() map[string]func(*walker, []arg) {
	renames := approveIf("changes what a name runs", func(args []arg) bool { // a harmless name, perhaps
		return slices.ContainsFunc(args[1:], func(a arg) bool {
			return !a.isExact() || a.isOption() &&
				strings.ContainsAny(a.text, "pf")
		})
	})
	all := map[string]func(*walker, []arg){
		"parallel": (*walker).judgeParallel,
		"exec":     (*walker).judgeExec, "eval": (*walker).judgeEval, "trap": (*walker).judgeTrap,
		"alias":  (*walker).judgeAlias,
		"source": (*walker).judgeSource, ".": (*walker).judgeSource,
		"mapfile": (*walker).judgeCallback, "readarray": (*walker).judgeCallback, "compgen": (*walker).judgeCallback,
		"complete": (*walker).judgeCallback,
		"bind":     (*walker).judgeCallback, "hash": renames, "enable": renames,
		"su": (*walker).judgeSu, "runuser": (*walker).judgeSu, "sg": (*walker).judgeSu,
		"flock": (*walker).judgeFlock, "script": (*walker).judgeScriptTool, "watch": (*walker).judgeWatch,
		"ssh": (*walker).judgeSSH, "docker": (*walker).judgeContainer, "podman": (*walker).judgeContainer,
		"nerdctl": (*walker).judgeContainer,
		"kubectl": (*walker).judgeContainer, "oc": (*walker).judgeContainer, "lxc": (*walker).judgeContainer,
		"docker-compose": (*walker).judgeContainer,
		"poetry":         (*walker).judgeSubcommand, "pipenv": (*walker).judgeSubcommand, "uv": (*walker).judgeSubcommand,
		"bundle": (*walker).judgeSubcommand,
		"rye":    (*walker).judgeSubcommand, "pdm": (*walker).judgeSubcommand, "hatch": (*walker).judgeSubcommand,
		"mise": (*walker).judgeSubcommand,
		"npm":  (*walker).judgeSubcommand, "pnpm": (*walker).judgeSubcommand, "yarn": (*walker).judgeSubcommand,
		"at": (*walker).judgeAt, "batch": (*walker).judgeAt, "ip": (*walker).judgeIP,
		"vim": (*walker).judgeEditor, "vi": (*walker).judgeEditor, "ex": (*walker).judgeEditor, "view": (*walker).judgeEditor,
		"nvim": (*walker).judgeEditor, "gvim": (*walker).judgeEditor, "vimdiff": (*walker).judgeEditor,
	}
	for name := range shellNames.all() {
		all[name] = (*walker).judgeShell
	}
	for name := range interpreterNames.all() {
		all[name] = (*walker).judgeInterpreter
	}
	return all
}

var (
	shellNames       = wordList("sh bash dash zsh ksh ksh93 mksh ash rbash yash posh fish csh tcsh busybox-sh")
	interpreterNames = wordList("python python2 python3 pypy pypy3 node nodejs deno bun perl ruby php lua luajit tclsh rscript osascript pwsh powershell ipython wish " +
		"julia guile racket elixir groovy jshell jrunscript")
	fetcherNames = wordList("curl wget nc ncat netcat socat ftp aria2c http https")
)

var envOptions = newOptions("i0v", "uCS",
	"ignore-environment null debug unset= chdir= split-string= list-signal-handling block-signal[= default-signal[= ignore-signal[=")

// judgeEnv judges env. Without a command, env prints the environment and only reads.
func (w *walker) judgeEnv(args []arg) bool {
	dirs, lost := w.dirs, w.dirUnknown
	defer func() { w.dirs, w.dirUnknown = dirs, lost }()
	fs, rest, ok := envOptions.parseLeading(args[1:])
	if !ok {
		w.addUnknown("the command that env runs is unknown", joinWords(args))
		rest = dropOptions(rest)
	}
	for _, f := range fs {
		switch f.name {
		case "C", "chdir":
			w.judgeCd([]arg{{}, f.value})
		case "S", "split-string":
			if !f.value.isExact() || strings.ContainsAny(f.value.text, `\'"$#`) {
				w.addUnknown("the command that env runs is unknown", f.value.text)
			}
			var split []arg // rest is a part of args, which must not change
			for word := range strings.FieldsSeq(f.value.text) {
				split = append(split, arg{text: word})
			}
			rest = append(split, rest...)
		}
	}
	for len(rest) > 0 && (rest[0].isOneOf("-") || w.judgePrefix(rest[0])) {
		rest = rest[1:]
	}
	w.judgeInner(rest)
	return len(args) == 1
}

// judgeParallel judges parallel, which runs a command template like a shell.
func (w *walker) judgeParallel(args []arg) {
	rest := args[1:]
	for len(rest) > 0 && rest[0].isOption() {
		if rest[0].isOneOf("-j", "-n", "-N", "-a", "--jobs", "--max-args", "--colsep", "-C", "--delay", "--timeout",
			"--joblog", "--results") {
			rest = rest[min(1, len(rest)-1):]
		}
		rest = rest[1:]
	}
	for i, a := range rest {
		if strings.HasPrefix(a.text, ":::") {
			rest = rest[:i]
			break
		}
	}
	if len(rest) == 0 {
		w.addUnknown("runs commands that cannot be known in advance", joinWords(args))
		return
	}
	if len(rest) == 1 && rest[0].isExact() && strings.ContainsAny(rest[0].text, " \t;|&") {
		w.judgeScript(rest[0].text)
		return
	}
	w.judgeEither(rest, withUnknownArgs(markUnknown(rest, "{")))
}

// judgeCommandBuiltin judges command, which only looks up a name with -v.
func (w *walker) judgeCommandBuiltin(args []arg) bool {
	fs, rest, ok := newOptions("pvV", "", "").parseLeading(args[1:])
	switch {
	case !ok:
		w.addUnknown("the command is unknown", joinWords(args))
	case !hasOption(fs, "v", "V"):
		w.judgeInner(rest)
	default:
		return allLiteral(rest)
	}
	return false
}

func (w *walker) judgeExec(args []arg) {
	_, rest, ok := newOptions("cl", "a", "").parseLeading(args[1:])
	if !ok {
		w.addUnknown("the command is unknown", joinWords(args))
	}
	w.judgeInner(rest)
}

func (w *walker) judgeEval(args []arg) {
	if len(args) > 1 && args[1].isOneOf("--") {
		args = args[1:]
	}
	w.judgeCode(args[1:]...)
}

// judgeTrap judges trap, which runs its first operand later. A list or a reset runs nothing.
func (w *walker) judgeTrap(args []arg) {
	if len(args) > 1 && args[1].isOneOf("--") {
		args = args[1:]
	}
	if len(args) > 2 && !args[1].isOneOf("-", "-l", "-p", "") {
		w.judgeOptional(func() { w.judgeCode(args[1]) })
	}
}

// judgeAlias judges alias, which names a command line that later gets more words.
func (w *walker) judgeAlias(args []arg) {
	for _, a := range args[1:] {
		name, value, ok := strings.Cut(a.text, "=")
		if !ok || name == "" {
			continue
		}
		w.judgeOptional(func() { w.judgeCode(arg{text: value, certainty: a.certainty}) })
		n := len(w.report.Simple)
		w.judgeOptional(func() { w.judgeCode(arg{text: value + ` "$@"`, certainty: a.certainty}) })
		w.report.Simple = w.report.Simple[:n]
	}
}

// judgeCallback judges builtins that run a command for each line or completion.
func (w *walker) judgeCallback(args []arg) {
	lines := programName(args[0].text) == "mapfile" || programName(args[0].text) == "readarray"
	for _, a := range args[1:] {
		if !lines || a.isOption() && strings.Contains(a.text, "C") {
			w.addUnknown("may run commands that cannot be known in advance", joinWords(args))
			return
		}
	}
	for _, a := range args[1:] {
		w.judgeIndex(a)
	}
}

// judgeSource judges source, which runs a project file or its own input.
func (w *walker) judgeSource(args []arg) {
	if len(args) < 2 {
		return
	}
	if isInput(args[1]) {
		w.judgeInput(args[0].text)
	}
	if args[1].certainty == dynamic {
		w.addUnknown("runs a file that cannot be known in advance", joinWords(args))
	}
}

func isInput(a arg) bool { return a.isOneOf("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0") }

var shellOptions = newOptions("abefhiklmnprstuvxBCDEHPcdfIqVX", "oO",
	"login norc noprofile posix verbose restricted debugger rcfile= init-file= no-config private")

// judgeShell judges a shell's text, after -c or on its input. A file is the project's own code.
func (w *walker) judgeShell(args []arg) {
	fs, rest, ok := parseShellFlags(args[1:])
	bash := programName(args[0].text) == "bash"
	switch {
	case !ok:
		w.addUnknown("what the shell runs is unknown", joinWords(args))
		for _, a := range rest {
			w.judgeLine(a)
		}
	case hasOption(fs, "c", "command") && len(rest) > 0:
		w.judgeCertain(func() { w.judgeInShell(bash, func() { w.judgeCode(rest[0]) }) })
	case hasOption(fs, "c"):
		w.addUnknown("what the shell runs is unknown", joinWords(args))
	case len(rest) == 0 || hasOption(fs, "s") || isInput(rest[0]):
		w.judgeInShell(bash, func() { w.judgeInput(args[0].text) })
	case rest[0].certainty == dynamic:
		w.addUnknown("runs a file that cannot be known in advance", joinWords(args))
	}
}

// parseShellFlags reads the options of a shell, where + switches one off.
func parseShellFlags(args []arg) (fs []parsedOption, rest []arg, ok bool) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case a.isOneOf("-", "--"):
			return fs, args[1:], true
		case a.isExact() && len(a.text) > 1 && a.text[0] == '+':
			args = args[min(len(args), 1+strings.Count(strings.ToLower(a.text), "o")):]
		case !a.isOption():
			return fs, args, true
		default:
			got, n := shellOptions.parseNext(args)
			if n == 0 {
				return fs, args, false
			}
			fs, args = append(fs, got...), args[n:]
		}
	}
	return fs, nil, true
}

// judgeInterpreter judges only the source of a program: it does not read the program.
func (w *walker) judgeInterpreter(args []arg) {
	rest := dropOptions(args[1:])
	if w.stdin.kind == stdinFetched && (len(args) == 1 || len(rest) == 0 && anyEquals(args, "-") || len(rest) > 0 &&
		isInput(rest[0])) {
		w.addUnknown("runs the output of another command", joinWords(args))
	}
}

// judgeAt judges at, which runs its input later, unattended.
func (w *walker) judgeAt(args []arg) {
	if !anyEquals(args, "-l", "-r", "-d", "-c", "-q") {
		w.addFinding(Approve, "installs commands that run later", joinWords(args))
		w.judgeInput(args[0].text)
	}
}

// judgeSu judges su, which runs a shell as another user.
func (w *walker) judgeSu(args []arg) {
	w.addFinding(Approve, "runs as another user", joinWords(args))
	for i, a := range args {
		if rest, ok := strings.CutPrefix(a.text, "--command="); ok {
			w.judgeSubshell(func() { w.judgeCode(arg{text: rest, certainty: a.certainty}) })
		} else if i > 0 && a.isOption() && !strings.HasPrefix(a.text, "--") && strings.HasSuffix(a.text, "c") ||
			a.isOneOf("--command") {
			if i+1 < len(args) {
				w.judgeSubshell(func() { w.judgeCode(args[i+1]) })
			}
		} else if a.isOneOf("--") && i+1 < len(args) {
			w.judgeInner(args[i+1:])
		}
	}
	if w.stdin.kind != stdinUnknown {
		w.judgeInput(args[0].text)
	}
}

var flockOptions = newOptions("suxneoF", "wE",
	"shared exclusive unlock nonblock close no-fork timeout= conflict-exit-code=")

func (w *walker) judgeFlock(args []arg) {
	_, rest, ok := flockOptions.parseLeading(args[1:])
	if !ok {
		w.addUnknown("the command that flock runs is unknown", joinWords(args))
	}
	rest = rest[min(1, len(rest)):]
	if len(rest) > 1 && rest[0].isOneOf("-c", "--command") {
		w.judgeSubshell(func() { w.judgeCode(rest[1]) })
		return
	}
	w.judgeInner(rest)
}

func (w *walker) judgeScriptTool(args []arg) {
	fs, rest, ok := newOptions("aefqr", "cEImoOtTB",
		"append quiet return flush force command= log-out= echo=").parseLeading(args[1:])
	if !ok {
		w.addUnknown("the command that script runs is unknown", joinWords(args))
	}
	for _, f := range fs {
		if f.name == "c" || f.name == "command" {
			w.judgeSubshell(func() { w.judgeCode(f.value) })
		}
	}
	w.judgeInner(rest[min(1, len(rest)):])
}

// judgeWatch judges watch, which joins its operands and runs them in a shell.
func (w *walker) judgeWatch(args []arg) {
	_, rest, ok := newOptions("bcegptwx", "nq",
		"beep color errexit chgexit differences[= precise no-title exec interval=").parseLeading(args[1:])
	if !ok {
		w.addUnknown("the command that watch runs is unknown", joinWords(args))
		rest = dropOptions(rest)
	}
	if len(rest) > 0 {
		w.judgeSubshell(func() { w.judgeCode(rest...) })
	}
}

// judgeRemote judges a command on another machine or in a container: the worst harm there needs approval.
func (w *walker) judgeRemote(judge func()) {
	w.remoteDepth++
	w.judgeSubshell(judge)
	w.remoteDepth--
}

func (w *walker) judgeSSH(args []arg) {
	fs, rest, ok := newOptions("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw", "").parseLeading(args[1:])
	for _, f := range fs {
		if key, value, has := strings.Cut(f.value.text, "="); has && f.name == "o" &&
			strings.HasSuffix(strings.ToLower(key), "command") {
			w.judgeLine(arg{text: value, certainty: f.value.certainty})
		}
	}
	if !ok {
		w.addUnknown("what runs on the other machine is unknown", joinWords(args))
	}
	switch {
	case len(rest) > 1:
		w.judgeRemote(func() { w.judgeLine(joinArgs(rest[1:])) })
	case len(rest) == 1 && w.stdin.kind == stdinLiteral:
		w.judgeRemote(func() { w.judgeInput("ssh") })
	}
}

// joinArgs joins words into one that is as certain as the least certain of them.
func joinArgs(args []arg) arg {
	a := arg{text: joinWords(args)}
	for _, b := range args {
		a.certainty = max(a.certainty, b.certainty)
	}
	return a
}

// judgeContainer judges a command run in a container. The command's start is unknown without knowing every
// option, so every word that may be a command counts.
func (w *walker) judgeContainer(args []arg) {
	for i, a := range args[1:] {
		if !a.isOneOf("exec", "run", "shell", "debug") {
			continue
		}
		rest := args[i+2:]
		for j, b := range rest {
			if j > 0 && b.isExact() && (isDangerousName(b.text) || shellNames.has(programName(b.text))) &&
				!rest[j-1].isOneOf("--name", "-v", "-w", "-e", "-u", "--entrypoint") {
				w.judgeRemote(func() { w.judgeCommand(rest[j:]) })
				return
			}
		}
		return
	}
}

// judgeSubcommand judges tools that run a command after "run" or "exec".
func (w *walker) judgeSubcommand(args []arg) {
	for i, a := range args[1:] {
		if a.isOption() {
			continue
		}
		rest := args[i+2:]
		if !a.isOneOf("run", "exec", "x", "dlx") {
			return
		}
		for len(rest) > 0 && rest[0].isOption() {
			rest = rest[1:]
		}
		project := wordList("npm pnpm yarn").has(programName(args[0].text)) && a.isOneOf("run")
		if len(rest) > 0 && !project { // there, "run rm" runs one of the project's own scripts
			w.judgeCommand(rest)
		}
		return
	}
}

// judgeArch judges arch, which runs its operands on macOS, and setarch,
// which always does. Alone it prints the machine type.
func (w *walker) judgeArch(args []arg) bool {
	rest := args[1:]
	for len(rest) > 0 && (rest[0].isOption() || architectures.has(rest[0].text)) {
		if rest[0].isOneOf("-d", "-e", "-arch", "-p") && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	w.judgeInner(rest)
	return len(args) == 1
}

var architectures = wordList("linux32 linux64 i386 i486 i586 i686 athlon x86_64 aarch64 arm64 armv7l armv8l ppc ppc64 ppc64le s390 s390x uname26")

// tarListPattern is the simplest way to list an archive.
var tarListPattern = lazy.Regexp(`^-?[tvzjJ]*t[vzjJ]*f$`)

// judgeTar judges tar, which can pass unpacked files to a command. It is
// read-only only if it lists a local archive without further options.
func (w *walker) judgeTar(args []arg) bool {
	for i, a := range args[1:] {
		for _, option := range []string{"--to-command", "--use-compress-program", "--rsh-command", "--info-script",
			"--new-volume-script", "--checkpoint-action"} {
			value, ok := strings.CutPrefix(a.text, option)
			if !ok {
				continue
			}
			value, ok = strings.CutPrefix(value, "=")
			if !ok && i+2 < len(args) {
				value = args[i+2].text
			}
			w.judgeLine(arg{text: strings.TrimPrefix(value, "exec="), certainty: a.certainty})
		}
		if a.isOneOf("-I", "-F") && i+2 < len(args) {
			w.judgeLine(args[i+2])
		}
		if a.isOneOf("--remove-files") {
			w.addFinding(Approve, "removes files", joinWords(args))
		}
	}
	return len(args) > 2 && tarListPattern().MatchString(args[1].text) && args[1].isExact() && hasOnlyOperands(args[2:]) &&
		!strings.Contains(args[2].text, ":")
}
