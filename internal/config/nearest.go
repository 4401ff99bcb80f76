package config

import "strings"

// Nearest returns the candidate most like word, or "" if none is much like it.
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }

// nearest returns the candidate most like word, or "" if none is much like it.
func nearest(word string, candidates []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// maxWord bounds the work of distance; no key is as long.
const maxWord = 64

// distance counts the letters to add, drop, change or swap with their
// neighbour to turn a into b.
func distance(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return max(len(a), len(b))
	}
	var before, above, row [maxWord + 1]int
	for j := range len(b) + 1 {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}

// suggest names the key that was meant by name in block f, as "; did you
// mean …?", or nothing.
func (root *field) suggest(f *field, name string) string {
	var siblings []string
	for _, k := range f.kids {
		siblings = append(siblings, k.name())
	}
	if n := nearest(name, siblings); n != "" {
		return didYouMean(join(f.path, n))
	}
	meant := ""
	root.all(func(k *field) {
		if meant == "" && k.name() == name && k.kind != rules {
			meant = k.path
		}
	})
	if meant == "" {
		return ""
	}
	return didYouMean(meant)
}

func didYouMean(s string) string { return `; did you mean "` + s + `"?` }
