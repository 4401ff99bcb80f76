// Package session describes sessions for lists, review and `/resume`. A [Snapshot] is a projection in
// the OpenAI form and never authoritative: it can be rebuilt from the logs at any time.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// Head is the part of a session that a list shows.
type Head struct {
	ID      string    `json:"session_id"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
	Meta    Meta      `json:"meta"`

	// The user's name for the session, only in lists.
	Tags     []string `json:"tags,omitempty"`
	Archived bool     `json:"archived,omitempty"`
}

// Meta describes the subject of a session.
type Meta struct {
	Title string `json:"title"`
	Agent string `json:"agent"`
	Model string `json:"model"`
	Dir   string `json:"cwd"`
	Turns int    `json:"turns"`
}

// Snapshot is a whole session. Model, Tools and Messages form a valid chat completions request, with
// nothing that a server would reject; coder's own data is separate.
type Snapshot struct {
	Head
	Model    string            `json:"model"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []json.RawMessage `json:"messages"`
	Notes    []Note            `json:"message_notes,omitempty"`
	Local    []Local           `json:"local,omitempty"`
	LastSeq  uint64            `json:"at_seq"` // the newest record in the snapshot

	// Observed reports that its creator does not work in the session: it never replaces a snapshot with more
	// records.
	Observed bool `json:"-"`
}

// Note is coder's data on a message beyond its OpenAI form.
type Note struct {
	Index       int       `json:"index"`
	Time        time.Time `json:"timestamp"`
	Task        string    `json:"task,omitempty"`
	Interrupted bool      `json:"interrupted,omitempty"`
	Reminders   string    `json:"reminders,omitempty"`
}

// Local is one of coder's own commands, which the model never saw. It came before the message with index
// Before.
type Local struct {
	Before int       `json:"before"`
	Time   time.Time `json:"timestamp"`
	Local  bool      `json:"local"` // always true
	Input  string    `json:"input"`
	Output string    `json:"output"`
}

// A Store saves one snapshot per session, replaced as a whole. Implementations pass
// [coder/testkit/sessiontest.TestStore].
type Store interface {
	// Save replaces the snapshot of s.ID. A reader sees the old one or the new one, never a mixture.
	Save(ctx context.Context, s Snapshot) error
	// Load returns the snapshot of id, or [ErrNotFound].
	Load(ctx context.Context, id string) (Snapshot, error)
	// List yields the heads of all sessions, newest first, at a cost independent of the sessions' length. It
	// yields a damaged snapshot as an error that names it, and continues.
	List(ctx context.Context) iter.Seq2[Head, error]
}

// ErrNotFound reports an unknown session.
var ErrNotFound = errors.New("no such session")
