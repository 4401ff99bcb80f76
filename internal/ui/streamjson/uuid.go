package streamjson

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"coder/internal/core/event"
)

// namespace separates our uuids from those that other programs derive from the same words.
const namespace = "coder.stream-json."

// nameUUID returns the name-based uuid (RFC 4122, version 5) of words.
func nameUUID(words string) string {
	u := sha1.Sum([]byte(namespace + words))
	u[6] = u[6]&0x0f | 0x50 // version 5
	u[8] = u[8]&0x3f | 0x80 // the RFC's variant
	h := hex.EncodeToString(u[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// recordUUID returns the uuid of the line for a durable record.
func (r *Renderer) recordUUID(rec event.Record) string {
	if rec.Seq == 0 {
		return r.lineUUID("message")
	}
	return UUID(r.options.Session, rec.Seq)
}

// UUID returns the uuid of the line for a durable record of a session.
func UUID(session string, seq uint64) string { return nameUUID(fmt.Sprintf("%s/%d", session, seq)) }

// lineUUID returns the uuid of a line without a durable record: derived from its kind, the newest
// record and the number of such lines since the stream began.
func (r *Renderer) lineUUID(kind string) string {
	r.lineCounts[kind]++
	return nameUUID(fmt.Sprintf("%s/%d/%s/%d", r.options.Session, r.lastSeq, kind, r.lineCounts[kind]))
}
