package sandbox

import (
	"fmt"
	"syscall"
)

// TellOn is the descriptor on which a helper that was asked to tells how the
// command ended, in the words of [End.String].
const TellOn = 3

// End is how a command ended.
type End struct {
	Code    int            // its exit code, if no signal ended it
	Signal  syscall.Signal // the signal that ended it, or 0
	Stopped bool           // processes were still running and had to be stopped
}

func (e End) String() string { return fmt.Sprintf("%d %d %t\n", e.Code, int(e.Signal), e.Stopped) }
