// Package shell runs one command at a time and leaves no processes behind.
//
// It guarantees, whatever the command does:
//
//  1. [Run] returns soon after the shell ends, the time is up or the context
//     ends. It never waits for a background process that holds the output open.
//  2. When it returns, no process of the command is left, not even a daemon in
//     its own session. On Linux daemons are recognised by a mark in
//     their environment, by the output they hold open, or as orphans; elsewhere
//     they escape. If coder is killed before Run returns, the shell dies with
//     it, and the next call of [KillStrays] ends the rest.
//  3. Nothing the command wrote before it ended is lost, unless it exceeds
//     the limit: then the beginning and the end are kept and the middle is
//     dropped, so memory is bounded.
//  4. The command cannot reach the user's terminal: it has none, and its
//     standard input is empty, unless the caller gives it one.
//
// Commands run in bash if it is installed ([Find]), else in /bin/sh, with the given environment except
// variables that change the meaning of a line. It is not a login shell and reads none of the user's
// files: every command would run a profile again, which may print, fail, change directory or reset PATH
// (Debian's does), and all of that would end up in results. coder's own process already has a login
// environment, and the rest of it is passed on unchanged.
package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/program"

	"golang.org/x/sys/unix"
)

const (
	// TimeoutCode is the exit code of a command that timed out.
	TimeoutCode = 124

	// markName is the variable that marks the processes of a command, with its "=".
	markName = "CODER_COMMAND="

	// maxArgument is the length of a command that always works.
	maxArgument = 128 << 10

	// killGrace is how long processes may take to end after SIGTERM.
	killGrace = 500 * time.Millisecond

	// drainGrace is how long to wait for the end of output that a process outside the family holds open.
	drainGrace = 200 * time.Millisecond
)

// Spec is a command and its limits.
type Spec struct {
	Shell   Program
	Command string
	Dir     string
	Env     []string      // the complete environment; nothing is inherited
	Timeout time.Duration // none if zero
	Stdin   []byte        // its standard input; empty if nil

	// Prefix, if not empty, is another program and its first arguments, put before the shell: the command
	// runs as Through… Shell -c Command. The program must run what follows its own arguments and exit as
	// that does, like env, nice or a sandbox. Use its full path: a bare name is searched on coder's PATH,
	// not on Env's.
	Prefix []string
	// Attr, if not nil, sets further attributes for starting that program.
	Attr func(*syscall.SysProcAttr)
	// Init reports that the program is the first of all processes of the command: none outlives it, they all
	// end when it gets SIGTERM, and it writes one line to descriptor 3: the command's exit code, the number
	// of the signal that ended it or 0, and whether others had to be stopped.
	Init bool

	// Outlet, if set, is passed to that program as descriptor 4, and closed here.
	Outlet *os.File
	// Journal, if set, is passed to that program as descriptor 5, and not closed.
	Journal *os.File

	// Terminal, if set, replaces the command's input and its captured output.
	Terminal *os.File

	// OutputLimit is how many bytes of each stream are saved; zero saves none.
	OutputLimit int

	// Stdout and Stderr, if set, also receive the output, live and unlimited. They are never called
	// concurrently and should not block. After a failure they are not called again.
	Stdout, Stderr io.Writer

	// Started, if set, is called once the command has started successfully.
	Started func()

	// Now returns the time for the Outcome's Duration; if nil, that is zero.
	Now func() time.Time
}

// Outcome is the result of a command.
type Outcome struct {
	// ExitCode is the command's own, 128 plus the number of the signal that ended it, or TimeoutCode.
	ExitCode int
	Signal   string // name such as SIGSEGV, if a signal ended the command
	TimedOut bool
	Stopped  bool // processes were still running and were stopped
	Escaped  bool // a process outside the family holds the output open

	Stdout, Stderr Output
	Duration       time.Duration
}

// IsTruncated reports whether any output was dropped.
func (o Outcome) IsTruncated() bool { return o.Stdout.Dropped > 0 || o.Stderr.Dropped > 0 }

// Run runs a command to its end. It returns an error if the command cannot start, or ctx.Err(); a
// failing command is not an error.
func Run(ctx context.Context, spec Spec) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	// The child dies with the thread that started it, so that it does not outlive coder; the thread must
	// therefore last as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	began := specNow(spec)
	p, err := start(spec)
	if err != nil {
		return Outcome{}, err
	}
	if spec.Started != nil {
		spec.Started()
	}
	var out Outcome
	err = p.wait(ctx, spec.Timeout, &out)
	out.Escaped = p.stdout.leftOpen || p.stderr.leftOpen
	out.Stdout, out.Stderr = p.stdout.finish(), p.stderr.finish()
	out.Duration = specNow(spec).Sub(began)
	return out, err
}

func specNow(spec Spec) (t time.Time) {
	if spec.Now != nil {
		t = spec.Now()
	}
	return t
}

type process struct {
	cmd            *program.Cmd
	family         *family
	exited         chan struct{}
	stdout, stderr *pump
	report         *os.File // receives how it ended, if Init is set
}

// commandCount counts the commands of this process.
var commandCount atomic.Int64

func start(spec Spec) (*process, error) {
	argv := append(slices.Clone(spec.Prefix), spec.Shell.argv(spec.Command)...)
	cmd := program.TrustedCommand(context.Background(), argv[0], argv[1:]...)
	cmd.Dir = spec.Dir
	// Leave out variables and exported functions that change the meaning of a line.
	cmd.Env = make([]string, 0, len(spec.Env)+3)
	for _, kv := range spec.Env {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "BASH") && !slices.Contains(shellVariables, name) && !strings.HasPrefix(value, "() {") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	if spec.Dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+spec.Dir)
	}
	// If coder itself runs in a command, that command's mark precedes, since its descendants belong to both.
	outer := markName
	for _, kv := range spec.Env {
		if strings.HasPrefix(kv, markName) {
			outer = kv + "/"
		}
	}
	mark := fmt.Sprintf("%s%v-%d", outer, ownStarter(), commandCount.Add(1))
	cmd.Env = append(cmd.Env, mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Terminal != nil && len(spec.Prefix) == 0 { // otherwise the Through program does that
		cmd.SysProcAttr.Setctty = true
	}
	killWithParent(cmd.SysProcAttr)
	if spec.Attr != nil {
		spec.Attr(cmd.SysProcAttr)
	}
	becomeSubreaper()

	var live sync.Mutex
	stdout, toStdout, err := newPump(spec.OutputLimit, spec.Stdout, &live)
	if err != nil {
		return nil, message.Errorf("start command: %w", err)
	}
	defer toStdout.Close()
	stderr, toStderr, err := newPump(spec.OutputLimit, spec.Stderr, &live)
	if err != nil {
		stdout.close()
		return nil, message.Errorf("start command: %w", err)
	}
	defer toStderr.Close()
	cmd.Stdout, cmd.Stderr = toStdout, toStderr
	if len(spec.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(spec.Stdin)
	}
	if t := spec.Terminal; t != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = t, t, t
	}
	told, err := spec.openReport(cmd)
	if err == nil {
		err = launch(cmd)
	}
	for _, f := range cmd.ExtraFiles {
		if f != spec.Journal {
			f.Close() // the child has its own copy now; on nil this only returns an error
		}
	}
	if err != nil {
		stdout.close()
		stderr.close()
		told.Close() // on nil this only returns an error
		return nil, explainStartError(spec, err)
	}
	f := &family{session: cmd.Process.Pid, mark: mark, pipes: []uint64{inode(toStdout), inode(toStderr)},
		signalled: make(map[int]bool)}
	if told == nil {
		f.recordStart()
	}
	p := &process{cmd: cmd, family: f, exited: make(chan struct{}), stdout: stdout, stderr: stderr, report: told}
	stdout.run()
	stderr.run()
	return p, nil
}

// launch starts the shell and registers it before it can be mistaken for an orphan.
func launch(cmd *program.Cmd) error {
	runningShells.Lock()
	defer runningShells.Unlock()
	err := cmd.Start()
	if err == nil {
		runningShells.running[cmd.Process.Pid] = true
	}
	return err
}

// inode returns the inode number of a pipe.
func inode(f *os.File) uint64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	return st.Ino
}

func explainStartError(spec Spec, err error) error {
	if errors.Is(err, syscall.E2BIG) && len(spec.Command) < maxArgument {
		return message.Errorf("start command: its environment is too long: %w", syscall.E2BIG)
	}
	if errors.Is(err, syscall.E2BIG) {
		return message.Errorf("command is too long (%d bytes); put it in a file: %w", len(spec.Command), syscall.E2BIG)
	}
	if _, gone := os.Stat(spec.Dir); spec.Dir != "" && gone != nil {
		return message.Errorf("start command: its directory does not exist: %w", gone)
	}
	return message.Errorf("start command: %w", err)
}

// wait waits for the command to end, or ends it by force, and records how it ended. It stops all
// remaining processes.
func (p *process) wait(ctx context.Context, timeout time.Duration, out *Outcome) error {
	var reaper sync.WaitGroup
	reaper.Go(func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the result is in ProcessState
	})
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	var err error
	select {
	case <-p.exited:
	case <-late:
		out.TimedOut = true
	case <-ctx.Done():
		err = ctx.Err()
	}
	if p.report == nil || !p.stopInit(out) {
		out.Stopped = p.family.stop()
		reaper.Wait()
		p.family.reap()
		ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if out.ExitCode = ws.ExitStatus(); ws.Signaled() {
			out.ExitCode, out.Signal = 128+int(ws.Signal()), unix.SignalName(ws.Signal())
		}
	}
	reaper.Wait()
	runningShells.Lock()
	delete(runningShells.running, p.family.session)
	runningShells.Unlock()
	// If a process outside the family keeps the output open, use what has arrived.
	hurry := time.NewTimer(drainGrace)
	defer hurry.Stop()
	for _, pump := range []*pump{p.stdout, p.stderr} {
		select {
		case <-pump.done:
		case <-hurry.C:
			p.stdout.stopWaiting()
			p.stderr.stopWaiting()
			<-pump.done
		}
	}
	if out.TimedOut {
		out.ExitCode = TimeoutCode
	}
	return err
}

// A Program is the path of the shell that runs command lines. The zero Program is the system's plain
// shell.
type Program string

// posixShell is the shell of every system.
const posixShell Program = "/bin/sh"

// bashPaths are the usual paths of bash. PATH is not searched, since its first match could be the project's.
var bashPaths = []Program{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"}

// Find returns bash if it is installed, else the plain shell.
func Find() Program {
	for _, p := range bashPaths {
		if info, err := os.Stat(string(p)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return posixShell
}

// IsBash reports whether the shell is bash.
func (p Program) IsBash() bool { return filepath.Base(string(p)) == "bash" }

// argv returns the arguments to run a line in a shell that reads no startup file.
func (p Program) argv(line string) []string {
	switch {
	case p.IsBash():
		return []string{string(p), "--noprofile", "--norc", "-c", line}
	case p == "":
		p = posixShell
	}
	return []string{string(p), "-c", line}
}

// shellVariables are the variables that change what a line means to a shell: startup files, options,
// directories for cd, pattern matching.
var shellVariables = []string{"ENV", "SHELLOPTS", "CDPATH", "GLOBIGNORE", "GLOBSORT", "EXECIGNORE", "POSIXLY_CORRECT",
	"PROMPT_COMMAND", "IFS", "PS0", "PS1", "PS2", "PS4"}

// openReport gives the first process of a command a pipe to report how it ended, and returns its reading
// end; nil if there is no such process.
func (s Spec) openReport(cmd *program.Cmd) (*os.File, error) {
	if !s.Init {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{w, s.Outlet, s.Journal}
	return r, nil
}

// stopInit ends the first process, if necessary, and records its report. It returns false without a
// report: then somebody else killed it, and its processes must be searched for.
func (p *process) stopInit(out *Outcome) bool {
	defer p.report.Close()
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
	text, _ := io.ReadAll(io.LimitReader(p.report, maxReport))
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
	// maxReport is more than a report's length.
	maxReport = 64
)
