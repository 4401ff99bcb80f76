package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
)

// ErrNotRegular reports an attempt to read or write something other than a regular file, such as a
// directory, a pipe or a device.
var ErrNotRegular = errors.New("not a regular file")

// ErrReadOnly reports an attempt to write a file without write permission.
var ErrReadOnly = errors.New("file is read-only")

// ErrTooLarge reports a file larger than the given limit.
var ErrTooLarge = errors.New("file is too large")

// Open opens a regular file for reading and returns its info. It never blocks: it refuses a pipe or
// device without opening it.
func (w *Workspace) Open(name string) (*os.File, fs.FileInfo, error) {
	w, rel, info, err := w.find(name)
	if err != nil {
		return nil, nil, err
	}
	if err := requireRegular(w.callerName(rel), info); err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, w.explainError(rel, err)
	}
	if info, err = f.Stat(); err == nil {
		err = requireRegular(w.callerName(rel), info)
	}
	if err != nil {
		f.Close()
		return nil, nil, w.explainError(rel, err)
	}
	return f, info, nil
}

// ReadFile reads a whole file of at most limit bytes.
func (w *Workspace) ReadFile(name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := w.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, nil, message.Errorf("%w: %s has %d bytes, the limit is %d", ErrTooLarge, quoteName(name),
			info.Size(), limit)
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, nil, message.Errorf("read %s: %w", quoteName(name), plainError(err))
	}
	if int64(data.Len()) > limit {
		return nil, nil, message.Errorf("%w: %s grew beyond %d bytes", ErrTooLarge, quoteName(name), limit)
	}
	return data.Bytes(), info, nil
}

// Stat describes the target of name, following links.
func (w *Workspace) Stat(name string) (fs.FileInfo, error) {
	_, _, info, err := w.find(name)
	return info, err
}

// Lstat describes name itself, even if it is a link.
func (w *Workspace) Lstat(name string) (fs.FileInfo, error) {
	w, rel, err := w.findTree(name)
	if err != nil {
		return nil, err
	}
	info, err := w.root.Lstat(rel)
	return info, w.explainError(rel, err)
}

// ReadDir lists a directory by name, at most limit entries; more reports that there are others.
func (w *Workspace) ReadDir(name string, limit int) (list []fs.DirEntry, more bool, err error) {
	w, rel, info, err := w.find(name)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return nil, false, message.Errorf("%s is not a directory", quoteName(name))
	}
	list, more, err = w.readDir(rel, limit)
	return list, more, w.explainError(rel, err)
}

func (w *Workspace) readDir(rel string, limit int) ([]fs.DirEntry, bool, error) {
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	list, err := f.ReadDir(limit + 1)
	if err == io.EOF {
		err = nil
	}
	more := len(list) > limit
	list = list[:min(len(list), limit)]
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, more, err
}

// find resolves name to an existing file. It tries the root handle first, and resolves links only if
// that fails on one.
func (w *Workspace) find(name string) (tree *Workspace, rel string, info fs.FileInfo, err error) {
	if tree, rel, err = w.findTree(name); err != nil {
		return nil, "", nil, err
	}
	info, err = tree.root.Stat(rel)
	if errors.Is(err, tree.escapeErr) {
		if rel, err = tree.resolveLinks(rel); err != nil {
			return nil, "", nil, err
		}
		info, err = tree.root.Stat(rel)
	}
	return tree, rel, info, tree.explainError(rel, err)
}

func requireRegular(rel string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := "of an unknown kind"
	for _, k := range []struct {
		bit  fs.FileMode
		what string
	}{
		{fs.ModeDevice, "a device"}, {fs.ModeSocket, "a socket"}, {fs.ModeNamedPipe, "a named pipe"},
		{fs.ModeSymlink, "a link"}, {fs.ModeDir, "a directory"},
	} {
		if info.Mode()&k.bit != 0 {
			what = k.what
		}
	}
	return message.Errorf("%w: %s is %s", ErrNotRegular, quoteName(rel), what)
}

// WriteFile replaces a file's content in one step, and creates missing directories. A link remains a
// link, and its target changes.
func (w *Workspace) WriteFile(name string, data []byte) error {
	return w.replaceFile(name, data, nil, nil)
}

// CreateFile creates a file with the given mode; it fails with [fs.ErrExist] if one exists.
func (w *Workspace) CreateFile(name string, data []byte, mode fs.FileMode) error {
	f, err := w.Create(name, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Create creates a file to be written incrementally, such as a log; it fails with [fs.ErrExist] if one
// exists.
func (w *Workspace) Create(name string, mode fs.FileMode) (f *os.File, err error) {
	at, err := w.Locate(name)
	if err != nil {
		return nil, err
	}
	err = w.withDir(at, func(dir *os.Root, base string) error {
		f, err = dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		return err
	})
	return f, err
}

// Delete removes a file, a link or an empty directory, in any of the trees.
func (w *Workspace) Delete(name string) error {
	w, rel, err := w.findTree(name)
	if err != nil {
		return err
	}
	if rel == "." {
		return message.Errorf("%s: %w", quoteName(name), syscall.EINVAL)
	}
	err = w.root.Remove(rel)
	if err == nil && path.Dir(rel) != w.scratch.name { // scratch files need not survive a crash
		w.dirSyncer.Add(filepath.Join(w.root.Name(), path.Dir(rel)))
	}
	return w.explainError(rel, err)
}

// WriteFileMode is WriteFile with a mode, for new and existing files. accept decides what it may replace.
func (w *Workspace) WriteFileMode(name string, data []byte, mode fs.FileMode, accept Accept) error {
	return w.replaceFile(name, data, &mode, accept)
}

// replaceFile replaces a file's content and, if mode is not nil, its mode.
func (w *Workspace) replaceFile(name string, data []byte, mode *fs.FileMode, accept Accept) error {
	at, err := w.Locate(name)
	if err != nil {
		return err
	}
	return w.withDir(at, func(dir *os.Root, base string) error {
		old, err := readOriginal(dir, base, false)
		if err == nil && old != nil {
			err = checkWritable(dir, base, old.info)
		}
		if err != nil {
			return err
		}
		if accept != nil && old != nil {
			given, was := accept, old.info.Mode() // the new file takes its mode from it
			accept = func(f Existing) error {
				if f.Info != nil && f.Info.Mode() != was {
					return ErrChanged
				}
				return given(f)
			}
		}
		if mode != nil {
			if old == nil {
				old = new(original)
			}
			old.mode = *mode
		}
		d, err := w.newDraft(dir, func(f io.Writer) error { _, err := f.Write(data); return err }, old)
		if err != nil {
			return err
		}
		return d.place(dir, base, accept)
	})
}

// withDir calls do with a handle on the directory of name, creating it if necessary, and with name's last
// element. Through the handle, nobody can substitute another directory.
func (w *Workspace) withDir(name string, do func(dir *os.Root, base string) error) error {
	w, rel, err := w.findTree(name)
	if err != nil {
		return err
	}
	if rel == "." {
		return message.Errorf("%w: %s is a directory", ErrNotRegular, quoteName(w.dir))
	}
	up := path.Dir(rel)
	if err := w.mkdirAll(up); err != nil {
		return w.explainError(up, err)
	}
	dir, err := w.root.OpenRoot(up)
	if err != nil {
		return w.explainError(up, err)
	}
	defer dir.Close()
	return w.explainError(rel, do(dir, path.Base(rel)))
}

// mkdirAll creates a folder and its missing parents.
func (w *Workspace) mkdirAll(rel string) error {
	for missing := rel; missing != "."; missing = path.Dir(missing) {
		if _, err := w.root.Lstat(missing); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		w.dirSyncer.Add(filepath.Join(w.root.Name(), path.Dir(missing)))
	}
	return w.root.MkdirAll(rel, 0o777)
}

// original is a file to be replaced, or a model for a new file's attributes.
type original struct {
	info  fs.FileInfo // nil if none exists
	mode  fs.FileMode
	attrs []attribute
}

// attribute is an extended attribute of a file.
type attribute struct {
	name  string
	value []byte
}

// readOriginal describes the file at base, or returns nil. If linkIsNone is set, a link counts as no file
// and is not followed.
func readOriginal(dir *os.Root, base string, linkIsNone bool) (*original, error) {
	info, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && linkIsNone && info.Mode()&fs.ModeSymlink != 0:
		return nil, nil
	case err == nil:
		err = requireRegular(base, info)
	}
	if err != nil {
		return nil, err
	}
	o := &original{info: info, mode: info.Mode()}
	if f, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		o.attrs = attributes(f)
		f.Close()
	}
	return o, nil
}

// checkWritable checks write permission without opening the file, which might disturb a process about to
// replace it. It refuses a file without any write bit even to users whom the system would allow.
func checkWritable(dir *os.Root, base string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o222 == 0 {
		return ErrReadOnly
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	err = unix.Faccessat(int(d.Fd()), base, unix.W_OK, unix.AT_EACCESS)
	if errors.Is(err, fs.ErrPermission) {
		return ErrReadOnly
	}
	return err
}

// Readlink returns the target of a link as written.
func (w *Workspace) Readlink(name string) (string, error) {
	w, rel, err := w.findTree(name)
	if err != nil {
		return "", err
	}
	to, err := w.root.Readlink(rel)
	return to, w.explainError(rel, err)
}

// Restore puts a file with this content and mode at name in one step, replacing any file or link there,
// if accept allows. It replaces a link at name instead of following it. If content cannot be read
// completely, nothing changes.
func (w *Workspace) Restore(name string, content io.Reader, mode fs.FileMode, accept Accept) error {
	return w.withParent(name, func(dir *os.Root, base string) error {
		old, err := readOriginal(dir, base, true)
		if err != nil {
			return err
		}
		if old == nil {
			old = new(original)
		}
		old.mode = mode.Perm()
		d, err := w.newDraft(dir, func(f io.Writer) error { _, err := io.Copy(f, content); return err }, old)
		if err != nil {
			return err
		}
		return d.place(dir, base, accept)
	})
}

// RestoreLink puts a link with this target at name in one step, replacing any file or link there, if
// accept allows. It does not check the target.
func (w *Workspace) RestoreLink(name, target string, accept Accept) error {
	return w.withParent(name, func(dir *os.Root, base string) error {
		if _, err := readOriginal(dir, base, true); err != nil {
			return err
		}
		d := &draft{ws: w, destDir: dir}
		err := d.withName(func(at *os.Root, name string) error { return at.Symlink(target, name) })
		if err != nil {
			return message.Errorf("create a temporary link: %w", err)
		}
		if d.info, err = d.nameDir.Lstat(d.name); err != nil {
			return err
		}
		return d.place(dir, base, accept)
	})
}

// Mkdir creates a directory with exactly this mode. It fails with [fs.ErrExist] if name exists.
func (w *Workspace) Mkdir(name string, mode fs.FileMode) error {
	return w.withParent(name, func(dir *os.Root, base string) error {
		if err := dir.Mkdir(base, mode.Perm()|0o700); err != nil {
			return err
		}
		w.dirSyncer.Add(dir.Name())
		return dir.Chmod(base, mode.Perm())
	})
}

// Chmod sets the permission bits of a file or directory. It refuses a link at name instead of following
// it.
func (w *Workspace) Chmod(name string, mode fs.FileMode) error {
	return w.withParent(name, func(dir *os.Root, base string) error {
		info, err := dir.Lstat(base)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			if err := requireRegular(base, info); err != nil {
				return err
			}
		}
		return dir.Chmod(base, mode.Perm())
	})
}

// withParent is withDir without following links: a restored file goes to its original place or nowhere.
func (w *Workspace) withParent(name string, do func(dir *os.Root, base string) error) error {
	if err := w.CheckNoLinks(name); err != nil {
		return err
	}
	return w.withDir(name, do)
}

// ErrThroughLink reports an attempt to restore a file below a directory that has become a link.
var ErrThroughLink = errors.New("path goes through a link")

// CheckNoLinks returns an error if one of the directories above name is a link.
func (w *Workspace) CheckNoLinks(name string) error {
	w, rel, err := w.findTree(name)
	if err != nil {
		return err
	}
	up := path.Dir(rel)
	at, err := w.resolveLinks(up)
	if err == nil && at != up {
		err = message.Errorf("%w: %s", ErrThroughLink, quoteName(name))
	}
	return err
}
