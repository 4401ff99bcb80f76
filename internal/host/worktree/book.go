package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// Entry is a worktree as it is written down before it is made, so that none is
// left without a word however the program ends.
type Entry struct {
	Name    string    `json:"name"`
	Dir     string    `json:"dir"`     // of the worktree
	Work    string    `json:"work"`    // the workspace in it
	From    string    `json:"from"`    // the workspace that it was made from
	Source  string    `json:"source"`  // the session there
	At      uint64    `json:"at"`      // and its record
	Session string    `json:"session"` // the one that began in it
	Made    time.Time `json:"made"`
	Repo    string    `json:"repo,omitempty"` // the top of the repository; "" if it is a copy
	Branch  string    `json:"branch,omitempty"`
	Commit  string    `json:"commit,omitempty"`
	Print   string    `json:"print,omitempty"` // of its files; "" until it was filled
}

// Book is the list of worktrees, in a folder of the user's own.
type Book struct{ Dir string }

const maxEntry = 64 << 10

func (b Book) file(name string) string { return filepath.Join(b.Dir, name+".json") }

// Put writes an entry down.
func (b Book) Put(e Entry) error {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(b.file(e.Name), append(jsonx.Must(e), '\n'), 0o600)
}

// Strike takes an entry out.
func (b Book) Strike(name string) error { return os.Remove(b.file(name)) }

// Find is the entry of a name.
func (b Book) Find(name string) (e Entry, err error) {
	if name == "" || strings.ContainsAny(name, "/\\\x00") {
		return e, fs.ErrNotExist
	}
	text, err := repofile.Below(b.Dir).Read(name+".json", maxEntry)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil || e.Name != name || !filepath.IsAbs(e.Dir) {
		return e, fmt.Errorf("%s is damaged", b.file(name))
	}
	return e, nil
}

// List lists the entries, the newest first. Those that cannot be read are named.
func (b Book) List() (all []Entry, err error) {
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
	slices.SortStableFunc(all, func(a, b Entry) int { return b.Made.Compare(a.Made) })
	return all, err
}
