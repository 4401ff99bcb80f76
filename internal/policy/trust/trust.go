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

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// coveredFiles decide how coder behaves in a workspace.
var coveredFiles = []string{filepath.Join(".coder", "config.json"), ".mcp.json"}

// maxFile limits the size of each file; a longer file is not trusted.
const maxFile = 1 << 20

// maxRegistry limits the size of the trust file.
const maxRegistry = 64 << 20

// Registry is the record of trusted folders.
type Registry struct {
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
	for _, name := range coveredFiles {
		text, err := repofile.NewRoot(root).Read(name, maxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, repofile.ErrTooLarge):
			return "", message.Errorf("%s is too large to trust", filepath.Join(root, name))
		case err != nil:
			return "", message.Errorf("read the content to trust: %w", err)
		}
		text = bytes.TrimSpace(text)
		fmt.Fprintf(sum, "%s %d\n", filepath.ToSlash(name), len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ExistingFiles returns the existing files of a workspace that trust covers.
func ExistingFiles(root string) (found []string) {
	for _, name := range coveredFiles {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// StateOf returns the state of root. Unreadable files are not trusted.
func (b Registry) StateOf(root string) (State, error) {
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

// Trust trusts root in its current state.
func (b Registry) Trust(root string) error { return b.record(root, false) }

// TrustAs trusts root in the state with that fingerprint.
func (b Registry) TrustAs(root, hash string) error {
	e := entry{Hash: hash, Since: b.Now().UTC().Truncate(time.Second)}
	return b.update(func(all map[string]entry) { all[filepath.Clean(root)] = e })
}

// Decline remembers that the user did not trust root in its current state, if b has a file.
func (b Registry) Decline(root string) error { return b.record(root, true) }

// HasDeclined reports whether the user declined to trust root in its current state.
func (b Registry) HasDeclined(root string) bool {
	all, err := b.load()
	if err != nil {
		return false
	}
	hash, err := Hash(root)
	e := all[filepath.Clean(root)]
	return err == nil && e.Declined && e.Hash == hash
}

func (b Registry) record(root string, declined bool) error {
	hash, err := Hash(root)
	if err != nil || declined && b.Path == "" {
		return err
	}
	e := entry{Hash: hash, Declined: declined, Since: b.Now().UTC().Truncate(time.Second)}
	return b.update(func(all map[string]entry) { all[filepath.Clean(root)] = e })
}

// Revoke ends the trust in root.
func (b Registry) Revoke(root string) error {
	return b.update(func(all map[string]entry) { delete(all, filepath.Clean(root)) })
}

func (b Registry) load() (map[string]entry, error) {
	all := make(map[string]entry)
	if b.Path == "" {
		return all, nil
	}
	text, err := repofile.ReadOwn(b.Path, maxRegistry)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, message.Errorf("read the trust list: %w", err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, message.Errorf("read the trust list: %s: %w", b.Path, err)
	}
	return all, nil
}

// update rewrites the book atomically, with what other processes wrote to it.
func (b Registry) update(do func(map[string]entry)) error {
	if b.Path == "" {
		return errors.New("no home folder to save it in; set HOME or CODER_HOME")
	}
	var unread error // it says which file
	err := atomicfile.Update(b.Path, 0o600, func() ([]byte, error) {
		all, err := b.load()
		if err != nil {
			unread = err
			return nil, err
		}
		do(all)
		text, err := json.MarshalIndent(all, "", "  ")
		return append(text, '\n'), err
	})
	if err != nil && unread == nil {
		return message.Errorf("save the trust list: %w", err)
	}
	return err
}
