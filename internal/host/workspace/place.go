package workspace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"coder/internal/host/disk"
)

const (
	draftBuffer = 32 << 10 // how much of a draft is written at a time
	attempts    = 5        // how often we look again at what changes while we look
)

// ErrChanged is the error of replacing something that is not what it was.
var ErrChanged = errors.New("changed in the meantime")

// ErrBusy is the error of replacing a file that another program is writing: what
// it has yet to write would be lost.
var ErrBusy = errors.New("open for writing in another program")

// ErrAside is the error of replacing something that could not be put back then. The name
// that it has now follows.
var ErrAside = errors.New("the original content is now at")

// Found is what stands at a name.
type Found struct {
	Info    fs.FileInfo   // nil if there is nothing
	Link    string        // where it leads, if it is a link
	Content io.ReadSeeker // of a file that can be read, else nil

	file *os.File
	held bool // no other program has it open for writing, nor can open it without our noticing
}

func (f Found) close() {
	if f.file != nil {
		f.file.Close()
	}
}

// Accept decides whether what stands at a name may be replaced or removed. Should
// it turn out that something else had to go, everything is put back. What it
// says is the error. A nil Accept takes whatever comes.
type Accept func(Found) error

// Nothing accepts that there is nothing.
func Nothing(f Found) error {
	if f.Info != nil {
		return ErrChanged
	}
	return nil
}

// Holding accepts a file that has this content, or a link that leads there.
func Holding(content []byte) Accept {
	return func(f Found) error {
		switch {
		case f.Info == nil, f.Info.Mode()&fs.ModeSymlink != 0 && f.Link != string(content):
			return ErrChanged
		case !f.Info.Mode().IsRegular():
			return nil
		case f.Content == nil || f.Info.Size() != int64(len(content)):
			return ErrChanged
		}
		got, err := io.ReadAll(io.LimitReader(f.Content, int64(len(content))+1))
		if err != nil || !bytes.Equal(got, content) {
			return ErrChanged
		}
		return nil
	}
}

// Swap gives a file new content, provided that it has the old one: nobody's
// change in between is lost, whether another of us makes it or any other
// program. A nil old stands for no file. The error is [ErrChanged] if it is
// something else. A link stays a link and what it points to changes.
func (w *Workspace) Swap(name string, old, data []byte) error {
	accept := Nothing
	if old != nil {
		accept = Holding(old)
	}
	return w.put(name, data, nil, accept)
}

// Remove removes a file, a link or an empty directory, if accept lets it.
func (w *Workspace) Remove(name string, accept Accept) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		defer lockDir(dir)()
		now, err := hold(dir, base, accept)
		if err != nil {
			return err
		}
		defer now.close()
		w.names.Add(dir.Name())
		if now.Info == nil || now.Info.IsDir() || accept == nil {
			return dir.Remove(base)
		}
		// Its name claims no content, so that a sweep removes only what is kept elsewhere.
		return (&draft{ws: w, dir: dir, sum: sha256.New()}).takeAway(base, now, accept)
	})
}

// hold looks at what stands at base and asks accept about it. Until it is closed
// nobody can write to it unnoticed.
func hold(dir *os.Root, base string, accept Accept) (f Found, err error) {
	if f, err = inspect(dir, base); err != nil || accept == nil {
		return f, err
	}
	if f.file != nil {
		f.held, err = lease(f.file)
	}
	if err == nil {
		err = accept(f)
	}
	if err != nil {
		f.close()
	}
	return f, err
}

// still reports whether what is now at a name is what was found, and nobody is
// about to write to it.
func (f Found) still(at *os.Root, name string, accept Accept) error {
	now, err := at.Lstat(name)
	switch {
	case err != nil:
		return err
	case !os.SameFile(now, f.Info), now.Mode() != f.Info.Mode(), f.held && wanted(f.file):
		return ErrChanged
	case f.held || f.file == nil:
		return nil
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return accept(f)
}

// inspect describes what stands at base, without following a link.
func inspect(dir *os.Root, base string) (f Found, err error) {
	f.Info, err = dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Found{}, nil
	case err != nil:
		return f, err
	case f.Info.Mode()&fs.ModeSymlink != 0:
		f.Link, err = dir.Readlink(base)
		return f, err
	case !f.Info.Mode().IsRegular():
		return f, nil
	}
	file, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Found{}, nil
	case err != nil:
		return f, nil // it cannot be read; who has to know will not accept it
	}
	if f.Info, err = file.Stat(); err != nil {
		file.Close()
		return f, err
	}
	f.file, f.Content = file, file
	return f, nil
}

// draft is something finished that has no place yet. While it is written it has
// no name where the system allows that, so that a crash leaves nothing; later it
// has one in the scratch directory of the workspace, or else beside the place it
// is meant for.
type draft struct {
	ws   *Workspace
	dir  *os.Root // where it is meant to go
	file *os.File // nil for a link
	sum  hash.Hash
	at   *os.Root // where its name is
	name string   // "" while it has none
	info fs.FileInfo
}

// draft writes a file to be placed in dir and syncs it: once it has its place it outlives the machine.
func (w *Workspace) draft(dir *os.Root, fill func(io.Writer) error, old *original) (d *draft, err error) {
	d = &draft{ws: w, dir: dir}
	if d.file, err = unnamed(dir); err != nil {
		full := err
		if err := d.create(); err != nil {
			if errors.Is(full, syscall.ENOSPC) || errors.Is(full, syscall.EDQUOT) {
				err = full // the first try says why; a name elsewhere may fail for other reasons
			}
			return nil, fmt.Errorf("create a temporary file: %w", err)
		}
	}
	d.sum = sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(d.file, d.sum), draftBuffer)
	if err = fill(out); err == nil {
		err = out.Flush()
	}
	if err == nil && old != nil {
		if old.info != nil {
			if st, ok := old.info.Sys().(*syscall.Stat_t); ok {
				_ = d.file.Chown(int(st.Uid), int(st.Gid)) // only root may, and only root needs to
			}
		}
		setAttributes(d.file, old.attrs)
		err = d.file.Chmod(old.mode)
	}
	if err == nil {
		disk.Trace("sync", filepath.Join(dir.Name(), "draft"))
		err = d.file.Sync()
	}
	if err == nil {
		d.info, err = d.file.Stat()
	}
	if err != nil {
		d.discard()
		return nil, err
	}
	return d, nil
}

// create makes the file under a name, where the system knows no files without.
func (d *draft) create() error {
	err := d.named(func(at *os.Root, name string) (err error) {
		d.file, err = at.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		return err
	})
	if err != nil {
		return syscall.EACCES
	}
	return nil
}

// call gives the draft a name that says what it holds, if it has none yet.
func (d *draft) call() error {
	if d.name != "" && (d.sum == nil || strings.Count(d.name, "-") > 2) {
		return nil
	}
	if d.name == "" {
		return d.named(func(at *os.Root, name string) error { return link(d.file, at, name) })
	}
	name := d.newName()
	err := d.at.Rename(d.name, name)
	if err == nil {
		d.name = name
	}
	return err
}

// named has do make a name for the draft, in the first directory where it can.
func (d *draft) named(do func(at *os.Root, name string) error) (err error) {
	for _, at := range d.ws.scratchFor(d.dir) {
		name := d.newName()
		for err = do(at, name); errors.Is(err, fs.ErrExist); err = do(at, name) {
			name = d.newName()
		}
		if err == nil {
			d.at, d.name = at, name
			return nil
		}
	}
	return err
}

// discard lets go of the draft, or of what had to go for it.
func (d *draft) discard() {
	if d.file != nil {
		d.file.Close()
	}
	if d.name != "" {
		_ = d.at.Remove(d.name) // it is swept later
	}
}

// place gives the draft its place, if what stands there is accepted.
func (d *draft) place(dir *os.Root, base string, accept Accept) error {
	defer d.discard()
	defer lockDir(dir)()
	for range attempts {
		now, err := hold(dir, base, accept)
		if err != nil {
			return err
		}
		switch {
		case now.Info == nil:
			err = d.placeNew(dir, base)
		case accept == nil:
			err = d.rename(dir, base)
		default:
			err = d.exchange(dir, base, now, accept)
		}
		now.close()
		if err == nil {
			disk.Trace("name", filepath.Join(dir.Name(), base))
			d.ws.names.Add(dir.Name())
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
	return ErrChanged
}

// errMoved reports that there is something where nothing was, or nothing where
// something was.
var errMoved = errors.New("created or removed in the meantime")

// placeNew puts the draft where nothing is.
func (d *draft) placeNew(dir *os.Root, base string) error {
	var err error
	if d.name == "" {
		err = link(d.file, dir, base)
	} else if err = rename(d.at, d.name, dir, base, noReplace); err == nil {
		d.name = ""
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return errMoved
	}
	return d.rename(dir, base) // the system knows no better
}

// rename puts the draft at base whatever stands there.
func (d *draft) rename(dir *os.Root, base string) error {
	err := d.call()
	if err == nil {
		err = rename(d.at, d.name, dir, base, 0)
	}
	if err == nil {
		d.name = ""
	}
	return err
}

// exchange puts the draft in the place of what was found at base, and changes
// them back if that is not what had to go.
func (d *draft) exchange(dir *os.Root, base string, now Found, accept Accept) error {
	if err := d.call(); err != nil {
		return err
	}
	if d.file != nil { // whoever wants to write to the draft waits until it is decided whether it stays
		d.file.Close() // who writes, and we do, keeps others from guarding
		d.file = nil
		if f, err := d.at.OpenFile(d.name, os.O_RDONLY|syscall.O_NOFOLLOW, 0); err == nil {
			defer f.Close()
			_, _ = lease(f) // without it what is written meanwhile may be lost, if it comes to that
		}
	}
	err := rename(d.at, d.name, dir, base, exchange)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errMoved
	case unsupported(err):
		return d.rename(dir, base) // it was looked at a moment ago
	case err != nil:
		return err
	}
	if err := now.still(d.at, d.name, accept); err != nil {
		return errors.Join(err, d.back(dir, base))
	}
	return nil
}

// back puts back what had to go. Should somebody have put something newer in the
// draft's place meanwhile, that stays.
func (d *draft) back(dir *os.Root, base string) error {
	there := d.info // what we believe to stand at base
	for {
		put, err := d.at.Lstat(d.name)
		if err != nil {
			return err
		}
		if err := rename(d.at, d.name, dir, base, exchange); err != nil {
			if errors.Is(err, fs.ErrNotExist) { // somebody removed the draft: that is newer
				return nil
			}
			return fmt.Errorf("put it back: %w; %w %s", err, ErrAside, d.keep())
		}
		got, err := d.at.Lstat(d.name)
		if err != nil || os.SameFile(got, there) {
			return err
		}
		there = put
	}
}

// keep leaves what had to go where it is and says where.
func (d *draft) keep() string {
	name := d.name
	d.name = ""
	return quoted(path.Join(d.at.Name(), name))
}

// takeAway removes what was found at base, and puts it back if it was something
// else.
func (d *draft) takeAway(base string, now Found, accept Accept) error {
	err := d.named(func(at *os.Root, name string) error { return rename(d.dir, base, at, name, 0) })
	if err != nil {
		return err
	}
	defer d.discard()
	if err = now.still(d.at, d.name, accept); err == nil {
		return nil
	}
	if rename(d.at, d.name, d.dir, base, noReplace) == nil {
		d.name = ""
		return err
	}
	return fmt.Errorf("%w; %w %s", err, ErrAside, d.keep()) // somebody may have made a newer one
}
