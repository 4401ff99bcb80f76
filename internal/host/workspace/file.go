package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is the error of reading or writing something that is not a
// plain file: a directory, a pipe, a device.
var ErrNotRegular = errors.New("not a regular file")

// ErrReadOnly is the error of writing a file that nobody may write, or not we.
var ErrReadOnly = errors.New("file is read-only")

// ErrTooLarge is the error of reading a file that exceeds the given limit.
var ErrTooLarge = errors.New("file is too large")

// Open opens a regular file for reading and says what it is. It never waits:
// a pipe or device is refused instead of being opened.
func (w *Workspace) Open(name string) (*os.File, fs.FileInfo, error) {
	w, rel, info, err := w.find(name)
	if err != nil {
		return nil, nil, err
	}
	if err := regular(w.called(rel), info); err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, w.explain(rel, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(w.called(rel), info)
	}
	if err != nil {
		f.Close()
		return nil, nil, w.explain(rel, err)
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
		return nil, nil, fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrTooLarge, quoted(name), info.Size(), limit)
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", quoted(name), plain(err))
	}
	if int64(data.Len()) > limit {
		return nil, nil, fmt.Errorf("%w: %s grew beyond %d bytes", ErrTooLarge, quoted(name), limit)
	}
	return data.Bytes(), info, nil
}

// Stat describes what name leads to, links followed.
func (w *Workspace) Stat(name string) (fs.FileInfo, error) {
	_, _, info, err := w.find(name)
	return info, err
}

// Lstat describes name itself, even if it is a link.
func (w *Workspace) Lstat(name string) (fs.FileInfo, error) {
	w, rel, err := w.home(name)
	if err != nil {
		return nil, err
	}
	info, err := w.root.Lstat(rel)
	return info, w.explain(rel, err)
}

// ReadDir lists a directory by name, at most limit entries of it; more says
// that there are others.
func (w *Workspace) ReadDir(name string, limit int) (list []fs.DirEntry, more bool, err error) {
	w, rel, info, err := w.find(name)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return nil, false, fmt.Errorf("%s is not a directory", quoted(name))
	}
	list, more, err = w.readDir(rel, limit)
	return list, more, w.explain(rel, err)
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

// find follows name to what exists there. The root handle is asked first, and
// only if it stumbles over a link do we look where the link leads.
func (w *Workspace) find(name string) (tree *Workspace, rel string, info fs.FileInfo, err error) {
	if tree, rel, err = w.home(name); err != nil {
		return nil, "", nil, err
	}
	info, err = tree.root.Stat(rel)
	if errors.Is(err, tree.leave) {
		if rel, err = tree.follow(rel); err != nil {
			return nil, "", nil, err
		}
		info, err = tree.root.Stat(rel)
	}
	return tree, rel, info, tree.explain(rel, err)
}

func regular(rel string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := "of an unknown kind"
	for _, k := range []struct {
		bit  fs.FileMode
		what string
	}{
		{fs.ModeDevice, "a device"}, {fs.ModeSocket, "a socket"}, {fs.ModeNamedPipe, "a named pipe"}, {fs.ModeSymlink, "a link"}, {fs.ModeDir, "a directory"},
	} {
		if info.Mode()&k.bit != 0 {
			what = k.what
		}
	}
	return fmt.Errorf("%w: %s is %s", ErrNotRegular, quoted(rel), what)
}

// WriteFile gives a file new content in one step, making the directories on
// its way. A link stays a link and what it points to changes.
func (w *Workspace) WriteFile(name string, data []byte) error { return w.put(name, data, nil, nil) }

// CreateFile makes a new file with the given mode; it fails with [fs.ErrExist]
// if there is one already.
func (w *Workspace) CreateFile(name string, data []byte, mode fs.FileMode) error {
	f, err := w.Create(name, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Create makes a new file to be written bit by bit, such as a log; it fails
// with [fs.ErrExist] if there is one already.
func (w *Workspace) Create(name string, mode fs.FileMode) (f *os.File, err error) {
	at, err := w.Locate(name)
	if err != nil {
		return nil, err
	}
	err = w.inDir(at, func(dir *os.Root, base string) error {
		f, err = dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		return err
	})
	return f, err
}

// Delete removes a file, a link or an empty directory, in any of the trees.
func (w *Workspace) Delete(name string) error {
	w, rel, err := w.home(name)
	if err != nil {
		return err
	}
	if rel == "." {
		return fmt.Errorf("%s: %w", quoted(name), syscall.EINVAL)
	}
	err = w.root.Remove(rel)
	if err == nil && path.Dir(rel) != w.scratch.name { // nobody is promised anything there
		w.names.Add(filepath.Join(w.root.Name(), path.Dir(rel)))
	}
	return w.explain(rel, err)
}

// PutFile is WriteFile for a file that is to have the given mode, whether or
// not there is one already. Accept says what it may replace.
func (w *Workspace) PutFile(name string, data []byte, mode fs.FileMode, accept Accept) error {
	return w.put(name, data, &mode, accept)
}

// put gives a file new content and, if told, another mode.
func (w *Workspace) put(name string, data []byte, mode *fs.FileMode, accept Accept) error {
	at, err := w.Locate(name)
	if err != nil {
		return err
	}
	return w.inDir(at, func(dir *os.Root, base string) error {
		old, err := existing(dir, base, false)
		if err == nil && old != nil {
			err = writable(dir, base, old.info)
		}
		if err != nil {
			return err
		}
		if accept != nil && old != nil {
			given, was := accept, old.info.Mode() // from which the new one has its mode
			accept = func(f Found) error {
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
		d, err := w.draft(dir, func(f io.Writer) error { _, err := f.Write(data); return err }, old)
		if err != nil {
			return err
		}
		return d.place(dir, base, accept)
	})
}

// inDir calls do with a handle on the directory that holds name, making it if
// need be, and with name's last part. Working from the handle, nobody can put
// another directory in its place.
func (w *Workspace) inDir(name string, do func(dir *os.Root, base string) error) error {
	w, rel, err := w.home(name)
	if err != nil {
		return err
	}
	if rel == "." {
		return fmt.Errorf("%w: %s is a directory", ErrNotRegular, quoted(w.dir))
	}
	up := path.Dir(rel)
	if err := w.makeFolders(up); err != nil {
		return w.explain(up, err)
	}
	dir, err := w.root.OpenRoot(up)
	if err != nil {
		return w.explain(up, err)
	}
	defer dir.Close()
	return w.explain(rel, do(dir, path.Base(rel)))
}

// makeFolders makes a folder and those above it that are missing.
func (w *Workspace) makeFolders(rel string) error {
	for missing := rel; missing != "."; missing = path.Dir(missing) {
		if _, err := w.root.Lstat(missing); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		w.names.Add(filepath.Join(w.root.Name(), path.Dir(missing)))
	}
	return w.root.MkdirAll(rel, 0o777)
}

// original is a file that is to be replaced, or what a new one is to look like.
type original struct {
	info  fs.FileInfo // nil if there is none
	mode  fs.FileMode
	attrs []attribute
}

// attribute is an extended attribute of a file.
type attribute struct {
	name  string
	value []byte
}

// existing describes the file at base, nil if there is none. If a link counts as
// none, what it leads to is not looked at.
func existing(dir *os.Root, base string, linkIsNone bool) (*original, error) {
	info, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && linkIsNone && info.Mode()&fs.ModeSymlink != 0:
		return nil, nil
	case err == nil:
		err = regular(base, info)
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

// writable asks whether we may write a file, without opening it for that, which
// might disturb who is about to replace it. A file without any write bit is
// refused even to those whom the system would let.
func writable(dir *os.Root, base string, info fs.FileInfo) error {
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

// Readlink tells where a link leads, as it is written.
func (w *Workspace) Readlink(name string) (string, error) {
	w, rel, err := w.home(name)
	if err != nil {
		return "", err
	}
	to, err := w.root.Readlink(rel)
	return to, w.explain(rel, err)
}

// Restore puts a file with this content and mode at name in one step, in the
// place of whatever file or link stands there, if accept lets it. A link at name
// is replaced, not followed. If content cannot be read to its end nothing has
// changed.
func (w *Workspace) Restore(name string, content io.Reader, mode fs.FileMode, accept Accept) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		old, err := existing(dir, base, true)
		if err != nil {
			return err
		}
		if old == nil {
			old = new(original)
		}
		old.mode = mode.Perm()
		d, err := w.draft(dir, func(f io.Writer) error { _, err := io.Copy(f, content); return err }, old)
		if err != nil {
			return err
		}
		return d.place(dir, base, accept)
	})
}

// RestoreLink puts a link to the given target at name in one step, in the place
// of whatever file or link stands there, if accept lets it. Where it leads is not
// looked at.
func (w *Workspace) RestoreLink(name, target string, accept Accept) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		if _, err := existing(dir, base, true); err != nil {
			return err
		}
		d := &draft{ws: w, dir: dir}
		err := d.named(func(at *os.Root, name string) error { return at.Symlink(target, name) })
		if err != nil {
			return fmt.Errorf("create a temporary link: %w", err)
		}
		if d.info, err = d.at.Lstat(d.name); err != nil {
			return err
		}
		return d.place(dir, base, accept)
	})
}

// Mkdir makes a directory with exactly this mode. It fails with [fs.ErrExist]
// if there is something already.
func (w *Workspace) Mkdir(name string, mode fs.FileMode) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		if err := dir.Mkdir(base, mode.Perm()|0o700); err != nil {
			return err
		}
		w.names.Add(dir.Name())
		return dir.Chmod(base, mode.Perm())
	})
}

// Chmod sets the permission bits of a file or directory. A link at name is
// refused, not followed.
func (w *Workspace) Chmod(name string, mode fs.FileMode) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		info, err := dir.Lstat(base)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			if err := regular(base, info); err != nil {
				return err
			}
		}
		return dir.Chmod(base, mode.Perm())
	})
}

// inParent is inDir for a directory that is reached without any link: what is
// restored goes where it came from or nowhere.
func (w *Workspace) inParent(name string, do func(dir *os.Root, base string) error) error {
	if err := w.Direct(name); err != nil {
		return err
	}
	return w.inDir(name, do)
}

// ErrThroughLink is the error of restoring something below a directory that
// has become a link.
var ErrThroughLink = errors.New("path goes through a link")

// Direct reports, as an error, that the directories above name are not what
// they are called: one of them is a link.
func (w *Workspace) Direct(name string) error {
	w, rel, err := w.home(name)
	if err != nil {
		return err
	}
	up := path.Dir(rel)
	at, err := w.follow(up)
	if err == nil && at != up {
		err = fmt.Errorf("%w: %s", ErrThroughLink, quoted(name))
	}
	return err
}
