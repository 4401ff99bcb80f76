package judge

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
	"coder/internal/repofile"
	"coder/internal/whole"
)

// Memory keeps what a person said "always" to, in a folder of their own and
// for one project only: a repository cannot bring such answers along.
type Memory struct {
	book *rule.Book // all that is remembered, what was given to begin with included
	own  *rule.Book // what is written down here
	path string
	root string
}

type remembered struct {
	Root string `json:"root"`
	rule.Kept
}

// Remember gives j a memory kept below dir. List are commands that were always
// allowed to begin with. The error says what could not be read; it is asked
// about again.
func (j *Judge) Remember(dir string, list []string) (*Memory, error) {
	sum := sha256.Sum256([]byte(j.o.Root))
	m := &Memory{book: j.book, root: j.o.Root, path: filepath.Join(dir, hex.EncodeToString(sum[:8])+".json")}
	kept, err := m.load()
	own := *j.book
	own.Always = rule.Remember(kept)
	m.own = &own
	if j.book.Exact {
		kept.Lines = slices.Concat(kept.Lines, list)
	} else {
		kept.Commands = slices.Concat(kept.Commands, list)
	}
	j.book.Always = rule.Remember(kept)
	return m, err
}

// maxMemory bounds the file that is remembered in.
const maxMemory = 16 << 20

func (m *Memory) load() (rule.Kept, error) {
	text, err := repofile.Own(m.path, maxMemory)
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
func (m *Memory) Offer(c policy.Case) (string, error) { return m.book.Offer(c) }

// Add remembers a call, now and in later sessions.
func (m *Memory) Add(_ context.Context, c policy.Case) error {
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
	return whole.Write(m.path, append(text, '\n'), 0o600)
}
