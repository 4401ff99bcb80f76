// Package seal distinguishes records that this user's coder wrote on this machine from everything else
// in a log. Logs are in the workspace, where others can write: anyone may read them, but only records
// with a seal by the user's own key are trusted.
//
// A seal binds a record to its workspace, its session, its position, its author and its content; the
// seal of an answer also binds it to the exact question. A record that was moved, copied or changed has
// no valid seal.
package seal

import (
	"bytes"
	"crypto/sha256"
	"strconv"

	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/host/authkey"
)

// Sealer seals the records of one session and verifies its own seals. Every record of the session must
// pass through one of its methods, in order.
type Sealer struct {
	key           *authkey.Key
	root, session string
	questions     map[string][sha256.Size]byte // questions by id
}

// New returns the Notary of a session in the workspace root. With a nil key it seals and vouches for
// nothing.
func New(key *authkey.Key, root, session string) *Sealer {
	return &Sealer{key: key, root: root, session: session, questions: make(map[string][sha256.Size]byte)}
}

// Seal signs a record that is about to be saved, if something may later be done because of it.
func (n *Sealer) Seal(r *event.Record) {
	if content, ok := n.sealedContent(*r); ok {
		r.Seal = n.key.Sign("record", n.signedParts(*r, content)...)
	}
}

// HasValidSeal reports whether r, as read, has this user's valid seal.
func (n *Sealer) HasValidSeal(r event.Record) bool {
	content, ok := n.sealedContent(r)
	return ok && r.Seal != "" && n.key.Verify(r.Seal, "record", n.signedParts(r, content)...)
}

func (n *Sealer) signedParts(r event.Record, content []byte) [][]byte {
	name, version := event.WireName(r.Event)
	return [][]byte{
		[]byte(n.root), []byte(n.session), strconv.AppendUint(nil, r.Seq, 10),
		[]byte(name), strconv.AppendInt(nil, int64(version), 10), []byte(r.Task), []byte(r.Actor), content,
	}
}

// sealedContent returns the sealed part of a record. It excludes what only informs the model or the user and
// permits nothing.
func (n *Sealer) sealedContent(r event.Record) ([]byte, bool) {
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		n.questions[e.ID] = sha256.Sum256(e.Request.Canonical())
		return nil, false // a question permits nothing
	case event.InteractionResponded:
		question := n.questions[e.ID]
		return append(encode(e), question[:]...), true
	case event.TaskCreated, event.ModeChanged, event.ToolCallRequested:
		return encode(e), true
	case event.ToolCallCompleted:
		e.Output = nil // only for the model
		return encode(e), true
	case event.MessageAdded:
		// calls in an imported snapshot come from no model
		if calls := e.Message.Calls(); len(calls) > 0 && e.Message.Role == chat.Assistant && r.Actor != event.ActorRecovery {
			var all []chat.Part

			for _, c := range calls {
				all = append(all, c)
			}
			return encode(chat.Message{Role: e.Message.Role, Parts: all}), true
		}
	}
	return nil, false
}

// encode encodes v as it is saved. Invalid UTF-8 is saved as U+FFFD, and must be encoded equally before
// and after.
func encode(v any) []byte {
	text, err := jsonx.Marshal(v)
	if err != nil {
		return nil // it cannot be saved either
	}
	if unread := []byte(`\ufffd`); bytes.Contains(text, unread) { // avoids copying a large text
		text = bytes.ReplaceAll(text, unread, []byte("\ufffd"))
	}
	return text
}
