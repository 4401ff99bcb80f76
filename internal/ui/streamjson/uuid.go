package streamjson

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"coder/internal/core/event"
)

// namespace sets our uuids apart from those other programs make of the same
// words.
const namespace = "coder.stream-json."

// uuidOf is a name-based uuid (RFC 4122, version 5) of words.
func uuidOf(words string) string {
	u := sha1.Sum([]byte(namespace + words))
	u[6] = u[6]&0x0f | 0x50 // version 5
	u[8] = u[8]&0x3f | 0x80 // the RFC's variant
	h := hex.EncodeToString(u[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// numbered is the uuid of the line that stands for a kept record.
func (r *Renderer) numbered(rec event.Record) string {
	if rec.Seq == 0 {
		return r.unnumbered("message")
	}
	return UUID(r.o.Session, rec.Seq)
}

// UUID is that of the line which stands for a kept record of a session.
func UUID(session string, seq uint64) string { return uuidOf(fmt.Sprintf("%s/%d", session, seq)) }

// unnumbered is the uuid of a line of some kind that no kept record stands
// for: it is told apart by the newest record and by how many there were since
// the stream began.
func (r *Renderer) unnumbered(kind string) string {
	r.count[kind]++
	return uuidOf(fmt.Sprintf("%s/%d/%s/%d", r.o.Session, r.last, kind, r.count[kind]))
}
