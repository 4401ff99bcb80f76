package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// capSet is a set of capabilities, one bit each.
type capSet uint64

func (c capSet) has(n int) bool { return c&(1<<n) != 0 }

// ofRoot are the capabilities a command of root keeps: those to deal with files
// of others where it may write at all. Not among them is the right to read past
// permissions by file handle, which leads out of any file system.
const ofRoot = capSet(1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_NET_BIND_SERVICE)

// lastCap is beyond the last capability that there can be.
const lastCap = 64

// capabilities are those in effect for this thread.
func capabilities() (capSet, error) {
	var data [2]unix.CapUserData
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, err
	}
	return capSet(data[0].Effective) | capSet(data[1].Effective)<<32, nil
}

// dropCapabilities keeps those of ofRoot, for root, and gives up all others,
// for good: also what could be got back by running a program.
func dropCapabilities() error {
	have, err := capabilities()
	if err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	keep := capSet(0)
	if unix.Geteuid() == 0 {
		keep = have & ofRoot
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up ambient capabilities: %w", err)
	}
	if have.has(unix.CAP_SETPCAP) {
		for n := range lastCap { // no program we run is to get more
			if keep.has(n) {
				continue
			}
			err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0)
			if err == unix.EINVAL {
				break // there are no more
			}
			if err != nil {
				return fmt.Errorf("bound capabilities: %w", err)
			}
		}
	}
	low, high := uint32(keep), uint32(keep>>32)
	data := [2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}
