package risk

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// options are the options of a program, needed to find its operands. A long option with a value ends in "=".
type options struct {
	flags, values string
	long          func() map[string]bool // built on first use
}

func newOptions(flags, values, long string) options {
	return options{flags: flags, values: values, long: sync.OnceValue(func() map[string]bool { return newSet(long) })}
}

// A parsedOption is a parsed option, with its value if it takes one.
type parsedOption struct {
	name     string // without dashes
	value    arg
	hasValue bool
}

// parseNext reads the option at args[0] and returns the number of its words, or 0 for an unknown option.
func (o options) parseNext(args []arg) (fs []parsedOption, n int) {
	a := args[0]
	if !a.isExact() || !a.isOption() {
		return nil, 0
	}
	if long, ok := strings.CutPrefix(a.text, "--"); ok {
		name, value, has := strings.Cut(long, "=")
		var knows map[string]bool // the zero options have none
		if o.long != nil {
			knows = o.long()
		}
		switch {
		case knows[name+"="] && has, knows[name+"[="] && has:
			return []parsedOption{{name, arg{text: value}, true}}, 1
		case knows[name+"="] && len(args) > 1:
			return []parsedOption{{name, args[1], true}}, 2
		case (knows[name] || knows[name+"[="]) && !has:
			return []parsedOption{{name: name}}, 1
		}
		return nil, 0
	}
	// A digit counts as the option "#": some programs accept a number there.
	letters := a.text[1:]
	for i := range len(letters) {
		c := letters[i : i+1]
		rest := letters[i+1:]
		switch {
		case strings.Contains(o.values, c) && rest != "":
			return append(fs, parsedOption{c, arg{text: rest}, true}), 1
		case strings.Contains(o.values, c) && len(args) > 1:
			return append(fs, parsedOption{c, args[1], true}), 2
		case strings.Contains(o.flags, c):
			fs = append(fs, parsedOption{name: c})
		case c >= "0" && c <= "9" && strings.Contains(o.flags, "#"):
			fs = append(fs, parsedOption{name: "#"})
		default:
			return nil, 0
		}
	}
	return fs, 1
}

// parseLeading reads the options before the first operand. It fails at an unknown option.
func (o options) parseLeading(args []arg) (fs []parsedOption, rest []arg, ok bool) {
	for len(args) > 0 {
		if args[0].isOneOf("--") {
			return fs, args[1:], true
		}
		if !args[0].isOption() || args[0].certainty == exact && args[0].text == "-" {
			return fs, args, true
		}
		got, n := o.parseNext(args)
		if n == 0 {
			return fs, args, false
		}
		fs, args = append(fs, got...), args[n:]
	}
	return fs, nil, true
}

func hasOption(fs []parsedOption, names ...string) bool {
	return slices.ContainsFunc(fs, func(f parsedOption) bool { return slices.Contains(names, f.name) })
}

// A wrapper is a program that runs the command in its operands.
type wrapper struct {
	options
	operands          int    // words before the command: a duration, a file
	allowsAssignments bool   // NAME=value may come before the command
	risk              string // why the wrapper itself needs approval
	harmlessOptions   string // options that change nothing themselves; empty if it is never read-only
}

const timeoutReads = "f p v k s foreground preserve-status verbose kill-after signal"

var personality = wrapper{options: newOptions("BFILRSTXZv3", "p", "addr-no-randomize")}

var wrappers = sync.OnceValue(func() map[string]wrapper {
	return map[string]wrapper{
		"nohup":  {},
		"setsid": {options: newOptions("cfw", "", "ctty fork wait")},
		"nice":   {options: newOptions("#", "n", "adjustment="), harmlessOptions: "# n adjustment"},
		"ionice": {options: newOptions("t", "cnpPu", "class= classdata= ignore")},
		"timeout": {options: newOptions("fpv", "ks", "foreground preserve-status verbose kill-after= signal="), operands: 1,
			harmlessOptions: timeoutReads},
		"gtimeout": {options: newOptions("fpv", "ks", "foreground preserve-status verbose kill-after= signal="), operands: 1,
			harmlessOptions: timeoutReads},
		"stdbuf": {options: newOptions("", "ioe", "input= output= error=")},
		"time": {options: newOptions("apvql", "of", "append portability verbose quiet output= format="),
			harmlessOptions: "p v portability verbose"},
		"chrt":    {options: newOptions("abdfiorRmvp", "TPD", "batch fifo idle other rr"), operands: 1},
		"taskset": {options: newOptions("ac", "", "all-tasks cpu-list"), operands: 1},
		"chroot": {options: newOptions("", "", "userspec= groups= skip-chdir"), operands: 1,
			risk: "runs in another root directory"},
		"unshare": {options: newOptions("muinpUCTfrc", "RwSG", "mount uts ipc net pid user fork map-root-user root= wd="),
			risk: "runs in another namespace"},
		"strace": {options: newOptions("fFqvxyTtrcCDikn", "oepsSEuaPbIX", "output= trace= follow-forks")},
		"ltrace": {options: newOptions("fScirtT", "oeplnsu", "output=")},
		"valgrind": {options: newOptions("qv", "",
			"tool[= leak-check[= track-origins[= log-file[= error-exitcode[= quiet show-leak-kinds[=")},
		"unbuffer": {options: newOptions("p", "", "")},
		"fakeroot": {options: newOptions("u", "lisb", "unknown-is-real")},
		"xvfb-run": {options: newOptions("al", "efnpsw", "auto-servernum server-args= server-num=")},
		"sudo": {options: newOptions("ABbEHiKklNnPSsVv", "CcDghpRrTtUu",
			"user= group= preserve-env[= non-interactive login shell set-home stdin chdir= host= prompt= background validate list reset-timestamp"), allowsAssignments: true, risk: "runs as another user"},
		"doas":   {options: newOptions("nsL", "Cu", ""), allowsAssignments: true, risk: "runs as another user"},
		"pkexec": {options: newOptions("", "", "user= disable-internal-agent keep-cwd"), risk: "runs as another user"},
		"run0": {options: newOptions("", "uDg", "user= chdir= group= setenv= unit= property="),
			risk: "runs as another user"},
		"systemd-run": {options: newOptions("tPqGdrS", "puEHM",
			"user scope pty pipe wait quiet collect unit= property= setenv= working-directory= on-active= on-calendar= shell"),
			risk: "runs outside coder's control"},
		"prlimit":          {options: newOptions("", "p", "nofile[= core[= cpu[= as[= nproc[= stack[=")},
		"caffeinate":       {options: newOptions("dimsu", "tw", "")},
		"dbus-run-session": {options: newOptions("", "", "config-file=")},
		"builtin":          {},
		"nocorrect":        {}, "noglob": {},
		"entr":    {options: newOptions("acdnprsxz", "", "")},
		"chronic": {options: newOptions("ev", "", "")},
		"ts":      {options: newOptions("rism", "", "")},
		"busybox": {}, "toybox": {}, "coreutils": {},
		"npx":      {options: newOptions("yq", "p", "yes no-install package= quiet no")},
		"bunx":     {options: newOptions("", "", "bun")},
		"torsocks": {}, "proxychains": {options: newOptions("q", "f", "")},
		"proxychains4": {options: newOptions("q", "f", "")}, "eatmydata": {}, "rlwrap": {},
		"systemd-cat":     {options: newOptions("", "tp", "identifier= priority=")},
		"systemd-inhibit": {options: newOptions("", "", "what= who= why= mode=")},
		"faketime":        {options: newOptions("fm", "", ""), operands: 1},
		"sshpass":         {options: newOptions("ev", "pfdP", "")},
		"gosu":            {operands: 1, risk: "runs as another user"},
		"su-exec":         {operands: 1, risk: "runs as another user"},
		"setpriv":         {risk: "runs with other privileges"}, "nsenter": {options: newOptions("amuinpCUTFe", "tSGrw",
			"target= all"), risk: "runs in another namespace"},
		"direnv":       {operands: 2},
		"linux32":      personality,
		"linux64":      personality,
		"i386":         personality,
		"i486":         personality,
		"i586":         personality,
		"i686":         personality,
		"x86_64":       personality,
		"xcrun":        {options: newOptions("vlnkr", "", "sdk= toolchain= log no-cache kill-cache run verbose")},
		"sandbox-exec": {options: newOptions("", "fnpD", "")},
		"firejail":     {},
		"tsocks":       {},
		"proxychains3": {},
		"ssh-agent":    {options: newOptions("csdDk", "aEOPt", "")},
		"catchsegv":    {},
		"dumb-init":    {options: newOptions("cv", "r", "")},
		"tini":         {options: newOptions("svgw", "pe", "")},
		"numactl": {options: newOptions("al", "CNmip",
			"all localalloc membind= cpunodebind= physcpubind= interleave= preferred=")},
		"chpst":      {options: newOptions("vPV012", "uUbenlmdopfcr/", "")},
		"softlimit":  {options: newOptions("", "macdflmoprstHh", "")},
		"setlock":    {options: newOptions("nNxX", "", ""), operands: 1},
		"cgexec":     {options: newOptions("", "g", "sticky")},
		"hwloc-bind": {operands: 1},
		"choom":      {options: newOptions("", "n", "adjust=")},
		"uclampset":  {options: newOptions("aR", "mM", "")},
		"trickle":    {options: newOptions("s", "duwltLPN", "")},
		"cpulimit":   {options: newOptions("zivb", "lpecm", "")},
		"ifne":       {options: newOptions("n", "", "")},
		"lckdo":      {options: newOptions("wWqse", "", ""), operands: 1},
		"watchexec":  {options: newOptions("rcnpq", "wefid", "restart watch= exts= ignore=")},
		"daemonize":  {options: newOptions("av", "ceopElu", "")},
		"sem":        {options: newOptions("", "j", "wait fg bg jobs= id=")},
	}
})

// judgeWrapped judges the command behind a wrapper. It reports whether the wrapper itself changes nothing.
func (w *walker) judgeWrapped(wrap wrapper, args []arg) bool {
	name := args[0].text
	if wrap.risk != "" {
		w.addFinding(Approve, wrap.risk, joinWords(args))
	}
	fs, rest, ok := wrap.parseLeading(args[1:])
	if !ok {
		w.addUnknown(fmt.Sprintf("the command that %s runs is unknown", plainText(name)), joinWords(args))
		rest = dropOptions(rest)
	}
	before, rest := rest[:min(wrap.operands, len(rest))], rest[min(wrap.operands, len(rest)):]
	for wrap.allowsAssignments && len(rest) > 0 && w.judgePrefix(rest[0]) {
		rest = rest[1:]
	}
	if wrap.harmlessOptions == "" || !ok {
		w.judgeInner(rest)
		return false
	}
	w.judgeSubshell(func() { w.judgeInner(rest) })
	return len(rest) > 0 && allLiteral(before) && allHarmless(fs, wrap.harmlessOptions)
}

// allHarmless reports whether all options are in names, and their values are known.
func allHarmless(fs []parsedOption, names string) bool {
	return !slices.ContainsFunc(fs, func(f parsedOption) bool {
		return !f.value.isExact() || !slices.Contains(strings.Fields(names), f.name)
	})
}

// dropOptions drops everything that looks like an option: a last resort for unknown options.
func dropOptions(args []arg) []arg {
	return slices.DeleteFunc(slices.Clone(args), arg.isOption)
}

// judgePrefix judges a word NAME=value that sets a variable for a command.
func (w *walker) judgePrefix(a arg) bool {
	name, value, ok := strings.Cut(a.text, "=")
	if !ok || name == "" || a.isOption() {
		return false
	}
	w.judgeVariable(name, arg{text: value, certainty: a.certainty})
	return true
}

// judgeInner judges the command of a wrapper. A wrapper without a command runs the words it is fed.
func (w *walker) judgeInner(args []arg) {
	if len(args) > 0 {
		w.judgeCommand(args)
	}
}

// joinWords returns a command's words in one line.
func joinWords(args []arg) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	return strings.Join(texts, " ")
}
