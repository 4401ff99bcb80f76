//go:build unix

package shell

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listen gives a program that is the first of a command's processes the means
// to tell how that ended, and is where we hear it; nil if there is no such
// program.
func (s Spec) listen(cmd *exec.Cmd) (*os.File, error) {
	if !s.Init {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{w}
	return r, nil
}

func closeAll(first *os.File, more ...*os.File) {
	for _, f := range append(more, first) {
		if f != nil {
			f.Close()
		}
	}
}

// endInit has the first process end, if it has not, and takes down what it
// tells. It is false if that is nothing: then it was killed by somebody else,
// and what it looked after has to be looked for.
func (p *process) endInit(out *Outcome) bool {
	defer p.told.Close()
	select {
	case <-p.exited:
	default:
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		late := time.NewTimer(initGrace)
		defer late.Stop()
		select {
		case <-p.exited:
		case <-late.C:
			_ = p.cmd.Process.Kill()
			<-p.exited
		}
	}
	text, _ := io.ReadAll(io.LimitReader(p.told, maxTold))
	var code, sig int
	var stopped bool
	if n, err := fmt.Sscanf(string(text), "%d %d %t\n", &code, &sig, &stopped); n != 3 || err != nil {
		return false
	}
	out.ExitCode, out.Stopped = code, stopped
	if sig != 0 {
		out.ExitCode, out.Signal = 128+sig, unix.SignalName(syscall.Signal(sig))
	}
	return true
}

const (
	// initGrace is how long the first process may take to end all others.
	initGrace = 4 * killGrace
	// maxTold is more than it has to tell.
	maxTold = 64
)
