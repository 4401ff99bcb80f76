package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/ui/cells"
)

// clusterAt returns the grapheme cluster of text that starts at i. A character that represents a paste
// is always its own cluster.
func clusterAt(text string, i int) (cluster string, width int) {
	if r, n := utf8.DecodeRuneInString(text[i:]); isPasteRune(r) {
		return text[i : i+n], 1
	}
	cluster, width = cells.NextCluster(text[i:])
	if j := strings.IndexFunc(cluster, isPasteRune); j > 0 {
		cluster = cluster[:j]
		width = cells.Width(cluster)
	}
	return cluster, width
}

// clusterEnd returns the end of the cluster that starts at i.
func clusterEnd(text string, i int) int {
	if i >= len(text) {
		return len(text)
	}
	cluster, _ := clusterAt(text, i)
	return i + len(cluster)
}

// clusterStart returns the start of the cluster that ends at i.
func clusterStart(text string, i int) int {
	if i <= 0 {
		return 0
	}
	// A cluster surely ends between two ASCII characters: looking back no further keeps a key cheap in a
	// long line.
	start := i - 1
	for start > 0 && (text[start] >= utf8.RuneSelf || text[start-1] >= utf8.RuneSelf) {
		start--
	}
	for {
		end := clusterEnd(text, start)
		if end >= i {
			return start
		}
		start = end
	}
}

// nextBoundary returns the first cluster boundary at or after i.
func nextBoundary(text string, i int) int {
	j := clusterStart(text, i)
	for j < i {
		j = clusterEnd(text, j)
	}
	return j
}

// lineStart and lineEnd return the ends of the line that contains i.
func lineStart(text string, i int) int { return strings.LastIndexByte(text[:i], '\n') + 1 }

func lineEnd(text string, i int) int {
	if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(text)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// wordStart returns the start of the word at or before i; never inside a cluster.
func wordStart(text string, i int, in func(rune) bool) int {
	for seen := false; i > 0; {
		r, n := utf8.DecodeLastRuneInString(text[:i])
		if seen && !in(r) {
			break
		}
		seen = seen || in(r)
		i -= n
	}
	if end := nextBoundary(text, i); end != i {
		return clusterStart(text, end)
	}
	return i
}

// wordRight returns the end of the word at or after i.
func wordRight(text string, i int) int {
	for seen := false; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if seen && !isWordRune(r) {
			return nextBoundary(text, i)
		}
		seen = seen || isWordRune(r)
		i += n
	}
	return len(text)
}
