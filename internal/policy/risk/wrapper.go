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

func known(flags, values, long string) options {
	return options{flags: flags, values: values, long: sync.OnceValue(func() map[string]bool { return set(long) })}
}

// A found is a parsed option, with its value if it takes one.
type found struct {
	name  string // without dashes
	value arg
	given bool
}

// next reads the option at args[0] and returns the number of its words, or 0 for an unknown option.
func (o options) next(args []arg) (fs []found, n int) {
	a := args[0]
	if !a.exact() || !a.option() {
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
			return []found{{name, arg{text: value}, true}}, 1
		case knows[name+"="] && len(args) > 1:
			return []found{{name, args[1], true}}, 2
		case (knows[name] || knows[name+"[="]) && !has:
			return []found{{name: name}}, 1
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
			return append(fs, found{c, arg{text: rest}, true}), 1
		case strings.Contains(o.values, c) && len(args) > 1:
			return append(fs, found{c, args[1], true}), 2
		case strings.Contains(o.flags, c):
			fs = append(fs, found{name: c})
		case c >= "0" && c <= "9" && strings.Contains(o.flags, "#"):
			fs = append(fs, found{name: "#"})
		default:
			return nil, 0
		}
	}
	return fs, 1
}

// lead reads the options before the first operand. It fails at an unknown option.
func (o options) lead(args []arg) (fs []found, rest []arg, ok bool) {
	for len(args) > 0 {
		if args[0].is("--") {
			return fs, args[1:], true
		}
		if !args[0].option() || args[0].known == exact && args[0].text == "-" {
			return fs, args, true
		}
		got, n := o.next(args)
		if n == 0 {
			return fs, args, false
		}
		fs, args = append(fs, got...), args[n:]
	}
	return fs, nil, true
}

func has(fs []found, names ...string) bool {
	return slices.ContainsFunc(fs, func(f found) bool { return slices.Contains(names, f.name) })
}

// A wrapper is a program that runs the command in its operands.
type wrapper struct {
	options
	operands int    // words before the command: a duration, a file
	assigns  bool   // NAME=value may come before the command
	risk     string // why the wrapper itself needs approval
	reads    string // options that change nothing themselves; empty if it is never read-only
}

const timeoutReads = "f p v k s foreground preserve-status verbose kill-after signal"

var personality = wrapper{options: known("BFILRSTXZv3", "p", "addr-no-randomize")}

var wrappers = sync.OnceValue(func() map[string]wrapper {
	return map[string]wrapper{
		"nohup":    {},
		"setsid":   {options: known("cfw", "", "ctty fork wait")},
		"nice":     {options: known("#", "n", "adjustment="), reads: "# n adjustment"},
		"ionice":   {options: known("t", "cnpPu", "class= classdata= ignore")},
		"timeout":  {options: known("fpv", "ks", "foreground preserve-status verbose kill-after= signal="), operands: 1, reads: timeoutReads},
		"gtimeout": {options: known("fpv", "ks", "foreground preserve-status verbose kill-after= signal="), operands: 1, reads: timeoutReads},
		"stdbuf":   {options: known("", "ioe", "input= output= error=")},
		"time":     {options: known("apvql", "of", "append portability verbose quiet output= format="), reads: "p v portability verbose"},
		"chrt":     {options: known("abdfiorRmvp", "TPD", "batch fifo idle other rr"), operands: 1},
		"taskset":  {options: known("ac", "", "all-tasks cpu-list"), operands: 1},
		"chroot":   {options: known("", "", "userspec= groups= skip-chdir"), operands: 1, risk: "runs in another root directory"},
		"unshare":  {options: known("muinpUCTfrc", "RwSG", "mount uts ipc net pid user fork map-root-user root= wd="), risk: "runs in another namespace"},
		"strace":   {options: known("fFqvxyTtrcCDikn", "oepsSEuaPbIX", "output= trace= follow-forks")},
		"ltrace":   {options: known("fScirtT", "oeplnsu", "output=")},
		"valgrind": {options: known("qv", "", "tool[= leak-check[= track-origins[= log-file[= error-exitcode[= quiet show-leak-kinds[=")},
		"unbuffer": {options: known("p", "", "")},
		"fakeroot": {options: known("u", "lisb", "unknown-is-real")},
		"xvfb-run": {options: known("al", "efnpsw", "auto-servernum server-args= server-num=")},
		"sudo":     {options: known("ABbEHiKklNnPSsVv", "CcDghpRrTtUu", "user= group= preserve-env[= non-interactive login shell set-home stdin chdir= host= prompt= background validate list reset-timestamp"), assigns: true, risk: "runs as another user"},
		"doas":     {options: known("nsL", "Cu", ""), assigns: true, risk: "runs as another user"},
		"pkexec":   {options: known("", "", "user= disable-internal-agent keep-cwd"), risk: "runs as another user"},
		"run0":     {options: known("", "uDg", "user= chdir= group= setenv= unit= property="), risk: "runs as another user"},
		"systemd-run": {options: known("tPqGdrS", "puEHM", "user scope pty pipe wait quiet collect unit= property= setenv= working-directory= on-active= on-calendar= shell"),
			risk: "runs outside coder's control"},
		"prlimit":          {options: known("", "p", "nofile[= core[= cpu[= as[= nproc[= stack[=")},
		"caffeinate":       {options: known("dimsu", "tw", "")},
		"dbus-run-session": {options: known("", "", "config-file=")},
		"builtin":          {},
		"nocorrect":        {}, "noglob": {},
		"entr":    {options: known("acdnprsxz", "", "")},
		"chronic": {options: known("ev", "", "")},
		"ts":      {options: known("rism", "", "")},
		"busybox": {}, "toybox": {}, "coreutils": {},
		"npx":      {options: known("yq", "p", "yes no-install package= quiet no")},
		"bunx":     {options: known("", "", "bun")},
		"torsocks": {}, "proxychains": {options: known("q", "f", "")}, "proxychains4": {options: known("q", "f", "")}, "eatmydata": {}, "rlwrap": {},
		"systemd-cat": {options: known("", "tp", "identifier= priority=")}, "systemd-inhibit": {options: known("", "", "what= who= why= mode=")},
		"faketime": {options: known("fm", "", ""), operands: 1}, "sshpass": {options: known("ev", "pfdP", "")},
		"gosu": {operands: 1, risk: "runs as another user"}, "su-exec": {operands: 1, risk: "runs as another user"},
		"setpriv": {risk: "runs with other privileges"}, "nsenter": {options: known("amuinpCUTFe", "tSGrw", "target= all"), risk: "runs in another namespace"},
		"direnv":       {operands: 2},
		"linux32":      personality,
		"linux64":      personality,
		"i386":         personality,
		"i486":         personality,
		"i586":         personality,
		"i686":         personality,
		"x86_64":       personality,
		"xcrun":        {options: known("vlnkr", "", "sdk= toolchain= log no-cache kill-cache run verbose")},
		"sandbox-exec": {options: known("", "fnpD", "")},
		"firejail":     {},
		"tsocks":       {},
		"proxychains3": {},
		"ssh-agent":    {options: known("csdDk", "aEOPt", "")},
		"catchsegv":    {},
		"dumb-init":    {options: known("cv", "r", "")},
		"tini":         {options: known("svgw", "pe", "")},
		"numactl":      {options: known("al", "CNmip", "all localalloc membind= cpunodebind= physcpubind= interleave= preferred=")},
		"chpst":        {options: known("vPV012", "uUbenlmdopfcr/", "")},
		"softlimit":    {options: known("", "macdflmoprstHh", "")},
		"setlock":      {options: known("nNxX", "", ""), operands: 1},
		"cgexec":       {options: known("", "g", "sticky")},
		"hwloc-bind":   {operands: 1},
		"choom":        {options: known("", "n", "adjust=")},
		"uclampset":    {options: known("aR", "mM", "")},
		"trickle":      {options: known("s", "duwltLPN", "")},
		"cpulimit":     {options: known("zivb", "lpecm", "")},
		"ifne":         {options: known("n", "", "")},
		"lckdo":        {options: known("wWqse", "", ""), operands: 1},
		"watchexec":    {options: known("rcnpq", "wefid", "restart watch= exts= ignore=")},
		"daemonize":    {options: known("av", "ceopElu", "")},
		"sem":          {options: known("", "j", "wait fg bg jobs= id=")},
	}
})

// wrapped judges the command behind a wrapper. It reports whether the wrapper itself changes nothing.
func (w *walker) wrapped(wrap wrapper, args []arg) bool {
	name := args[0].text
	if wrap.risk != "" {
		w.find(Approve, wrap.risk, joined(args))
	}
	fs, rest, ok := wrap.lead(args[1:])
	if !ok {
		w.unknown(fmt.Sprintf("the command that %s runs is unknown", plain(name)), joined(args))
		rest = operandsOnly(rest)
	}
	before, rest := rest[:min(wrap.operands, len(rest))], rest[min(wrap.operands, len(rest)):]
	for wrap.assigns && len(rest) > 0 && w.prefix(rest[0]) {
		rest = rest[1:]
	}
	if wrap.reads == "" || !ok {
		w.inner(rest)
		return false
	}
	w.apart(func() { w.inner(rest) })
	return len(rest) > 0 && literals(before) && harmless(fs, wrap.reads)
}

// harmless reports whether all options are in names, and their values are known.
func harmless(fs []found, names string) bool {
	return !slices.ContainsFunc(fs, func(f found) bool {
		return !f.value.exact() || !slices.Contains(strings.Fields(names), f.name)
	})
}

// operandsOnly drops everything that looks like an option: a last resort for unknown options.
func operandsOnly(args []arg) []arg {
	return slices.DeleteFunc(slices.Clone(args), arg.option)
}

// prefix judges a word NAME=value that sets a variable for a command.
func (w *walker) prefix(a arg) bool {
	name, value, ok := strings.Cut(a.text, "=")
	if !ok || name == "" || a.option() {
		return false
	}
	w.variable(name, arg{text: value, known: a.known})
	return true
}

// inner judges the command of a wrapper. A wrapper without a command runs the words it is fed.
func (w *walker) inner(args []arg) {
	if len(args) > 0 {
		w.run(args)
	}
}

// joined returns a command's words in one line.
func joined(args []arg) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	return strings.Join(texts, " ")
}
