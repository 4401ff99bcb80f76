// Package child runs programs that serve us over their standard streams for as
// long as we need them, such as language servers. Nothing of them outlives us.
package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"coder/internal/host/program"
)

const (
	maxStderr = 4 << 10 // bytes kept of what a server last wrote to stderr

	// drainGrace is how long a process beyond our reach may hold the error
	// output of a server open after its end.
	drainGrace = 200 * time.Millisecond
)

// Process is a running server.
type Process struct {
	cmd    *program.Cmd
	to     *os.File // its standard input
	from   *os.File // its standard output
	stderr tail
	ended  chan struct{} // closed when it has been reaped
	how    error         // how it ended, valid once ended is closed
}

// Start starts a server in dir, in a session of its own, without a terminal and
// with no environment but env. If confine is not nil it is given the command
// before, and may object.
func Start(command []string, dir string, env []string, confine func(*program.Cmd) error) (*Process, error) {
	if err := startable(command[0], dir); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	stdin, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	defer stdin.Close()
	from, stdout, err := os.Pipe()
	if err != nil {
		to.Close()
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	defer stdout.Close()

	p := &Process{cmd: program.Confined(command[0], command[1:]...), to: to, from: from, ended: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append([]string{"PWD=" + dir}, env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, &p.stderr
	p.cmd.WaitDelay = drainGrace
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithUs(p.cmd.SysProcAttr)
	if confine != nil {
		err = confine(p.cmd)
	}
	if err == nil {
		started := make(chan error)
		go func() { // the process is told to die with the thread that started it, so that must last as long
			defer close(p.ended)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			err := p.cmd.Start()
			started <- err
			if err == nil {
				p.how = reap(p.cmd)
			}
		}()
		if err = <-started; err != nil {
			<-p.ended
		}
	}
	if err != nil {
		to.Close()
		from.Close()
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	return p, nil
}

// startable says why a program that is given by its path cannot be started: what confines
// it could tell that only in words of its own.
func startable(name, dir string) error {
	if !strings.ContainsRune(name, filepath.Separator) {
		return nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	_, err := program.OnPath(name)
	var path *fs.PathError
	var found *program.Error
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &found):
		return found.Err
	}
	return err
}

// killGroup ends what a server started and left in its group.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// Read reads what the server writes to its standard output.
func (p *Process) Read(b []byte) (int, error) { return p.from.Read(b) }

// Write writes to the standard input of the server.
func (p *Process) Write(b []byte) (int, error) { return p.to.Write(b) }

// End closes the standard input of the server, which tells it to end, and ends
// it by force if it has not within grace: first asked to, then not. It returns
// when the server has been reaped.
func (p *Process) End(grace time.Duration) {
	_ = p.to.Close()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-p.ended:
		case <-time.After(grace):
			_ = p.cmd.Process.Signal(signal) // it may have ended already
		}
	}
	_ = p.Close()
	<-p.ended
}

// Ended is closed when the server has been reaped.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Close ends the server by force; its group follows when it is reaped.
func (p *Process) Close() error {
	_ = p.cmd.Process.Kill() // it may have ended already
	return errors.Join(p.to.Close(), p.from.Close())
}

// Wait returns when the server has been reaped.
func (p *Process) Wait() { <-p.ended }

// LastWords is how the server ended and the end of what it wrote to stderr.
func (p *Process) LastWords() string {
	var words []string
	select {
	case <-p.ended:
		if exit := (*program.ExitError)(nil); errors.As(p.how, &exit) {
			if ws, ok := exit.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL { // which is how we do it
				words = append(words, exit.Error())
			}
		}
	default:
	}
	if said := p.stderr.String(); said != "" {
		words = append(words, said)
	}
	return strings.Join(words, ": ")
}

// tail keeps the last maxStderr bytes written to it.
type tail struct {
	mu   sync.Mutex // guards the field below
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	b = b[max(0, n-maxStderr):]
	if over := len(t.kept) + len(b) - maxStderr; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.kept = append(t.kept, b...)
	return n, nil
}

// String is the last lines as valid text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\ufffd"))
}
