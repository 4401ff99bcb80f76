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
	"coder/internal/host/repofile"
)

// Files are the files of a project at one moment, by their paths.
type Files map[string]event.FileState

// Source knows what files held.
type Source func(context.Context, event.FileState) ([]byte, error)

// Fill makes a folder that coder has just made hold these files and no others,
// byte for byte, with their modes and links. It leaves alone what git keeps of its
// own there. It returns the files whose contents nobody has any more.
// Those in spared stay as they are.
func Fill(ctx context.Context, dir string, files Files, content Source, spared ...string) (lost []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f := filling{root: root, files: files, content: content, spared: spared}
	for name, s := range files {
		if err := repofile.CheckLayout(name, s.Link); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := f.clear(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch err := f.put(ctx, name, files[name]); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errLost):
			lost = append(lost, name)
		case err != nil:
			return nil, err
		}
	}
	return lost, f.closeDirs()
}

// filling is a folder that is being filled.
type filling struct {
	root    *os.Root
	files   Files
	content Source
	spared  []string
}

var errLost = errors.New("its content was not saved")

const (
	ownerAll = 0o700
	usual    = 0o755
)

// clear removes what a checkout put there and does not belong there.
func (f *filling) clear() error {
	var dirs []string
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
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
		if s, ok := f.files[name]; ok && s.Hash != "" && s.Hash != dirHash || !ok && slices.Contains(f.spared, name) {
			return nil
		}
		return f.root.Remove(name)
	})
	for _, dir := range slices.Backward(dirs) {
		if f.files[dir].Hash != dirHash {
			_ = f.root.Remove(dir) // one that is needed is not empty
		}
	}
	return err
}

// The hashes that name no content; see the package undo.
const (
	dirHash  = "dir"
	linkHash = "link"
)

func (f *filling) put(ctx context.Context, name string, s event.FileState) error {
	if s.Hash == "" && !s.Lost {
		return nil
	}
	if err := f.root.MkdirAll(path.Dir(name), usual); err != nil {
		return err
	}
	switch {
	case s.Hash == dirHash:
		if err := f.root.MkdirAll(name, usual); err != nil {
			return err
		}
		return f.root.Chmod(name, fs.FileMode(cmp.Or(s.Mode, usual))|ownerAll)
	case s.Hash == linkHash || s.Link != "":
		if now, err := f.root.Readlink(name); err == nil && now == s.Link {
			return nil
		}
		if err := f.root.RemoveAll(name); err != nil {
			return err
		}
		return f.root.Symlink(s.Link, name)
	}
	mode := fs.FileMode(cmp.Or(s.Mode, 0o644))
	if f.holds(name, s) {
		return f.root.Chmod(name, mode)
	}
	data, err := f.content(ctx, s)
	if err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return f.write(name, data, mode)
}

// holds reports whether a checkout wrote just the content that git knows by its
// object id.
func (f *filling) holds(name string, s event.FileState) bool {
	oid, ok := strings.CutPrefix(s.Hash, "git:")
	info, err := f.root.Lstat(name)
	if !ok || err != nil || !info.Mode().IsRegular() || info.Size() != s.Size {
		return false
	}
	file, err := f.root.Open(name)
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

// write writes a file anew: what a checkout wrote may be a link, or read-only.
func (f *filling) write(name string, data []byte, mode fs.FileMode) error {
	if err := f.root.RemoveAll(name); err != nil {
		return err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Chmod(mode), file.Close())
}

// closeDirs gives folders their modes, the deepest first.
func (f *filling) closeDirs() error {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(f.files))) {
		s := f.files[name]
		if s.Hash != dirHash || s.Mode == 0 || s.Mode&ownerAll == ownerAll {
			continue
		}
		if err := f.root.Chmod(name, fs.FileMode(s.Mode)); err != nil {
			return err
		}
	}
	return nil
}

// Free is the first of the names base, base-2, base-3 … under which there is
// nothing in a folder.
func Free(dir, base string) (string, error) {
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
	return "", fmt.Errorf("too many folders named %s in %s", base, dir)
}
