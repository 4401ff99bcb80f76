package risk

import (
	"slices"
	"strconv"
	"strings"
)

func (w *walker) judgeFind(args []arg) bool {
	var starts []arg
	narrowed, expression := false, false
	for i := 1; i < len(args); i++ {
		a := args[i]
		if !expression && !a.isOption() && !a.isOneOf("(", "!", ")") {
			starts = append(starts, a)
			continue
		}
		expression = expression || !a.isOneOf("-H", "-L", "-P", "-O", "-D")
		switch {
		case a.isOneOf("-delete"):
			level := Approve
			if !narrowed && slices.ContainsFunc(starts, w.isRoot) {
				level = Block
			}
			w.addFinding(level, "matches dangerous command policy (find deletes what it finds)", joinWords(args))
		case a.isOneOf("-exec", "-execdir", "-ok", "-okdir"):
			inner, n := execWords(args[i+1:])
			if i += n; !narrowed && slices.ContainsFunc(starts, w.isRoot) { // the names of all files
				all := slices.Clone(inner)
				for i, a := range all {
					if a.isOneOf("{}") {
						all[i] = arg{text: "/"}
					}
				}
				w.judgeEither(inner, all)
			} else {
				w.judgeEither(inner, markUnknown(inner, "{}"))
			}
		case a.isOneOf("-fprint", "-fprint0", "-fls", "-fprintf") && i+1 < len(args):
			w.judgeWrite(args[i+1], true)
			i++
		case a.isOption() && !a.isOneOf("-print", "-print0", "-depth", "-xdev", "-mount", "-maxdepth", "-mindepth", "-prune"):
			narrowed = true
		}
	}
	if !allLiteral(args) {
		return false
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a.isOneOf("-exec") {
			inner, n := execWords(args[i+1:])
			if i += n; !alwaysReads(inner) {
				return false
			}
		} else if a.isOption() && !findTests.has(a.text) {
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
		if a.isOneOf(";") || a.isOneOf("+") && i > 0 && args[i-1].isOneOf("{}") {
			return args[:i], i + 1
		}
	}
	return args, len(args)
}

// findTests are the words of find that only test.
var findTests = wordList(`-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -type -xtype
	-size -empty -newer -anewer -cnewer -newermt -newerct -newerat -mtime -mmin -atime -amin -ctime -cmin -user -group -uid -gid
	-nouser -nogroup -perm -links -inum -samefile -readable -writable -executable -maxdepth -mindepth -depth -d -xdev -mount
	-prune -print -print0 -printf -ls -quit -and -a -or -o -not -true -false -follow -L -H -P -daystart -fstype -noleaf
	-ignore_readdir_race -warn -nowarn`)

var fdOptions = newOptions("HIusigapltLF01hVq", "deEtSoocjBC",
	"hidden no-ignore case-sensitive ignore-case glob absolute-path list-details follow full-path max-depth= min-depth= exclude= extension= type= size= changed-within= changed-before= color= max-results= print0")

// judgeFd judges fd, which runs a command on its results with -x and -X.
func (w *walker) judgeFd(args []arg) bool {
	for i, a := range args {
		if i > 0 && (a.isOneOf("-x", "-X", "--exec", "--exec-batch") || a.isOption() && !strings.HasPrefix(a.text, "--") &&
			strings.ContainsAny(a.text, "xX")) {
			if i+1 < len(args) {
				w.judgeEither(args[i+1:], withUnknownArgs(markUnknown(args[i+1:], "{")))
			}
			return false
		}
	}
	_, ok := fdOptions.operands(args[1:])
	return ok
}

var xargsOptions = newOptions("0eiloprtx", "adEILnPs",
	"null no-run-if-empty verbose interactive exit open-tty show-limits arg-file= delimiter= eof[= replace[= max-lines[= max-args= max-procs= max-chars= process-slot-var=")

const xargsReads = "0 r t x d I L n P s null no-run-if-empty verbose exit delimiter max-args max-procs max-chars"

// judgeXargs judges xargs, which adds words from its input to a command or inserts them into it. It is
// read-only if the command would be, whatever the words.
func (w *walker) judgeXargs(args []arg) bool {
	fs, rest, ok := xargsOptions.parseLeading(args[1:])
	if !ok {
		w.addUnknown("the command that xargs runs is unknown", joinWords(args))
		rest = dropOptions(rest)
	}
	only := ok && allLiteral(args) && allHarmless(fs, xargsReads) && isBoundedParallel(fs) &&
		(len(rest) == 0 || alwaysReads(rest))
	w.judgeSubshell(func() {
		if len(rest) == 0 {
			return
		}
		for _, f := range fs {
			switch f.name {
			case "I", "i", "replace":
				mark := f.value.text
				if !f.hasValue {
					mark = "{}"
				}
				w.judgeEither(rest, markUnknown(rest, mark))
				return
			}
		}
		w.judgeEither(rest, withUnknownArgs(rest))
	})
	return only
}

// maxParallel is the maximum number of parallel processes for a read-only command.
const maxParallel = 64

// isBoundedParallel reports whether xargs runs at most maxParallel processes: one for each word would be unbounded.
func isBoundedParallel(fs []parsedOption) bool {
	return !slices.ContainsFunc(fs, func(f parsedOption) bool {
		n, err := strconv.Atoi(f.value.text)
		return (f.name == "P" || f.name == "max-procs") && (err != nil || n < 1 || n > maxParallel)
	})
}

// alwaysReads reports whether a command only reads, whatever its words.
func alwaysReads(args []arg) bool {
	return len(args) > 0 && allLiteral(args) && freeReaders.has(programName(args[0].text)) && isSystemProgram(args[0].text)
}

// judgeEither judges a command with two possible forms; the first is the one recorded.
func (w *walker) judgeEither(args, other []arg) {
	at := len(w.report.Simple)
	w.judgeCommand(args)
	n := len(w.report.Simple)
	w.judgeCommand(other)
	w.report.Simple = w.report.Simple[:n]
	if at < n {
		w.report.Simple[at].AddsArgs = true
	}
}

// withUnknownArgs returns a command with more words of unknown value.
func withUnknownArgs(args []arg) []arg {
	return append(slices.Clone(args), arg{text: "…", certainty: vague})
}

// markUnknown marks the words that will contain something unknown.
func markUnknown(args []arg, mark string) []arg {
	as := slices.Clone(args)
	for i, a := range as {
		if mark != "" && strings.Contains(a.text, mark) {
			as[i].certainty = max(a.certainty, vague)
		}
	}
	return as
}
