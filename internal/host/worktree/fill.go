package worktree

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/repofile"
)

// Files are the files of a project at one moment, by path.
type Files map[string]event.FileState

// ContentSource returns the content of a file.
type ContentSource func(context.Context, event.FileState) ([]byte, error)

// Folder is a folder that coder made, and that it lays the files of a project out in. What git
// keeps of its own there stays.
type Folder struct {
	*os.Root
	Content ContentSource
}

// OpenFolder opens a folder that coder made.
func OpenFolder(dir string, content ContentSource) (Folder, error) {
	root, err := os.OpenRoot(dir)
	return Folder{root, content}, err
}

// ErrContentMissing is the error of a content that nobody has any more.
var ErrContentMissing = errors.New("not saved")

const (
	ownerAll    = 0o700
	defaultPerm = 0o755
)

// RemoveExtra removes what a checkout put there and is not among the files, nor spared.
func (f Folder) RemoveExtra(files Files, spared ...string) error {
	var dirs []string
	err := fs.WalkDir(f.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case name == ".git" && d.IsDir():
			return fs.SkipDir
		case name == ".git":
			return nil
		case d.IsDir():
			dirs = append(dirs, name)
			return nil
		}
		if s, ok := files[name]; ok && s.Hash != "" && s.Hash != dirHash || !ok && slices.Contains(spared, name) {
			return nil
		}
		return f.Remove(name)
	})
	for _, dir := range slices.Backward(dirs) {
		if files[dir].Hash != dirHash {
			_ = f.Remove(dir) // fails if it is needed, since it is then not empty
		}
	}
	return err
}

// Fill lays files out byte for byte, with their modes and links, and returns those whose
// contents nobody has any more. Where git would take one for a part of a repository, none is
// laid out.
func (f Folder) Fill(ctx context.Context, files Files) (lost []string, err error) {
	for name, s := range files {
		if err := CheckName(name, s); err != nil {
			return nil, err
		}
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		s := files[name]
		if s.Hash == dirHash && s.Mode != 0 {
			s.Mode |= ownerAll // until it is full
		}
		switch err := f.WriteState(ctx, name, s); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrContentMissing):
			lost = append(lost, name)
		case err != nil:
			return nil, err
		}
	}
	for _, name := range slices.Backward(names) { // the deepest first
		if s := files[name]; s.Hash == dirHash && s.Mode != 0 && s.Mode&ownerAll != ownerAll {
			err = cmp.Or(err, f.Chmod(name, fs.FileMode(s.Mode)))
		}
	}
	return lost, err
}

// Hashes without content; see package undo.
const (
	dirHash  = "dir"
	linkHash = "link"
)

// CheckName refuses what git would take for a part of a repository.
func CheckName(name string, s event.FileState) error {
	if s.Hash == "" && !s.ContentLost {
		return nil
	}
	if err := repofile.CheckLayout(name, s.Link); err != nil {
		return message.Errorf("%s: %w", name, err)
	}
	return nil
}

// WriteState makes what stands at a name what s says.
func (f Folder) WriteState(ctx context.Context, name string, s event.FileState) error {
	if err := CheckName(name, s); err != nil {
		return err
	}
	info, err := f.Lstat(name)
	if s.Hash == "" && !s.ContentLost {
		if err != nil || repofile.CheckLayout(name, "") != nil { // what git keeps of its own stays
			return nil
		}
		return f.Remove(name)
	}
	if err := f.MkdirAll(path.Dir(name), defaultPerm); err != nil {
		return err
	}
	mode := fs.FileMode(s.Mode)
	switch {
	case s.Hash == dirHash:
		if err := f.MkdirAll(name, defaultPerm); err != nil || mode == 0 {
			return err
		}
		return f.Chmod(name, mode)
	case s.Hash == linkHash || s.Link != "":
		return errors.Join(f.RemoveAll(name), f.Symlink(s.Link, name))
	case mode == 0 && err == nil && info.Mode().IsRegular():
		mode = info.Mode().Perm()
	case mode == 0:
		mode = 0o644
	}
	if f.hasContent(name, s) {
		return f.Chmod(name, mode)
	}
	data, err := f.Content(ctx, s)
	if err != nil {
		return message.Errorf("%w: %w", ErrContentMissing, err)
	}
	// what a checkout or a command left may be a link, or read-only
	return errors.Join(f.RemoveAll(name), f.WriteFile(name, data, 0o600), f.Chmod(name, mode))
}

// hasContent reports whether a checkout wrote exactly the content with this git object id.
func (f Folder) hasContent(name string, s event.FileState) bool {
	oid, ok := strings.CutPrefix(s.Hash, "git:")
	info, err := f.Lstat(name)
	if !ok || err != nil || !info.Mode().IsRegular() || info.Size() != s.Size {
		return false
	}
	file, err := f.Root.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	sum := sha1.New()
	if len(oid) > 2*sha1.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "blob %d\x00", s.Size)
	_, err = io.Copy(sum, file)
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == oid
}

// UnusedName returns the first of the names base, base-2, base-3 … that is unused in a folder.
func UnusedName(dir, base string) (string, error) {
	for n := 1; n < 1000; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		at := path.Join(dir, name)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			return at, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", message.Errorf("too many folders named %s in %s", base, dir)
}
