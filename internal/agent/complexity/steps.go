package complexity

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits for Steps.
const (
	maxSteps     = 30
	maxStepRunes = 200
)

// ParseSteps lists the steps that text numbers from 1 or letters from A, one line each, or nil.
func ParseSteps(text string) []string {
	list := longestSequence(findMarkers(text))
	if len(list) < 2 {
		return nil
	}
	var steps []string
	for i, m := range list[:min(len(list), maxSteps)] {
		end := len(text)
		if i+1 < len(list) {
			end = list[i+1].start
		}
		line, _, _ := strings.Cut(strings.TrimSpace(text[m.end:end]), "\n")
		line = strings.Join(strings.Fields(line), " ")
		line = strings.TrimRight(line, " ,;，；、。.(（[【-*")
		if runes := []rune(line); len(runes) > maxStepRunes {
			line = string(runes[:maxStepRunes-1]) + "…"
		}
		if line != "" {
			steps = append(steps, line)
		}
	}
	return steps
}

// marker is a number or letter that begins an item.
type marker struct {
	start, end int  // byte offsets
	ordinal    int  // position, from 1
	isLetter   bool // A, B, C …
}

// longestSequence returns the longest run of marks that counts up from 1 without a gap.
func longestSequence(all []marker) []marker {
	var best []marker
	for _, letter := range []bool{false, true} {
		var run []marker
		for _, m := range all {
			switch {
			case m.isLetter != letter:
			case m.ordinal == len(run)+1:
				run = append(run, m)
			case m.ordinal == 1:
				best = longerSequence(best, run)
				run = []marker{m}
			}
		}
		best = longerSequence(best, run)
	}
	return best
}

func longerSequence(a, b []marker) []marker {
	if len(b) > len(a) {
		return slices.Clone(b)
	}
	return a
}

// findMarkers finds everything in text that could begin a list item.
func findMarkers(text string) []marker {
	var found []marker
	before := ' '
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if m, ok := parseMarker(text, i, before); ok {
			found = append(found, m)
			i = m.end
			before = ' '
			continue
		}
		before = r
		i += size
	}
	return found
}

// parseMarker reads "1." "2)" "3、" "A." or "①" at i, but not a version such as 1.2.3 or a name such as A.B.
func parseMarker(text string, i int, before rune) (marker, bool) {
	r, size := utf8.DecodeRuneInString(text[i:])
	if r >= '①' && r <= '⑳' {
		return marker{i, i + size, int(r-'①') + 1, false}, true
	}
	if isLatin(before) || strings.ContainsRune("./-:", before) {
		return marker{}, false
	}
	m, end := marker{start: i}, i
	switch {
	case r >= '1' && r <= '9':
		for end < len(text) && end < i+2 && text[end] >= '0' && text[end] <= '9' {
			m.ordinal = m.ordinal*10 + int(text[end]-'0')
			end++
		}
	case r >= 'A' && r <= 'Z':
		m.ordinal, m.isLetter, end = int(r-'A')+1, true, i+1
	default:
		return marker{}, false
	}
	stop, size := utf8.DecodeRuneInString(text[end:])
	if !strings.ContainsRune(".．、)）", stop) {
		return marker{}, false
	}
	m.end = end + size
	next, _ := utf8.DecodeRuneInString(text[m.end:])
	if stop == '.' && (unicode.IsDigit(next) || m.isLetter && isLatin(next)) {
		return marker{}, false
	}
	return m, true
}

// hasSlashSeparatedLetters reports whether text has consecutive single capital letters, separated by slashes: A/B/C.
func hasSlashSeparatedLetters(text string) bool {
	run, last := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c < 'A' || c > 'Z' || i > 0 && isLatin(rune(text[i-1])) || i+1 < len(text) && isLatin(rune(text[i+1])) {
			continue
		}
		if run > 0 && c == last+1 && endsInLetterSlash(text[:i]) {
			run++
		} else {
			run = 1
		}
		if last = c; run >= minItems {
			return true
		}
	}
	return false
}

// endsInLetterSlash reports whether text ends in a single capital, a slash, and optional blanks.
func endsInLetterSlash(text string) bool {
	text, ok := strings.CutSuffix(strings.TrimRight(text, " "), "/")
	text = strings.TrimRight(text, " ")
	return ok && text != "" && text[len(text)-1] >= 'A' && text[len(text)-1] <= 'Z'
}
