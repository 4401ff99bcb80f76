//go:build unix

package shell

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Output is what is kept of a stream: its beginning and, if bytes were dropped,
// its end.
type Output struct {
	Head, Tail []byte
	Dropped    int64 // bytes between the two that were not kept
}

// Len is how many bytes were kept.
func (o Output) Len() int { return len(o.Head) + len(o.Tail) }

// Text is the output cleaned, with a note where bytes were dropped.
func (o Output) Text() string {
	if o.Dropped == 0 {
		return Clean(slices.Concat(o.Head, o.Tail))
	}
	head, tail := wholeRunes(o.Head, o.Tail)
	return Clean(head) + fmt.Sprintf("\n[%d bytes left out]\n", o.Dropped) + Clean(tail)
}

// wholeRunes drops the halves of runes at the cut.
func wholeRunes(head, tail []byte) ([]byte, []byte) {
	for i := 1; i < utf8.UTFMax && i <= len(head); i++ {
		if end := head[len(head)-i:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return head, tail
}

// keeper keeps the first and the last bytes of what is written to it, limit
// bytes in all.
type keeper struct {
	limit int
	head  []byte
	ring  []byte // the latest bytes after head, once full a ring
	next  int    // where in a full ring the oldest byte is
	total int64
}

func (k *keeper) write(b []byte) {
	k.total += int64(len(b))
	n := min(len(b), (k.limit+1)/2-len(k.head))
	k.head = append(k.head, b[:n]...)
	b = b[n:]
	size := k.limit / 2 // up to which the ring grows, to forget its oldest bytes then
	b = b[max(0, len(b)-size):]
	n = min(len(b), size-len(k.ring))
	k.ring = append(k.ring, b[:n]...)
	for b = b[n:]; len(b) > 0; {
		n := copy(k.ring[k.next:], b)
		k.next = (k.next + n) % size
		b = b[n:]
	}
}

func (k *keeper) output() Output {
	o := Output{Head: k.head, Tail: slices.Concat(k.ring[k.next:], k.ring[:k.next])}
	o.Dropped = k.total - int64(o.Len())
	return o
}
