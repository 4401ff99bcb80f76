//go:build unix

package shell

import (
	"syscall"
	"time"
)

// killRounds is how often we look again for processes born while we killed.
const killRounds = 20

// member is a process of a session.
type member struct{ pid, group int }

// stopSession ends every process of a session, kindly first, and reports
// whether there was any.
func stopSession(session int) bool {
	if len(living(session)) == 0 {
		return false
	}
	signal(session, syscall.SIGTERM)
	if gone(session, killGrace) {
		return true
	}
	for range killRounds {
		signal(session, syscall.SIGKILL)
		if gone(session, killGrace/killRounds) {
			break
		}
	}
	return true
}

// signal reaches the session's first group in one step, so that nothing forked
// meanwhile escapes, and then those in other groups.
func signal(session int, sig syscall.Signal) {
	_ = syscall.Kill(-session, sig)
	for _, m := range living(session) {
		if m.group != session {
			_ = syscall.Kill(m.pid, sig)
		}
	}
}

// gone waits until the session has no living process, at most for the given
// time, looking less and less often.
func gone(session int, within time.Duration) bool {
	for pause := time.Millisecond; ; pause *= 2 {
		if len(living(session)) == 0 {
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
