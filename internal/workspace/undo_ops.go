package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Folder is one directory as [Workspace.Survey] found it.
type Folder struct {
	Path    string        // a name as [Workspace.Resolve] gives it, "." for the root
	Entries []fs.FileInfo // in the order of names; what is ignored is left out
	Err     error         // why it could not be listed, or not whole
}

// surveyors is how many directories are listed at a time.
const surveyors = 4

// Survey describes everything that is not ignored, in the added trees too,
// directory by directory in the order of paths, each thing as Lstat would. It is
// made for being asked often: one system call per file. After limit entries it
// looks no further, the near having come before the far, and more says so. When
// ctx ends it returns ctx.Err().
func (w *Workspace) Survey(ctx context.Context, limit int) (all []Folder, more bool, err error) {
	s := survey{main: w, limit: limit}
	for _, tree := range w.apart() {
		s.queue = append(s.queue, stop{tree, level{dir: "."}})
	}
	s.wake.L = &s.mu
	var crew sync.WaitGroup
	for range surveyors {
		crew.Go(func() { s.work(ctx) })
	}
	crew.Wait()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	slices.SortFunc(s.done, func(a, b Folder) int { return strings.Compare(a.Path, b.Path) })
	return s.done, s.more, nil
}

// apart lists the trees that do not lie in one that is listed. What is in the
// main tree is known by the names it has there.
func (w *Workspace) apart() []*Workspace {
	list := []*Workspace{w}
	for i, a := range w.added {
		within := func(other *Workspace) bool { _, ok := other.below(a.real); return ok }
		twice := slices.ContainsFunc(w.added[:i], func(o *Workspace) bool { return o.real == a.real })
		larger := slices.ContainsFunc(w.added, func(o *Workspace) bool { return o.real != a.real && within(o) })
		if !within(w) && !twice && !larger {
			list = append(list, a)
		}
	}
	return list
}

// stop is a directory of one of the trees that is still to be listed.
type stop struct {
	tree *Workspace
	level
}

// survey is one Survey under way.
type survey struct {
	main  *Workspace
	limit int

	mu    sync.Mutex // guards the fields below
	wake  sync.Cond  // told when there is a directory to list, or none will come
	queue []stop
	busy  int // directories being listed
	seen  int // entries so far
	done  []Folder
	more  bool
}

// work lists directories until there are none left.
func (s *survey) work(ctx context.Context) {
	for {
		at, ok := s.next(ctx)
		if !ok {
			return
		}
		f, below := s.folder(at)
		s.add(f, below)
	}
}

func (s *survey) next(ctx context.Context) (at stop, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && s.busy > 0 && ctx.Err() == nil {
		s.wake.Wait()
	}
	if len(s.queue) == 0 || ctx.Err() != nil {
		return stop{}, false
	}
	at, s.queue = s.queue[0], s.queue[1:]
	s.busy++
	return at, true
}

func (s *survey) add(f Folder, below []stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.seen += len(f.Entries)
	s.done = append(s.done, f)
	if s.seen > s.limit {
		s.more = s.more || len(below) > 0 || len(s.queue) > 0
		s.queue, below = nil, nil
	}
	s.queue = append(s.queue, below...)
	s.wake.Broadcast()
}

// folder lists one directory and names those in it that are to be entered.
func (s *survey) folder(at stop) (f Folder, below []stop) {
	w := at.tree
	f.Path = w.called(at.dir)
	entries, more, err := w.readDir(at.dir, maxDir)
	if err != nil {
		f.Err = w.explain(at.dir, err)
	} else if more {
		f.Err = ErrTooLarge
	}
	rules := w.rulesOf(at.dir, entries, at.rules)
	f.Entries = make([]fs.FileInfo, 0, len(entries))
	for _, d := range entries {
		rel := path.Join(at.dir, d.Name())
		if rules.ignore(rel, d.IsDir()) || d.IsDir() && s.isMain(w, rel) {
			continue
		}
		info, err := d.Info()
		if err != nil {
			continue // gone since it was listed
		}
		f.Entries = append(f.Entries, info)
		if d.IsDir() {
			below = append(below, stop{w, level{dir: rel, rules: rules}})
		}
	}
	return f, below
}

// isMain reports whether a directory of an added tree is the main tree.
func (s *survey) isMain(w *Workspace, rel string) bool {
	return w != s.main && w.called(rel) == s.main.real
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
// place of whatever file or link stands there. A link at name is replaced, not
// followed. If content cannot be read to its end nothing has changed.
func (w *Workspace) Restore(name string, content io.Reader, mode fs.FileMode) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		old, err := replaceable(dir, base)
		if err != nil {
			return err
		}
		f, err := scratch(dir)
		if err != nil {
			return fmt.Errorf("make a temporary file beside it: %w", err)
		}
		temp := path.Base(f.Name())
		if err := restore(f, content, mode, old); err != nil {
			return errors.Join(err, dir.Remove(temp))
		}
		return moved(dir, temp, base)
	})
}

func restore(f *os.File, content io.Reader, mode fs.FileMode, old *original) error {
	_, err := io.Copy(f, content)
	if err == nil && old != nil {
		keepOwner(f, old.info)
		setAttributes(f, old.attrs)
	}
	if err == nil {
		err = f.Chmod(mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// RestoreLink puts a link to the given target at name in one step, in the
// place of whatever file or link stands there. Where it leads is not looked at.
func (w *Workspace) RestoreLink(name, target string) error {
	return w.inParent(name, func(dir *os.Root, base string) error {
		if _, err := replaceable(dir, base); err != nil {
			return err
		}
		for {
			temp := fmt.Sprintf(".coder-%d-%d.tmp", os.Getpid(), serial.Add(1))
			err := dir.Symlink(target, temp)
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			if err != nil {
				return err
			}
			return moved(dir, temp, base)
		}
	})
}

// moved gives the finished temp its name.
func moved(dir *os.Root, temp, base string) error {
	if err := dir.Rename(temp, base); err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	syncDir(dir)
	return nil
}

// replaceable describes the file that a rename onto base would do away with,
// nil if there is none. Only files and links may go that way.
func replaceable(dir *os.Root, base string) (*original, error) {
	info, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil
	}
	if err := regular(base, info); err != nil {
		return nil, err
	}
	old := &original{info: info}
	if f, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		old.attrs = attributes(f)
		f.Close()
	}
	return old, nil
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

// inParent calls do with a handle on the directory that holds name, making it
// if need be, and with name's last part. The directory must be reached without
// any link: what is restored goes where it came from or nowhere.
func (w *Workspace) inParent(name string, do func(dir *os.Root, base string) error) error {
	if err := w.Direct(name); err != nil {
		return err
	}
	w, rel, err := w.home(name)
	if err != nil {
		return err
	}
	dir, err := w.parent(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	return w.explain(rel, do(dir, path.Base(rel)))
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
