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

// preserveNewer saves a snapshot that s is about to replace under another name, if it has more records than s:
// then the logs behind s have lost something. It skips snapshots that this process saved.
func (ss *Sessions) preserveNewer(s session.Snapshot) error {
	if ss.replaceable[s.ID] && !s.Observed {
		return nil
	}
	at, err := readLastSeq(ss.path(s.ID))
	var unreadable *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP):
		return nil // a link is replaced, and its target unchanged
	case errors.As(err, &unreadable):
		return err
	case err != nil: // no longer a valid snapshot, but it may contain text of one
		return ss.disk.Rename(ss.path(s.ID), ss.path(s.ID)+".damaged")
	case at <= s.LastSeq:
		return nil
	case s.Observed:
		return errNewer
	}
	old, err := ss.Load(context.Background(), s.ID)
	if err != nil {
		return ss.disk.Rename(ss.path(s.ID), ss.path(s.ID)+".damaged")
	}
	now, then := dropSystem(s.Messages), dropSystem(old.Messages)
	if len(then) <= len(now) && slices.EqualFunc(now[:len(then)], then,
		func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return nil
	}
	for n := 1; ; n++ {
		name := PreservedID(s.ID)
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
		switch kept, err := readLastSeq(ss.path(name)); {
		case errors.Is(err, fs.ErrNotExist):
			return ss.disk.Rename(ss.path(s.ID), ss.path(name))
		case err == nil && kept == at:
			return nil // the same snapshot
		}
	}
}

// errNewer reports that the existing snapshot is newer than an observer's.
var errNewer = errors.New("the session file is newer")

// PreservedID returns the id under which the snapshot of a session with more records than its logs is
// saved.
func PreservedID(id string) string { return id + "-before-damage" }

// LastSeq returns the newest record in the snapshot of id, or zero if it cannot be read.
func (ss *Sessions) LastSeq(id string) uint64 {
	if checkID(id) != nil {
		return 0
	}
	at, err := readLastSeq(ss.path(id))
	if err != nil {
		return 0
	}
	return at
}

// readLastSeq reads a snapshot up to the number of its newest record.
func readLastSeq(path string) (at uint64, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NoFollow, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = decodeFields(f, map[string]any{"at_seq": &at})
	return at, err
}

// dropSystem removes the system message, which is added again when it differs.
func dropSystem(ms []json.RawMessage) []json.RawMessage {
	if len(ms) > 0 && bytes.HasPrefix(ms[0], []byte(`{"role":"system"`)) {
		return ms[1:]
	}
	return ms
}
