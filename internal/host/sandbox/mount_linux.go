package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// harmless are the mount attributes of writable places.
const harmless = unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID

// layOut arranges the file system of this mount namespace according to places. It first clones the
// writable parts, then makes everything read-only, and then mounts the clones on top.
func layOut(p places) error {
	cwd, buf := "", make([]byte, unix.PathMax) // with links on the way resolved; "" if it is gone
	if n, err := unix.Getcwd(buf); err == nil && n >= 2 && buf[0] == '/' {
		cwd = string(buf[:n-1])
	}
	if err := setAttr(unix.AT_FDCWD, "/", &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
		return fmt.Errorf("detach from other mounts: %w", err)
	}
	devices, err := takeDevices()
	if err != nil {
		return err
	}
	writable, err := takeWritable(p.write)
	if err != nil {
		return err
	}
	if err := setAttr(unix.AT_FDCWD, "/", &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | harmless}); err != nil {
		return fmt.Errorf("make the file system read-only: %w", err)
	}
	if !slices.Contains(p.write, "/dev") {
		if err := makeDev(devices, writable); err != nil {
			return fmt.Errorf("create /dev: %w", err)
		}
	}
	for _, t := range writable {
		if err := t.put(); err != nil {
			return fmt.Errorf("make %s writable: %w", t.at, err)
		}
	}
	// Where a new PID namespace's /proc is forbidden, as in some containers, the old one stays: read-only,
	// and the kernel closes it where it would lead out.
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	for _, path := range p.pins() {
		if err := remount(path, 0); err != nil {
			return fmt.Errorf("pin %s: %w", path, err)
		}
	}
	for _, path := range p.protect {
		if err := remount(path, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
	}
	if err := conceal(p); err != nil {
		return err
	}
	if !p.network {
		if err := raiseLoopback(); err != nil {
			return fmt.Errorf("bring up loopback: %w", err)
		}
	}
	if cwd != "" {
		_ = os.Chdir(cwd) // otherwise stay where nothing is writable
	}
	return nil
}

// conceal mounts a device that cannot be opened over each hidden file, and an empty directory, with its
// visible parts, over each hidden one.
func conceal(p places) error {
	for _, path := range p.hide {
		t, err := takeDevice("/dev/null", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
		if err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
		t.at = path
		if err := t.put(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	for _, l := range slices.Backward(p.layers()) { // visible parts include the inner layer
		if err := l.put(); err != nil {
			return err
		}
	}
	return nil
}

// put empties the directories of a layer and mounts the visible parts in them.
func (l layer) put() error {
	shown := make([]part, 0, len(l.show))
	for _, path := range l.show {
		t, err := take(path, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
		shown = append(shown, t)
	}
	for _, path := range l.empty {
		err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	for _, t := range shown {
		if err := t.appear(); err != nil {
			return fmt.Errorf("show %s: %w", t.at, err)
		}
	}
	for _, path := range l.empty {
		err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		shows := slices.ContainsFunc(l.show, func(shown string) bool { return within(shown, path) })
		for range mostRehidden {
			if err != unix.EINVAL || shows {
				break
			}
			// Another session removed and recreated the folder, so the mount over it is gone.
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "mode=0755")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// mostRehidden limits how often to hide a folder that others recreate.
const mostRehidden = 10

// appear mounts a part inside an emptied directory.
func (t part) appear() error {
	buf := make([]byte, unix.PathMax)
	if n, err := unix.Readlinkat(t.fd, "", buf); err == nil { // a visible link
		unix.Close(t.fd)
		return os.Symlink(string(buf[:n]), t.at)
	}
	if err := t.makeRoom(); err != nil {
		return err
	}
	return t.put()
}

// part is a piece of the file system cloned to be mounted elsewhere.
type part struct {
	fd int
	at string
}

// take clones the mount tree below a path, with added attributes.
func take(path string, attrs uint64) (part, error) {
	fd, err := open(path)
	if err != nil {
		return part{}, err
	}
	defer unix.Close(fd)
	return clone(fd, "", path, unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attrs)
}

// takeDevice is take for a device. It does not check for links on the path, since only the system writes
// to /dev.
func takeDevice(path string, attrs uint64) (part, error) {
	return clone(unix.AT_FDCWD, path, path, unix.AT_SYMLINK_NOFOLLOW, attrs)
}

func clone(dir int, name, at string, flags uint, attrs uint64) (part, error) {
	tree, err := unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
	if err != nil {
		return part{}, err
	}
	if attrs != 0 {
		if err := setAttr(tree, "", &unix.MountAttr{Attr_set: attrs}); err != nil {
			unix.Close(tree)
			return part{}, err
		}
	}
	return part{fd: tree, at: at}, nil
}

// put mounts a part over its path.
func (t part) put() error {
	defer unix.Close(t.fd)
	target, err := open(t.at)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	return unix.MoveMount(t.fd, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// remount mounts the tree at a path over itself, with added attributes.
func remount(path string, attrs uint64) error {
	t, err := take(path, attrs)
	if err != nil {
		return err
	}
	return t.put()
}

// open opens a path without symbolic links on the way; it may be one itself.
func open(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// setAttr changes all mounts at and below a path.
func setAttr(dir int, path string, attr *unix.MountAttr) error {
	flags := uint(unix.AT_RECURSIVE)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return unix.MountSetattr(dir, path, flags, attr)
}

func takeWritable(paths []string) (parts []part, err error) {
	for _, path := range paths {
		attrs := uint64(harmless)
		if within(path, "/dev") {
			attrs = unix.MOUNT_ATTR_NOSUID
		}
		t, err := take(path, attrs)
		if err != nil {
			return nil, fmt.Errorf("make %s writable: %w", path, err)
		}
		parts = append(parts, t)
	}
	return parts, nil
}

// devices are those that every command may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

func takeDevices() (parts []part, err error) {
	for _, path := range devices {
		t, err := takeDevice(path, unix.MOUNT_ATTR_NOSUID)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("bind %s: %w", path, err)
		}
		parts = append(parts, t)
	}
	return parts, nil
}

// links are the links that programs expect in /dev.
var links = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	"ptmx": "pts/ptmx",
}

// makeDev mounts a new /dev: harmless devices, private terminals and shared memory, and the writable
// parts of /dev.
func makeDev(devices, writable []part) error {
	const flags = unix.MS_NOSUID | unix.MS_NOEXEC
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", flags, "mode=0755"); err != nil {
		return err
	}
	for _, t := range devices {
		if err := unix.Mknod(t.at, unix.S_IFREG|0o644, 0); err != nil {
			return err
		}
		err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.at, unix.MOVE_MOUNT_F_EMPTY_PATH) // no other process was here
		unix.Close(t.fd)
		if err != nil {
			return fmt.Errorf("%s: %w", t.at, err)
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join("/dev", name)); err != nil {
			return err
		}
	}
	if err := os.Mkdir("/dev/shm", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", flags|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	if err := os.Mkdir("/dev/pts", 0o755); err != nil {
		return err
	}
	// Without its own terminals a command has none.
	_ = unix.Mount("devpts", "/dev/pts", "devpts", flags, "newinstance,ptmxmode=0666,mode=620")
	for _, t := range writable {
		if !within(t.at, "/dev") {
			continue
		}
		if err := t.makeRoom(); err != nil {
			return err
		}
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// makeRoom creates a mount point for the part in a directory of the sandbox. Only whether the part is a
// directory matters; take recorded that.
func (t part) makeRoom() error {
	var st unix.Stat_t
	if err := unix.Fstat(t.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(t.at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(t.at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(t.at, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
