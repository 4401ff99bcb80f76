// Package complexity judges, from the words alone, whether a request is a task
// of several steps, and finds the steps a person has numbered. It is a fixed
// rule: the same text is always judged the same way, and the reason given is
// the first that applies.
package complexity

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reason is why a text counts as complex.
type Reason string

// The reasons, in the order they are tried. None is the reason of a simple
// text.
const (
	None        Reason = ""
	Enumeration Reason = "enumeration"
	Length      Reason = "length"
	Keywords    Reason = "keywords"
	Segments    Reason = "segments"
)

// From each of these on, a text is complex.
const (
	minItems    = 3  // items of an enumeration
	minLength   = 40 // characters
	minKeywords = 3
	minSegments = 3
)

// Judge reports whether text asks for several things, and what gave it away.
func Judge(text string) (bool, Reason) {
	text = strings.TrimSpace(text)
	switch {
	case len(longest(marks(text))) >= minItems || slashed(text): // 1. 2. 3. or A/B/C
		return true, Enumeration
	case utf8.RuneCountInString(text) >= minLength:
		return true, Length
	case keywordsIn(text) >= minKeywords:
		return true, Keywords
	case segmentsIn(text) >= minSegments:
		return true, Segments
	}
	return false, None
}

// segmentsIn counts what is left between separators, blanks aside.
func segmentsIn(text string) int {
	n := 0
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("，。；、,\n", r) }) {
		if strings.TrimSpace(part) != "" {
			n++
		}
	}
	return n
}

// keywords are the words of work in several steps. Each row is one word in its
// forms, and counts once however often it is used.
var keywords = [][]string{
	{"并且", "as well as"},
	{"同时", "meanwhile", "simultaneously", "at the same time"},
	{"另外", "also", "additionally", "in addition", "besides"},
	{"分别", "respectively", "separately"},
	{"步骤", "step", "steps", "step-by-step"},
	{"重构", "refactor", "refactors", "refactoring", "restructure"},
	{"迁移", "migrate", "migrates", "migrating", "migration", "migrations"},
	{"优化", "optimize", "optimise", "optimizing", "optimising", "optimization", "optimisation"},
}

func keywordsIn(text string) int {
	text = strings.ToLower(text)
	n := 0
	for _, forms := range keywords {
		for _, form := range forms {
			if hasWord(text, form) {
				n++
				break
			}
		}
	}
	return n
}

// hasWord reports whether word stands in text: a Latin word between others, a
// Chinese one anywhere.
func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if word[0] >= utf8.RuneSelf || !latin(before) && !latin(after) {
			return true
		}
		from = end
	}
}

func latin(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
