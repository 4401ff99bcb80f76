package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"hash"

	"coder/internal/core/event"
)

// A Link ties a line of a log to all earlier lines: it is the checksum of the previous line. A checksum
// is the start of the SHA-256 of the line, without the checksum itself, and of the link before it, in
// URL-safe base64: one field proves that a line is unchanged and in its place.
//
// Lines from earlier versions have no checksum, and may follow lines that have one: see [IsEarlierFormat]. The
// link after such a line is its hash, so that the next checksum covers it.
type Link [event.SumLen]byte

// FirstLink returns the link before the first line of a log.
func FirstLink(log event.Log) Link { return newLink(sha256.Sum256([]byte(log.String()))) }

func newLink(sum [sha256.Size]byte) (l Link) {
	base64.RawURLEncoding.Encode(l[:], sum[:base64.RawURLEncoding.DecodedLen(len(l))])
	return l
}

// AddChecksum adds the checksum to a line without a newline and returns the link after it. It uses line's
// memory.
func AddChecksum(line []byte, prev Link) ([]byte, Link) {
	body := line[:len(line)-1]
	link := newLink(sha256.Sum256(append(body, prev[:]...)))
	return event.AppendSum(body, link), link
}

// LinkAfter returns the link after a line, as the line itself claims.
func LinkAfter(line []byte) Link {
	if _, sum, ok := event.SplitSum(line); ok {
		return Link(sum)
	}
	return newLink(sha256.Sum256(line))
}

// IsEarlierFormat reports whether a line without a checksum may come from an earlier version that continued a
// later version's session: such a version signed nothing.
func IsEarlierFormat(line []byte) bool { return !bytes.Contains(line, []byte(`,"seal":"`)) }

// A Checker verifies checksums. The zero value is ready to use; it is not safe for concurrent use.
type Checker struct {
	sum hash.Hash
	buf [sha256.Size]byte
}

// Check reports whether line, which follows prev, is unchanged. checked reports that it has a checksum;
// a line without one is accepted.
func (c *Checker) Check(line []byte, prev Link) (holds, checked bool) {
	body, sum, ok := event.SplitSum(line)
	if !ok {
		return true, false
	}
	if c.sum == nil {
		c.sum = sha256.New()
	}
	c.sum.Reset()
	c.sum.Write(body)
	c.sum.Write(prev[:])
	return newLink([sha256.Size]byte(c.sum.Sum(c.buf[:0]))) == Link(sum), true
}
