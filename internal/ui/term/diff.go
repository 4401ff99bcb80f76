package term

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"coder/internal/core/display"
	"coder/internal/ui/term/ink"
)

var diffInk = map[byte]ink.Role{0: ink.Dim, '+': ink.Good, '-': ink.Bad, ' ': ink.Plain}

// drawDiff puts a unified diff, cleaned, with each line in its colour. Where lines were replaced by as
// many others, the words that differ are bold.
func drawDiff(unified string, put ink.Put) {
	var gone, came []string
	flush := func() {
		pairs := len(gone) == len(came)
		for n, sign := range []byte{'-', '+'} {
			for i, line := range [][]string{gone, came}[n] {
				from, to := len(line), len(line)
				if pairs {
					other := [][]string{came, gone}[n][i]
					f, t, alike := differs(line, other)
					if _, _, back := differs(other, line); alike && back {
						from, to = f, t
					}
				}
				look := ink.Look{Role: diffInk[sign]}
				put(look, line[:from])
				put(ink.Look{Role: look.Role, Bold: true}, line[from:to])
				put(look, line[to:])
			}
		}
		gone, came = nil, nil
	}
	for sign, line := range display.DiffLines(unified) {
		switch {
		case sign == '-' && len(came) == 0:
			gone = append(gone, line)
			continue
		case sign == '+' && len(gone) > 0:
			came = append(came, line)
			continue
		}
		flush()
		if sign == '-' {
			gone = append(gone, line)
		} else {
			put(ink.Look{Role: diffInk[sign]}, line)
		}
	}
	flush()
}

// markedBytes is the longest line of a diff in which words are marked.
const markedBytes = 2000

// differs is the part of a diff's line in which it differs from another, from word to word. The lines are
// not alike where they have little in common.
func differs(line, other string) (from, to int, alike bool) {
	if len(line) > markedBytes || len(other) > markedBytes {
		return 1, 1, false
	}
	a, b := strings.TrimRight(line[1:], "\n"), strings.TrimRight(other[1:], "\n") // behind the sign
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	for from > 0 && (!utf8.RuneStart(at(a, from)) || !utf8.RuneStart(at(b, from)) || inWord(a[:from]) && (begins(a[from:]) || begins(b[from:]))) {
		from--
	}
	end := 0
	for end < len(a)-from && end < len(b)-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for end > 0 && (!utf8.RuneStart(a[len(a)-end]) || begins(a[len(a)-end:]) && (inWord(a[:len(a)-end]) || inWord(b[:len(b)-end]))) {
		end--
	}
	common := strings.TrimSpace(a[:from]) + strings.TrimSpace(a[len(a)-end:])
	return 1 + from, 1 + len(a) - end, 3*len(common) >= len(strings.TrimSpace(a))
}

// at is the byte at a place, or one that begins a character at the end.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return ' '
}

// inWord reports whether a text ends inside a word, and begins whether it begins so.
func inWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func begins(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}
