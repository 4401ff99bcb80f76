package jsonx

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strings"
	"unicode/utf8"
)

// longText is the length from which a text gets a hole.
const longText = 64 << 10

// Holes writes the large texts of a value straight into a line, where an encoder would hold a second
// copy of the value. The zero value is ready to use.
type Holes struct {
	mark  string
	texts []string
}

// Put returns a placeholder for text in the value: the text itself, or a mark if it is large. Calls must
// follow the order in which the value is encoded.
func (h *Holes) Put(text string) string {
	if len(text) < longText {
		return text
	}
	if h.mark == "" {
		h.mark = rand.Text()
	}
	h.texts = append(h.texts, text)
	return h.mark
}

// Append appends v to b as [Append] does, and replaces the marks by their texts.
func (h *Holes) Append(b []byte, v any) ([]byte, error) {
	if len(h.texts) == 0 {
		return Append(b, v)
	}
	around, err := JSON(v)
	if err != nil {
		return nil, err
	}
	size := len(around) + longText/64
	for _, text := range h.texts {
		size += quotedLen(text)
	}
	b = slices.Grow(b, size)
	quoted := []byte(`"` + h.mark + `"`)
	for _, text := range h.texts {
		before, after, _ := bytes.Cut(around, quoted)
		b = appendQuoted(append(b, before...), text)
		around = after
	}
	return append(b, around...), nil
}

// escape returns the JSON escape for the start of text and how many bytes it covers, or "" if none is
// needed.
func escape(text string) (as string, n int) {
	const hex = "0123456789abcdef"
	c := text[0]
	if c >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			return `\ufffd`, 1
		case r == '\u2028' || r == '\u2029':
			return `\u202` + hex[r&15:r&15+1], n
		}
		return "", n
	}
	if at := strings.IndexByte("\"\\\b\f\n\r\t", c); at >= 0 {
		return `\` + `"\bfnrt`[at:at+1], 1
	}
	if c < ' ' {
		return `\u00` + hex[c>>4:c>>4+1] + hex[c&15:c&15+1], 1
	}
	return "", 1
}

func quotedLen(text string) int {
	size := len(text) + len(`""`)
	for len(text) > 0 {
		as, n := escape(text)
		if as != "" {
			size += len(as) - n
		}
		text = text[n:]
	}
	return size
}

func appendQuoted(b []byte, text string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(text); {
		as, n := escape(text[i:])
		if as != "" {
			b = append(append(b, text[from:i]...), as...)
			from = i + n
		}
		i += n
	}
	return append(append(b, text[from:]...), '"')
}
