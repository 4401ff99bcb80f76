package jsonx

import (
	"bytes"
	"crypto/rand"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// minHoleLen is the length from which a text gets a hole.
const minHoleLen = 64 << 10

// Holes writes the large texts of a value straight into a line, where an encoder would hold a second
// copy of the value. The zero value is ready to use.
type Holes struct {
	mark  string
	texts []string
}

// Add returns a placeholder for text in the value: the text itself, or a mark if it is large.
func (h *Holes) Add(text string) string {
	if len(text) < minHoleLen {
		return text
	}
	if h.mark == "" {
		h.mark = rand.Text()
	}
	h.texts = append(h.texts, text)
	return h.mark + strconv.Itoa(len(h.texts)-1)
}

// Large reports whether a text has got a hole.
func (h *Holes) Large() bool { return len(h.texts) > 0 }

// Replace replaces each large text by what change returns for it.
func (h *Holes) Replace(change func(text string) string) {
	for i, text := range h.texts {
		h.texts[i] = change(text)
	}
}

// Append appends v to b as [Append] does, and replaces the marks by their texts.
func (h *Holes) Append(b []byte, v any) ([]byte, error) {
	if !h.Large() {
		return Append(b, v)
	}
	around, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return h.Filled(b, around)
}

// Filled appends encoded, the JSON of a value, with each mark replaced by its text, and leaves room for the
// end of a line.
func (h *Holes) Filled(b, encoded []byte) ([]byte, error) {
	b = slices.Grow(b, h.Size(encoded)+lineEnd)
	err := h.Fill((*tail)(&b), encoded)
	return b, err
}

// lineEnd is room for what follows a value on its line: a seal, a newline.
const lineEnd = 1 << 10

// tail is a writer that appends to a slice.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	return len(p), nil
}

// Size returns the length of encoded, the JSON of a value, with each mark replaced by its text.
func (h *Holes) Size(encoded []byte) int {
	size := len(encoded)
	for i, text := range h.texts {
		size += quotedLen(text) - len(h.quoted(i))
	}
	return size
}

func (h *Holes) quoted(i int) string { return `"` + h.mark + strconv.Itoa(i) + `"` }

// Fill writes encoded, the JSON of a value, with each mark replaced by its text. A large text is written in
// pieces, so that it is not held a second time.
func (h *Holes) Fill(w io.Writer, encoded []byte) error {
	mark := []byte(`"` + h.mark)
	for h.Large() {
		at := bytes.Index(encoded, mark)
		if at < 0 {
			break
		}
		if _, err := w.Write(encoded[:at]); err != nil {
			return err
		}
		number, after, _ := bytes.Cut(encoded[at+len(mark):], []byte(`"`))
		i, err := strconv.Atoi(string(number))
		if err != nil {
			return err
		}
		if err := writeQuoted(w, h.texts[i]); err != nil {
			return err
		}
		encoded = after
	}
	_, err := w.Write(encoded)
	return err
}

// escapePrefix returns the JSON escape for the start of text and how many bytes it covers, or "" if none is
// needed.
func escapePrefix(text string) (as string, n int) {
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
		as, n := escapePrefix(text)
		if as != "" {
			size += len(as) - n
		}
		text = text[n:]
	}
	return size
}

// pieceLen is about how much of a large text is encoded at a time.
const pieceLen = 32 << 10

// writeQuoted writes text as a JSON string, piece by piece.
func writeQuoted(w io.Writer, text string) error {
	piece := append(make([]byte, 0, pieceLen+pieceLen/8), '"')
	for text != "" {
		end := min(pieceLen, len(text))
		for end > pieceLen-utf8.UTFMax && end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		piece = appendEscaped(piece, text[:end])
		if _, err := w.Write(piece); err != nil {
			return err
		}
		piece, text = piece[:0], text[end:]
	}
	_, err := w.Write(append(piece, '"'))
	return err
}

func appendEscaped(b []byte, text string) []byte {
	from := 0
	for i := 0; i < len(text); {
		as, n := escapePrefix(text[i:])
		if as != "" {
			b = append(append(b, text[from:i]...), as...)
			from = i + n
		}
		i += n
	}
	return append(b, text[from:]...)
}
