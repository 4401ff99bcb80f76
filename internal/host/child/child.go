// Package child runs helper programs, such as language servers, that communicate over standard streams.
// None of their processes outlives coder.
package child

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/program"
)

const (
	maxStderr = 4 << 10 // bytes of stderr kept

	// drainGrace is how long a process outside the server's group may keep stderr open after the server
	// ended.
	drainGrace = 200 * time.Millisecond
)

// Process is a running server.
type Process struct {
	cmd     *program.Cmd
	stdin   *os.File // standard input of the server
	stdout  *os.File // standard output of the server
	stderr  tailBuffer
	done    chan struct{} // closed when the server has been reaped
	exitErr error         // exit error, valid once ended is closed
}

// Start starts a server in dir, in its own session, without a terminal and with env as its whole
// environment. If confine is not nil, it may change the command or reject it.
func Start(command []string, dir string, env []string, confine func(*program.Cmd) error) (*Process, error) {
	if err := checkStartable(command[0], dir); err != nil {
		return nil, message.Errorf("start %s: %w", command[0], err)
	}
	stdin, to, err := os.Pipe()
	if err != nil {
		return nil, message.Errorf("start %s: %w", command[0], err)
	}
	defer stdin.Close()
	from, stdout, err := os.Pipe()
	if err != nil {
		to.Close()
		return nil, message.Errorf("start %s: %w", command[0], err)
	}
	defer stdout.Close()

	p := &Process{cmd: program.ConfinedCommand(command[0], command[1:]...), stdin: to, stdout: from,
		done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append([]string{"PWD=" + dir}, env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, &p.stderr
	p.cmd.WaitDelay = drainGrace
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	killWithParent(p.cmd.SysProcAttr)
	if confine != nil {
		err = confine(p.cmd)
	}
	if err == nil {
		started := make(chan error)
		go func() { // the parent-death signal is sent when the starting thread ends, so keep the thread
			defer close(p.done)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			err := p.cmd.Start()
			started <- err
			if err == nil {
				p.exitErr = reap(p.cmd)
			}
		}()
		if err = <-started; err != nil {
			<-p.done
		}
	}
	if err != nil {
		to.Close()
		from.Close()
		return nil, message.Errorf("start %s: %w", command[0], err)
	}
	return p, nil
}

// checkStartable explains why a program given by path cannot be started. The sandbox would report it less
// clearly.
func checkStartable(name, dir string) error {
	if !strings.ContainsRune(name, filepath.Separator) {
		return nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	_, err := program.LookPath(name)
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

// killGroup kills all processes in a server's group.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// Read reads from the server's standard output.
func (p *Process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to the server's standard input.
func (p *Process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// CloseInput closes the server's standard input, which asks it to exit. If it has not exited within grace, End
// sends SIGTERM, then SIGKILL. End returns when the server has been reaped.
func (p *Process) CloseInput(grace time.Duration) {
	_ = p.stdin.Close()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-p.done:
		case <-time.After(grace):
			_ = p.cmd.Process.Signal(signal) // it may have ended already
		}
	}
	_ = p.Close()
	<-p.done
}

// Done is closed when the server has been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Close kills the server; reaping it kills the rest of its group.
func (p *Process) Close() error {
	_ = p.cmd.Process.Kill() // it may have ended already
	return errors.Join(p.stdin.Close(), p.stdout.Close())
}

// Wait waits until the server has been reaped.
func (p *Process) Wait() { <-p.done }

// ExitReport returns how the server ended and the end of its stderr.
func (p *Process) ExitReport() string {
	var words []string
	select {
	case <-p.done:
		if exit := (*program.ExitError)(nil); errors.As(p.exitErr, &exit) {
			if ws, ok := exit.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL { // the signal that Close sends
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

// tailBuffer keeps the last maxStderr bytes written to it.
type tailBuffer struct {
	mu   sync.Mutex // guards the field below
	kept []byte
}

func (t *tailBuffer) Write(b []byte) (int, error) {
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

// String returns the last lines as valid UTF-8.
func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\ufffd"))
}
