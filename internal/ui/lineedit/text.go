package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/ui/cells"
)

// clusterAt is the grapheme cluster of text that starts at i. A character that
// stands for a paste is always one of its own.
func clusterAt(text string, i int) (cluster string, width int) {
	if r, n := utf8.DecodeRuneInString(text[i:]); standsForPaste(r) {
		return text[i : i+n], 1
	}
	cluster, width = cells.Next(text[i:])
	if j := strings.IndexFunc(cluster, standsForPaste); j > 0 {
		cluster = cluster[:j]
		width = cells.Width(cluster)
	}
	return cluster, width
}

// after is where the cluster that starts at i ends.
func after(text string, i int) int {
	if i >= len(text) {
		return len(text)
	}
	cluster, _ := clusterAt(text, i)
	return i + len(cluster)
}

// before is where the cluster that ends at i starts.
func before(text string, i int) int {
	if i <= 0 {
		return 0
	}
	start := certain(text, i-1)
	for {
		end := after(text, start)
		if end >= i {
			return start
		}
		start = end
	}
}

// certain is a place at or before i that is surely between two clusters: the
// start of the text, or between two characters of ASCII. Looking back no
// further keeps a key cheap in a long line.
func certain(text string, i int) int {
	for ; i > 0; i-- {
		if text[i] < utf8.RuneSelf && text[i-1] < utf8.RuneSelf {
			return i
		}
	}
	return 0
}

// boundary is the first place between two clusters at or after i.
func boundary(text string, i int) int {
	j := before(text, i)
	for j < i {
		j = after(text, j)
	}
	return j
}

// lineStart and lineEnd are the ends of the line that i is in.
func lineStart(text string, i int) int { return strings.LastIndexByte(text[:i], '\n') + 1 }

func lineEnd(text string, i int) int {
	if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(text)
}

// A class tells which characters belong to a word.
type class func(r rune) bool

func inWord(r rune) bool   { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
func notBlank(r rune) bool { return !unicode.IsSpace(r) }

// wordStart is where the word at or before i starts; never inside a cluster.
func wordStart(text string, i int, in class) int {
	start := firstOfWord(text, i, in)
	if end := boundary(text, start); end != start {
		return before(text, end)
	}
	return start
}

func firstOfWord(text string, i int, in class) int {
	seen := false
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(text[:i])
		if seen && !in(r) {
			return i
		}
		seen = seen || in(r)
		i -= n
	}
	return 0
}

// wordEnd is where the word at or after i ends.
func wordEnd(text string, i int, in class) int {
	seen := false
	for i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		if seen && !in(r) {
			return boundary(text, i)
		}
		seen = seen || in(r)
		i += n
	}
	return len(text)
}
