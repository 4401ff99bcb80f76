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
	handlers func() map[string]func(*walker, []arg)
	lookers  func() map[string]func(*walker, []arg) bool
)

func init() { // built on first use: the functions refer back to the tables
	handlers = sync.OnceValue(allHandlers)
	lookers = sync.OnceValue(func() map[string]func(*walker, []arg) bool {
		return map[string]func(*walker, []arg) bool{
			"env": (*walker).env, "command": (*walker).commandBuiltin, "git": (*walker).git,
			"find": (*walker).findFiles, "gfind": (*walker).findFiles, "fd": (*walker).fd, "fdfind": (*walker).fd,
			"xargs": (*walker).xargs, "gxargs": (*walker).xargs,
			"arch": (*walker).arch, "setarch": (*walker).arch,
			"tar": (*walker).tar, "gtar": (*walker).tar, "bsdtar": (*walker).tar,
			"awk": (*walker).awk, "gawk": (*walker).awk, "mawk": (*walker).awk, "nawk": (*walker).awk,
		}
	})
}

func allHandlers() map[string]func(*walker, []arg) {
	renames := asksIf("changes what a name runs", func(args []arg) bool { // a harmless name, perhaps
		return slices.ContainsFunc(args[1:], func(a arg) bool { return !a.exact() || a.option() && strings.ContainsAny(a.text, "pf") })
	})
	all := map[string]func(*walker, []arg){
		"parallel": (*walker).parallel,
		"exec":     (*walker).execBuiltin, "eval": (*walker).eval, "trap": (*walker).trap, "alias": (*walker).alias,
		"source": (*walker).source, ".": (*walker).source,
		"mapfile": (*walker).callback, "readarray": (*walker).callback, "compgen": (*walker).callback, "complete": (*walker).callback,
		"bind": (*walker).callback, "hash": renames, "enable": renames,
		"su": (*walker).su, "runuser": (*walker).su, "sg": (*walker).su,
		"flock": (*walker).flock, "script": (*walker).scriptTool, "watch": (*walker).watch,
		"ssh": (*walker).ssh, "docker": (*walker).container, "podman": (*walker).container, "nerdctl": (*walker).container,
		"kubectl": (*walker).container, "oc": (*walker).container, "lxc": (*walker).container, "docker-compose": (*walker).container,
		"poetry": (*walker).subcommand, "pipenv": (*walker).subcommand, "uv": (*walker).subcommand, "bundle": (*walker).subcommand,
		"rye": (*walker).subcommand, "pdm": (*walker).subcommand, "hatch": (*walker).subcommand, "mise": (*walker).subcommand,
		"npm": (*walker).subcommand, "pnpm": (*walker).subcommand, "yarn": (*walker).subcommand,
		"at": (*walker).at, "batch": (*walker).at, "ip": (*walker).ip,
		"vim": (*walker).editor, "vi": (*walker).editor, "ex": (*walker).editor, "view": (*walker).editor,
		"nvim": (*walker).editor, "gvim": (*walker).editor, "vimdiff": (*walker).editor,
	}
	for name := range shells.all() {
		all[name] = (*walker).shell
	}
	for name := range interpreters.all() {
		all[name] = (*walker).interpreter
	}
	return all
}

var (
	shells       = words("sh bash dash zsh ksh ksh93 mksh ash rbash yash posh fish csh tcsh busybox-sh")
	interpreters = words("python python2 python3 pypy pypy3 node nodejs deno bun perl ruby php lua luajit tclsh rscript osascript pwsh powershell ipython wish " +
		"julia guile racket elixir groovy jshell jrunscript")
	fetchers = words("curl wget nc ncat netcat socat ftp aria2c http https")
)

var envOptions = known("i0v", "uCS", "ignore-environment null debug unset= chdir= split-string= list-signal-handling block-signal[= default-signal[= ignore-signal[=")

// env judges env. Without a command, env prints the environment and only reads.
func (w *walker) env(args []arg) bool {
	dirs, lost := w.dirs, w.lost
	defer func() { w.dirs, w.lost = dirs, lost }()
	fs, rest, ok := envOptions.lead(args[1:])
	if !ok {
		w.unknown("the command that env runs is unknown", joined(args))
		rest = operandsOnly(rest)
	}
	for _, f := range fs {
		switch f.name {
		case "C", "chdir":
			w.cd([]arg{{}, f.value})
		case "S", "split-string":
			if !f.value.exact() || strings.ContainsAny(f.value.text, `\'"$#`) {
				w.unknown("the command that env runs is unknown", f.value.text)
			}
			var split []arg // rest is a part of args, which must not change
			for word := range strings.FieldsSeq(f.value.text) {
				split = append(split, arg{text: word})
			}
			rest = append(split, rest...)
		}
	}
	for len(rest) > 0 && (rest[0].is("-") || w.prefix(rest[0])) {
		rest = rest[1:]
	}
	w.inner(rest)
	return len(args) == 1
}

// parallel judges parallel, which runs a command template like a shell.
func (w *walker) parallel(args []arg) {
	rest := args[1:]
	for len(rest) > 0 && rest[0].option() {
		if rest[0].is("-j", "-n", "-N", "-a", "--jobs", "--max-args", "--colsep", "-C", "--delay", "--timeout", "--joblog", "--results") {
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
		w.unknown("runs commands that cannot be known in advance", joined(args))
		return
	}
	if len(rest) == 1 && rest[0].exact() && strings.ContainsAny(rest[0].text, " \t;|&") {
		w.script(rest[0].text)
		return
	}
	w.either(rest, withMore(filled(rest, "{")))
}

// commandBuiltin judges command, which only looks up a name with -v.
func (w *walker) commandBuiltin(args []arg) bool {
	fs, rest, ok := known("pvV", "", "").lead(args[1:])
	switch {
	case !ok:
		w.unknown("the command is unknown", joined(args))
	case !has(fs, "v", "V"):
		w.inner(rest)
	default:
		return literals(rest)
	}
	return false
}

func (w *walker) execBuiltin(args []arg) {
	_, rest, ok := known("cl", "a", "").lead(args[1:])
	if !ok {
		w.unknown("the command is unknown", joined(args))
	}
	w.inner(rest)
}

func (w *walker) eval(args []arg) {
	if len(args) > 1 && args[1].is("--") {
		args = args[1:]
	}
	w.code(args[1:]...)
}

// trap judges trap, which runs its first operand later. A list or a reset runs nothing.
func (w *walker) trap(args []arg) {
	if len(args) > 1 && args[1].is("--") {
		args = args[1:]
	}
	if len(args) > 2 && !args[1].is("-", "-l", "-p", "") {
		w.perhaps(func() { w.code(args[1]) })
	}
}

// alias judges alias, which names a command line that later gets more words.
func (w *walker) alias(args []arg) {
	for _, a := range args[1:] {
		name, value, ok := strings.Cut(a.text, "=")
		if !ok || name == "" {
			continue
		}
		w.perhaps(func() { w.code(arg{text: value, known: a.known}) })
		n := len(w.report.Simple)
		w.perhaps(func() { w.code(arg{text: value + ` "$@"`, known: a.known}) })
		w.report.Simple = w.report.Simple[:n]
	}
}

// callback judges builtins that run a command for each line or completion.
func (w *walker) callback(args []arg) {
	lines := base(args[0].text) == "mapfile" || base(args[0].text) == "readarray"
	for _, a := range args[1:] {
		if !lines || a.option() && strings.Contains(a.text, "C") {
			w.unknown("may run commands that cannot be known in advance", joined(args))
			return
		}
	}
	for _, a := range args[1:] {
		w.index(a)
	}
}

// source judges source, which runs a project file or its own input.
func (w *walker) source(args []arg) {
	if len(args) < 2 {
		return
	}
	if isInput(args[1]) {
		w.fed(args[0].text)
	}
	if args[1].known == dynamic {
		w.unknown("runs a file that cannot be known in advance", joined(args))
	}
}

func isInput(a arg) bool { return a.is("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0") }

var shellOptions = known("abefhiklmnprstuvxBCDEHPcdfIqVX", "oO", "login norc noprofile posix verbose restricted debugger rcfile= init-file= no-config private")

// shell judges a shell's text, after -c or on its input. A file is the project's own code.
func (w *walker) shell(args []arg) {
	fs, rest, ok := shellFlags(args[1:])
	bash := base(args[0].text) == "bash"
	switch {
	case !ok:
		w.unknown("what the shell runs is unknown", joined(args))
		for _, a := range rest {
			w.line(a)
		}
	case has(fs, "c", "command") && len(rest) > 0:
		w.surely(func() { w.inShell(bash, func() { w.code(rest[0]) }) })
	case has(fs, "c"):
		w.unknown("what the shell runs is unknown", joined(args))
	case len(rest) == 0 || has(fs, "s") || isInput(rest[0]):
		w.inShell(bash, func() { w.fed(args[0].text) })
	case rest[0].known == dynamic:
		w.unknown("runs a file that cannot be known in advance", joined(args))
	}
}

// shellFlags reads the options of a shell, where + switches one off.
func shellFlags(args []arg) (fs []found, rest []arg, ok bool) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case a.is("-", "--"):
			return fs, args[1:], true
		case a.exact() && len(a.text) > 1 && a.text[0] == '+':
			args = args[min(len(args), 1+strings.Count(strings.ToLower(a.text), "o")):]
		case !a.option():
			return fs, args, true
		default:
			got, n := shellOptions.next(args)
			if n == 0 {
				return fs, args, false
			}
			fs, args = append(fs, got...), args[n:]
		}
	}
	return fs, nil, true
}

// interpreter judges only the source of a program: it does not read the program.
func (w *walker) interpreter(args []arg) {
	rest := operandsOnly(args[1:])
	if w.feed.kind == fetched && (len(args) == 1 || len(rest) == 0 && anyIs(args, "-") || len(rest) > 0 && isInput(rest[0])) {
		w.unknown("runs the output of another command", joined(args))
	}
}

// at judges at, which runs its input later, unattended.
func (w *walker) at(args []arg) {
	if !anyIs(args, "-l", "-r", "-d", "-c", "-q") {
		w.find(Approve, "installs commands that run later", joined(args))
		w.fed(args[0].text)
	}
}

// su judges su, which runs a shell as another user.
func (w *walker) su(args []arg) {
	w.find(Approve, "runs as another user", joined(args))
	for i, a := range args {
		if rest, ok := strings.CutPrefix(a.text, "--command="); ok {
			w.apart(func() { w.code(arg{text: rest, known: a.known}) })
		} else if i > 0 && a.option() && !strings.HasPrefix(a.text, "--") && strings.HasSuffix(a.text, "c") || a.is("--command") {
			if i+1 < len(args) {
				w.apart(func() { w.code(args[i+1]) })
			}
		} else if a.is("--") && i+1 < len(args) {
			w.inner(args[i+1:])
		}
	}
	if w.feed.kind != nothing {
		w.fed(args[0].text)
	}
}

var flockOptions = known("suxneoF", "wE", "shared exclusive unlock nonblock close no-fork timeout= conflict-exit-code=")

func (w *walker) flock(args []arg) {
	_, rest, ok := flockOptions.lead(args[1:])
	if !ok {
		w.unknown("the command that flock runs is unknown", joined(args))
	}
	rest = rest[min(1, len(rest)):]
	if len(rest) > 1 && rest[0].is("-c", "--command") {
		w.apart(func() { w.code(rest[1]) })
		return
	}
	w.inner(rest)
}

func (w *walker) scriptTool(args []arg) {
	fs, rest, ok := known("aefqr", "cEImoOtTB", "append quiet return flush force command= log-out= echo=").lead(args[1:])
	if !ok {
		w.unknown("the command that script runs is unknown", joined(args))
	}
	for _, f := range fs {
		if f.name == "c" || f.name == "command" {
			w.apart(func() { w.code(f.value) })
		}
	}
	w.inner(rest[min(1, len(rest)):])
}

// watch judges watch, which joins its operands and runs them in a shell.
func (w *walker) watch(args []arg) {
	_, rest, ok := known("bcegptwx", "nq", "beep color errexit chgexit differences[= precise no-title exec interval=").lead(args[1:])
	if !ok {
		w.unknown("the command that watch runs is unknown", joined(args))
		rest = operandsOnly(rest)
	}
	if len(rest) > 0 {
		w.apart(func() { w.code(rest...) })
	}
}

// elsewhere judges a command on another machine or in a container: the worst harm there needs approval.
func (w *walker) elsewhere(judge func()) {
	w.bounded++
	w.apart(judge)
	w.bounded--
}

func (w *walker) ssh(args []arg) {
	fs, rest, ok := known("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw", "").lead(args[1:])
	for _, f := range fs {
		if key, value, has := strings.Cut(f.value.text, "="); has && f.name == "o" && strings.HasSuffix(strings.ToLower(key), "command") {
			w.line(arg{text: value, known: f.value.known})
		}
	}
	if !ok {
		w.unknown("what runs on the other machine is unknown", joined(args))
	}
	switch {
	case len(rest) > 1:
		w.elsewhere(func() { w.line(literalOr(rest[1:])) })
	case len(rest) == 1 && w.feed.kind == given:
		w.elsewhere(func() { w.fed("ssh") })
	}
}

// literalOr joins words into one that is as certain as the least certain of them.
func literalOr(args []arg) arg {
	a := arg{text: joined(args)}
	for _, b := range args {
		a.known = max(a.known, b.known)
	}
	return a
}

// container judges a command run in a container. The command's start is unknown without knowing every
// option, so every word that may be a command counts.
func (w *walker) container(args []arg) {
	for i, a := range args[1:] {
		if !a.is("exec", "run", "shell", "debug") {
			continue
		}
		rest := args[i+2:]
		for j, b := range rest {
			if j > 0 && b.exact() && (named(b.text) || shells.has(base(b.text))) && !rest[j-1].is("--name", "-v", "-w", "-e", "-u", "--entrypoint") {
				w.elsewhere(func() { w.run(rest[j:]) })
				return
			}
		}
		return
	}
}

// subcommand judges tools that run a command after "run" or "exec".
func (w *walker) subcommand(args []arg) {
	for i, a := range args[1:] {
		if a.option() {
			continue
		}
		rest := args[i+2:]
		if !a.is("run", "exec", "x", "dlx") {
			return
		}
		for len(rest) > 0 && rest[0].option() {
			rest = rest[1:]
		}
		project := words("npm pnpm yarn").has(base(args[0].text)) && a.is("run")
		if len(rest) > 0 && !project { // there, "run rm" runs one of the project's own scripts
			w.run(rest)
		}
		return
	}
}

// arch judges arch, which runs its operands on macOS, and setarch,
// which always does. Alone it prints the machine type.
func (w *walker) arch(args []arg) bool {
	rest := args[1:]
	for len(rest) > 0 && (rest[0].option() || architectures.has(rest[0].text)) {
		if rest[0].is("-d", "-e", "-arch", "-p") && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	w.inner(rest)
	return len(args) == 1
}

var architectures = words("linux32 linux64 i386 i486 i586 i686 athlon x86_64 aarch64 arm64 armv7l armv8l ppc ppc64 ppc64le s390 s390x uname26")

// tarLists is the simplest way to list an archive.
var tarLists = lazy.Regexp(`^-?[tvzjJ]*t[vzjJ]*f$`)

// tar judges tar, which can pass unpacked files to a command. It is
// read-only only if it lists a local archive without further options.
func (w *walker) tar(args []arg) bool {
	for i, a := range args[1:] {
		for _, option := range []string{"--to-command", "--use-compress-program", "--rsh-command", "--info-script", "--new-volume-script", "--checkpoint-action"} {
			value, ok := strings.CutPrefix(a.text, option)
			if !ok {
				continue
			}
			value, ok = strings.CutPrefix(value, "=")
			if !ok && i+2 < len(args) {
				value = args[i+2].text
			}
			w.line(arg{text: strings.TrimPrefix(value, "exec="), known: a.known})
		}
		if a.is("-I", "-F") && i+2 < len(args) {
			w.line(args[i+2])
		}
		if a.is("--remove-files") {
			w.find(Approve, "removes files", joined(args))
		}
	}
	return len(args) > 2 && tarLists().MatchString(args[1].text) && args[1].exact() && onlyOperands(args[2:]) && !strings.Contains(args[2].text, ":")
}
