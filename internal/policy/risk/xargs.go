package risk

import (
	"slices"
	"strconv"
	"strings"
)

var xargsOptions = known("0eiloprtx", "adEILnPs", "null no-run-if-empty verbose interactive exit open-tty show-limits arg-file= delimiter= eof[= replace[= max-lines[= max-args= max-procs= max-chars= process-slot-var=")

const xargsReads = "0 r t x d I L n P s null no-run-if-empty verbose exit delimiter max-args max-procs max-chars"

// xargs adds words from elsewhere to the command, or puts them into it. It only
// reads if no word at all could make the command do more.
func (w *walker) xargs(args []arg) bool {
	fs, rest, ok := xargsOptions.lead(args[1:])
	if !ok {
		w.unknown("the command that xargs runs cannot be told", joined(args))
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

// mostAtOnce is how many processes a command that only reads may have at once.
const mostAtOnce = 64

// fewAtOnce reports whether xargs runs no more at once: as many as there are
// words would be without bound.
func fewAtOnce(fs []found) bool {
	return !slices.ContainsFunc(fs, func(f found) bool {
		n, err := strconv.Atoi(f.value.text)
		return (f.name == "P" || f.name == "max-procs") && (err != nil || n < 1 || n > mostAtOnce)
	})
}

// readsAnything reports whether a command only reads whatever words it gets.
func readsAnything(args []arg) bool {
	return len(args) > 0 && literals(args) && free[base(args[0].text)] && properName(args[0].text)
}

// either judges a command that may be run in two ways; the first is the one it
// is known by.
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

// withMore is a command that gets more words from elsewhere.
func withMore(args []arg) []arg { return append(slices.Clone(args), arg{text: "…", known: vague}) }

// filled marks the words that something unknown is put into.
func filled(args []arg, mark string) []arg {
	as := slices.Clone(args)
	for i, a := range as {
		if mark != "" && strings.Contains(a.text, mark) {
			as[i].known = max(a.known, vague)
		}
	}
	return as
}
