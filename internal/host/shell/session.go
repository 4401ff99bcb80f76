package shell

import (
	"sync"
	"syscall"
	"time"
)

// killTimeout is how long killed processes may take to disappear. That depends on the system: on an
// overloaded machine it takes seconds, and a process stuck in the kernel never disappears.
const killTimeout = 30 * time.Second

type member struct{ pid, group int }

// family is the processes of one command: those of its session, and those that left it but are
// recognisable by other signs.
type family struct {
	session   int    // process id of the shell, its group and session
	started   uint64 // start time of the shell in the system's units
	mark      string // in the environment of every process of the command
	pipes     []uint64
	signalled map[int]bool // signalled processes outside the session
}

// runningShells are the running commands, by the process id of their shell. Only their starter waits for them.
var runningShells = struct {
	sync.RWMutex
	running map[int]bool
}{running: make(map[int]bool)}

// stop ends every process of the family, with SIGTERM first, and reports whether there was any.
func (f *family) stop() bool {
	if f.isEmpty() {
		return false
	}
	f.signal(syscall.SIGTERM)
	if f.waitGone(killGrace) {
		return true
	}
	const often = 25 * time.Millisecond // often, since processes may fork while being killed
	for waited := time.Duration(0); waited < killTimeout && f.signal(syscall.SIGKILL); waited += often {
		if f.waitGone(often) {
			break
		}
	}
	return true
}

// emptyScans is how many times in a row no process must be found: a process that forks and ends while the
// table is read shows neither itself nor its child.
const emptyScans = 3

func (f *family) isEmpty() bool {
	for range emptyScans {
		if len(f.livingMembers()) > 0 {
			return false
		}
	}
	return true
}

// signal signals the session's first group in one step, so that nothing forked meanwhile escapes, and
// then the other groups. It returns false if it may signal none of them.
func (f *family) signal(sig syscall.Signal) (reached bool) {
	reached = syscall.Kill(-f.session, sig) == nil
	for _, m := range f.livingMembers() {
		if m.group != f.session {
			reached = syscall.Kill(m.pid, sig) == nil || reached
			f.signalled[m.pid] = true
		}
	}
	return reached
}

// waitGone waits until the family has no living process, up to the given time, checking at increasing
// intervals.
func (f *family) waitGone(within time.Duration) bool {
	for pause := time.Millisecond; ; pause *= 2 {
		if f.isEmpty() {
			return true
		}
		if within <= 0 {
			return false
		}
		pause = min(pause, within, 50*time.Millisecond)
		time.Sleep(pause)
		within -= pause
	}
}
