// Package repofile opens the files that the program reads by itself, without
// anybody having asked for them: rules, settings, skills, what git keeps, its
// own records in a workspace. Whoever made the repository chose what lies under
// those names, so for every one of them:
//
//  1. Nothing outside its root is opened. Links that stay inside are followed,
//     links that lead out are refused.
//  2. Only regular files are opened, and opening never waits: a pipe, a device,
//     a socket or a directory is refused at once.
//  3. What counts as a secret is refused, also under another name.
//  4. What is read is bounded by whoever asks for it.
//
// What is opened is the file whose name was judged: no link is followed after
// that. A hard link is the file it names.
//
// Files of the person's own, below their home, may be links to anywhere ([Own]);
// the rest holds for them too. What the person names on the command line is
// theirs to choose ([Named]).
package repofile

import (
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

	"coder/internal/core/secret"

	"golang.org/x/sys/unix"
)

// Reasons why a file is not read.
var (
	ErrOutside    = errors.New("the link leads out of its folder")
	ErrNotRegular = errors.New("it is not a regular file")
	ErrSecret     = errors.New("the file counts as a secret")
	ErrTooLarge   = errors.New("the file is too large")
	ErrCircle     = errors.New("its links form a loop")
)

// Refused reports whether err says that a file is there and is not one to be
// read, as opposed to missing or out of reach.
func Refused(err error) bool {
	return slices.ContainsFunc([]error{ErrOutside, ErrNotRegular, ErrSecret, ErrTooLarge, ErrCircle}, func(why error) bool {
		return errors.Is(err, why)
	})
}

// Why is what is wrong with a file, without its name.
func Why(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Root is a folder that nothing leads out of. It is an [fs.FS].
type Root struct {
	dir string
	sub string // the part of it that names are relative to, "" for all
}

// Below is the folder dir, which the person chose or which holds such a one.
func Below(dir string) Root { return Root{dir: dir} }

// Sub is a folder of the root as a file system. Links in it may lead anywhere
// in the root.
func (r Root) Sub(dir string) Root {
	r.sub = path.Join(r.sub, filepath.ToSlash(dir))
	return r
}

// Read reads a file of at most limit bytes.
func (r Root) Read(name string, limit int64) ([]byte, error) {
	f, err := r.open(name)
	return all(r.path(name), f, err, limit)
}

// Head reads the first limit bytes of a file; more says that there are others.
func (r Root) Head(name string, limit int64) (text []byte, more bool, err error) {
	f, err := r.open(name)
	return head(r.path(name), f, err, limit)
}

// Open opens a file, or a directory for listing.
func (r Root) Open(name string) (fs.File, error) {
	at, real, err := r.find(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(filepath.Join(real, at))
	if err == nil && info.IsDir() {
		return asFile(openExactly(real, at, true))
	}
	return asFile(r.open(name))
}

// asFile keeps a nil *os.File from becoming an fs.File that is not nil.
func asFile(f *os.File, err error) (fs.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Stat describes what name leads to.
func (r Root) Stat(name string) (fs.FileInfo, error) {
	at, real, err := r.find(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(filepath.Join(real, at))
	return info, named(r.path(name), err)
}

func (r Root) path(name string) string { return filepath.Join(r.dir, r.sub, name) }

func (r Root) open(name string) (*os.File, error) {
	at, real, err := r.find(name)
	if err != nil {
		return nil, err
	}
	if err := regular(os.Lstat(filepath.Join(real, at))); err != nil {
		return nil, named(r.path(name), err) // not even opened: that alone may wake somebody up
	}
	f, err := openExactly(real, at, false)
	return checked(r.path(name), f, err)
}

// find follows the links that name is made of and returns where they lead,
// below real, the folder itself with its links resolved.
func (r Root) find(name string) (at, real string, err error) {
	asked := path.Join(r.sub, filepath.ToSlash(name))
	if !filepath.IsLocal(asked) {
		return "", "", named(r.path(name), ErrOutside)
	}
	// Most of what is looked for is not there.
	if _, err := os.Lstat(filepath.Join(r.dir, asked)); errors.Is(err, fs.ErrNotExist) {
		return "", "", named(r.path(name), err)
	}
	if real, err = filepath.EvalSymlinks(r.dir); err != nil {
		return "", "", named(r.path(name), err)
	}
	at, err = Follow(asked, func(link string) (string, error) { return os.Readlink(filepath.Join(real, link)) }, func(abs string) (string, bool) {
		rel, err := filepath.Rel(real, abs)
		return rel, err == nil
	})
	if err != nil {
		return "", "", named(r.path(name), err)
	}
	// What a link led to is one by its name, or because the kernel writes it about processes and the machine.
	led := filepath.Join(real, at)
	if secret.Is(at) || at != asked && (secret.Is(led) || strings.HasPrefix(led, "/proc/") || strings.HasPrefix(led, "/sys/")) {
		return "", "", named(r.path(name), ErrSecret)
	}
	return at, real, nil
}

// maxLinks is how many links are followed before it is called a circle.
const maxLinks = 40

// Follow replaces every link in name, a path below a folder, by what it points
// to, as the system would. Readlink reads one below the folder, and inside makes
// an absolute path one below it, if it can. The error is [ErrOutside] or
// [ErrCircle]. The answer is only as fresh as the folder is still.
func Follow(name string, readlink func(string) (string, error), inside func(abs string) (string, bool)) (string, error) {
	done, rest, links := ".", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		next := path.Join(done, rest[0])
		if !filepath.IsLocal(next) {
			return "", ErrOutside
		}
		to, err := readlink(next)
		if err != nil { // no link, or not there, which opening it will say
			done, rest = next, rest[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", ErrCircle
		}
		if filepath.IsAbs(to) {
			var ok bool
			if to, ok = inside(filepath.Clean(to)); !ok {
				return "", ErrOutside
			}
			done = "."
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest[1:]...)
	}
	return done, nil
}

// checked is the file that was opened, if it is a regular one.
func checked(name string, f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, named(name, err)
	}
	if err := regular(f.Stat()); err != nil {
		return nil, errors.Join(named(name, err), f.Close())
	}
	return f, nil
}

func regular(info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	return err
}

// Own reads a file of the person's own, of at most limit bytes.
func Own(name string, limit int64) ([]byte, error) {
	f, err := openOwn(name)
	return all(name, f, err, limit)
}

// Named reads what the person names on the command line, of at most limit
// bytes: any file, and a pipe, which is waited for until a signal ends the
// program.
func Named(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	return all(name, f, named(name, err), limit)
}

// OwnHead reads the first limit bytes of a file of the person's own.
func OwnHead(name string, limit int64) (text []byte, more bool, err error) {
	f, err := openOwn(name)
	return head(name, f, err, limit)
}

// OwnDir is a folder of the person's own as a file system: links in it may
// lead anywhere.
func OwnDir(dir string) fs.FS { return own(dir) }

type own string

func (o own) Open(name string) (fs.File, error) {
	at := filepath.Join(string(o), filepath.FromSlash(name))
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		return asFile(os.OpenFile(at, os.O_RDONLY|nonBlocking, 0))
	}
	return asFile(openOwn(at))
}

func (o own) Stat(name string) (fs.FileInfo, error) {
	return os.Stat(filepath.Join(string(o), filepath.FromSlash(name)))
}

func openOwn(name string) (*os.File, error) {
	if err := regular(os.Stat(name)); err != nil {
		return nil, named(name, err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	return checked(name, f, err)
}

// all reads the whole of f, if it was opened and that is no more than limit bytes.
func all(name string, f *os.File, err error, limit int64) ([]byte, error) {
	tooLarge := named(name, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit))
	if err == nil {
		if info, err := f.Stat(); err == nil && info.Size() > limit {
			f.Close()
			return nil, tooLarge
		}
	}
	text, more, err := head(name, f, err, limit)
	if err == nil && more {
		return nil, tooLarge
	}
	return text, err
}

// head reads the beginning of f, if it was opened, and closes it.
func head(name string, f *os.File, err error, limit int64) (text []byte, more bool, _ error) {
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if text, err = io.ReadAll(io.LimitReader(f, limit+1)); err != nil {
		return nil, false, named(name, err)
	}
	if int64(len(text)) > limit {
		return text[:limit], true, nil
	}
	return text, false, nil
}

// named puts the file before what is wrong with it.
func named(name string, err error) error {
	var p *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		err = p.Err
	}
	switch {
	case errors.Is(err, syscall.ELOOP):
		err = ErrCircle
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		err = ErrNotRegular // a socket, or a device that is not there
	case errors.Is(err, syscall.ENOTDIR):
		err = fs.ErrNotExist
	}
	return &fs.PathError{Op: "read", Path: name, Err: err}
}

// nonBlocking keeps opening from waiting for whoever is at the other end, and
// from taking a terminal.
const nonBlocking = unix.O_NONBLOCK | unix.O_NOCTTY

// openExactly opens the file name below dir, one part after the other, and
// follows no link on the way: whoever puts one there now comes too late.
func openExactly(dir, name string, directory bool) (*os.File, error) {
	const step = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | nonBlocking
	at, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		flags := step
		if i < len(parts)-1 || directory {
			flags |= unix.O_DIRECTORY
		}
		next, err := openat(at, part, flags)
		_ = unix.Close(at) // it was only stood on
		if err != nil {
			return nil, err
		}
		at = next
	}
	return os.NewFile(uintptr(at), filepath.Join(dir, name)), nil
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// gitReads are the files that git opens whatever it is asked: those of a
// repository, and those of its work tree.
var gitReads = []string{
	"HEAD", "config", "config.worktree", "commondir", "index", "packed-refs", "shallow",
	"info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout", "objects/info/alternates",
}
var gitReadsBeside = []string{".gitignore", ".gitattributes", ".gitmodules"}

// CheckGit reports what would have git wait for ever if it were run in dir: a
// pipe, or something else that is no file, where it opens a file.
func CheckGit(dir string) error {
	for {
		git := filepath.Join(dir, ".git")
		if info, err := os.Stat(git); err == nil {
			paths := []string{git}
			if info.IsDir() {
				paths = nil
				for _, name := range gitReads {
					paths = append(paths, filepath.Join(git, name))
				}
				if head, err := Below(git).Read("HEAD", maxGitFile); err == nil { // and the branch it names
					ref, _ := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
					paths = append(paths, filepath.Join(git, filepath.FromSlash(ref)))
				}
			}
			for _, name := range gitReadsBeside {
				paths = append(paths, filepath.Join(dir, name))
			}
			for _, path := range paths {
				if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
					return named(path, ErrNotRegular)
				}
			}
			return nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		dir = up
	}
}

// maxGitFile bounds a file that says where a repository lies.
const maxGitFile = 64 << 10

// Repository finds the repository that a folder belongs to: the top of its work
// tree and the folder of its own files, both empty if there is none. Git itself is
// not asked: a repository may bring programs that it would run.
func Repository(dir string) (top, git string) {
	for top := dir; ; top = filepath.Dir(top) {
		git := filepath.Join(top, ".git")
		if info, err := os.Stat(git); err == nil && info.IsDir() {
			return top, git
		} else if err == nil {
			text, _ := Below(top).Read(".git", maxGitFile)
			if to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:"); ok {
				if to = strings.TrimSpace(to); !filepath.IsAbs(to) {
					to = filepath.Join(top, to)
				}
				return top, to
			}
		}
		if top == filepath.Dir(top) {
			return "", ""
		}
	}
}
