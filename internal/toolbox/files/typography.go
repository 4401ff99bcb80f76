package files

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// plainForm is the character that models write for one that people's editors
// put in its place. Each stands for exactly one, so that places in a text and
// in its plain form can be told from each other by counting characters.
func plainForm(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '′', '´', 'ʼ':
		return '\''
	case '“', '”', '„', '‟', '″', '«', '»':
		return '"'
	case '‐', '‑', '‒', '–', '—', '―', '−':
		return '-'
	case '\u00a0', '\u2007', '\u202f', '\u205f', '\u3000':
		return ' '
	}
	if r >= '\u2000' && r <= '\u200a' { // spaces of all widths
		return ' '
	}
	return r
}

func folded(s string) string { return strings.Map(plainForm, s) }

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

// differs names the first character in which a line of the file differs from
// the one that was given, if it is one of those that look alike.
func differs(have, given string) string {
	h, g := []rune(strings.TrimSpace(have)), []rune(strings.TrimSpace(given))
	for i := range min(len(h), len(g)) {
		if h[i] == g[i] {
			continue
		}
		if plainForm(h[i]) == plainForm(g[i]) {
			return fmt.Sprintf("the file has %q (U+%04X) where old_string has %q (U+%04X)", h[i], h[i], g[i], g[i])
		}
		return ""
	}
	return ""
}
