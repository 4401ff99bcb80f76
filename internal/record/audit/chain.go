package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"hash"

	"coder/internal/core/event"
)

// A Link ties a line of a log to all lines before it: it is the check of the
// line before. A check is the beginning of the SHA-256 of a line, save the
// check itself, and of the link before it, in URL-safe base64: so one field
// tells that a line is as it was written, and that it stands where it stood.
//
// Lines written by earlier versions carry no check, and may stand after lines that
// do: see [Earlier]. The link after such a line is the hash of it, so that the
// next line with a check vouches for them.
type Link [event.SumLen]byte

// First is the link before the first line of a log.
func First(log event.Log) Link { return linkOf(sha256.Sum256([]byte(log.String()))) }

func linkOf(sum [sha256.Size]byte) (l Link) {
	base64.RawURLEncoding.Encode(l[:], sum[:base64.RawURLEncoding.DecodedLen(len(l))])
	return l
}

// Sum gives a line without a newline its check and returns the link after it.
// It uses line's memory.
func Sum(line []byte, prev Link) ([]byte, Link) {
	body := line[:len(line)-1]
	link := linkOf(sha256.Sum256(append(body, prev[:]...)))
	return event.AppendSum(body, link), link
}

// After is the link that line claims to be before the next one.
func After(line []byte) Link {
	if _, sum, ok := event.CutSum(line); ok {
		return Link(sum)
	}
	return linkOf(sha256.Sum256(line))
}

// Earlier reports whether a line without a check can be the work of a program of
// an earlier version that continued a session of a later one: such a program
// signed nothing.
func Earlier(line []byte) bool { return !bytes.Contains(line, []byte(`,"seal":"`)) }

// A Checker holds lines against their checks. The zero value is ready to use,
// by one goroutine at a time.
type Checker struct {
	sum hash.Hash
	buf [sha256.Size]byte
}

// Holds reports whether line, which follows prev, is as it was written. checked
// tells that it carries a check; a line that does not is believed.
func (c *Checker) Holds(line []byte, prev Link) (holds, checked bool) {
	body, sum, ok := event.CutSum(line)
	if !ok {
		return true, false
	}
	if c.sum == nil {
		c.sum = sha256.New()
	}
	c.sum.Reset()
	c.sum.Write(body)
	c.sum.Write(prev[:])
	return linkOf([sha256.Size]byte(c.sum.Sum(c.buf[:0]))) == Link(sum), true
}
