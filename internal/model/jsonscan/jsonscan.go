// Package jsonscan reads JSON where it lies: a value is a slice of what it came
// in, and only the members that are asked for are looked into. The grammar is
// checked once, by [Complete] or [Cut]; the cursors then trust it. Strings may
// hold bytes that are not UTF-8, and half a rune whose rest is in the next piece.
package jsonscan

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Deepest is how many arrays and objects may lie inside one another.
const Deepest = 1000

// TooDeep reports whether more arrays and objects than that lie inside one another
// in b, which may be no JSON otherwise.
func TooDeep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
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
	end := value(b, blank(b, 0), 0)
	return end >= 0 && blank(b, end) == len(b)
}

// Cut parts the JSON value that b begins with from what follows it.
func Cut(b []byte) (val, rest []byte, ok bool) {
	end := value(b, 0, 0)
	if end < 0 {
		return nil, b, false
	}
	return b[:end], Trim(b[end:]), true
}

// Trim is b without the white space it begins with.
func Trim(b []byte) []byte { return b[blank(b, 0):] }

// blank returns the index of the first byte from i on that is not white space.
func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// value returns the index after the value that starts at i, or -1.
func value(b []byte, i, depth int) int {
	if i >= len(b) || depth > Deepest {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return quoted(b, i)
	case '{':
		return group(b, i, depth+1, '}')
	case '[':
		return group(b, i, depth+1, ']')
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	}
	return number(b, i)
}

func literal(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// group returns the index after the array or object that starts at i.
func group(b []byte, i, depth int, closing byte) int {
	i = blank(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1
	}
	for {
		if closing == '}' {
			if _, i = member(b, i); i < 0 {
				return -1
			}
		}
		if i = value(b, i, depth); i < 0 {
			return -1
		}
		if i = blank(b, i); i >= len(b) {
			return -1
		}
		if b[i] == closing {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = blank(b, i+1)
	}
}

// member returns, for the member whose name starts at i, the index after the
// name and that of the value.
func member(b []byte, i int) (name, val int) {
	if i >= len(b) || b[i] != '"' {
		return -1, -1
	}
	if name = quoted(b, i); name < 0 {
		return -1, -1
	}
	if i = blank(b, name); i >= len(b) || b[i] != ':' {
		return -1, -1
	}
	return name, blank(b, i+1)
}

// quoted returns the index after the string that starts at i.
func quoted(b []byte, i int) int {
	for i++; i < len(b); i++ {
		c := b[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		if c == '"' {
			return i + 1
		}
		if c < ' ' {
			return -1
		}
		n := escape(b[i+1:])
		if n == 0 {
			return -1
		}
		i += n
	}
	return -1
}

// escape is the length of the escape sequence whose rest begins b, or 0. It
// stands apart so that the loop over plain text stays tight.
func escape(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if _, ok := hex4(b, 1); ok {
			return 5
		}
	}
	return 0
}

func number(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && digit(b[i]):
		i = digits(b, i)
	default:
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i++; i >= len(b) || !digit(b[i]) {
			return -1
		}
		i = digits(b, i)
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i >= len(b) || !digit(b[i]) {
			return -1
		}
		i = digits(b, i)
	}
	return i
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func digits(b []byte, i int) int {
	for i < len(b) && digit(b[i]) {
		i++
	}
	return i
}

// Object walks over the members of a JSON object. Members that are null are
// passed over unless asked for: null means absent. What is not an object has
// no members.
type Object struct {
	raw      []byte
	at       int
	Nulls    bool
	Key, Val []byte
}

// Members is the object raw, before its first member.
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
		name, val := member(o.raw, i)
		o.at = value(o.raw, val, 0)
		o.Key, o.Val = o.raw[i+1:name-1], o.raw[val:o.at]
		if o.Nulls || !IsNull(o.Val) {
			return true
		}
	}
}

// List walks over the elements of a JSON array. What is not an array has none.
type List struct {
	raw []byte
	at  int
	Val []byte
}

// Elements is the array raw, before its first element.
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
	l.at = value(l.raw, i, 0)
	l.Val = l.raw[i:l.at]
	return true
}

// IsNull reports whether a value is absent or null.
func IsNull(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

// IsString reports whether a value is a string.
func IsString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// String is the text of a JSON string, made valid UTF-8; anything else is "".
func String(raw []byte) string {
	var j Joiner
	return j.AddString(raw) + j.Flush()
}

// IsObject reports whether raw, of unknown origin, is one whole JSON object.
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

// Int reads a whole number, also one in quotes.
func Int(raw []byte) (int, bool) {
	n, err := strconv.Atoi(string(bytes.Trim(raw, `"`)))
	return n, err == nil
}

// Figure reads a number that is neither negative nor absurd, also in quotes;
// anything else is 0.
func Figure(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(bytes.Trim(raw, `"`)), 64)
	if err != nil || !(f >= 0 && f < 1e15) {
		return 0
	}
	return f
}

// Unquote appends the text of the JSON string raw to dst. Half of a surrogate
// pair is appended as the three bytes that would encode it, so that a [Joiner]
// can find the other half in the next piece. If there is nothing to decode and
// dst is empty the result lies inside raw.
func Unquote(dst, raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		dst = append(dst, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		i = -1
		if c == 'u' {
			r, _ := hex4(raw, 0)
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				dst = append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
			continue
		}
		if i := strings.IndexByte("bfnrt", c); i >= 0 {
			c = "\b\f\n\r\t"[i]
		}
		dst = append(dst, c)
	}
	if len(dst) == 0 {
		return raw
	}
	return append(dst, raw...)
}

func hex4(b []byte, i int) (rune, bool) {
	if len(b)-i < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case digit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

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

// AddString is [Joiner.Add] of the text of a JSON string; anything else is "".
func (j *Joiner) AddString(raw []byte) string {
	if !IsString(raw) {
		return ""
	}
	return j.Add(Unquote(nil, raw))
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
