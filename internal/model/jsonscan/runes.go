package jsonscan

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Joiner makes valid UTF-8 of pieces that may be cut inside a rune or between
// the two halves of a surrogate pair. What can never become a rune is replaced
// by U+FFFD.
type Joiner struct {
	tail []byte // the start of a rune whose end has not come yet
}

// Add returns the whole runes there are after one more piece.
func (j *Joiner) Add(piece []byte) string {
	if len(j.tail) == 0 && utf8.Valid(piece) {
		return string(piece)
	}
	b := append(j.tail, piece...)
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := wholeRune(b)
		if n == 0 {
			break
		}
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	j.tail = append([]byte(nil), b...)
	return string(out)
}

// Flush gives up on the other half of what is left.
func (j *Joiner) Flush() string {
	if len(j.tail) == 0 {
		return ""
	}
	j.tail = nil
	return string(utf8.RuneError)
}

// wholeRune decodes the first rune of b, also one written as two surrogates of
// three bytes each. It returns 0 bytes if more must come to decide.
func wholeRune(b []byte) (rune, int) {
	high, n := unit(b)
	if n == 0 {
		return 0, 0
	}
	if !utf16.IsSurrogate(high) {
		return high, n
	}
	low, m := unit(b[n:])
	if m == 0 {
		return 0, 0
	}
	if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
		return r, n + m
	}
	return utf8.RuneError, n
}

// unit decodes one rune or one surrogate; 0 bytes mean that b is too short.
func unit(b []byte) (rune, int) {
	if len(b) > 0 && b[0] == 0xED && (len(b) == 1 || b[1] >= 0xA0 && b[1] <= 0xBF) {
		if len(b) < 3 {
			return 0, 0
		}
		if b[2]&0xC0 == 0x80 {
			return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), 3
		}
	}
	if !utf8.FullRune(b) {
		return 0, 0
	}
	return utf8.DecodeRune(b)
}
