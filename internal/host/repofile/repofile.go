// Package repofile opens files that coder reads without a request: rules, settings, skills, git's files,
// coder's records in a workspace. The author of the repository controls these names, so for all of them:
//
//  1. Nothing outside the root is opened. Links that stay inside are followed,
//     links that lead out are refused.
//  2. Only regular files are opened, and opening never blocks: a pipe, a device,
//     a socket or a directory is refused at once.
//  3. Secret files are refused, also under another name.
//  4. The caller limits the size that is read.
//
// The opened file is the one whose name was checked: no link is followed after the check. A hard link
// counts as the file that it names.
//
// The user's own files, below the home, may be links to anywhere ([ReadOwn]); the other rules apply to them
// too. Files that the user names on the command line are the user's choice ([ReadNamed]).
package repofile

import (
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
	"coder/internal/core/secret"

	"golang.org/x/sys/unix"
)

// Reasons not to read a file.
var (
	ErrOutside    = errors.New("the link leads out of its folder")
	ErrNotRegular = errors.New("not a regular file")
	ErrSecret     = errors.New("the file counts as a secret")
	ErrTooLarge   = errors.New("the file is too large")
	ErrLinkLoop   = errors.New("the links form a loop")
	ErrHidden     = errors.New("a rule or an ignore file hides it")
)

// IsRefused reports whether err means that a file exists but must not be read, as opposed to missing or
// unreachable.
func IsRefused(err error) bool {
	return slices.ContainsFunc([]error{ErrOutside, ErrNotRegular, ErrSecret, ErrTooLarge, ErrLinkLoop, ErrHidden},
		func(why error) bool {
			return errors.Is(err, why)
		})
}

// Reason describes what is wrong with a file, without its name.
func Reason(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Root is a folder that files cannot lead out of. It is an [fs.FS].
type Root struct {
	dir    string
	prefix string // the part of it that names are relative to, "" for all
	hides  func(file string) bool
}

// NewRoot returns the Root dir, a folder that the user chose or that contains one.
func NewRoot(dir string) Root { return Root{dir: dir} }

// Hiding returns the root without links to files that hides accepts, by their full path.
func (r Root) Hiding(hides func(file string) bool) Root {
	r.hides = hides
	return r
}

// Sub returns a folder of the root as a file system. Links in it may lead anywhere in the root.
func (r Root) Sub(dir string) Root {
	r.prefix = path.Join(r.prefix, filepath.ToSlash(dir))
	return r
}

// Read reads a file of at most limit bytes.
func (r Root) Read(name string, limit int64) ([]byte, error) {
	f, err := r.open(name)
	return readAll(r.path(name), f, err, limit)
}

// ReadHead reads the first limit bytes of a file; more reports that the file is longer.
func (r Root) ReadHead(name string, limit int64) (text []byte, more bool, err error) {
	f, err := r.open(name)
	return readHead(r.path(name), f, err, limit)
}

// Open opens a file, or a directory for listing.
func (r Root) Open(name string) (fs.File, error) {
	at, real, err := r.resolve(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(filepath.Join(real, at))
	if err == nil && info.IsDir() {
		return asFile(openNoFollow(real, at, true))
	}
	return asFile(r.open(name))
}

// asFile avoids an fs.File with a nil *os.File.
func asFile(f *os.File, err error) (fs.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Stat describes the target of name.
func (r Root) Stat(name string) (fs.FileInfo, error) {
	at, real, err := r.resolve(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(filepath.Join(real, at))
	return info, wrapError(r.path(name), err)
}

func (r Root) path(name string) string { return filepath.Join(r.dir, r.prefix, name) }

func (r Root) open(name string) (*os.File, error) {
	at, real, err := r.resolve(name)
	if err != nil {
		return nil, err
	}
	if err := requireRegular(os.Lstat(filepath.Join(real, at))); err != nil {
		return nil, wrapError(r.path(name), err) // not even opened: opening may have side effects
	}
	f, err := openNoFollow(real, at, false)
	return checkRegular(r.path(name), f, err)
}

// resolve resolves the links in name. It returns their target relative to real, which is the folder itself
// with its links resolved.
func (r Root) resolve(name string) (at, real string, err error) {
	asked := path.Join(r.prefix, filepath.ToSlash(name))
	if !filepath.IsLocal(asked) {
		return "", "", wrapError(r.path(name), ErrOutside)
	}
	// Most files do not exist, so check this first.
	if _, err := os.Lstat(filepath.Join(r.dir, asked)); errors.Is(err, fs.ErrNotExist) {
		return "", "", wrapError(r.path(name), err)
	}
	if real, err = filepath.EvalSymlinks(r.dir); err != nil {
		return "", "", wrapError(r.path(name), err)
	}
	at, err = ResolveLinks(asked, func(link string) (string, error) { return os.Readlink(filepath.Join(real, link)) },
		func(abs string) (string, bool) {
			rel, err := filepath.Rel(real, abs)
			return rel, err == nil
		})
	if err != nil {
		return "", "", wrapError(r.path(name), err)
	}
	// A link's target may be secret by its own name, or because it is the kernel's information about
	// processes and the machine.
	led := filepath.Join(real, at)
	if secret.IsSecretFile(at) || at != asked && (secret.IsSecretFile(led) || strings.HasPrefix(led, "/proc/") ||
		strings.HasPrefix(led, "/sys/")) {
		return "", "", wrapError(r.path(name), ErrSecret)
	}
	if at != asked && r.hides != nil && r.hides(filepath.Join(r.dir, at)) {
		return "", "", wrapError(r.path(name), ErrHidden)
	}
	return at, real, nil
}

// maxLinks limits the links followed before a path counts as circular.
const maxLinks = 40

// ResolveLinks resolves every link in name, a path below a folder, as the system would. Readlink reads a link
// below the folder, and inside converts an absolute path into one below it, if possible. The error is
// [ErrOutside] or [ErrLinkLoop]. The result is valid only while the folder does not change.
func ResolveLinks(name string, readlink func(string) (string, error), inside func(abs string) (string, bool)) (string,
	error) {
	done, rest, links := ".", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		next := path.Join(done, rest[0])
		if !filepath.IsLocal(next) {
			return "", ErrOutside
		}
		to, err := readlink(next)
		if err != nil { // not a link, or missing, which opening reports
			done, rest = next, rest[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", ErrLinkLoop
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

// checkRegular returns the opened file if it is regular.
func checkRegular(name string, f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, wrapError(name, err)
	}
	if err := requireRegular(f.Stat()); err != nil {
		return nil, errors.Join(wrapError(name, err), f.Close())
	}
	return f, nil
}

func requireRegular(info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	return err
}

// ReadOwn reads one of the user's own files, of at most limit bytes.
func ReadOwn(name string, limit int64) ([]byte, error) {
	f, err := openOwn(name)
	return readAll(name, f, err, limit)
}

// ReadNamed reads a file that the user named on the command line, of at most limit bytes. It may be any
// file, including a pipe, on which Named blocks until a signal ends the program.
func ReadNamed(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	return readAll(name, f, wrapError(name, err), limit)
}

// ReadOwnHead reads the first limit bytes of one of the user's own files.
func ReadOwnHead(name string, limit int64) (text []byte, more bool, err error) {
	f, err := openOwn(name)
	return readHead(name, f, err, limit)
}

// OwnDir returns one of the user's own folders as a file system: links in it may lead anywhere.
func OwnDir(dir string) fs.FS { return ownDir(dir) }

type ownDir string

func (o ownDir) Open(name string) (fs.File, error) {
	at := filepath.Join(string(o), filepath.FromSlash(name))
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		return asFile(os.OpenFile(at, os.O_RDONLY|nonBlocking, 0))
	}
	return asFile(openOwn(at))
}

func (o ownDir) Stat(name string) (fs.FileInfo, error) {
	return os.Stat(filepath.Join(string(o), filepath.FromSlash(name)))
}

func openOwn(name string) (*os.File, error) {
	if err := requireRegular(os.Stat(name)); err != nil {
		return nil, wrapError(name, err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	return checkRegular(name, f, err)
}

// readAll reads all of f, if it was opened and is no longer than limit.
func readAll(name string, f *os.File, err error, limit int64) ([]byte, error) {
	tooLarge := wrapError(name, message.Errorf("%w: more than %d bytes", ErrTooLarge, limit))
	if err == nil {
		if info, err := f.Stat(); err == nil && info.Size() > limit {
			f.Close()
			return nil, tooLarge
		}
	}
	text, more, err := readHead(name, f, err, limit)
	if err == nil && more {
		return nil, tooLarge
	}
	return text, err
}

// readHead reads the start of f, if it was opened, and closes it.
func readHead(name string, f *os.File, err error, limit int64) (text []byte, more bool, _ error) {
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if text, err = io.ReadAll(io.LimitReader(f, limit+1)); err != nil {
		return nil, false, wrapError(name, err)
	}
	if int64(len(text)) > limit {
		return text[:limit], true, nil
	}
	return text, false, nil
}

// Refuse returns the error of a file that must not be read, for one of the reasons above.
func Refuse(name string, why error) error { return wrapError(name, why) }

// wrapError prefixes an error with the file's name.
func wrapError(name string, err error) error {
	var p *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		err = p.Err
	}
	switch {
	case errors.Is(err, syscall.ELOOP):
		err = ErrLinkLoop
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		err = ErrNotRegular // a socket, or a missing device
	case errors.Is(err, syscall.ENOTDIR):
		err = fs.ErrNotExist
	}
	return &fs.PathError{Op: "read", Path: name, Err: err}
}

// nonBlocking keeps an open from waiting for the other end of a pipe, and from acquiring a terminal.
const nonBlocking = unix.O_NONBLOCK | unix.O_NOCTTY

// openNoFollow opens the file name below dir, element by element, without following links, so that a link
// created meanwhile has no effect.
func openNoFollow(dir, name string, directory bool) (*os.File, error) {
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
		_ = unix.Close(at) // only used for the path
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

// gitFiles are the files that git opens for any command: those of a repository and of its work tree.
var gitFiles = []string{
	"HEAD", "config", "config.worktree", "commondir", "index", "packed-refs", "shallow",
	"info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout", "objects/info/alternates",
}
var worktreeFiles = []string{".gitignore", ".gitattributes", ".gitmodules"}

// CheckGit reports files that would block git forever in dir: a pipe, or another non-regular file, where
// git opens a file.
func CheckGit(dir string) error {
	for {
		git := filepath.Join(dir, ".git")
		if info, err := os.Stat(git); err == nil {
			paths := []string{git}
			if info.IsDir() {
				paths = nil
				for _, name := range gitFiles {
					paths = append(paths, filepath.Join(git, name))
				}
				if head, err := NewRoot(git).Read("HEAD", maxGitFile); err == nil { // and the branch in it
					ref, _ := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
					paths = append(paths, filepath.Join(git, filepath.FromSlash(ref)))
				}
			}
			for _, name := range worktreeFiles {
				paths = append(paths, filepath.Join(dir, name))
			}
			for _, path := range paths {
				if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
					return wrapError(path, ErrNotRegular)
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

// maxGitFile limits the size of a file that locates a repository.
const maxGitFile = 64 << 10

// FindRepository returns the top of the work tree that a folder belongs to and the folder of git's own
// files, or empty strings. It does not run git, because a repository may configure programs that git
// would run.
func FindRepository(dir string) (top, git string) {
	for top := dir; ; top = filepath.Dir(top) {
		git := filepath.Join(top, ".git")
		if info, err := os.Stat(git); err == nil && info.IsDir() {
			return top, git
		} else if err == nil {
			text, _ := NewRoot(top).Read(".git", maxGitFile)
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
