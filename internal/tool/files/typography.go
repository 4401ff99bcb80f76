package files

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"coder/internal/host/patch"
)

// folded is a text in the characters that models write.
func folded(s string) string { return strings.Map(patch.PlainForm, s) }

// substituteFolded replaces old where it stands in text but for the forms of
// quotes, dashes and spaces. What old and new have in common at either end
// stays as the file has it.
func substituteFolded(text, old, new string, all bool) (loose, error) {
	plain, want := folded(text), folded(old)
	if plain == text && want == old || !strings.Contains(plain, want) {
		return loose{}, nil
	}
	spots, err := spotsOf(plain, want, all)
	if err != nil {
		return loose{}, fmt.Errorf("old_string is not in the file as it stands; with other quotes, dashes or spaces %w", err)
	}
	head, tail := sharedRunes(old, new)
	var out strings.Builder
	done, seen, at := 0, 0, 0 // what has been copied; the same place in plain and in text
	for _, spot := range spots {
		at += bytesOf(text[at:], utf8.RuneCountInString(plain[seen:spot]))
		seen = spot
		found := text[at : at+bytesOf(text[at:], utf8.RuneCountInString(want))]
		keepHead := bytesOf(found, head)
		keepTail := len(found) - bytesOf(found, utf8.RuneCountInString(found)-tail)
		out.WriteString(text[done : at+keepHead])
		out.WriteString(new[bytesOf(new, head):bytesOf(new, utf8.RuneCountInString(new)-tail)])
		done = at + len(found) - keepTail
	}
	out.WriteString(text[done:])
	return loose{out.String(), len(spots), byTypography}, nil
}

// sharedRunes is [shared] in characters.
func sharedRunes(old, new string) (head, tail int) {
	a, b := []rune(old), []rune(new)
	short := min(len(a), len(b))
	for head < short && a[head] == b[head] {
		head++
	}
	for tail < short-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// bytesOf is how many bytes the first n characters of s take.
func bytesOf(s string, n int) (size int) {
	for ; n > 0 && size < len(s); n-- {
		_, w := utf8.DecodeRuneInString(s[size:])
		size += w
	}
	return size
}
