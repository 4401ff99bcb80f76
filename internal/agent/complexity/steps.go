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

// Steps lists the steps that text numbers from 1 or letters from A, one line each, or nil.
func Steps(text string) []string {
	list := longest(marks(text))
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

// mark is a number or letter that begins an item.
type mark struct {
	start, end int  // byte offsets
	n          int  // position, from 1
	letter     bool // A, B, C …
}

// longest returns the longest run of marks that counts up from 1 without a gap.
func longest(all []mark) []mark {
	var best []mark
	for _, letter := range []bool{false, true} {
		var run []mark
		for _, m := range all {
			switch {
			case m.letter != letter:
			case m.n == len(run)+1:
				run = append(run, m)
			case m.n == 1:
				best = longer(best, run)
				run = []mark{m}
			}
		}
		best = longer(best, run)
	}
	return best
}

func longer(a, b []mark) []mark {
	if len(b) > len(a) {
		return slices.Clone(b)
	}
	return a
}

// marks finds everything in text that could begin a list item.
func marks(text string) []mark {
	var found []mark
	before := ' '
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if m, ok := markAt(text, i, before); ok {
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

// markAt reads "1." "2)" "3、" "A." or "①" at i, but not a version such as 1.2.3 or a name such as A.B.
func markAt(text string, i int, before rune) (mark, bool) {
	r, size := utf8.DecodeRuneInString(text[i:])
	if r >= '①' && r <= '⑳' {
		return mark{i, i + size, int(r-'①') + 1, false}, true
	}
	if latin(before) || strings.ContainsRune("./-:", before) {
		return mark{}, false
	}
	m, end := mark{start: i}, i
	switch {
	case r >= '1' && r <= '9':
		for end < len(text) && end < i+2 && text[end] >= '0' && text[end] <= '9' {
			m.n = m.n*10 + int(text[end]-'0')
			end++
		}
	case r >= 'A' && r <= 'Z':
		m.n, m.letter, end = int(r-'A')+1, true, i+1
	default:
		return mark{}, false
	}
	stop, size := utf8.DecodeRuneInString(text[end:])
	if !strings.ContainsRune(".．、)）", stop) {
		return mark{}, false
	}
	m.end = end + size
	next, _ := utf8.DecodeRuneInString(text[m.end:])
	if stop == '.' && (unicode.IsDigit(next) || m.letter && latin(next)) {
		return mark{}, false
	}
	return m, true
}

// slashed reports whether text has consecutive single capital letters, separated by slashes: A/B/C.
func slashed(text string) bool {
	run, last := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c < 'A' || c > 'Z' || i > 0 && latin(rune(text[i-1])) || i+1 < len(text) && latin(rune(text[i+1])) {
			continue
		}
		if run > 0 && c == last+1 && joinedBySlash(text[:i]) {
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

// joinedBySlash reports whether text ends in a single capital, a slash, and optional blanks.
func joinedBySlash(text string) bool {
	text, ok := strings.CutSuffix(strings.TrimRight(text, " "), "/")
	text = strings.TrimRight(text, " ")
	return ok && text != "" && text[len(text)-1] >= 'A' && text[len(text)-1] <= 'Z'
}
