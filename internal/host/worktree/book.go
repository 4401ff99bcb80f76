package worktree

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Entry describes a worktree. It is saved before the worktree is created, so that a crash leaves no
// unknown one.
type Entry struct {
	Name        string    `json:"name"`
	Dir         string    `json:"dir"`     // directory of the worktree
	Workspace   string    `json:"work"`    // the workspace inside it
	From        string    `json:"from"`    // the workspace it was created from
	Source      string    `json:"source"`  // the session it was forked from
	Record      uint64    `json:"at"`      // and the record
	Session     string    `json:"session"` // the session started in it
	Created     time.Time `json:"made"`
	Repo        string    `json:"repo,omitempty"` // the top of the repository; "" if it is a copy
	Branch      string    `json:"branch,omitempty"`
	Commit      string    `json:"commit,omitempty"`
	Fingerprint string    `json:"print,omitempty"` // of its files; "" until it was filled
}

// Registry is the list of worktrees, in one of the user's folders.
type Registry struct{ Dir string }

const maxEntry = 64 << 10

func (b Registry) entryFile(name string) string { return filepath.Join(b.Dir, name+".json") }

// Save saves an entry.
func (b Registry) Save(e Entry) error {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(b.entryFile(e.Name), append(jsonx.MustMarshal(e), '\n'), 0o600)
}

// Remove removes an entry.
func (b Registry) Remove(name string) error { return os.Remove(b.entryFile(name)) }

// Find returns the entry with this name.
func (b Registry) Find(name string) (e Entry, err error) {
	if name == "" || strings.ContainsAny(name, "/\\\x00") {
		return e, fs.ErrNotExist
	}
	text, err := repofile.NewRoot(b.Dir).Read(name+".json", maxEntry)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil || e.Name != name || !filepath.IsAbs(e.Dir) {
		return e, message.Errorf("%s is damaged", b.entryFile(name))
	}
	return e, nil
}

// List returns the entries, newest first. The error names unreadable ones.
func (b Registry) List() (all []Entry, err error) {
	files, listErr := fs.ReadDir(repofile.OwnDir(b.Dir), ".")
	if listErr != nil && !errors.Is(listErr, fs.ErrNotExist) {
		return nil, listErr
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue
		}
		e, wrong := b.Find(name)
		if wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return b.Created.Compare(a.Created) })
	return all, err
}
