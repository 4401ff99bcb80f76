package secret

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// Concealed stands where a key stood.
const Concealed = "[provider key]"

// Concealer blots known keys out of text that is shown or kept. A nil Concealer
// blots out nothing. It is safe for concurrent use.
type Concealer struct {
	keys   []string // the longest first
	begins [256]bool
}

// Conceal makes a Concealer of keys, each as it is and as JSON writes it.
func Conceal(keys []string) *Concealer {
	c := &Concealer{}
	for _, key := range keys {
		if key == "" {
			continue
		}
		c.keys = append(c.keys, key)
		if quoted, err := json.Marshal(key); err == nil {
			c.keys = append(c.keys, string(quoted[1:len(quoted)-1]))
		}
		c.keys = append(c.keys, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key))
	}
	slices.SortFunc(c.keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	c.keys = slices.Compact(c.keys)
	for _, key := range c.keys {
		c.begins[key[0]] = true
	}
	return c
}

// Text is s without the keys.
func (c *Concealer) Text(s string) string {
	if c == nil || !slices.ContainsFunc(c.keys, func(key string) bool { return strings.Contains(s, key) }) {
		return s
	}
	out, _ := c.scan(s, true)
	return out
}

// scan blots out of s what is a key, the longest where there are several, and
// tells what at its end may be the beginning of one, unless nothing follows.
func (c *Concealer) scan(s string, last bool) (out, held string) {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); i++ {
		if !c.begins[s[i]] {
			continue
		}
		found := 0
		for _, key := range c.keys {
			rest := s[i:]
			if strings.HasPrefix(rest, key) {
				found = len(key)
				break
			}
			if !last && strings.HasPrefix(key, rest) {
				b.WriteString(s[from:i])
				return b.String(), rest
			}
		}
		if found > 0 {
			b.WriteString(s[from:i])
			b.WriteString(Concealed)
			from = i + found
			i = from - 1
		}
	}
	if from == 0 {
		return s, ""
	}
	b.WriteString(s[from:])
	return b.String(), ""
}

// Writer is a writer that passes on to another what is written to it, without
// the keys, also one that comes in several parts. It holds back less than the
// longest key; [ConcealingWriter.Flush] passes on that too.
func (c *Concealer) Writer(to io.Writer) *ConcealingWriter { return &ConcealingWriter{c: c, to: to} }

// ConcealingWriter is made by [Concealer.Writer].
type ConcealingWriter struct {
	c    *Concealer
	to   io.Writer
	held string
}

// Write passes on b but for what may be the beginning of a key.
func (w *ConcealingWriter) Write(b []byte) (int, error) {
	if w.c == nil {
		return w.to.Write(b)
	}
	out, held := w.c.scan(w.held+string(b), false)
	w.held = held
	return len(b), w.pass(out)
}

// Flush passes on what was held back. Nothing follows.
func (w *ConcealingWriter) Flush() error {
	if w.c == nil {
		return nil
	}
	out, _ := w.c.scan(w.held, true)
	w.held = ""
	return w.pass(out)
}

func (w *ConcealingWriter) pass(out string) error {
	if out == "" {
		return nil
	}
	_, err := io.WriteString(w.to, out)
	return err
}
