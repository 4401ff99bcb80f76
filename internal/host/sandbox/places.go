package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/message"
)

// resolvedLimits are limits resolved on this machine: every path exists, has no symbolic links on the way and
// occurs once.
type resolvedLimits struct {
	write       []string // none is inside another
	protect     []string // all are inside one of write; may be symbolic links
	hide        []string // files that cannot be opened
	empty       []string // directories that appear empty
	show        []string // visible parts of empty; may be symbolic links
	nestedEmpty []string // directories in show that appear empty
	nestedShow  []string // visible parts of nestedEmpty
	pin         []string // directories inside one of write that cannot be moved
	network     bool
	trace       bool
	bounds      Bounds
	outlet      bool // without network: hand over a listener
}

// resolveLimits resolves limits. It resolves writable paths once for the life of the sandbox, so that a command
// cannot redirect a later one by planting a link.
func (s *Sandbox) resolveLimits(l Limits) (p resolvedLimits, err error) {
	p.network, p.trace, p.bounds = l.Network, l.Trace, l.Bounds
	p.outlet = !l.Network && len(l.Hosts) > 0 && s.CanOpenOutlets()
	for _, path := range l.Write {
		real, err := s.resolve(path)
		if err != nil {
			return resolvedLimits{}, err
		}
		if real != "" {
			p.write = append(p.write, real)
		}
	}
	p.write = outermost(p.write)
	for _, path := range l.Protect {
		path, err := s.resolveIn(l, path)
		if err != nil {
			return resolvedLimits{}, err
		}
		more, err := s.protectedPaths(p.write, path, maxLinks)
		if err != nil {
			return resolvedLimits{}, message.Errorf("protect %s: %w", path, err)
		}
		p.protect = append(p.protect, more...)
	}
	p.protect = outermost(p.protect)
	for _, path := range l.Pin {
		real, err := filepath.EvalSymlinks(path)
		if err == nil && slices.ContainsFunc(p.write, func(dir string) bool { return real != dir && isWithin(real, dir) }) {
			p.pin = append(p.pin, real)
		}
	}
	for _, path := range l.Hide {
		if at := filepath.Clean(path); strings.HasSuffix(path, "/") && s.CanProtect() && !exists(at) {
			_ = s.createPlaceholder(at, true) // if this fails, nobody else can create it either
		}
	}
	if s.backend != Landlock { // Landlock could only hide all of /proc
		l.Hide = append(slices.Clone(l.Hide), keyLists...)
	}
	p.addHidden(l)
	return p, nil
}

// addHidden determines what to hide: the paths in the limits, and those where services listen. Writable
// and shown paths stay visible.
func (p *resolvedLimits) addHidden(l Limits) {
	found := make(linkResolver)
	var list []string
	listed := make(map[string][]string)
	for _, pattern := range serviceSockets {
		dir, base := filepath.Split(pattern)
		begin, end, vague := strings.Cut(base, "*")
		if !vague {
			list = append(list, pattern)
			continue
		}
		if _, read := listed[dir]; !read { // unsorted: sorting thousands of names costs more than all the patterns
			if d, err := os.Open(dir); err == nil {
				listed[dir], _ = d.Readdirnames(-1)
				d.Close()
			}
		}
		for _, name := range listed[dir] {
			if strings.HasPrefix(name, begin) && strings.HasSuffix(name, end) && len(name) >= len(begin)+len(end) {
				list = append(list, dir+name)
			}
		}
	}
	for _, path := range slices.Concat(l.Hide, list) {
		real, info, ok := found.resolve(path)
		switch {
		case !ok || slices.Contains(p.write, real):
		case info.IsDir():
			p.empty = append(p.empty, real)
		default:
			p.hide = append(p.hide, real)
		}
	}
	all := p.empty
	p.empty = outermost(p.empty)
	hidden := func(path string) bool {
		return slices.ContainsFunc(p.empty, func(dir string) bool { return isWithin(path, dir) })
	}
	for _, path := range slices.Concat(l.Show, p.write, neededPaths) {
		if hidden(path) && !slices.Contains(p.empty, path) && exists(path) {
			p.show = append(p.show, firstLink(path, p.empty))
		}
	}
	shown := p.show
	p.show = outermost(shown)
	p.nestedEmpty = outermost(slices.DeleteFunc(all, func(path string) bool {
		return slices.Contains(shown, path) ||
			!isBelow(path, p.show)
	}))
	p.nestedShow = outermost(slices.DeleteFunc(shown, func(path string) bool { return !isBelow(path, p.nestedEmpty) }))
	p.hide = slices.DeleteFunc(outermost(p.hide), func(path string) bool {
		return hidden(path) && !isBelow(path, p.show) || isBelow(path, p.nestedEmpty) && !isBelow(path, p.nestedShow)
	})
}

// isBelow reports whether a path is inside one of the directories.
func isBelow(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return path != dir && isWithin(path, dir) })
}

// layer is a set of empty directories and their visible parts.
type layer struct{ empty, show []string }

// layers returns the hidden directories with their visible parts, the outer layer first.
func (p resolvedLimits) layers() []layer {
	return []layer{{p.empty, p.show}, {p.nestedEmpty, p.nestedShow}}
}

// firstLink returns the first symbolic link between one of the directories and a path in it, or the
// path: a link's target is visible at its own place.
func firstLink(path string, dirs []string) string {
	for _, dir := range dirs {
		if !isWithin(path, dir) {
			continue
		}
		at := dir
		for name := range strings.SplitSeq(strings.TrimPrefix(path, dir+"/"), "/") {
			at = filepath.Join(at, name)
			if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return at
			}
		}
	}
	return path
}

// linkResolver resolves paths that share folders. It caches the real path of each folder, "" if it does not
// exist, and is valid only briefly.
type linkResolver map[string]string

// resolve returns the target of a path after following links, and its info, if it exists.
func (f linkResolver) resolve(path string) (at string, info fs.FileInfo, ok bool) {
	path = filepath.Clean(path)
	dir, known := f[filepath.Dir(path)]
	if !known {
		dir, _ = filepath.EvalSymlinks(filepath.Dir(path)) // "" if there is none
		f[filepath.Dir(path)] = dir
	}
	if dir == "" {
		return "", nil, false
	}
	at = filepath.Join(dir, filepath.Base(path))
	info, err := os.Lstat(at)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if at, err = filepath.EvalSymlinks(at); err == nil {
			info, err = os.Lstat(at)
		}
	}
	return at, info, err == nil
}

// resolve returns the real path of a writable place, or "" if it does not exist.
func (s *Sandbox) resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", message.Errorf("%q is not an absolute path", path)
	}
	if real, ok := s.resolved[path]; ok {
		return real, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if real == "/" {
		return "", errors.New("the whole file system cannot be writable")
	}
	s.resolved[path] = real
	return real, nil
}

// outermost sorts paths and omits those inside others.
func outermost(paths []string) (kept []string) {
	sorted := slices.Clone(paths)
	slices.SortFunc(sorted, func(a, b string) int { return strings.Compare(a+"/", b+"/") })
	for _, path := range sorted {
		if len(kept) == 0 || !isWithin(path, kept[len(kept)-1]) {
			kept = append(kept, path)
		}
	}
	return kept
}

// isWithin reports whether path is dir or below it.
func isWithin(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

// maxLinks limits the symbolic links followed from a protected path.
const maxLinks = 8

// protectedPaths returns everything to protect for one path: the path, and if there is a symbolic link on the
// way, the link itself and its target. It creates missing paths, empty.
func (s *Sandbox) protectedPaths(write []string, path string, links int) ([]string, error) {
	isDir := strings.HasSuffix(path, "/")
	path = filepath.Clean(path)
	i := slices.IndexFunc(write, func(dir string) bool { return isWithin(path, dir) })
	if i < 0 {
		return nil, nil
	}
	rel, _ := filepath.Rel(write[i], path)
	at := write[i]
	names := strings.Split(rel, "/")
	for n, name := range names {
		last := n == len(names)-1
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.backend == Landlock:
			return nil, nil // Landlock cannot protect it anyway
		case errors.Is(err, fs.ErrNotExist):
			if err := s.createPlaceholder(at, isDir || !last); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			rest := filepath.Join(names[n+1:]...)
			switch {
			case links == 0:
				return nil, errors.New("too many symbolic links")
			case s.backend == Bubblewrap:
				return nil, message.Errorf("%s is a symbolic link, which bubblewrap cannot protect", at)
			}
			to, err := os.Readlink(at)
			if err != nil {
				return nil, err
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			more, err := s.protectedPaths(write, filepath.Join(to, rest), links-1)
			return append([]string{at}, more...), err
		case !info.IsDir() && !last:
			return []string{at}, nil // nothing can be created below a protected file
		}
	}
	return []string{at}, nil
}

// resolveIn returns a path with the links of its writable place resolved.
func (s *Sandbox) resolveIn(l Limits, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", message.Errorf("%q is not an absolute path", path)
	}
	slash := ""
	if strings.HasSuffix(path, "/") {
		slash = "/"
	}
	path = filepath.Clean(path)
	for _, dir := range l.Write {
		real, clean := s.resolved[dir], filepath.Clean(dir)
		if real != "" && isWithin(path, clean) {
			return filepath.Join(real, strings.TrimPrefix(path, clean)) + slash, nil
		}
	}
	return path + slash, nil
}

// createPlaceholder creates an empty file or directory in place of a missing protected path.
func (s *Sandbox) createPlaceholder(path string, dir bool) error {
	err := error(nil)
	if dir {
		err = os.Mkdir(path, 0o700)
	} else {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err == nil {
		s.placeholders = append(s.placeholders, path)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// serviceSockets are where services listen that run programs for any client, or act for the user: through them
// a command could bypass its limits. Directories appear empty. A name has at most one star.
var serviceSockets = []string{
	"/run", "/var/run",
	"/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket", "/var/lib/docker",
	"/var/lib/libvirt/qemu",
	"/tmp/tmux-*", "/tmp/screens", "/tmp/uscreens", "/tmp/ssh-*", "/tmp/.X11-unix", "/tmp/.ICE-unix", "/tmp/.font-unix",
	"/tmp/.XIM-unix",
	"/tmp/dbus-*", "/tmp/gpg-*", "/tmp/emacs*", "/tmp/pulse-*", "/tmp/orbit-*", "/tmp/kde-*", "/tmp/ksocket-*",
	"/tmp/vscode-*", "/tmp/cursor-*",
	"/tmp/com.apple.launchd.*", "/tmp/.s.PGSQL.*", "/tmp/mysql.sock", "/tmp/nvim.*", "/tmp/zellij-*", "/tmp/podman-run-*",
	"/tmp/containers-user-*",
	"/tmp/keyring-*", "/tmp/fcitx-*", "/tmp/.wine-*", "/tmp/runtime-*", "/tmp/run-*", "/tmp/*.sock", "/tmp/*.socket",
}

// keyLists are the kernel's lists of a user's keys.
var keyLists = []string{"/proc/keys", "/proc/key-users"}

// neededPaths are paths in emptied directories that programs need: for name lookup, and for programs on some
// systems.
var neededPaths = []string{
	"/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "/run/resolvconf/resolv.conf",
	"/run/NetworkManager/resolv.conf",
	"/run/connman/resolv.conf", "/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/opengl-driver-32",
	"/run/host", "/run/lock", "/run/shm",
}
