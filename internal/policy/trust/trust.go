// Package trust remembers which workspaces the user trusts. Cloning a repository does not make it
// trusted: trust applies to a folder together with the content of the files that could change coder's
// behavior there, and ends as soon as anyone else changes one of them.
package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// files decide how coder behaves in a workspace.
var files = []string{filepath.Join(".coder", "config.json"), ".mcp.json"}

// maxFile limits the size of each file; a longer file is not trusted.
const maxFile = 1 << 20

// maxBook limits the size of the trust file.
const maxBook = 64 << 20

// Book is the record of trusted folders.
type Book struct {
	Path string // of the file; empty remembers nothing
	Now  func() time.Time
}

type entry struct {
	Hash     string    `json:"hash"`
	Since    time.Time `json:"since"`
	Declined bool      `json:"declined,omitempty"` // the user declined
}

// State is the trust in a workspace.
type State uint8

// The states of a workspace.
const (
	Unknown State = iota // never trusted
	Changed              // trusted once, but its files changed
	Trusted
)

func (s State) String() string {
	return [...]string{"not trusted", "changed since it was trusted", "trusted"}[s]
}

// Hash returns the fingerprint of root's files that decide how coder behaves.
func Hash(root string) (string, error) {
	sum := sha256.New()
	for _, name := range files {
		text, err := repofile.Below(root).Read(name, maxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, repofile.ErrTooLarge):
			return "", fmt.Errorf("%s is too large to trust", filepath.Join(root, name))
		case err != nil:
			return "", fmt.Errorf("read the content to trust: %w", err)
		}
		text = bytes.TrimSpace(text)
		fmt.Fprintf(sum, "%s %d\n", filepath.ToSlash(name), len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Settings returns the existing files of a workspace that trust covers.
func Settings(root string) (found []string) {
	for _, name := range files {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// Of returns the state of root. Unreadable files are not trusted.
func (b Book) Of(root string) (State, error) {
	all, err := b.load()
	if err != nil {
		return Unknown, err
	}
	e, ok := all[filepath.Clean(root)]
	if !ok || e.Declined {
		return Unknown, nil
	}
	hash, err := Hash(root)
	if err != nil || hash != e.Hash {
		return Changed, err
	}
	return Trusted, nil
}

// Give trusts root in its current state.
func (b Book) Give(root string) error { return b.note(root, false) }

// GiveAs trusts root in the state with that fingerprint.
func (b Book) GiveAs(root, hash string) error {
	e := entry{Hash: hash, Since: b.Now().UTC().Truncate(time.Second)}
	return b.change(func(all map[string]entry) { all[filepath.Clean(root)] = e })
}

// Decline remembers that the user did not trust root in its current state, if b has a file.
func (b Book) Decline(root string) error { return b.note(root, true) }

// Declined reports whether the user declined to trust root in its current state.
func (b Book) Declined(root string) bool {
	all, err := b.load()
	if err != nil {
		return false
	}
	hash, err := Hash(root)
	e := all[filepath.Clean(root)]
	return err == nil && e.Declined && e.Hash == hash
}

func (b Book) note(root string, declined bool) error {
	hash, err := Hash(root)
	if err != nil || declined && b.Path == "" {
		return err
	}
	e := entry{Hash: hash, Declined: declined, Since: b.Now().UTC().Truncate(time.Second)}
	return b.change(func(all map[string]entry) { all[filepath.Clean(root)] = e })
}

// Take ends the trust in root.
func (b Book) Take(root string) error {
	return b.change(func(all map[string]entry) { delete(all, filepath.Clean(root)) })
}

func (b Book) load() (map[string]entry, error) {
	all := make(map[string]entry)
	if b.Path == "" {
		return all, nil
	}
	text, err := repofile.Own(b.Path, maxBook)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the trust list: %w", err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the trust list: %s: %w", b.Path, err)
	}
	return all, nil
}

// change rewrites the book atomically.
func (b Book) change(do func(map[string]entry)) error {
	if b.Path == "" {
		return errors.New("no home folder to save it in; set HOME or CODER_HOME")
	}
	all, err := b.load()
	if err != nil {
		return err
	}
	do(all)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.Path), 0o700); err != nil {
		return fmt.Errorf("save the trust list: %w", err)
	}
	if err := atomicfile.Write(b.Path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("save the trust list: %w", err)
	}
	return nil
}
