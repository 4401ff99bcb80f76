package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"coder/internal/policy"
	"coder/internal/policy/rule"
)

// memory keeps what a person said "always" to, in their own home and for this
// project only: a repository cannot bring such answers along.
type memory struct {
	book *rule.Book // all that is remembered, the configuration's list included
	own  *rule.Book // what is written down here
	path string
	root string
}

type remembered struct {
	Root string `json:"root"`
	rule.Kept
}

// remember gives the judgement its memory. Where there is no home nothing is
// remembered.
func (h *house) remember(j *judgement) *memory {
	if h.home == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(h.root))
	m := &memory{book: j.book, root: h.root, path: filepath.Join(h.home, "always", hex.EncodeToString(sum[:8])+".json")}
	kept, err := m.load()
	if err != nil {
		h.warn(fmt.Sprintf("what was always allowed here could not be read, so it is asked about again: %v", err))
	}
	own := *j.book
	own.Always = rule.Remember(kept)
	m.own = &own
	if list := h.conf.Permission.CommandAllowlist; j.book.Exact {
		kept.Lines = slices.Concat(kept.Lines, list)
	} else {
		kept.Commands = slices.Concat(kept.Commands, list)
	}
	j.book.Always = rule.Remember(kept)
	return m
}

func (m *memory) load() (rule.Kept, error) {
	text, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return rule.Kept{}, nil
	}
	if err != nil {
		return rule.Kept{}, err
	}
	var r remembered
	if err := json.Unmarshal(text, &r); err != nil {
		return rule.Kept{}, fmt.Errorf("%s: %w", m.path, err)
	}
	if r.Root != m.root {
		return rule.Kept{}, nil
	}
	return r.Kept, nil
}

// Offer says what would be remembered.
func (m *memory) Offer(c policy.Case) (string, error) { return m.book.Offer(c) }

// Add remembers a call, now and in later sessions.
func (m *memory) Add(_ context.Context, c policy.Case) error {
	if err := errors.Join(m.book.Add(c), m.own.Add(c)); err != nil {
		return err
	}
	text, err := json.MarshalIndent(remembered{m.root, m.own.Always.Kept()}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o700); err != nil {
		return err
	}
	return replaceFile(m.path, append(text, '\n'))
}

// replaceFile writes a file anew, whole or not at all.
func replaceFile(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already if all went well
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
