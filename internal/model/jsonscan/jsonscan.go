// Package jsonscan reads JSON in place: a value is a slice of its input, and only the requested members
// are parsed. [IsComplete] or [Cut] checks the grammar once, as jsontext defines it; the cursors then
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

// MaxDepth is the maximum nesting depth of arrays and objects.
const MaxDepth = 1000

// IsTooDeep reports whether arrays and objects in b are nested
// deeper than [MaxDepth]. b may be invalid JSON otherwise.
func IsTooDeep(b []byte) bool {
	if bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) <= MaxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = closingQuote(b, i)
		case '{', '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// IsComplete reports whether b is one JSON value and nothing else.
func IsComplete(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) && !IsTooDeep(b)
}

// Cut splits the JSON value at the start of b from what follows it.
func Cut(b []byte) (val, rest []byte, ok bool) {
	end := skipValue(b, 0)
	if !IsComplete(b[:end]) {
		return nil, b, false
	}
	return b[:end], TrimSpace(b[end:]), true
}

// TrimSpace returns b without leading white space.
func TrimSpace(b []byte) []byte { return b[skipSpace(b, 0):] }

// skipSpace returns the index of the first byte from i on that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i, or the end of b.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			if i = closingQuote(b, i); depth == 0 {
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

// closingQuote returns the index of the quote that ends the string at i, or the end of b.
func closingQuote(b []byte, i int) int {
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
		i := skipSpace(o.raw, o.at)
		if i < len(o.raw) && o.raw[i] == ',' {
			i = skipSpace(o.raw, i+1)
		}
		if i >= len(o.raw) || o.raw[i] != '"' {
			return false
		}
		name := skipValue(o.raw, i)
		val := skipSpace(o.raw, skipSpace(o.raw, name)+len(":"))
		o.at = skipValue(o.raw, val)
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
	i := skipSpace(l.raw, l.at)
	if i < len(l.raw) && l.raw[i] == ',' {
		i = skipSpace(l.raw, i+1)
	}
	if i >= len(l.raw) || l.raw[i] == ']' {
		return false
	}
	l.at = skipValue(l.raw, i)
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
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' && IsComplete(raw) }

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

// Float parses a number that is neither negative nor absurdly
// large, which may be in quotes; anything else is 0.
func Float(raw []byte) float64 {
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
	whole := len(all) - partialRune(all)
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

// partialRune returns how many bytes at the end of the inside of a JSON string are the first half of a rune:
// bytes of UTF-8, or one escape of a pair.
func partialRune(b []byte) int {
	if at := len(b) - len(`\ud83d`); at >= 0 && b[at] == '\\' && (b[at+1] == 'u') && (b[at+2]|0x20) == 'd' &&
		strings.IndexByte("89abAB", b[at+3]) >= 0 {
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
