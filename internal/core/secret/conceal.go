package secret

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"coder/internal/core/jsonx"
)

// KeyMask replaces a known key. The mark ends what Masked makes of text shaped like a key.
const (
	KeyMask       = "[provider key]"
	truncatedMask = "…[masked]"
)

// MaskKey returns the replacement for a key. It keeps the first characters, so that the user can tell
// which key it is.
func MaskKey(key string) string {
	const kept = 6
	n := min(kept, len(key)/3)
	for n > 0 && key[n]&0xC0 == 0x80 {
		n--
	}
	return key[:n] + truncatedMask
}

// HasMask reports whether s, or the text of a JSON value s, contains a masked key.
func HasMask[T string | ~[]byte](s T) bool {
	text := string(s)
	return strings.Contains(text, KeyMask) || strings.Contains(text, truncatedMask[len("…"):])
}

// Concealer masks keys in text that is shown or saved: the known keys, and text shaped like a key. A nil
// Concealer masks nothing. It is safe for concurrent use.
type Concealer struct{ current atomic.Pointer[keySearch] }

// keySearch holds what a Concealer searches for.
type keySearch struct {
	keys        []string      // longest first
	byFirstByte [256][]string // keys by first byte
	pairs       bytePairs     // first two bytes of keys, shapes and escapes
	knownPairs  bytePairs     // first two bytes of keys
}

// bytePairs is a set of byte pairs.
type bytePairs [1 << 16]bool

func (p *bytePairs) add(s string) { p[uint16(s[0])<<8|uint16(s[1])] = true }

// minKnownKeyLen is the shortest known key to search for.
const minKnownKeyLen = 2

// NewConcealer returns a Concealer that knows keys, both verbatim and as encoded in JSON.
func NewConcealer(keys []string) *Concealer {
	c := new(Concealer)
	c.current.Store(newKeySearch(keys))
	return c
}

// Learn adds keys to the known ones.
func (c *Concealer) Learn(keys ...string) {
	for c != nil {
		was := c.current.Load()
		if c.current.CompareAndSwap(was, newKeySearch(slices.Concat(was.keys, keys))) {
			return
		}
	}
}

func newKeySearch(keys []string) *keySearch {
	c := new(keySearch)
	for _, key := range keys {
		if len(key) < minKnownKeyLen || strings.Contains(KeyMask, key) || strings.Contains(truncatedMask, key) {
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
		c.knownPairs.add(key)
		c.byFirstByte[key[0]] = append(c.byFirstByte[key[0]], key)
	}
	for _, k := range loadShapes().all {
		c.pairs.add(k.prefix)
	}
	c.pairs.add(unicodeEscape)
	c.pairs.add(`:\`) // an address as some encode it in JSON
	return c
}

// Text returns s with its keys masked. It allocates nothing if s contains none.
func (c *Concealer) Text(s string) string {
	if c == nil {
		return s
	}
	out, _ := c.current.Load().replaceKeys(s, 0, true, maskFor)
	return out
}

func maskFor(key string, known bool) string {
	if known {
		return KeyMask
	}
	return MaskKey(key)
}

// nextCandidate returns the first position from i on that may begin a key, or the length of s. It skips positions
// within a word, unless a known key may begin there or a JSON escape ends just before.
func nextCandidate[T string | []byte](c *keySearch, s T, i int) int {
	if i+1 >= len(s) {
		return len(s)
	}
	p := uint16(s[i])
	for start := i; i+1 < len(s); i++ {
		p = p<<8 | uint16(s[i+1])
		if c.pairs[p] && (i == start || !wordBytes[s[i-1]] || s[i] == pemHeader[0] || s[i] == schemeSeparator[0] ||
			s[i-1] == 'm' || i > 1 && s[i-2] == '\\' || c.knownPairs[p]) {
			return i
		}
	}
	return len(s)
}

// replaceKeys replaces the keys in s, and returns as held the end of s that may begin a key, unless last is
// set. before is the byte before s, if any.
func (c *keySearch) replaceKeys(s string, before byte, last bool, other func(key string, known bool) string) (out,
	held string) {
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
	for i := nextCandidate(c, s, 0); i < len(s); {
		n, known, open := c.matchAt(s, i, behind(i), last)
		if open {
			b.WriteString(s[from:i])
			return b.String(), s[i:]
		}
		begin := i
		if n == 0 {
			if begin, n = findKeyEnd(s, from, i); n == 0 {
				i = nextCandidate(c, s, i+1)
				continue
			}
		}
		b.WriteString(s[from:begin])
		key := s[i : i+n]
		if !known && strings.HasPrefix(key, schemeSeparator) { // the user name stays, unless it is a key
			at := passwordOffset(key)
			user, _ := c.replaceKeys(key[:at], 0, true, other)
			b.WriteString(user)
			key = key[at:]
			if known = slices.Contains(c.keys, key); !known && !hasKeyPrefix(key) && other(key, false) == MaskKey(key) {
				key = ""
				b.WriteString(truncatedMask) // no character of a password stays
			}
		}
		if key != "" {
			b.WriteString(other(key, known))
		}
		from = i + n
		i = nextCandidate(c, s, from)
	}
	if n := len(s) - 1; !last && n >= from {
		if _, _, open := c.matchAt(s, n, behind(n), false); open {
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

// matchAt returns the length of the key in s at i, or 0. open reports that more text after s may make it a
// key, or a longer one.
func (c *keySearch) matchAt(s string, i int, before byte, last bool) (n int, known, open bool) {
	rest := s[i:]
	for _, key := range c.byFirstByte[rest[0]] {
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
	if rest[0] == schemeSeparator[0] {
		if !wordBytes[before] {
			return n, known, false
		}
	} else if rest[0] != pemHeader[0] && continuesWord(s, i, before) {
		return n, known, false
	}
	for _, k := range loadShapes().byFirstByte[rest[0]] {
		if !known && !last && len(rest) < len(k.prefix) && strings.HasPrefix(k.prefix, rest) {
			return 0, false, true
		}
		if !strings.HasPrefix(rest, k.prefix) || !k.canFollow(before) {
			continue
		}
		m, ended := k.matchRest(rest[len(k.prefix):])
		if held := maxHeldLen[k.prefix == pemHeader]; !ended && !last && len(rest) < held {
			return 0, false, true
		}
		if m > 0 && len(k.prefix)+m > n {
			n, known = len(k.prefix)+m, false
			if n, open = c.extendMatch(s, i, n, last); open {
				return 0, false, true
			}
		}
	}
	return n, known, false
}

// maxHeldLen is how much text may be held back to see whether it is a key. Private keys are longer, so
// they have a larger limit.
var maxHeldLen = map[bool]int{false: 4 << 10, true: 16 << 10}

// extendMatch extends a key to the end of known keys that begin in it, and reports whether the text after s
// decides how far.
func (c *keySearch) extendMatch(s string, i, n int, last bool) (whole int, open bool) {
	for j := i + 1; j < i+n; j++ {
		for _, key := range c.byFirstByte[s[j]] {
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

// canFollow reports whether such a key may follow the byte before: a bot's secret follows its number, and
// the last part of a name is no key.
func (k shape) canFollow(before byte) bool {
	switch k.prefix {
	case botSeparator:
		return before >= '0' && before <= '9'
	case mailKeyPrefix:
		return before != '-'
	}
	return true
}

// continuesWord reports whether the text at i continues a word and so cannot begin a key. The end of a colour
// sequence is not a word.
func continuesWord(s string, i int, before byte) bool {
	if !wordBytes[before] {
		return false
	}
	if before == 'm' {
		if at := strings.LastIndexByte(s[max(0, i-12):i], '\x1b'); at >= 0 {
			return false
		}
	}
	return true
}

// unicodeEscape begins a character's escape by number.
const unicodeEscape = `\u`

// JSON masks keys in the decoded strings of a JSON text. If there are none, it returns the same text and
// allocates nothing.
func (c *Concealer) JSON(text []byte) []byte {
	if c == nil || !mayContainKey(c.current.Load(), text) {
		return text
	}
	return jsonx.MapStrings(text, c.Text)
}

// Value masks s as JSON if it is JSON, and as Text otherwise.
func (c *Concealer) Value(s string) string {
	if c == nil || s == "" || s[0] != '{' && s[0] != '[' {
		return c.Text(s)
	}
	if !mayContainKey(c.current.Load(), s) {
		return s
	}
	if !json.Valid([]byte(s)) {
		return c.Text(s)
	}
	return string(c.JSON([]byte(s)))
}

// mayContainKey reports whether a JSON text may contain a key.
func mayContainKey[T string | []byte](c *keySearch, s T) bool {
	for i := nextCandidate(c, s, 0); i < len(s); i = nextCandidate(c, s, i+1) {
		if hasPrefixAt(s, i, unicodeEscape+"00") && i+4 < len(s) && s[i+4] >= '2' && s[i+4] <= '7' {
			return true // a letter that needed no escape
		}
		for _, key := range c.byFirstByte[s[i]] {
			if hasPrefixAt(s, i, key) {
				return true
			}
		}
		if s[i] == schemeSeparator[0] {
			if hasPrefixAt(s, i, botSeparator) || hasPrefixAt(s, i, `:\/\/`) || hasPrefixAt(s, i, schemeSeparator) &&
				mayContainPasswordEnd(s[i:min(len(s), i+maxAddressLen)]) {
				return true
			}
			continue
		}
		if i > 1 && wordBytes[s[i-1]] && s[i-2] != '\\' && s[i-1] != 'm' {
			continue // within a word, and not after a JSON escape or a colour sequence
		}
		for _, k := range loadShapes().byFirstByte[s[i]] {
			if hasPrefixAt(s, i, k.prefix) || hasPrefixAt(s, i, pemFooter) {
				return true
			}
		}
	}
	return false
}

// mayContainPasswordEnd reports whether s contains an @, or a byte that may begin an ellipsis where text was
// truncated.
func mayContainPasswordEnd[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] == '@' || s[i] == "…"[0] {
			return true
		}
	}
	return false
}

// hasPrefixAt reports whether s has prefix at i.
func hasPrefixAt[T string | []byte](s T, i int, prefix string) bool {
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
func (c *Concealer) Writer(to io.Writer) *ConcealingWriter {
	return &ConcealingWriter{concealer: c, out: to}
}

// ConcealingWriter masks keys in what is written to it; see [Concealer.Writer].
type ConcealingWriter struct {
	concealer *Concealer
	out       io.Writer
	held      string
	lastByte  byte // the last byte forwarded
}

// Write forwards b except for a tail that may begin a key.
func (w *ConcealingWriter) Write(b []byte) (int, error) {
	if w.concealer == nil {
		return w.out.Write(b)
	}
	all := w.held + string(b)
	out, held := w.concealer.current.Load().replaceKeys(all, w.lastByte, false, maskFor)
	w.held = held
	return len(b), w.forward(out)
}

// Flush forwards the text held back. It must be the last call.
func (w *ConcealingWriter) Flush() error {
	if w.concealer == nil {
		return nil
	}
	out, _ := w.concealer.current.Load().replaceKeys(w.held, w.lastByte, true, maskFor)
	w.held = ""
	return w.forward(out)
}

func (w *ConcealingWriter) forward(out string) error {
	if out == "" {
		return nil
	}
	w.lastByte = out[len(out)-1]
	_, err := io.WriteString(w.out, out)
	return err
}
