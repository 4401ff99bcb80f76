// Package jsonscan reads JSON in place: a value is a slice of its input, and only the requested members
// are parsed. [Complete] or [Cut] checks the grammar once, as jsontext defines it; the cursors then
// trust it. Strings may hold bytes that are not UTF-8, and half a rune whose rest is in the next piece.
package jsonscan

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Deepest is the maximum nesting depth of arrays and objects.
const Deepest = 1000

// TooDeep reports whether arrays and objects in b are nested
// deeper than [Deepest]. b may be invalid JSON otherwise.
func TooDeep(b []byte) bool {
	if bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) <= Deepest {
		return false
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = closing(b, i)
		case '{', '[':
			if depth++; depth > Deepest {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// Complete reports whether b is one JSON value and nothing else.
func Complete(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) && !TooDeep(b)
}

// Cut splits the JSON value at the start of b from what follows it.
func Cut(b []byte) (val, rest []byte, ok bool) {
	end := skip(b, 0)
	if !Complete(b[:end]) {
		return nil, b, false
	}
	return b[:end], Trim(b[end:]), true
}

// Trim returns b without leading white space.
func Trim(b []byte) []byte { return b[blank(b, 0):] }

// blank returns the index of the first byte from i on that is not white space.
func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skip returns the index after the value that starts at i, or the end of b.
func skip(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			if i = closing(b, i); depth == 0 {
				return min(i+1, len(b))
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + 1
			}
		case depth == 0: // a number or a literal
			for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' {
				i++
			}
			return i
		}
	}
	return len(b)
}

// closing returns the index of the quote that ends the string at i, or the end of b.
func closing(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}

// Object iterates over the members of a JSON object. It skips null members unless asked for them: null
// means absent. Any other value has no members.
type Object struct {
	raw      []byte
	at       int
	Nulls    bool
	Key, Val []byte
}

// Members returns a cursor before the first member of the object raw.
func Members(raw []byte) Object {
	if len(raw) == 0 || raw[0] != '{' {
		return Object{}
	}
	return Object{raw: raw, at: 1}
}

func (o *Object) Next() bool {
	for {
		i := blank(o.raw, o.at)
		if i < len(o.raw) && o.raw[i] == ',' {
			i = blank(o.raw, i+1)
		}
		if i >= len(o.raw) || o.raw[i] != '"' {
			return false
		}
		name := skip(o.raw, i)
		val := blank(o.raw, blank(o.raw, name)+len(":"))
		o.at = skip(o.raw, val)
		o.Key, o.Val = o.raw[i+1:name-1], o.raw[val:o.at]
		if o.Nulls || !IsNull(o.Val) {
			return true
		}
	}
}

// List iterates over the elements of a JSON array. Any other value has none.
type List struct {
	raw []byte
	at  int
	Val []byte
}

// Elements returns a cursor before the first element of the array raw.
func Elements(raw []byte) List {
	if len(raw) == 0 || raw[0] != '[' {
		return List{}
	}
	return List{raw: raw, at: 1}
}

func (l *List) Next() bool {
	i := blank(l.raw, l.at)
	if i < len(l.raw) && l.raw[i] == ',' {
		i = blank(l.raw, i+1)
	}
	if i >= len(l.raw) || l.raw[i] == ']' {
		return false
	}
	l.at = skip(l.raw, i)
	l.Val = l.raw[i:l.at]
	return true
}

// IsNull reports whether a value is absent or null.
func IsNull(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

// IsString reports whether a value is a string.
func IsString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// String returns the text of a JSON string, made valid UTF-8; "" for any other value.
func String(raw []byte) string {
	var j Joiner
	return j.AddString(raw) + j.Flush()
}

// IsObject reports whether raw, which is untrusted, is one complete JSON object.
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' && Complete(raw) }

// Get returns the member key of the object raw, or nil.
func Get(raw []byte, key string) []byte {
	for m := Members(raw); m.Next(); {
		if string(m.Key) == key {
			return m.Val
		}
	}
	return nil
}

// Int parses an integer, which may be in quotes.
func Int(raw []byte) (int, bool) {
	n, err := strconv.Atoi(string(bytes.Trim(raw, `"`)))
	return n, err == nil
}

// Figure parses a number that is neither negative nor absurdly
// large, which may be in quotes; anything else is 0.
func Figure(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	if err != nil || !(f >= 0 && f < 1e15) {
		return 0
	}
	return f
}

// Joiner joins the texts of JSON strings into valid UTF-8. Each string may be cut inside a rune or
// between the halves of a surrogate pair. Bytes that can never become a rune are replaced by U+FFFD.
type Joiner struct {
	tail []byte // the first half of a rune, still escaped
}

// AddString adds a string and returns the whole runes so far. Any other value adds nothing.
func (j *Joiner) AddString(raw []byte) string {
	if !IsString(raw) {
		return ""
	}
	text := raw[1 : len(raw)-1]
	if len(j.tail) == 0 && bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text)
	}
	all := slices.Concat(raw[:1], j.tail, text)
	whole := len(all) - half(all)
	j.tail = bytes.Clone(all[whole:])
	return unquote(append(all[:whole], '"'))
}

// Flush returns the rest, without waiting for the other half of a rune.
func (j *Joiner) Flush() string {
	if len(j.tail) == 0 {
		return ""
	}
	j.tail = nil
	return string(utf8.RuneError)
}

func unquote(raw []byte) string {
	text, _ := jsontext.AppendUnquote(nil, raw) // the error only reports the replacement
	return string(text)
}

// half returns how many bytes at the end of the inside of a JSON string are the first half of a rune:
// bytes of UTF-8, or one escape of a pair.
func half(b []byte) int {
	if at := len(b) - len(`\ud83d`); at >= 0 && b[at] == '\\' && (b[at+1] == 'u') && (b[at+2]|0x20) == 'd' && strings.IndexByte("89abAB", b[at+3]) >= 0 {
		if before := len(b[:at]) - len(bytes.TrimRight(b[:at], `\`)); before%2 == 0 {
			return len(b) - at
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			break
		}
	}
	return 0
}
