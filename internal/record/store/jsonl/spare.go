package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"coder/internal/host/disk"
	"coder/internal/record/session"
)

// spare keeps a snapshot that is about to be replaced by s, under another name,
// if it knows more than s does: then the logs that s was made from have lost
// something. What this process saved itself need not be looked at.
func (ss *Sessions) spare(s session.Snapshot) error {
	if ss.known[s.ID] && !s.Observed {
		return nil
	}
	at, err := readAt(ss.path(s.ID))
	var unreadable *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP):
		return nil // a link is replaced, and what it leads to left alone
	case errors.As(err, &unreadable):
		return err
	case err != nil: // it is no snapshot any more, but may hold words of one
		return ss.disk.Rename(ss.path(s.ID), ss.path(s.ID)+".damaged")
	case at <= s.At:
		return nil
	case s.Observed:
		return errNewer
	}
	old, err := ss.Load(context.Background(), s.ID)
	if err != nil {
		return ss.disk.Rename(ss.path(s.ID), ss.path(s.ID)+".damaged")
	}
	now, then := withoutSystem(s.Messages), withoutSystem(old.Messages)
	if len(then) <= len(now) && slices.EqualFunc(now[:len(then)], then, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return nil
	}
	for n := 1; ; n++ {
		name := BeforeDamage(s.ID)
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
		switch kept, err := readAt(ss.path(name)); {
		case errors.Is(err, fs.ErrNotExist):
			return ss.disk.Rename(ss.path(s.ID), ss.path(name))
		case err == nil && kept == at:
			return nil // it is this one
		}
	}
}

// errNewer reports that the snapshot there is knows more than one made by
// somebody who only looks on.
var errNewer = errors.New("the session file is newer")

// BeforeDamage is the id under which the snapshot of a session is kept that
// knew more than its logs.
func BeforeDamage(id string) string { return id + "-before-damage" }

// At is the number of the newest record that the snapshot of id was made from;
// zero if there is none that can be read.
func (ss *Sessions) At(id string) uint64 {
	if checkID(id) != nil {
		return 0
	}
	at, err := readAt(ss.path(id))
	if err != nil {
		return 0
	}
	return at
}

// readAt reads a snapshot as far as the number of its newest record.
func readAt(path string) (at uint64, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NoFollow, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = decodeFields(f, map[string]any{"at_seq": &at})
	return at, err
}

// withoutSystem drops the system text, which is said anew when it differs.
func withoutSystem(ms []json.RawMessage) []json.RawMessage {
	if len(ms) > 0 && bytes.HasPrefix(ms[0], []byte(`{"role":"system"`)) {
		return ms[1:]
	}
	return ms
}
