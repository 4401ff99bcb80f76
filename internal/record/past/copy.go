// Package past tells what the files of a session were, at its beginning or at any of its
// records, what others did to them, and lays them out in a copy.
package past

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
)

// maxFile is how large a file may be that is put into a copy.
const maxFile = 256 << 20

// World is what the files of a session were at its beginning, and what others
// than its calls did to them.
type World struct {
	Start map[string]event.FileState // by path
	// Whole says that these are all files there were.
	Whole bool
	Tree  string // the first state of all files that was kept; "" if none was
	// Unsure are files that may have been others: they were changed since, and what
	// they were is not known.
	Unsure []string
	Later  map[uint64][]event.FileState // what others left, by the record after which
}

// NewWorld is a world that is known already.
func NewWorld(start []event.FileState, later map[uint64][]event.FileState) *World {
	w := &World{Start: make(map[string]event.FileState), Whole: true, Later: later}
	for _, s := range start {
		w.Start[s.Path] = s
	}
	return w
}

// MissingError lists files whose contents cannot be had any more.
type MissingError struct{ Files []string }

func (e *MissingError) Error() string {
	if i := slices.IndexFunc(e.Files, path.IsAbs); i >= 0 {
		const outside = "the session's initial files are unavailable: %s is outside the workspace, in a folder added with --add-dir"
		return fmt.Sprintf(outside, e.Files[i])
	}
	list, more := e.Files, ""
	if len(list) > shownMissing {
		list, more = list[:shownMissing], fmt.Sprintf(" (+%d)", len(list)-shownMissing)
	}
	const lost = "the session's initial files are unavailable: the content of %s was not saved, and neither git nor the workspace still has it"
	return fmt.Sprintf(lost, strings.Join(list, ", ")+more)
}

const shownMissing = 5

// byOthers stands for what others made of a file, where that was not kept.
const byOthers = "somebody else wrote this, and it was not kept\n"

// standIn is a file, or a folder, that others left.
func standIn(name string) event.FileState {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		return event.FileState{Path: dir, Hash: "dir"}
	}
	return event.FileState{Path: name, Hash: Sum([]byte(byOthers)), Size: int64(len(byOthers))}
}

// Sum names a content.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Contents knows what files held, and lists changes that were recorded as one.
type Contents interface {
	Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error)
	Expand(ctx context.Context, c event.FileChange) ([]event.FileChange, error)
}

// Kept knows the states of all files that were kept, too.
type Kept interface {
	Contents
	// Files lists all files of a tree that was kept.
	Files(ctx context.Context, tree string) ([]event.FileState, error)
}

// Expand lists changes one by one, also those that are on record as one. The error says
// which were not kept; they stay as they are on record.
func Expand(ctx context.Context, kept Contents, changes []event.FileChange) (all []event.FileChange, err error) {
	for _, c := range changes {
		list := []event.FileChange{c}
		if kept != nil {
			if each, lost := kept.Expand(ctx, c); lost == nil {
				list = each
			} else {
				err = cmp.Or(err, fmt.Errorf("the content of %s was not saved: %w", c.Before.Path, lost))
			}
		}
		all = append(all, list...)
	}
	return all, err
}

// IsFile reports whether a state is that of a file with a content.
func IsFile(s event.FileState) bool {
	return s.Lost || s.Hash != "" && s.Hash != "dir" && s.Link == ""
}

// Name is how a copy calls a file: as calls do, which are on record without keys.
func Name(path string) string { return secret.Shapes().Text(path) }

// Copy is a folder that a world was laid out in.
type Copy struct {
	*World
	dir    string
	folder worktree.Folder
	kept   Contents
}

// LayOut puts the files that a session began with into a folder that coder made, and sees that the
// later ones can be had, too. Nothing is written anywhere else.
func (w *World) LayOut(ctx context.Context, dir string, kept Contents) (*Copy, error) {
	c := &Copy{World: w, dir: dir, kept: kept}
	var err error
	if c.folder, err = worktree.OpenFolder(dir, c.Content); err != nil {
		return nil, err
	}
	states, names, missing := make(worktree.Files), make(map[string]string), []string(nil)
	for _, s := range w.Start {
		switch {
		case !filepath.IsLocal(s.Path):
			missing = append(missing, s.Path)
		case s.Path != dotGit:
			states[Name(s.Path)], names[Name(s.Path)] = s, s.Path
		}
	}
	lost, err := c.folder.Fill(ctx, states)
	if err != nil {
		return nil, err
	}
	for _, name := range lost {
		missing = append(missing, names[name])
	}
	for _, list := range w.Later {
		for _, s := range list {
			if err := worktree.Check(s.Path, s); err != nil && s.Path != dotGit {
				return nil, err
			}
			if !IsFile(s) {
				continue
			}
			if _, err := c.Content(ctx, s); err != nil {
				missing = append(missing, s.Path)
			}
		}
	}
	if len(missing) > 0 && ctx.Err() == nil {
		slices.Sort(missing)
		return nil, &MissingError{slices.Compact(missing)}
	}
	return c, ctx.Err()
}

// dotGit is where a linked work tree names its repository. A copy has its own.
const dotGit = ".git"

// Dir is the path of the copy.
func (c *Copy) Dir() string { return c.dir }

// Close closes the folder.
func (c *Copy) Close() error { return c.folder.Close() }

// Content is what a file held.
func (c *Copy) Content(ctx context.Context, s event.FileState) ([]byte, error) {
	if data := []byte(byOthers); s.Hash == Sum(data) {
		return data, nil
	}
	return c.kept.Content(ctx, s, maxFile)
}

// Apply does what others did to files after a record.
func (c *Copy) Apply(ctx context.Context, seq uint64) error {
	for _, s := range c.Later[seq] {
		if err := c.put(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Put leaves files as a call on record left them.
func (c *Copy) Put(ctx context.Context, changes []event.FileChange) error {
	changes, err := Expand(ctx, c.kept, changes)
	for _, one := range changes {
		if err == nil {
			err = c.put(ctx, one.After)
		}
	}
	return err
}

func (c *Copy) put(ctx context.Context, s event.FileState) error {
	if s.Path == dotGit {
		return nil
	}
	err := c.folder.Put(ctx, Name(s.Path), s)
	if secret.Is(s.Path) && errors.Is(err, worktree.ErrLost) { // a golden session has none
		return nil
	}
	return err
}

// Date gives files of the start the times of then: those that they still have in the workspace,
// or one before the session. The workspace is nil where they are not looked for.
func (c *Copy) Date(begun time.Time, now *workspace.Workspace) error {
	for name, s := range c.Start {
		if !IsFile(s) || name == dotGit {
			continue
		}
		then := begun.Add(-time.Hour)
		if now != nil {
			if info, err := now.Lstat(name); err == nil && info.ModTime().Before(begun) {
				then = info.ModTime()
			}
		}
		if err := c.folder.Chtimes(Name(name), then, then); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
