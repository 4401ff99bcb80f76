package secret

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"coder/internal/core/jsonx"
)

// Concealed replaces a known key. The mark ends what Masked makes of text shaped like a key.
const (
	Concealed = "[provider key]"
	mark      = "…[masked]"
)

// Masked returns the replacement for a key. It keeps the first characters, so that the user can tell
// which key it is.
func Masked(key string) string {
	const kept = 6
	n := min(kept, len(key)/3)
	for n > 0 && key[n]&0xC0 == 0x80 {
		n--
	}
	return key[:n] + mark
}

// Marked reports whether s, or the text of a JSON value s, contains a masked key.
func Marked[T string | ~[]byte](s T) bool {
	text := string(s)
	return strings.Contains(text, Concealed) || strings.Contains(text, mark[len("…"):])
}

// Concealer masks keys in text that is shown or saved: the known keys, and text shaped like a key. A nil
// Concealer masks nothing. It is safe for concurrent use.
type Concealer struct{ now atomic.Pointer[search] }

// search holds what a Concealer searches for.
type search struct {
	keys  []string      // longest first
	by    [256][]string // keys by first byte
	pairs pairs         // first two bytes of keys, shapes and escapes
	known pairs         // first two bytes of keys
}

// pairs is a set of byte pairs.
type pairs [1 << 16]bool

func (p *pairs) add(s string) { p[uint16(s[0])<<8|uint16(s[1])] = true }

// shortest is the shortest known key to search for.
const shortest = 2

// Conceal returns a Concealer that knows keys, both verbatim and as encoded in JSON.
func Conceal(keys []string) *Concealer {
	c := new(Concealer)
	c.now.Store(searchFor(keys))
	return c
}

// Learn adds keys to the known ones.
func (c *Concealer) Learn(keys ...string) {
	for c != nil {
		was := c.now.Load()
		if c.now.CompareAndSwap(was, searchFor(slices.Concat(was.keys, keys))) {
			return
		}
	}
}

func searchFor(keys []string) *search {
	c := new(search)
	for _, key := range keys {
		if len(key) < shortest || strings.Contains(Concealed, key) || strings.Contains(mark, key) {
			continue
		}
		c.keys = append(c.keys, key)
		for range 2 { // also in JSON within JSON
			if quoted, err := json.Marshal(key); err == nil {
				c.keys = append(c.keys, string(quoted[1:len(quoted)-1]))
			}
			key = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)
			c.keys = append(c.keys, key)
		}
	}
	slices.SortFunc(c.keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	c.keys = slices.Compact(c.keys)
	for _, key := range c.keys {
		c.pairs.add(key)
		c.known.add(key)
		c.by[key[0]] = append(c.by[key[0]], key)
	}
	for _, k := range shapes().all {
		c.pairs.add(k.prefix)
	}
	c.pairs.add(escape)
	c.pairs.add(`:\`) // an address as some encode it in JSON
	return c
}

// Text returns s with its keys masked. It allocates nothing if s contains none.
func (c *Concealer) Text(s string) string {
	if c == nil {
		return s
	}
	out, _ := c.now.Load().scan(s, 0, true, blot)
	return out
}

func blot(key string, known bool) string {
	if known {
		return Concealed
	}
	return Masked(key)
}

// next returns the first position from i on that may begin a key, or the length of s. It skips positions
// within a word, unless a known key may begin there or a JSON escape ends just before.
func next[T string | []byte](c *search, s T, i int) int {
	if i+1 >= len(s) {
		return len(s)
	}
	p := uint16(s[i])
	for start := i; i+1 < len(s); i++ {
		p = p<<8 | uint16(s[i+1])
		if c.pairs[p] && (i == start || !inWord[s[i-1]] || s[i] == keyHeader[0] || s[i] == addressMark[0] || s[i-1] == 'm' || i > 1 && s[i-2] == '\\' || c.known[p]) {
			return i
		}
	}
	return len(s)
}

// scan replaces the keys in s, and returns as held the end of s that may begin a key, unless last is
// set. before is the byte before s, if any.
func (c *search) scan(s string, before byte, last bool, other func(key string, known bool) string) (out, held string) {
	var b strings.Builder
	from := 0
	behind := func(i int) byte {
		switch {
		case i > from:
			return s[i-1]
		case from > 0:
			return ']' // the end of a replacement
		}
		return before
	}
	for i := next(c, s, 0); i < len(s); {
		n, known, open := c.at(s, i, behind(i), last)
		if open {
			b.WriteString(s[from:i])
			return b.String(), s[i:]
		}
		begin := i
		if n == 0 {
			if begin, n = endOfKey(s, from, i); n == 0 {
				i = next(c, s, i+1)
				continue
			}
		}
		b.WriteString(s[from:begin])
		key := s[i : i+n]
		if !known && strings.HasPrefix(key, addressMark) { // the user name stays, unless it is a key
			at := beforePassword(key)
			user, _ := c.scan(key[:at], 0, true, other)
			b.WriteString(user)
			key = key[at:]
			if known = slices.Contains(c.keys, key); !known && !begins(key) && other(key, false) == Masked(key) {
				key = ""
				b.WriteString(mark) // no character of a password stays
			}
		}
		if key != "" {
			b.WriteString(other(key, known))
		}
		from = i + n
		i = next(c, s, from)
	}
	if n := len(s) - 1; !last && n >= from {
		if _, _, open := c.at(s, n, behind(n), false); open {
			b.WriteString(s[from:n])
			return b.String(), s[n:]
		}
	}
	if from == 0 {
		return s, ""
	}
	b.WriteString(s[from:])
	return b.String(), ""
}

// at returns the length of the key in s at i, or 0. open reports that more text after s may make it a
// key, or a longer one.
func (c *search) at(s string, i int, before byte, last bool) (n int, known, open bool) {
	rest := s[i:]
	for _, key := range c.by[rest[0]] {
		if strings.HasPrefix(rest, key) {
			n, known = len(key), true
			break
		}
		if !last && strings.HasPrefix(key, rest) {
			return 0, false, true
		}
		if m := strings.Index(rest[:min(len(rest), len(key)+len("…"))], "…"); m >= 8 && strings.HasPrefix(key, rest[:m]) {
			n, known = m, true // the text was truncated there
			break
		}
	}
	if rest[0] == addressMark[0] {
		if !inWord[before] {
			return n, known, false
		}
	} else if rest[0] != keyHeader[0] && joined(s, i, before) {
		return n, known, false
	}
	for _, k := range shapes().by[rest[0]] {
		if !known && !last && len(rest) < len(k.prefix) && strings.HasPrefix(k.prefix, rest) {
			return 0, false, true
		}
		if !strings.HasPrefix(rest, k.prefix) || !k.follows(before) {
			continue
		}
		m, ended := k.rest(rest[len(k.prefix):])
		if held := longestHeld[k.prefix == keyHeader]; !ended && !last && len(rest) < held {
			return 0, false, true
		}
		if m > 0 && len(k.prefix)+m > n {
			n, known = len(k.prefix)+m, false
			if n, open = c.over(s, i, n, last); open {
				return 0, false, true
			}
		}
	}
	return n, known, false
}

// longestHeld is how much text may be held back to see whether it is a key. Private keys are longer, so
// they have a larger limit.
var longestHeld = map[bool]int{false: 4 << 10, true: 16 << 10}

// over extends a key to the end of known keys that begin in it, and reports whether the text after s
// decides how far.
func (c *search) over(s string, i, n int, last bool) (whole int, open bool) {
	for j := i + 1; j < i+n; j++ {
		for _, key := range c.by[s[j]] {
			if !last && strings.HasPrefix(key, s[j:]) {
				return 0, true
			}
			if j+len(key) > i+n && strings.HasPrefix(s[j:], key) {
				n = j + len(key) - i
			}
		}
	}
	return n, false
}

// follows reports whether such a key may follow the byte before: a bot's secret follows its number, and
// the last part of a name is no key.
func (k shape) follows(before byte) bool {
	switch k.prefix {
	case botMark:
		return before >= '0' && before <= '9'
	case mailKey:
		return before != '-'
	}
	return true
}

// joined reports whether the text at i continues a word and so cannot begin a key. The end of a colour
// sequence is not a word.
func joined(s string, i int, before byte) bool {
	if !inWord[before] {
		return false
	}
	if before == 'm' {
		if at := strings.LastIndexByte(s[max(0, i-12):i], '\x1b'); at >= 0 {
			return false
		}
	}
	return true
}

// escape begins a character's escape by number.
const escape = `\u`

// JSON masks keys in the decoded strings of a JSON text. If there are none, it returns the same text and
// allocates nothing.
func (c *Concealer) JSON(text []byte) []byte {
	if c == nil || !suspects(c.now.Load(), text) {
		return text
	}
	return jsonx.Strings(text, c.Text)
}

// Value masks s as JSON if it is JSON, and as Text otherwise.
func (c *Concealer) Value(s string) string {
	if c == nil || s == "" || s[0] != '{' && s[0] != '[' {
		return c.Text(s)
	}
	if !suspects(c.now.Load(), s) {
		return s
	}
	if !json.Valid([]byte(s)) {
		return c.Text(s)
	}
	return string(c.JSON([]byte(s)))
}

// suspects reports whether a JSON text may contain a key.
func suspects[T string | []byte](c *search, s T) bool {
	for i := next(c, s, 0); i < len(s); i = next(c, s, i+1) {
		if starts(s, i, escape+"00") && i+4 < len(s) && s[i+4] >= '2' && s[i+4] <= '7' {
			return true // a letter that needed no escape
		}
		for _, key := range c.by[s[i]] {
			if starts(s, i, key) {
				return true
			}
		}
		if s[i] == addressMark[0] {
			if starts(s, i, botMark) || starts(s, i, `:\/\/`) || starts(s, i, addressMark) && mayEndPassword(s[i:min(len(s), i+longestAddress)]) {
				return true
			}
			continue
		}
		if i > 1 && inWord[s[i-1]] && s[i-2] != '\\' && s[i-1] != 'm' {
			continue // within a word, and not after a JSON escape or a colour sequence
		}
		for _, k := range shapes().by[s[i]] {
			if starts(s, i, k.prefix) || starts(s, i, footer) {
				return true
			}
		}
	}
	return false
}

// mayEndPassword reports whether s contains an @, or a byte that may begin an ellipsis where text was
// truncated.
func mayEndPassword[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] == '@' || s[i] == "…"[0] {
			return true
		}
	}
	return false
}

// starts reports whether s has prefix at i.
func starts[T string | []byte](s T, i int, prefix string) bool {
	if len(s)-i < len(prefix) {
		return false
	}
	for j := range len(prefix) {
		if s[i+j] != prefix[j] {
			return false
		}
	}
	return true
}

// Writer returns a writer that forwards to "to" with keys masked, even keys split across writes. It
// holds back text that may become a key until [ConcealingWriter.Flush].
func (c *Concealer) Writer(to io.Writer) *ConcealingWriter { return &ConcealingWriter{c: c, to: to} }

// ConcealingWriter masks keys in what is written to it; see [Concealer.Writer].
type ConcealingWriter struct {
	c      *Concealer
	to     io.Writer
	held   string
	before byte // the last byte forwarded
}

// Write forwards b except for a tail that may begin a key.
func (w *ConcealingWriter) Write(b []byte) (int, error) {
	if w.c == nil {
		return w.to.Write(b)
	}
	all := w.held + string(b)
	out, held := w.c.now.Load().scan(all, w.before, false, blot)
	w.held = held
	return len(b), w.pass(out)
}

// Flush forwards the text held back. It must be the last call.
func (w *ConcealingWriter) Flush() error {
	if w.c == nil {
		return nil
	}
	out, _ := w.c.now.Load().scan(w.held, w.before, true, blot)
	w.held = ""
	return w.pass(out)
}

func (w *ConcealingWriter) pass(out string) error {
	if out == "" {
		return nil
	}
	w.before = out[len(out)-1]
	_, err := io.WriteString(w.to, out)
	return err
}
