package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"coder/internal/core/message"
	"coder/internal/host/program"
)

// A program started as HelperName is the helper: it confines itself as its arguments say and then runs
// the following command, in its place or as a child whose exit code it returns. This happens during
// initialisation, since every command waits for it: packages that the helper does not need are mostly
// initialized later, and that takes longer than the confinement.
func init() {
	if len(os.Args) < 2 || os.Args[1] != HelperName {
		return
	}
	code, err := runHelper(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, SetupPrefix+strings.ReplaceAll(err.Error(), "\n", " "))
		code = SetupCode
	}
	syscall.Exit(code) // immediately: nothing is left to do, and a race detector would wait a second
}

// runHelper does everything on one thread: confinement belongs to a thread, and its children inherit it.
func runHelper(args []string) (code int, err error) {
	runtime.LockOSThread()
	parent := os.Getppid()
	o, err := parseSpec(args)
	if err != nil {
		return 0, err
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil { // not for the command
		return 0, message.Errorf("close files: %w", err)
	}
	var tell *os.File // reports how the command ended
	if o.reportEnd {
		tell = os.NewFile(ReportFD, "tell")
	}
	group := openGroup(o) // visible neither to the command nor to the helper afterwards
	if err := confine(o); err != nil {
		return 0, err
	}
	switch {
	case o.probe:
		return 0, nil
	case o.stage == stageBwrap:
		return 0, execCommand(o.argv, parent)
	}
	return supervise(o, tell, group)
}

// confine applies the limits to this thread.
func confine(o helperSpec) error {
	switch o.stage {
	case stageOpen:
		return nil
	case stageNamespaces:
		// Anywhere else, the next steps would change the machine.
		if mountNamespace() == o.outerNamespace || os.Getpid() != 1 {
			return errors.New("not in its own namespaces")
		}
		// If the starter was killed before the death signal was set, nothing would end this process. Until the
		// file system is set up, /proc is the outer one, and only there does this process have a parent.
		if o.starter != "" && readParent("self") != o.starter {
			return errStarterGone
		}
		if err := mountLimits(o.resolvedLimits); err != nil {
			return err
		}
		fallthrough
	case stageBwrap:
		var st unix.Statfs_t
		if err := unix.Statfs("/", &st); err != nil {
			return message.Errorf("inspect the file system: %w", err)
		}
		if st.Flags&unix.ST_RDONLY == 0 {
			return errors.New("the file system is not read-only")
		}
	}
	joinNewKeyring()
	if o.outlet {
		if err := sendListener(); err != nil {
			return message.Errorf("open an outlet: %w", err)
		}
	}
	if err := applyLandlock(o); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return message.Errorf("drop privileges: %w", err)
	}
	return installFilter(o)
}

// joinNewKeyring gives this thread a new, empty session keyring. It fails in a kernel without keys, in a
// container that forbids them, and if a user has too many: the filter then still keeps the command from
// all keys.
func joinNewKeyring() { _, _ = unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) }

var errStarterGone = errors.New("start command: the requesting process is gone")

// mountNamespace returns the name of the current mount namespace.
func mountNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/mnt")
	return name
}

// execCommand replaces the helper with the command. The command dies with the helper's parent, as the helper
// would.
func execCommand(argv []string, parent int) error {
	path, err := program.LookPath(argv[0])
	if err != nil {
		return message.Errorf("start command: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return message.Errorf("start command: %w", err)
	}
	if os.Getppid() != parent {
		return errStarterGone
	}
	return message.Errorf("start %s: %w", path, program.Exec(path, argv, unix.Environ()))
}

// capSet is a set of capabilities, one bit each.
type capSet uint64

func (c capSet) has(n int) bool { return c&(1<<n) != 0 }

// rootCaps are the capabilities that a command of root keeps: to handle files of others where it may write
// at all. They exclude bypassing permissions by file handle, which leads out of any file system.
const rootCaps = capSet(1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_NET_BIND_SERVICE)

// capCount is greater than any capability.
const capCount = 64

// capabilities returns this thread's effective capabilities.
func capabilities() (capSet, error) {
	var data [2]unix.CapUserData
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, err
	}
	return capSet(data[0].Effective) | capSet(data[1].Effective)<<32, nil
}

// dropCapabilities permanently drops all capabilities, except for rootCaps as root, including those
// regained by running a program.
func dropCapabilities() error {
	have, err := capabilities()
	if err != nil {
		return message.Errorf("drop capabilities: %w", err)
	}
	keep := capSet(0)
	if unix.Geteuid() == 0 {
		keep = have & rootCaps
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return message.Errorf("drop ambient capabilities: %w", err)
	}
	if have.has(unix.CAP_SETPCAP) {
		for n := range capCount { // no program may gain more
			if keep.has(n) {
				continue
			}
			err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0)
			if err == unix.EINVAL {
				break // no more capabilities
			}
			if err != nil {
				return message.Errorf("bound capabilities: %w", err)
			}
		}
	}
	low, high := uint32(keep), uint32(keep>>32)
	data := [2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return message.Errorf("drop capabilities: %w", err)
	}
	return nil
}
