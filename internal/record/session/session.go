// Package session describes a session for lists, review and `/resume`. A
// [Snapshot] is a projection in the OpenAI form, never the truth: it can be
// rebuilt from the logs at any time.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// Head is what a list of sessions shows.
type Head struct {
	ID      string    `json:"session_id"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
	Meta    Meta      `json:"meta"`

	// What you called it, in lists alone.
	Tags     []string `json:"tags,omitempty"`
	Archived bool     `json:"archived,omitempty"`
}

// Meta says what a session was about.
type Meta struct {
	Title string `json:"title"`
	Agent string `json:"agent"`
	Model string `json:"model"`
	Dir   string `json:"cwd"`
	Turns int    `json:"turns"`
}

// Snapshot is a whole session. Model, Tools and Messages are what a chat
// completions request needs, and hold nothing such a server would refuse;
// what is ours alone stands beside them.
type Snapshot struct {
	Head
	Model    string            `json:"model"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []json.RawMessage `json:"messages"`
	Notes    []Note            `json:"message_notes,omitempty"`
	Local    []Local           `json:"local,omitempty"`
	At       uint64            `json:"at_seq"` // records after this one are not in the snapshot

	// Observed says that it was made by somebody who does not work in the
	// session: it never replaces one that knows more.
	Observed bool `json:"-"`
}

// Note is what we know of one message beyond its OpenAI form.
type Note struct {
	Index       int       `json:"index"`
	Time        time.Time `json:"timestamp"`
	Task        string    `json:"task,omitempty"`
	Interrupted bool      `json:"interrupted,omitempty"`
	Reminders   string    `json:"reminders,omitempty"`
}

// Local is a command of the program's own, which the model never saw. It came
// before the message with index Before.
type Local struct {
	Before int       `json:"before"`
	Time   time.Time `json:"timestamp"`
	Local  bool      `json:"local"` // always true
	Input  string    `json:"input"`
	Output string    `json:"output"`
}

// A Store keeps snapshots, one per session, replaced whole.
// Implementations pass [coder/testkit/sessiontest.TestStore].
type Store interface {
	// Save replaces the snapshot of s.ID. A reader sees the old one or the
	// new one, never a mixture.
	Save(ctx context.Context, s Snapshot) error
	// Load returns the snapshot of id, or [ErrNotFound].
	Load(ctx context.Context, id string) (Snapshot, error)
	// List yields the heads of all sessions, newest first, at a cost that does
	// not depend on how long the sessions are. A broken snapshot is yielded as
	// an error that names it, and the list goes on.
	List(ctx context.Context) iter.Seq2[Head, error]
}

// ErrNotFound reports that there is no such session.
var ErrNotFound = errors.New("no such session")
