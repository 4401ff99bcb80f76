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
	// Between two characters of ASCII there is surely an end of a cluster:
	// looking back no further keeps a key cheap in a long line.
	start := i - 1
	for start > 0 && (text[start] >= utf8.RuneSelf || text[start-1] >= utf8.RuneSelf) {
		start--
	}
	for {
		end := after(text, start)
		if end >= i {
			return start
		}
		start = end
	}
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

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// wordStart is where the word at or before i starts; never inside a cluster.
func wordStart(text string, i int, in func(rune) bool) int {
	for seen := false; i > 0; {
		r, n := utf8.DecodeLastRuneInString(text[:i])
		if seen && !in(r) {
			break
		}
		seen = seen || in(r)
		i -= n
	}
	if end := boundary(text, i); end != i {
		return before(text, end)
	}
	return i
}

// wordRight is where the word at or after i ends.
func wordRight(text string, i int) int {
	for seen := false; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if seen && !inWord(r) {
			return boundary(text, i)
		}
		seen = seen || inWord(r)
		i += n
	}
	return len(text)
}
