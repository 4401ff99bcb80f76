package sanitize

import (
	"strconv"
	"strings"
	"unicode"
)

// Theirs is what another program said, in quotes where it could be taken for words of our
// own, which are said in the person's language: nothing but a few lower-case words.
func Theirs(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLower(r) && r != ' ' && r != '-' && r != '_' }) {
		return text
	}
	return strconv.Quote(text)
}
