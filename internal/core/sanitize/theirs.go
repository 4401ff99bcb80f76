package sanitize

import (
	"strconv"
	"strings"
	"unicode"
)

// ForeignText returns another program's text. It quotes text of a few lower-case words only, which could pass
// for coder's own, translated words.
func ForeignText(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLower(r) && r != ' ' && r != '-' &&
			r != '_'
	}) {
		return text
	}
	return strconv.Quote(text)
}
