// Package complexity judges from the text alone whether a request is a task of
// several steps, and finds the steps that the user numbered. The rule is fixed: the
// same text always gets the same verdict, and the reason is the first that applies.
package complexity

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reason is why a text counts as complex.
type Reason string

// The reasons, in the order in which Judge tries them. None is the reason of a simple text.
const (
	ReasonNone        Reason = ""
	ReasonEnumeration Reason = "enumeration"
	ReasonLength      Reason = "length"
	ReasonKeywords    Reason = "keywords"
	ReasonSegments    Reason = "segments"
)

// Thresholds at which a text is complex.
const (
	minItems    = 3  // items of an enumeration
	minLength   = 40 // characters
	minKeywords = 3
	minSegments = 3
)

// IsComplex reports whether text asks for several things, and why.
func IsComplex(text string) (bool, Reason) {
	text = strings.TrimSpace(text)
	switch {
	case len(longestSequence(findMarkers(text))) >= minItems || hasSlashSeparatedLetters(text): // 1. 2. 3. or A/B/C
		return true, ReasonEnumeration
	case utf8.RuneCountInString(text) >= minLength:
		return true, ReasonLength
	case countKeywords(text) >= minKeywords:
		return true, ReasonKeywords
	case countSegments(text) >= minSegments:
		return true, ReasonSegments
	}
	return false, ReasonNone
}

// countSegments counts the non-blank segments between separators.
func countSegments(text string) int {
	n := 0
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("，。；、,\n", r) }) {
		if strings.TrimSpace(part) != "" {
			n++
		}
	}
	return n
}

// keywords are the words for work in several steps. Each row is one word in its forms, and counts only once.
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

func countKeywords(text string) int {
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

// hasWord reports whether text contains word: a Latin word on its own, a Chinese word anywhere.
func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if word[0] >= utf8.RuneSelf || !isLatin(before) && !isLatin(after) {
			return true
		}
		from = end
	}
}

func isLatin(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
