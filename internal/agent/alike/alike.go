// Package alike tells whether two texts of a session and its rerun say the same but for what
// varies: times, durations, ids, and what differs between two reruns in the same world.
package alike

import (
	"strings"

	"coder/internal/agent/compact"
	"coder/internal/core/lazy"
	"coder/internal/host/patch"
)

// Names are what may differ in any text between a session and its rerun.
var Names = []string{"time", "durations", "paths", "ids"}

const (
	weekday = `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*`
	month   = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`
)

// The expressions for what may differ.
var (
	times = lazy.Regexp(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?` +
		`|\b(?:` + weekday + `,? )?` + month + ` {1,2}\d{1,2},? (?:\d\d:\d\d(?::\d\d)?| ?\d{4})` +
		`(?: [AP]M)?(?: [A-Z]{3,5})?(?: [+-]\d{4})?(?: \d{4})?\b` +
		`|\b(?:` + weekday + `,? )?\d{1,2} ` + month + ` \d{4}(?: \d\d:\d\d(?::\d\d)?)?` +
		`|\b\d\d:\d\d:\d\d(?:\.\d+)?\b` +
		`|\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9}|\.\d+)?\b`)
	durations = lazy.Regexp(`\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?)\b|\b\d+m\d+(?:\.\d+)?s\b|` +
		`\(cached\)|\b(?:\d+|an?) (?:second|minute|hour|day|week|month|year)s? ago\b`)
	listed    = lazy.Regexp(`(?m)^( *)([bcdlps-][rwxsStT-]{9}[.+@]?) +\d+ +(\S+) +(\S+) +(\d+) (.*)$`)
	total     = lazy.Regexp(`(?m)^( *total) \S+(\n *[bcdlps-][rwxsStT-]{9})`)
	dangling  = lazy.Regexp(`(?m)^(?:dangling|unreachable) (?:blob|commit|tree|tag) [0-9a-f]{40,64}\n?`)
	stored    = lazy.Regexp(`\b\d+ objects, \d+ kilobytes\b`) // the copy borrows objects
	tempNames = lazy.Regexp(`/tmp/[\w.+-]*(?:\d{4,}|tmp\.\w{6,})[\w.+-]*`)
	ids       = lazy.Regexp(`\b(task|ui|call|mention|bang|undo|job|hook)_[a-z2-7]{12}\b|` +
		`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|` +
		`\b[0-9a-f]{40}\b|\b[0-9a-f]{7,12}\b|-g[0-9a-f]{7,40}\b|\b[Pp][Ii][Dd]:? ?\d+\b|\bCODER_COMMAND=[\w.-]+`)
)

// dates are the variables by which git dates what a rerun commits.
var dates = lazy.Regexp(`(?m)^GIT_(?:AUTHOR|COMMITTER)_DATE=.*\n`)

// data are folders of coder's own, as a list of files shows them: there are more after each session.
var data = lazy.Regexp(`(?m)^.*\.coder/(?:cache|labels\.json|log|plans|runs|sessions|tmp|undo)(?:/\S*)?$\n?`)

// account are variables of whoever runs a session, as a list of the environment shows them.
var account = lazy.Regexp(`(?m)^(HOME|LOGNAME|PATH|SHELL|USER)=.*$`)

// inColumns are lines with paths, whose columns are as wide as these are long.
var (
	inColumns = lazy.Regexp(`(?m)^.*<(?:workspace|repository|temporary)>.*$`)
	runs      = lazy.Regexp(` {2,}`)
)

// Masked is text without what may differ.
func Masked(text string) string {
	text = dates().ReplaceAllString(text, "")
	text = account().ReplaceAllString(data().ReplaceAllString(text, ""), "$1=<account>")
	text = times().ReplaceAllString(text, "<time>")
	text = durations().ReplaceAllString(text, "<duration>")
	text = total().ReplaceAllString(text, "$1$2")
	text = listed().ReplaceAllStringFunc(text, folders)
	text = tempNames().ReplaceAllString(text, "<temporary>")
	text = inColumns().ReplaceAllStringFunc(text, func(line string) string { return runs().ReplaceAllString(line, " ") })
	text = dangling().ReplaceAllString(stored().ReplaceAllString(text, "<objects>"), "")
	text = oneline().ReplaceAllString(text, "<id> ")
	return ids().ReplaceAllStringFunc(text, func(id string) string {
		described := strings.HasPrefix(id, "-g") // as git describe names a commit
		mixed := described || strings.ContainsAny(id, "0123456789") && strings.ContainsAny(id, "abcdefPp")
		if len(id) <= 12 && !strings.ContainsAny(id, "_=") && !mixed {
			return id // a number, or a word
		}
		return "<id>"
	})
}

// folders is a line of a long listing without how many links there are, how large a
// folder is, and what the one above is like: that is the copy's, not the session's.
func folders(line string) string {
	p := listed().FindStringSubmatch(line)
	switch {
	case strings.HasSuffix(p[6], " .."):
		return p[1] + ".."
	case strings.HasPrefix(p[2], "d"):
		p[5] = "<size>"
	}
	return p[1] + strings.Join(p[2:], " ")
}

// Texts reports whether two texts are the same but for what may differ. An id may
// happen to look like a number: then it stands for one that does not.
func Texts(a, b string) bool {
	a, b = Masked(a), Masked(b)
	if a == b || alikeButCut(a, b) {
		return true
	}
	x, y := digits().FindAllString(a, -1), digits().FindAllString(b, -1)
	if len(x) != len(y) || digits().ReplaceAllString(a, "<id>") != digits().ReplaceAllString(b, "<id>") {
		return false
	}
	for i := range x {
		if x[i] != y[i] && x[i] != "<id>" && y[i] != "<id>" {
			return false
		}
	}
	return true
}

// nearGap is how many lines at a gap may be on one side only.
const nearGap = 36

// alikeButCut reports whether two texts of which parts were left out are the same but for where
// exactly: how much is left out depends on how long the words for durations and paths are.
func alikeButCut(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	gaps := len(compact.Gaps(a))
	return gaps > 1 && gaps == len(compact.Gaps(b)) && addsAtGaps(x, y) && addsAtGaps(y, x)
}

// addsAtGaps reports whether the lines that only b has are few, and stand where a part was left out.
func addsAtGaps(a, b []string) bool {
	added, gap := 0, true
	for i, from := range append(patch.Match(a, b), 0) {
		cut := i < len(b) && len(compact.Gaps(b[i])) > 1
		switch {
		case cut || from < 0:
			gap, added = gap && added > 0 || cut, added+1
		case !gap || added > nearGap:
			return false
		default:
			added = 0
		}
	}
	return true
}

// oneline is a commit in a list of git's whose short id happens to have no letter.
var oneline = lazy.Regexp(`(?m)^\d{7} `)

var digits = lazy.Regexp(`<id>|\b\d{7,12}\b`)

// What stands for that which two texts do not have in common: within a line, and some lines.
// Neither is a character.
const (
	gap   = "\uffff"
	lines = "\ufffe"
)

// common is what two texts from the same world have in common, in order, with a gap wherever
// they differ: within a line, so that what varies stays in it, or else whole lines.
func common(a, b string) string {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	if len(x) != len(y) {
		return between(x, y, lines)
	}
	for i := range x {
		x[i] = between(tokens(x[i]), tokens(y[i]), gap)
	}
	return strings.Join(x, "")
}

// tokens are the words, numbers and signs of a line.
func tokens(line string) []string { return words().FindAllString(line, -1) }

var words = lazy.Regexp(`(?s)[\pL\pN_]+|\s+|.`)

// between is what two lists have in common, in order, with gaps.
func between(a, b []string, gap string) string {
	var all strings.Builder
	next, open := 0, false
	for i, from := range append(patch.Match(a, b), len(a)) {
		if from != next && !open {
			all.WriteString(gap)
			open = true
		}
		if from >= 0 && i < len(b) {
			all.WriteString(b[i])
			next, open = from+1, false
		}
	}
	return all.String()
}

// Explains reports whether a text differs from one rerun's no more than another rerun's does.
func Explains(was, is, again string) bool { return fits(was, common(is, again)) }

// fits reports whether a text is what others have in common, with anything in the gaps. Where
// nothing varied no other text fits.
func fits(text, common string) bool {
	x, y := []string{text}, []string{strings.ReplaceAll(common, lines, gap)}
	if common == y[0] { // what varies stays in its line
		x, y = strings.SplitAfter(text, "\n"), strings.SplitAfter(common, "\n")
	}
	if len(x) != len(y) || !strings.ContainsAny(common, gap+lines) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && !fills(x[i], strings.Split(y[i], gap)) {
			return false
		}
	}
	return true
}

// fills reports whether a text is these parts with anything between them.
func fills(text string, parts []string) bool {
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:max(last, 1)] {
		if ok {
			_, text, ok = strings.Cut(text, part)
		}
	}
	return ok && last > 0 && strings.HasSuffix(text, parts[last])
}
