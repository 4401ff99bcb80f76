// Package seal tells the records that this user's program wrote on this machine
// from whatever else a log holds. Logs lie in the workspace, where others can
// write: what stands there may be read by anyone and believed by nobody, save
// for records that carry a seal made with the user's own key.
//
// A seal binds a record to its workspace, its session, its place in the order,
// who it is of and what it says; the seal of an answer also to the question it
// answers, word for word. Moved, copied or changed, it does not hold.
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

// Notary seals the records of one session and knows its own seals. It must be
// shown every record of the session, in order, by one of its methods.
type Notary struct {
	key           *authkey.Key
	root, session string
	asked         map[string][sha256.Size]byte // questions, by id
}

// New returns the Notary of a session in the workspace root. With a nil key it
// seals nothing and vouches for nothing.
func New(key *authkey.Key, root, session string) *Notary {
	return &Notary{key: key, root: root, session: session, asked: make(map[string][sha256.Size]byte)}
}

// Seal signs a record that is about to be kept, if it is one of those that
// something may later be done because of.
func (n *Notary) Seal(r *event.Record) {
	if content, ok := n.content(*r); ok {
		r.Seal = n.key.Sign("record", n.parts(*r, content)...)
	}
}

// Vouches reports whether r, as it was read, carries this user's seal.
func (n *Notary) Vouches(r event.Record) bool {
	content, ok := n.content(r)
	return ok && r.Seal != "" && n.key.Verify(r.Seal, "record", n.parts(r, content)...)
}

func (n *Notary) parts(r event.Record, content []byte) [][]byte {
	name, version := event.Name(r.Event)
	return [][]byte{
		[]byte(n.root), []byte(n.session), strconv.AppendUint(nil, r.Seq, 10),
		[]byte(name), strconv.AppendInt(nil, int64(version), 10), []byte(r.Task), []byte(r.Actor), content,
	}
}

// content is what of a record is under seal. What only tells the model or the
// person something, and lets nothing be done, is not.
func (n *Notary) content(r event.Record) ([]byte, bool) {
	switch e := r.Event.(type) {
	case event.InteractionRequested:
		n.asked[e.ID] = sha256.Sum256(e.Request.Canonical())
		return nil, false // a question lets nothing be done
	case event.InteractionResponded:
		question := n.asked[e.ID]
		return append(encode(e), question[:]...), true
	case event.TaskCreated, event.ModeChanged, event.ToolCallRequested:
		return encode(e), true
	case event.ToolCallCompleted:
		e.Output = nil // words for the model
		return encode(e), true
	case event.MessageAdded:
		if calls := e.Message.Calls(); len(calls) > 0 && e.Message.Role == chat.Assistant && r.Actor != event.ActorRecovery { // what it takes from a snapshot no model said
			var all []chat.Part

			for _, c := range calls {
				all = append(all, c)
			}
			return encode(chat.Message{Role: e.Message.Role, Parts: all}), true
		}
	}
	return nil, false
}

// encode writes v as it is kept. Text that was not UTF-8 is kept as U+FFFD, and
// has to read the same before and after.
func encode(v any) []byte {
	text, err := jsonx.JSON(v)
	if err != nil {
		return nil // it cannot be kept either
	}
	if unread := []byte(`\ufffd`); bytes.Contains(text, unread) { // a large text is not copied for nothing
		text = bytes.ReplaceAll(text, unread, []byte("\ufffd"))
	}
	return text
}
