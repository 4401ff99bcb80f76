package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
)

// writableAttrs are the mount attributes of writable places.
const writableAttrs = unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID

// mountLimits arranges the file system of this mount namespace according to places. It first clones the
// writable parts, then makes everything read-only, and then mounts the clones on top.
func mountLimits(p resolvedLimits) error {
	cwd, buf := "", make([]byte, unix.PathMax) // with links on the way resolved; "" if it is gone
	if n, err := unix.Getcwd(buf); err == nil && n >= 2 && buf[0] == '/' {
		cwd = string(buf[:n-1])
	}
	if err := setAttr(unix.AT_FDCWD, "/", &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
		return message.Errorf("detach from other mounts: %w", err)
	}
	devices, err := cloneDevices()
	if err != nil {
		return err
	}
	writable, err := cloneWritable(p.write)
	if err != nil {
		return err
	}
	if err := setAttr(unix.AT_FDCWD, "/", &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | writableAttrs}); err != nil {
		return message.Errorf("make the file system read-only: %w", err)
	}
	if !slices.Contains(p.write, "/dev") {
		if err := makeDev(devices, writable); err != nil {
			return message.Errorf("create /dev: %w", err)
		}
	}
	for _, t := range writable {
		if err := t.mountOver(); err != nil {
			return message.Errorf("make %s writable: %w", t.target, err)
		}
	}
	// Where a new PID namespace's /proc is forbidden, as in some containers, the old one stays: read-only,
	// and the kernel closes it where it would lead out.
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	for _, path := range p.pinnedDirs() {
		if err := remount(path, 0); err != nil {
			return message.Errorf("pin %s: %w", path, err)
		}
	}
	for _, path := range p.protect {
		if err := remount(path, unix.MOUNT_ATTR_RDONLY); err != nil {
			return message.Errorf("protect %s: %w", path, err)
		}
	}
	if err := hidePaths(p); err != nil {
		return err
	}
	if !p.network {
		if err := raiseLoopback(); err != nil {
			return message.Errorf("bring up loopback: %w", err)
		}
	}
	if cwd != "" {
		_ = os.Chdir(cwd) // otherwise stay where nothing is writable
	}
	return nil
}

// hidePaths mounts a device that cannot be opened over each hidden file, and an empty directory, with its
// visible parts, over each hidden one.
func hidePaths(p resolvedLimits) error {
	for _, path := range p.hide {
		t, err := cloneDevice("/dev/null", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
		if err != nil {
			return message.Errorf("hide %s: %w", path, err)
		}
		t.target = path
		if err := t.mountOver(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return message.Errorf("hide %s: %w", path, err)
		}
	}
	for _, l := range slices.Backward(p.layers()) { // visible parts include the inner layer
		if err := l.mount(); err != nil {
			return err
		}
	}
	return nil
}

// mount empties the directories of a layer and mounts the visible parts in them.
func (l layer) mount() error {
	shown := make([]clonedTree, 0, len(l.show))
	for _, path := range l.show {
		t, err := cloneTree(path, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return message.Errorf("show %s: %w", path, err)
		}
		shown = append(shown, t)
	}
	for _, path := range l.empty {
		err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return message.Errorf("hide %s: %w", path, err)
		}
	}
	for _, t := range shown {
		if err := t.mountInside(); err != nil {
			return message.Errorf("show %s: %w", t.target, err)
		}
	}
	for _, path := range l.empty {
		err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		shows := slices.ContainsFunc(l.show, func(shown string) bool { return isWithin(shown, path) })
		for range maxRehides {
			if err != unix.EINVAL || shows {
				break
			}
			// Another session removed and recreated the folder, so the mount over it is gone.
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "mode=0755")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return message.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// maxRehides limits how often to hide a folder that others recreate.
const maxRehides = 10

// mountInside mounts a part inside an emptied directory.
func (t clonedTree) mountInside() error {
	buf := make([]byte, unix.PathMax)
	if n, err := unix.Readlinkat(t.fd, "", buf); err == nil { // a visible link
		unix.Close(t.fd)
		return os.Symlink(string(buf[:n]), t.target)
	}
	if err := t.createMountPoint(); err != nil {
		return err
	}
	return t.mountOver()
}

// clonedTree is a piece of the file system cloned to be mounted elsewhere.
type clonedTree struct {
	fd     int
	target string
}

// cloneTree clones the mount tree below a path, with added attributes.
func cloneTree(path string, attrs uint64) (clonedTree, error) {
	fd, err := openNoLinks(path)
	if err != nil {
		return clonedTree{}, err
	}
	defer unix.Close(fd)
	return openTree(fd, "", path, unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attrs)
}

// cloneDevice is take for a device. It does not check for links on the path, since only the system writes
// to /dev.
func cloneDevice(path string, attrs uint64) (clonedTree, error) {
	return openTree(unix.AT_FDCWD, path, path, unix.AT_SYMLINK_NOFOLLOW, attrs)
}

func openTree(dir int, name, at string, flags uint, attrs uint64) (clonedTree, error) {
	tree, err := unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
	if err != nil {
		return clonedTree{}, err
	}
	if attrs != 0 {
		if err := setAttr(tree, "", &unix.MountAttr{Attr_set: attrs}); err != nil {
			unix.Close(tree)
			return clonedTree{}, err
		}
	}
	return clonedTree{fd: tree, target: at}, nil
}

// mountOver mounts a part over its path.
func (t clonedTree) mountOver() error {
	defer unix.Close(t.fd)
	target, err := openNoLinks(t.target)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	return unix.MoveMount(t.fd, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// remount mounts the tree at a path over itself, with added attributes.
func remount(path string, attrs uint64) error {
	t, err := cloneTree(path, attrs)
	if err != nil {
		return err
	}
	return t.mountOver()
}

// openNoLinks opens a path without symbolic links on the way; it may be one itself.
func openNoLinks(path string) (int, error) {
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

func cloneWritable(paths []string) (parts []clonedTree, err error) {
	for _, path := range paths {
		attrs := uint64(writableAttrs)
		if isWithin(path, "/dev") {
			attrs = unix.MOUNT_ATTR_NOSUID
		}
		t, err := cloneTree(path, attrs)
		if err != nil {
			return nil, message.Errorf("make %s writable: %w", path, err)
		}
		parts = append(parts, t)
	}
	return parts, nil
}

// standardDevices are those that every command may use.
var standardDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

func cloneDevices() (parts []clonedTree, err error) {
	for _, path := range standardDevices {
		t, err := cloneDevice(path, unix.MOUNT_ATTR_NOSUID)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, message.Errorf("bind %s: %w", path, err)
		}
		parts = append(parts, t)
	}
	return parts, nil
}

// devLinks are the links that programs expect in /dev.
var devLinks = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	"ptmx": "pts/ptmx",
}

// makeDev mounts a new /dev: harmless devices, private terminals and shared memory, and the writable
// parts of /dev.
func makeDev(devices, writable []clonedTree) error {
	const flags = unix.MS_NOSUID | unix.MS_NOEXEC
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", flags, "mode=0755"); err != nil {
		return err
	}
	for _, t := range devices {
		if err := unix.Mknod(t.target, unix.S_IFREG|0o644, 0); err != nil {
			return err
		}
		err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.target, unix.MOVE_MOUNT_F_EMPTY_PATH) // no other process was here
		unix.Close(t.fd)
		if err != nil {
			return message.Errorf("%s: %w", t.target, err)
		}
	}
	for name, to := range devLinks {
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
		if !isWithin(t.target, "/dev") {
			continue
		}
		if err := t.createMountPoint(); err != nil {
			return err
		}
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// createMountPoint creates a mount point for the part in a directory of the sandbox. Only whether the part is a
// directory matters; take recorded that.
func (t clonedTree) createMountPoint() error {
	var st unix.Stat_t
	if err := unix.Fstat(t.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(t.target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(t.target), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(t.target, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
