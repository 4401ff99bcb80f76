package shell

import (
	"sync"
	"syscall"
	"time"
)

// killPatience is how long processes may take to be gone once they were killed.
// That is up to the system: on a starved machine it takes seconds, and one that
// hangs in the kernel never goes.
const killPatience = 30 * time.Second

type member struct{ pid, group int }

// family is the processes of one command: those of its session, and those that
// left it and can be told by other signs.
type family struct {
	session int    // also the number of the shell and of its group
	started uint64 // when the shell started, in the system's own unit
	mark    string // stands in the environment of every process of the command
	pipes   []uint64
	hit     map[int]bool // processes outside the session that were signalled
}

// shells are the commands that are running, by the number of their shell. They
// are waited for by whoever started them and by nobody else.
var shells = struct {
	sync.RWMutex
	running map[int]bool
}{running: make(map[int]bool)}

// stop ends every process of the family, kindly first, and reports whether
// there was any.
func (f *family) stop() bool {
	if f.extinct() {
		return false
	}
	f.signal(syscall.SIGTERM)
	if f.gone(killGrace) {
		return true
	}
	const often = 25 * time.Millisecond // for some may be born while we kill
	for waited := time.Duration(0); waited < killPatience && f.signal(syscall.SIGKILL); waited += often {
		if f.gone(often) {
			break
		}
	}
	return true
}

// looks is how often nobody must be found before we believe it: a process that
// forks and ends while the table is read shows neither itself nor its child.
const looks = 3

func (f *family) extinct() bool {
	for range looks {
		if len(f.living()) > 0 {
			return false
		}
	}
	return true
}

// signal reaches the session's first group in one step, so that nothing forked
// meanwhile escapes, and then those in other groups. It is false if we have power
// over none of them.
func (f *family) signal(sig syscall.Signal) (reached bool) {
	reached = syscall.Kill(-f.session, sig) == nil
	for _, m := range f.living() {
		if m.group != f.session {
			reached = syscall.Kill(m.pid, sig) == nil || reached
			f.hit[m.pid] = true
		}
	}
	return reached
}

// gone waits until the family has no living process, at most for the given
// time, looking less and less often.
func (f *family) gone(within time.Duration) bool {
	for pause := time.Millisecond; ; pause *= 2 {
		if f.extinct() {
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
