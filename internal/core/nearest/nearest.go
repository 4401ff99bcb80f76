// Package nearest suggests a name for one that does not exist.
package nearest

import "strings"

// Find returns the name most similar to word, or "" if none is close.
func Find(word string, names []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, name := range names {
		if d := Distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// maxLen limits the work of Distance: no file name is longer.
const maxLen = 255

// Distance returns the number of insertions, deletions, substitutions and swaps of neighbours that turn
// a into b. For texts too long to be names it returns their length.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > maxLen || len(y) > maxLen {
		return max(len(x), len(y))
	}
	before, above, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			change := above[j-1]
			if x[i-1] != y[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(y)]
}
