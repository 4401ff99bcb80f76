package risk

import (
	"slices"
	"strconv"
	"strings"
)

func (w *walker) findFiles(args []arg) bool {
	var starts []arg
	narrowed, expression := false, false
	for i := 1; i < len(args); i++ {
		a := args[i]
		if !expression && !a.option() && !a.is("(", "!", ")") {
			starts = append(starts, a)
			continue
		}
		expression = expression || !a.is("-H", "-L", "-P", "-O", "-D")
		switch {
		case a.is("-delete"):
			level := Approve
			if !narrowed && slices.ContainsFunc(starts, w.isRoot) {
				level = Block
			}
			w.find(level, "matches dangerous command policy (find deletes what it finds)", joined(args))
		case a.is("-exec", "-execdir", "-ok", "-okdir"):
			inner, n := execWords(args[i+1:])
			if i += n; !narrowed && slices.ContainsFunc(starts, w.isRoot) { // the names of all files
				all := slices.Clone(inner)
				for i, a := range all {
					if a.is("{}") {
						all[i] = arg{text: "/"}
					}
				}
				w.either(inner, all)
			} else {
				w.either(inner, filled(inner, "{}"))
			}
		case a.is("-fprint", "-fprint0", "-fls", "-fprintf") && i+1 < len(args):
			w.writes(args[i+1], true)
			i++
		case a.option() && !a.is("-print", "-print0", "-depth", "-xdev", "-mount", "-maxdepth", "-mindepth", "-prune"):
			narrowed = true
		}
	}
	if !literals(args) {
		return false
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a.is("-exec") {
			inner, n := execWords(args[i+1:])
			if i += n; !readsAnything(inner) {
				return false
			}
		} else if a.option() && !findTests.has(a.text) {
			// A minus sign before a number, perhaps with a unit, means "less than".
			if n := strings.TrimRight(a.text[1:], "bcwkMGT"); n == "" || strings.Trim(n, "0123456789") != "" {
				return false
			}
		}
	}
	return true
}

// execWords returns the words up to the ; or + that ends them.
func execWords(args []arg) (inner []arg, n int) {
	for i, a := range args {
		if a.is(";") || a.is("+") && i > 0 && args[i-1].is("{}") {
			return args[:i], i + 1
		}
	}
	return args, len(args)
}

// findTests are the words of find that only test.
var findTests = words(`-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -type -xtype
	-size -empty -newer -anewer -cnewer -newermt -newerct -newerat -mtime -mmin -atime -amin -ctime -cmin -user -group -uid -gid
	-nouser -nogroup -perm -links -inum -samefile -readable -writable -executable -maxdepth -mindepth -depth -d -xdev -mount
	-prune -print -print0 -printf -ls -quit -and -a -or -o -not -true -false -follow -L -H -P -daystart -fstype -noleaf
	-ignore_readdir_race -warn -nowarn`)

var fdOptions = known("HIusigapltLF01hVq", "deEtSoocjBC", "hidden no-ignore case-sensitive ignore-case glob absolute-path list-details follow full-path max-depth= min-depth= exclude= extension= type= size= changed-within= changed-before= color= max-results= print0")

// fd judges fd, which runs a command on its results with -x and -X.
func (w *walker) fd(args []arg) bool {
	for i, a := range args {
		if i > 0 && (a.is("-x", "-X", "--exec", "--exec-batch") || a.option() && !strings.HasPrefix(a.text, "--") && strings.ContainsAny(a.text, "xX")) {
			if i+1 < len(args) {
				w.either(args[i+1:], withMore(filled(args[i+1:], "{")))
			}
			return false
		}
	}
	_, ok := fdOptions.operands(args[1:])
	return ok
}

var xargsOptions = known("0eiloprtx", "adEILnPs", "null no-run-if-empty verbose interactive exit open-tty show-limits arg-file= delimiter= eof[= replace[= max-lines[= max-args= max-procs= max-chars= process-slot-var=")

const xargsReads = "0 r t x d I L n P s null no-run-if-empty verbose exit delimiter max-args max-procs max-chars"

// xargs judges xargs, which adds words from its input to a command or inserts them into it. It is
// read-only if the command would be, whatever the words.
func (w *walker) xargs(args []arg) bool {
	fs, rest, ok := xargsOptions.lead(args[1:])
	if !ok {
		w.unknown("the command that xargs runs is unknown", joined(args))
		rest = operandsOnly(rest)
	}
	only := ok && literals(args) && harmless(fs, xargsReads) && fewAtOnce(fs) && (len(rest) == 0 || readsAnything(rest))
	w.apart(func() {
		if len(rest) == 0 {
			return
		}
		for _, f := range fs {
			switch f.name {
			case "I", "i", "replace":
				mark := f.value.text
				if !f.given {
					mark = "{}"
				}
				w.either(rest, filled(rest, mark))
				return
			}
		}
		w.either(rest, withMore(rest))
	})
	return only
}

// mostAtOnce is the maximum number of parallel processes for a read-only command.
const mostAtOnce = 64

// fewAtOnce reports whether xargs runs at most mostAtOnce processes: one for each word would be unbounded.
func fewAtOnce(fs []found) bool {
	return !slices.ContainsFunc(fs, func(f found) bool {
		n, err := strconv.Atoi(f.value.text)
		return (f.name == "P" || f.name == "max-procs") && (err != nil || n < 1 || n > mostAtOnce)
	})
}

// readsAnything reports whether a command only reads, whatever its words.
func readsAnything(args []arg) bool {
	return len(args) > 0 && literals(args) && free.has(base(args[0].text)) && properName(args[0].text)
}

// either judges a command with two possible forms; the first is the one recorded.
func (w *walker) either(args, other []arg) {
	at := len(w.report.Simple)
	w.run(args)
	n := len(w.report.Simple)
	w.run(other)
	w.report.Simple = w.report.Simple[:n]
	if at < n {
		w.report.Simple[at].Fed = true
	}
}

// withMore returns a command with more words of unknown value.
func withMore(args []arg) []arg { return append(slices.Clone(args), arg{text: "…", known: vague}) }

// filled marks the words that will contain something unknown.
func filled(args []arg, mark string) []arg {
	as := slices.Clone(args)
	for i, a := range as {
		if mark != "" && strings.Contains(a.text, mark) {
			as[i].known = max(a.known, vague)
		}
	}
	return as
}
