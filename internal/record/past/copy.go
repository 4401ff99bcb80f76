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
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/workspace"
	"coder/internal/host/worktree"
)

// maxFile is how large a file may be that is put into a copy.
const maxFile = 256 << 20

// FileHistory is what the files of a session were at its beginning, and what others
// than its calls did to them.
type FileHistory struct {
	Start map[string]event.FileState // by path
	// IsComplete says that these are all files there were.
	IsComplete bool
	FirstTree  string // the first state of all files that was kept; "" if none was
	// Uncertain are files that may have been others: they were changed since, and what
	// they were is not known.
	Uncertain    []string
	LaterChanges map[uint64][]event.FileState // what others left, by the record after which
}

// NewFileHistory is a world that is known already.
func NewFileHistory(start []event.FileState, later map[uint64][]event.FileState) *FileHistory {
	w := &FileHistory{Start: make(map[string]event.FileState), IsComplete: true, LaterChanges: later}
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
	if len(list) > maxShownMissing {
		list, more = list[:maxShownMissing], fmt.Sprintf(" (+%d)", len(list)-maxShownMissing)
	}
	const lost = "the session's initial files are unavailable: the content of %s was not saved, and neither git nor the workspace still has it"
	return fmt.Sprintf(lost, strings.Join(list, ", ")+more)
}

const maxShownMissing = 5

// unknownContent stands for what others made of a file, where that was not kept.
const unknownContent = "somebody else wrote this, and it was not kept\n"

// placeholder is a file, or a folder, that others left.
func placeholder(name string) event.FileState {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		return event.FileState{Path: dir, Hash: "dir"}
	}
	return event.FileState{Path: name, Hash: ContentHash([]byte(unknownContent)), Size: int64(len(unknownContent))}
}

// ContentHash names a content.
func ContentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ContentSource knows what files held, and lists changes that were recorded as one.
type ContentSource interface {
	Content(ctx context.Context, s event.FileState, limit int64) ([]byte, error)
	Expand(ctx context.Context, c event.FileChange) ([]event.FileChange, error)
}

// TreeSource knows the states of all files that were kept, too.
type TreeSource interface {
	ContentSource
	// Files lists all files of a tree that was kept.
	Files(ctx context.Context, tree string) ([]event.FileState, error)
}

// ExpandChanges lists changes one by one, also those that are on record as one. The error says
// which were not kept; they stay as they are on record.
func ExpandChanges(ctx context.Context, kept ContentSource, changes []event.FileChange) (all []event.FileChange,
	err error) {
	for _, c := range changes {
		list := []event.FileChange{c}
		if kept != nil {
			if each, lost := kept.Expand(ctx, c); lost == nil {
				list = each
			} else {
				err = cmp.Or(err, message.Errorf("the content of %s was not saved: %w", c.Before.Path, lost))
			}
		}
		all = append(all, list...)
	}
	return all, err
}

// IsFile reports whether a state is that of a file with a content.
func IsFile(s event.FileState) bool {
	return s.ContentLost || s.Hash != "" && s.Hash != "dir" && s.Link == ""
}

// CopyName is how a copy calls a file: as calls do, which are on record without keys.
func CopyName(path string) string { return secret.ShapeConcealer().Text(path) }

// Copy is a folder that a world was laid out in.
type Copy struct {
	*FileHistory
	dir    string
	folder worktree.Folder
	source ContentSource
}

// Materialize puts the files that a session began with into a folder that coder made, and sees that the
// later ones can be had, too. Nothing is written anywhere else.
func (w *FileHistory) Materialize(ctx context.Context, dir string, kept ContentSource) (*Copy, error) {
	c := &Copy{FileHistory: w, dir: dir, source: kept}
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
			states[CopyName(s.Path)], names[CopyName(s.Path)] = s, s.Path
		}
	}
	lost, err := c.folder.Fill(ctx, states)
	if err != nil {
		return nil, err
	}
	for _, name := range lost {
		missing = append(missing, names[name])
	}
	for _, list := range w.LaterChanges {
		for _, s := range list {
			if err := worktree.CheckName(s.Path, s); err != nil && s.Path != dotGit {
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
	if data := []byte(unknownContent); s.Hash == ContentHash(data) {
		return data, nil
	}
	return c.source.Content(ctx, s, maxFile)
}

// Apply does what others did to files after a record.
func (c *Copy) Apply(ctx context.Context, seq uint64) error {
	for _, s := range c.LaterChanges[seq] {
		if err := c.writeState(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// ApplyCall leaves files as a call on record left them.
func (c *Copy) ApplyCall(ctx context.Context, changes []event.FileChange) error {
	changes, err := ExpandChanges(ctx, c.source, changes)
	for _, one := range changes {
		if err == nil {
			err = c.writeState(ctx, one.After)
		}
	}
	return err
}

func (c *Copy) writeState(ctx context.Context, s event.FileState) error {
	if s.Path == dotGit {
		return nil
	}
	err := c.folder.WriteState(ctx, CopyName(s.Path), s)
	if secret.IsSecretFile(s.Path) && errors.Is(err, worktree.ErrContentMissing) { // a golden session has none
		return nil
	}
	return err
}

// RestoreTimes gives files of the start the times of then: those that they still have in the workspace,
// or one before the session. The workspace is nil where they are not looked for.
func (c *Copy) RestoreTimes(begun time.Time, now *workspace.Workspace) error {
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
		if err := c.folder.Chtimes(CopyName(name), then, then); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
