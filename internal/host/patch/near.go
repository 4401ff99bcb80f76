package patch

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	nearLines      = 8      // expected lines to compare
	nearWidth      = 200    // bytes per line to compare
	nearSearch     = 50_000 // lines of a file to search
	minSimilarity  = 0.5    // minimum similarity worth showing
	minDistinctive = 4      // letters and digits that make a line distinctive
)

// Nearest finds the lines of a file most similar to lines that are not in it: the first line, their
// number, and the difference if it is identifiable. It returns n = 0 if none is similar.
func Nearest(lines, wanted []string) (at, n int, why string) {
	lines = lines[:min(len(lines), nearSearch)]
	wanted, why = findMiswritten(lines, wanted)
	all := wanted
	wanted = wanted[:min(len(wanted), nearLines)]
	want, have := make([]string, len(wanted)), make([]string, len(lines))
	for i, w := range wanted {
		want[i] = normalizeLine(w)
	}
	for i, l := range lines {
		have[i] = normalizeLine(l)
	}
	best := 0.0 // one point per line that equals ignoring case and surrounding space
	for i := range have {
		score := 0.0
		for j, w := range want[:min(len(want), len(have)-i)] {
			score += similarity(have[i+j], w)
		}
		if score > best {
			at, best = i, score
		}
	}
	if best < minSimilarity*float64(len(wanted)) {
		if at = findByLandmark(lines, wanted); at < 0 {
			return 0, 0, ""
		}
	}
	if n = min(len(wanted), len(lines)-at); why == "" {
		why = explainMismatch(lines[at:at+n], wanted, all)
	}
	return at, n, why
}

// findByLandmark returns where the longest wanted line found in the file places them, or -1.
func findByLandmark(lines, wanted []string) (at int) {
	at, longest := -1, ""
	for i, w := range wanted {
		w = strings.TrimSpace(w)
		others := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return -1
			}
			return r
		}, w)
		if len(w)-len(others) < minDistinctive || len(w) <= len(longest) {
			continue
		}
		if j := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) == w }); j >= 0 {
			at, longest = max(j-i, 0), w
		}
	}
	return at
}

func normalizeLine(line string) string {
	line = strings.TrimSpace(line)
	if len(line) > nearWidth {
		line = strings.ToValidUTF8(line[:nearWidth], "")
	}
	return strings.ToLower(strings.Map(PlainForm, line))
}

// similarity compares two lines by their common prefix and suffix, from 0 to 1.
func similarity(a, b string) float64 {
	if a == b {
		return 1
	}
	short, head, tail := min(len(a), len(b)), 0, 0
	for head < short && a[head] == b[head] {
		head++
	}
	for tail < short-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return 0.99 * float64(head+tail) / float64(max(len(a), len(b)))
}

// findMiswritten returns the wanted lines as in the file, if they differ only in how they were written down,
// and what is wrong.
func findMiswritten(lines, wanted []string) ([]string, string) {
	given := strings.Join(wanted, "\n")
	text := strings.Join(lines, "\n")
	without := func(expr string) func(string) string {
		return func(s string) string { return regexp.MustCompile(expr).ReplaceAllString(s, "") }
	}
	for _, way := range []struct {
		read func(string) string
		why  string
	}{
		{unescape.Replace, `line breaks, tabs, quotes or backslashes are written with a backslash before them: give them as they are`},
		{html.UnescapeString, "characters such as < and & are written as &lt; and &amp;: give them as they are"},
		{without(`(?m)^ *\d+(?:\t|→|: ?|\| ?)`),
			"the lines begin with their numbers, which are not in the file: leave them out"},
		{without("(?m)^```.*\n?"), "the lines with ``` around it are not in the file: leave them out"},
	} {
		if read := strings.Trim(way.read(given), "\n"); read != strings.Trim(given, "\n") && read != "" &&
			strings.Contains(text, read) {
			return strings.Split(read, "\n"), way.why
		}
	}
	return wanted, ""
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, `'`, "\\`", "`")

// explainMismatch says why similar lines are not the wanted ones.
func explainMismatch(have, wanted, all []string) string {
	for _, given := range all {
		line := strings.Trim(given, " \t/*#<>!-;{}")
		if line == "..." || line == "…" || strings.HasPrefix(line, "... ") &&
			(strings.HasSuffix(line, "...") || strings.Contains(line, "existing") || strings.Contains(line, "rest of")) {
			return fmt.Sprintf("%q leaves lines out: give them all, or only a part without a gap", strings.TrimSpace(given))
		}
	}
	space := len(have) == len(wanted)
	for i := range min(len(have), len(wanted)) {
		h, w := strings.TrimSpace(have[i]), strings.TrimSpace(wanted[i])
		if why := firstDifference(h, w); why != "" {
			return why
		}
		space = space && h == w
	}
	if space {
		return "only whitespace differs"
	}
	return ""
}

// firstDifference names the first differing character of two lines, if it is invisible or easily overlooked.
func firstDifference(have, given string) string {
	if have != given && strings.EqualFold(have, given) {
		return "letter case differs"
	}
	h, g := []rune(have), []rune(given)
	for i := range min(len(h), len(g)) {
		switch {
		case h[i] == g[i]:
			continue
		case PlainForm(h[i]) == PlainForm(g[i]), isLookalike(h[i]), isLookalike(g[i]):
			return fmt.Sprintf("the file has %q (U+%04X) where %q (U+%04X) was given", h[i], h[i], g[i], g[i])
		}
		return ""
	}
	return ""
}

// isLookalike reports whether a character is easily mistaken for another.
func isLookalike(r rune) bool {
	return r < ' ' || r > unicode.MaxASCII && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Hangul)
}

// PlainForm returns the character that models write in place of a typographic one from an editor. It
// maps one character to one, so that positions in a text and its plain form correspond.
func PlainForm(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '′', '´', 'ʼ':
		return '\''
	case '“', '”', '„', '‟', '″', '«', '»':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return '-'
	case '\u00a0', '\u2007', '\u202f', '\u205f', '\u3000':
		return ' '
	}
	if r >= '\u2000' && r <= '\u200a' { // spaces of all widths
		return ' '
	}
	return r
}
