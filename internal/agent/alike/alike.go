// Package alike tells whether two texts of a session and its rerun say the same but for what
// varies: times, durations, ids, and what differs between two reruns in the same world.
package alike

import (
	"strings"

	"coder/internal/agent/compact"
	"coder/internal/core/lazy"
	"coder/internal/host/patch"
)

// VolatileNames are what may differ in any text between a session and its rerun.
var VolatileNames = []string{"time", "durations", "paths", "ids"}

const (
	weekday = `(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*`
	month   = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*`
)

// The expressions for what may differ.
var (
	timePattern = lazy.Regexp(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?` +
		`|\b(?:` + weekday + `,? )?` + month + ` {1,2}\d{1,2},? (?:\d\d:\d\d(?::\d\d)?| ?\d{4})` +
		`(?: [AP]M)?(?: [A-Z]{3,5})?(?: [+-]\d{4})?(?: \d{4})?\b` +
		`|\b(?:` + weekday + `,? )?\d{1,2} ` + month + ` \d{4}(?: \d\d:\d\d(?::\d\d)?)?` +
		`|\b\d\d:\d\d:\d\d(?:\.\d+)?\b` +
		`|\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9}|\.\d+)?\b`)
	durationPattern = lazy.Regexp(`\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?)\b|\b\d+m\d+(?:\.\d+)?s\b|` +
		`\(cached\)|\b(?:\d+|an?) (?:second|minute|hour|day|week|month|year)s? ago\b`)
	listingPattern     = lazy.Regexp(`(?m)^( *)([bcdlps-][rwxsStT-]{9}[.+@]?) +\d+ +(\S+) +(\S+) +(\d+) (.*)$`)
	totalPattern       = lazy.Regexp(`(?m)^( *total) \S+(\n *[bcdlps-][rwxsStT-]{9})`)
	danglingPattern    = lazy.Regexp(`(?m)^(?:dangling|unreachable) (?:blob|commit|tree|tag) [0-9a-f]{40,64}\n?`)
	objectCountPattern = lazy.Regexp(`\b\d+ objects, \d+ kilobytes\b`) // the copy borrows objects
	tempNamePattern    = lazy.Regexp(`/tmp/[\w.+-]*(?:\d{4,}|tmp\.\w{6,})[\w.+-]*`)
	idPattern          = lazy.Regexp(`\b(task|ui|call|mention|bang|undo|job|hook)_[a-z2-7]{12}\b|` +
		`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|` +
		`\b[0-9a-f]{40}\b|\b[0-9a-f]{7,12}\b|-g[0-9a-f]{7,40}\b|\b[Pp][Ii][Dd]:? ?\d+\b|\bCODER_COMMAND=[\w.-]+`)
)

// datePattern are the variables by which git dates what a rerun commits.
var datePattern = lazy.Regexp(`(?m)^GIT_(?:AUTHOR|COMMITTER)_DATE=.*\n`)

// data are folders of coder's own, as a list of files shows them: there are more after each session.
var data = lazy.Regexp(`(?m)^.*\.coder/(?:cache|labels\.json|log|plans|runs|sessions|tmp|undo)(?:/\S*)?$\n?`)

// account matches the lines of an environment that name the user: home, login, path and shell.
var account = lazy.Regexp(`(?m)^(HOME|LOGNAME|PATH|SHELL|USER)=.*$`)

// columnPattern matches lines with paths, whose length sets the width of columns.
var (
	columnPattern   = lazy.Regexp(`(?m)^.*<(?:workspace|repository|temporary)>.*$`)
	spaceRunPattern = lazy.Regexp(` {2,}`)
)

// Mask is text without what may differ.
func Mask(text string) string {
	text = datePattern().ReplaceAllString(text, "")
	text = account().ReplaceAllString(data().ReplaceAllString(text, ""), "$1=<account>")
	text = timePattern().ReplaceAllString(text, "<time>")
	text = durationPattern().ReplaceAllString(text, "<duration>")
	text = totalPattern().ReplaceAllString(text, "$1$2")
	text = listingPattern().ReplaceAllStringFunc(text, maskFolderEntry)
	text = tempNamePattern().ReplaceAllString(text, "<temporary>")
	text = columnPattern().ReplaceAllStringFunc(text,
		func(line string) string { return spaceRunPattern().ReplaceAllString(line, " ") })
	text = danglingPattern().ReplaceAllString(objectCountPattern().ReplaceAllString(text, "<objects>"), "")
	text = onelinePattern().ReplaceAllString(text, "<id> ")
	return idPattern().ReplaceAllStringFunc(text, func(id string) string {
		described := strings.HasPrefix(id, "-g") // as git describe names a commit
		mixed := described || strings.ContainsAny(id, "0123456789") && strings.ContainsAny(id, "abcdefPp")
		if len(id) <= 12 && !strings.ContainsAny(id, "_=") && !mixed {
			return id // a number, or a word
		}
		return "<id>"
	})
}

// maskFolderEntry is a line of a long listing without how many links there are, how large a
// folder is, and what the one above is like: that is the copy's, not the session's.
func maskFolderEntry(line string) string {
	p := listingPattern().FindStringSubmatch(line)
	switch {
	case strings.HasSuffix(p[6], " .."):
		return p[1] + ".."
	case strings.HasPrefix(p[2], "d"):
		p[5] = "<size>"
	}
	return p[1] + strings.Join(p[2:], " ")
}

// Equal reports whether two texts are the same but for what may differ. An id may
// happen to look like a number: then it stands for one that does not.
func Equal(a, b string) bool {
	a, b = Mask(a), Mask(b)
	if a == b || equalExceptCuts(a, b) {
		return true
	}
	x, y := digitPattern().FindAllString(a, -1), digitPattern().FindAllString(b, -1)
	if len(x) != len(y) || digitPattern().ReplaceAllString(a, "<id>") != digitPattern().ReplaceAllString(b, "<id>") {
		return false
	}
	for i := range x {
		if x[i] != y[i] && x[i] != "<id>" && y[i] != "<id>" {
			return false
		}
	}
	return true
}

// maxLinesNearGap is how many lines at a gap may be on one side only.
const maxLinesNearGap = 36

// equalExceptCuts reports whether two texts of which parts were left out are the same but for where
// exactly: how much is left out depends on how long the words for durations and paths are.
func equalExceptCuts(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	gaps := len(compact.SplitAtGaps(a))
	return gaps > 1 && gaps == len(compact.SplitAtGaps(b)) && onlyAddsAtGaps(x, y) && onlyAddsAtGaps(y, x)
}

// onlyAddsAtGaps reports whether the lines that only b has are few, and stand where a part was left out.
func onlyAddsAtGaps(a, b []string) bool {
	added, gap := 0, true
	for i, from := range append(patch.MatchLines(a, b), 0) {
		cut := i < len(b) && len(compact.SplitAtGaps(b[i])) > 1
		switch {
		case cut || from < 0:
			gap, added = gap && added > 0 || cut, added+1
		case !gap || added > maxLinesNearGap:
			return false
		default:
			added = 0
		}
	}
	return true
}

// onelinePattern is a commit in a list of git's whose short id happens to have no letter.
var onelinePattern = lazy.Regexp(`(?m)^\d{7} `)

var digitPattern = lazy.Regexp(`<id>|\b\d{7,12}\b`)

// What stands for that which two texts do not have in common: within a line, and some lines.
// Neither is a character.
const (
	inlineGap = "\uffff"
	linesGap  = "\ufffe"
)

// commonText is what two texts from the same world have in common, in order, with a gap wherever
// they differ: within a line, so that what varies stays in it, or else whole lines.
func commonText(a, b string) string {
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	if len(x) != len(y) {
		return commonItems(x, y, linesGap)
	}
	for i := range x {
		x[i] = commonItems(tokenize(x[i]), tokenize(y[i]), inlineGap)
	}
	return strings.Join(x, "")
}

// tokenize are the words, numbers and signs of a line.
func tokenize(line string) []string { return wordPattern().FindAllString(line, -1) }

var wordPattern = lazy.Regexp(`(?s)[\pL\pN_]+|\s+|.`)

// commonItems is what two lists have in common, in order, with gaps.
func commonItems(a, b []string, gap string) string {
	var all strings.Builder
	next, open := 0, false
	for i, from := range append(patch.MatchLines(a, b), len(a)) {
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

// IsRerunVariation reports whether a text differs from one rerun's no more than another rerun's does.
func IsRerunVariation(was, is, again string) bool { return matchesCommon(was, commonText(is, again)) }

// matchesCommon reports whether a text is what others have in common, with anything in the gaps. Where
// nothing varied no other text fits.
func matchesCommon(text, common string) bool {
	x, y := []string{text}, []string{strings.ReplaceAll(common, linesGap, inlineGap)}
	if common == y[0] { // what varies stays in its line
		x, y = strings.SplitAfter(text, "\n"), strings.SplitAfter(common, "\n")
	}
	if len(x) != len(y) || !strings.ContainsAny(common, inlineGap+linesGap) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && !containsInOrder(x[i], strings.Split(y[i], inlineGap)) {
			return false
		}
	}
	return true
}

// containsInOrder reports whether a text is these parts with anything between them.
func containsInOrder(text string, parts []string) bool {
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:max(last, 1)] {
		if ok {
			_, text, ok = strings.Cut(text, part)
		}
	}
	return ok && last > 0 && strings.HasSuffix(text, parts[last])
}
