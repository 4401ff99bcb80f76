package queue

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/uip"

	"github.com/nats-io/nats.go/jetstream"
)

// Answer is what a person decided, signed with the key that they enrolled. The
// signature binds it to the task and to the question, word for word.
type Answer struct {
	Task      string       `json:"task"`
	Question  string       `json:"question"` // a sum of it
	Response  uip.Response `json:"response"`
	By        string       `json:"by"`
	At        time.Time    `json:"at"`
	Signature []byte       `json:"signature,omitempty"`
}

// Sum tells a question from every other.
func Sum(q uip.Request) string {
	sum := sha256.Sum256(q.Canonical())
	return hex.EncodeToString(sum[:])
}

func (a Answer) text() []byte {
	a.Signature = nil
	return append([]byte("coder fleet answer\n"), jsonx.MustMarshal(a)...)
}

// Sign signs an answer.
func (a *Answer) Sign(key ed25519.PrivateKey) { a.Signature = ed25519.Sign(key, a.text()) }

// via begins what the record of an answer says about how it came.
const via = "fleet"

// Via is how the answer is told on record: who gave it, when, and the signature.
func (a Answer) Via() string {
	return strings.Join([]string{via, a.By, a.At.UTC().Format(time.RFC3339Nano),
		base64.RawStdEncoding.EncodeToString(a.Signature)}, " ")
}

// Recorded is the answer that a response on record is, to be verified again.
func Recorded(task string, q uip.Request, r uip.Response) (a Answer, ok bool) {
	words := strings.Fields(r.AnsweredBy)
	if len(words) != 4 || words[0] != via {
		return a, false
	}
	at, err := time.Parse(time.RFC3339Nano, words[2])
	signature, bad := base64.RawStdEncoding.DecodeString(words[3])
	if err != nil || bad != nil {
		return a, false
	}
	r.AnsweredBy = ""
	return Answer{Task: task, Question: Sum(q), Response: r, By: words[1], At: at, Signature: signature}, true
}

// Enroll makes the key of a person known. Only an admin may.
func (q *Queue) Enroll(ctx context.Context, who string, key ed25519.PublicKey) error {
	if _, err := q.people.Put(ctx, who, []byte(base64.StdEncoding.EncodeToString(key))); err != nil {
		return message.Errorf("enroll %s: %w", who, err)
	}
	return nil
}

// ValidName reports whether somebody can be enrolled under a name.
func ValidName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	})
}

// ErrUnsigned is what an answer is refused with that nobody is known to have given.
var ErrUnsigned = errors.New("unknown author")

// Verify makes sure that a was signed by the person whom it names; if not, the
// error is [ErrUnsigned].
func (q *Queue) Verify(ctx context.Context, a Answer) error {
	if !ValidName(a.By) {
		return ErrUnsigned
	}
	e, err := q.people.Get(ctx, a.By)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return message.Errorf("%w: %s is not enrolled in this fleet", ErrUnsigned, a.By)
	}
	if err != nil {
		return err
	}
	key, err := base64.StdEncoding.DecodeString(string(e.Value()))
	if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, a.text(), a.Signature) {
		return message.Errorf("%w: not signed with the key of %s", ErrUnsigned, a.By)
	}
	return nil
}

// Respond sends an answer to whoever goes on with the task.
func (q *Queue) Respond(ctx context.Context, a Answer) error {
	once := a.Response.ID + "." + hex.EncodeToString(a.Signature[:8])
	return q.publish(ctx, Job{Task: Task{ID: a.Task}, Answer: &a, Version: Version}, once)
}
