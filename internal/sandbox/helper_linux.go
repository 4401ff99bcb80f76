package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Main is the helper: it confines itself as its arguments say and becomes the
// command that follows them. It returns only if that cannot be done, or if the
// command had to run as a child, whose exit code it then returns. It is to be
// called before anything else, with the arguments after HelperName.
func Main(args []string) int {
	code, err := carryOut(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, SetupPrefix+strings.ReplaceAll(err.Error(), "\n", " "))
		return SetupCode
	}
	return code
}

// carryOut does all on one thread: confinement is a thread's own, and the one
// that calls exec takes its own along.
func carryOut(args []string) (code int, err error) {
	runtime.LockOSThread()
	parent := os.Getppid()
	o, err := parse(args)
	if err != nil {
		return 0, err
	}
	if o.stage == stageNamespaces && !mayMount() {
		return standIn(o)
	}
	if err := confine(o); err != nil {
		return 0, err
	}
	if o.probe {
		return 0, nil
	}
	return 0, become(o.argv, parent)
}

// confine applies the limits to this thread.
func confine(o order) error {
	switch o.stage {
	case stageNamespaces:
		if err := unix.Unshare(namespaces(o) &^ unix.CLONE_NEWUSER); err != nil {
			return fmt.Errorf("make namespaces: %w", err)
		}
		fallthrough
	case stageInside:
		if err := layOut(o.places); err != nil {
			return err
		}
		fallthrough
	case stageBwrap:
		if err := sealed(); err != nil {
			return err
		}
	}
	if err := landlock(o); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("renounce privileges: %w", err)
	}
	if o.network {
		return nil
	}
	return filterSockets(o.stage)
}

// sealed makes sure that the file system is read-only where nothing else was
// put.
func sealed() error {
	var st unix.Statfs_t
	if err := unix.Statfs("/", &st); err != nil {
		return fmt.Errorf("look at the file system: %w", err)
	}
	if st.Flags&unix.ST_RDONLY == 0 {
		return errors.New("the file system is not read-only")
	}
	return nil
}

// become runs the command in our place. It dies with our parent, as we would
// have, and holds no file of ours but the standard ones.
func become(argv []string, parent int) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("start command: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("start command: %w", err)
	}
	if os.Getppid() != parent {
		return errors.New("start command: whoever wanted it is gone")
	}
	return fmt.Errorf("start %s: %w", path, unix.Exec(path, argv, unix.Environ()))
}
