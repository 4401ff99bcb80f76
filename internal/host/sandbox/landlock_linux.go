package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"coder/internal/core/message"

	"golang.org/x/sys/unix"
)

// Landlock rights for writing, by what they apply to.
const (
	fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	dirRights  = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	sharedMemoryDir = "/dev/shm"
)

// ruleset is what a Landlock domain restricts.
type ruleset struct {
	fs, net, scoped uint64
}

// landlockVersion returns the kernel's Landlock version, or 0.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// newRuleset returns all that this version of Landlock can restrict for the order.
func newRuleset(abi int, o helperSpec) (r ruleset) {
	r.fs = fileRights | dirRights
	if o.hidesFiles() {
		r.fs |= unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	if abi < abiRefer {
		r.fs &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi < abiTruncate {
		r.fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi < abiSockets {
		r.fs &^= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if abi >= abiScopes {
		r.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if o.network || o.stage != stageLandlock {
		return r // a network namespace, or no limit
	}
	if abi >= abiTCP {
		r.net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= abiUDP {
		r.net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
	}
	return r
}

// applyLandlock lets this thread write only where the order says. It also prevents changes to mounts and
// access to outside processes.
func applyLandlock(o helperSpec) error {
	abi := landlockVersion()
	if abi < 1 {
		if o.stage == stageLandlock || o.stage == stageBwrap && unix.Geteuid() == 0 {
			return errors.New("the kernel does not support Landlock")
		}
		return nil // it would only have been the second layer
	}
	r := newRuleset(abi, o)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r), 0)
	if errno != 0 {
		return message.Errorf("create Landlock rules: %w", errno)
	}
	defer unix.Close(int(fd))
	if err := addWritable(int(fd), r, o); err != nil {
		return message.Errorf("create Landlock rules: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return message.Errorf("drop privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return message.Errorf("apply Landlock rules: %w", errno)
	}
	return nil
}

// addWritable adds the writable places. They include terminals only if these are the command's own. A /dev
// made by the helper contains nothing else.
func addWritable(rules int, r ruleset, o helperSpec) error {
	paths := append([]string{sharedMemoryDir}, standardDevices...)
	switch {
	case o.stage == stageNamespaces && !slices.Contains(o.write, "/dev"):
		paths = []string{"/dev"}
	case o.stage != stageLandlock:
		paths = append(paths, "/dev/pts")
	}
	for _, path := range append(paths, o.write...) {
		if paths[0] == "/dev" && isWithin(path, "/dev") && path != "/dev" {
			continue // inside an allowed place
		}
		err := addRule(rules, r.fs, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return message.Errorf("%s: %w", path, err)
		}
	}
	if o.hidesFiles() {
		return addReadable(rules, o.resolvedLimits)
	}
	return nil
}

// hidesFiles reports whether Landlock must hide files: if nothing else can, and only outside writable
// places, whose new files must be readable.
func (o helperSpec) hidesFiles() bool {
	return o.stage == stageLandlock && len(o.hide)+len(o.empty) > 0
}

// addReadable allows reading files that are not hidden. Landlock has no exceptions, so it lists
// everything beside hidden paths piece by piece.
func addReadable(rules int, p resolvedLimits) error {
	hidden := slices.Concat(p.hide, p.empty, p.nestedEmpty)
	holdsHidden := func(path string) bool {
		return slices.ContainsFunc(hidden, func(h string) bool { return isWithin(h, path) })
	}
	dirs := []string{"/"}
	for _, path := range slices.Concat(p.show, p.nestedShow) {
		if holdsHidden(path) {
			dirs = append(dirs, path)
			continue
		}
		if err := addRule(rules, unix.LANDLOCK_ACCESS_FS_READ_FILE, path); err != nil && !isUnreachable(err) {
			return message.Errorf("%s: %w", path, err)
		}
	}
	for ; len(dirs) > 0; dirs = dirs[1:] {
		entries, err := os.ReadDir(dirs[0])
		if err != nil {
			continue // not listable, so not readable either
		}
		for _, e := range entries {
			path := filepath.Join(dirs[0], e.Name())
			if e.Type()&fs.ModeSymlink != 0 || slices.Contains(hidden, path) {
				continue
			}
			if holdsHidden(path) {
				dirs = append(dirs, path)
			} else if err := addRule(rules, unix.LANDLOCK_ACCESS_FS_READ_FILE, path); err != nil && !isUnreachable(err) {
				return message.Errorf("%s: %w", path, err)
			}
		}
	}
	return nil
}

// isUnreachable reports whether a path could not be opened because it is missing or unreachable, and so
// cannot be read either.
func isUnreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

func addRule(rules int, rights uint64, path string) error {
	fd, err := openNoLinks(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights | unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	beneath := struct {
		allowed uint64
		parent  int32
	}{rights, int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&beneath)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
