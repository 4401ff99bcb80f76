package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

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
		return d.placeToLast(dir, base, accept)
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
			return fmt.Errorf("make a temporary link: %w", err)
		}
		if d.info, err = d.at.Lstat(d.name); err != nil {
			return err
		}
		return d.placeToLast(dir, base, accept)
	})
}

// placeToLast places a draft and sees its name on the disk. Some file systems
// cannot do that; the content is safe all the same.
func (d *draft) placeToLast(dir *os.Root, base string, accept Accept) error {
	if err := d.place(dir, base, accept); err != nil {
		return err
	}
	if f, err := dir.Open("."); err == nil {
		_ = f.Sync()
		f.Close()
	}
	return nil
}

// Mkdir makes a directory with exactly this mode. It fails with [fs.ErrExist]
// if there is something already.
func (w *Workspace) Mkdir(name string, mode fs.FileMode) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		if err := dir.Mkdir(base, mode.Perm()|0o700); err != nil {
			return err
		}
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
var ErrThroughLink = errors.New("path leads through a link")

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
