// Package shell runs one command at a time and leaves nothing behind.
//
// What it promises, whatever the command does:
//
//  1. [Run] returns soon after the shell ends, the time is up or the context
//     ends. It never waits for a background process that holds the output open.
//  2. When it returns, no process of the command is left, also none that made
//     a session of its own (a daemon). On Linux those are told by a mark in
//     their environment, by the output they hold open, or as orphans; elsewhere
//     daemons get away. If we are killed before it returns, the shell dies with
//     us, and what else is left is ended by the next call of [Sweep].
//  3. Nothing the command wrote before it ended is lost, except what exceeds
//     the limit: then the beginning and the end are kept and the middle is
//     dropped, so memory is bounded.
//  4. The command cannot reach the user's terminal: it has none, and its
//     standard input is empty, unless it is given one.
//
// Commands run in bash where there is one ([Find]), else in /bin/sh, with the
// environment they are given, less what changes the meaning of a line. It is not
// a login shell and reads no file of the person's: a profile is run by every
// command anew, may print, fail, change directory or reset PATH (Debian's
// does), and all of that would end up in results. Whoever started us has a login
// environment already, and the rest of it is passed on as it is.
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

	"coder/internal/host/program"

	"golang.org/x/sys/unix"
)

const (
	// TimeoutCode is the exit code of a command that ran out of time.
	TimeoutCode = 124

	// markName begins the variable that marks the processes of a command.
	markName = "CODER_COMMAND="

	// maxArgument is how long a command can be in any case.
	maxArgument = 128 << 10

	// killGrace is how long processes that are asked to end may take for it.
	killGrace = 500 * time.Millisecond

	// drainGrace is how long we wait for the end of output that a process
	// beyond our reach holds open.
	drainGrace = 200 * time.Millisecond
)

// Spec is a command and its bounds.
type Spec struct {
	Shell   Program
	Command string
	Dir     string
	Env     []string      // all of it; nothing is inherited
	Timeout time.Duration // none if zero
	Stdin   []byte        // what it can read; nothing if empty

	// Through, if not empty, is another program and its first arguments, put
	// before the shell: the command runs as Through… Shell -c Command. The
	// program must run what follows its own arguments and end as that ended,
	// as env, nice or a sandbox do. Give its full path: a bare name is looked
	// up in our PATH, not in Env's.
	Through []string
	// Attr, which may be nil, completes how that program is started.
	Attr func(*syscall.SysProcAttr)
	// Init says that the program is the first of all processes of the command:
	// none outlives it, they all end when it is sent SIGTERM, and it writes to
	// descriptor 3, as one line, the command's exit code, the number of the
	// signal that ended it or 0, and whether others had to be stopped.
	Init bool

	// Outlet, if set, is given to that program as descriptor 4, and closed here.
	Outlet *os.File
	// Journal, if set, is given to that program as descriptor 5, and not closed.
	Journal *os.File

	// Terminal, if set, is what the command has for its input and output, instead
	// of nothing and of what is kept.
	Terminal *os.File

	// Limit is how many bytes of each stream are kept; none if zero.
	Limit int

	// Stdout and Stderr, if set, are also given what is written, as it comes
	// and unbounded. They are never called at the same time and should not
	// block. If one of them fails it is not called again.
	Stdout, Stderr io.Writer

	// Started, if set, is called when the command is running and can no longer
	// fail to start.
	Started func()

	// Now tells the time for the Outcome's Duration; without it that is zero.
	Now func() time.Time
}

// Outcome is how a command ended.
type Outcome struct {
	// ExitCode is the command's own, 128 plus the number of the signal that
	// ended it, or TimeoutCode.
	ExitCode int
	Signal   string // its name, such as SIGSEGV, if a signal ended the command
	TimedOut bool
	Stopped  bool // processes were still running and had to be stopped
	Escaped  bool // a process beyond our reach holds the output open

	Stdout, Stderr Output
	Duration       time.Duration
}

// Truncated reports whether any output was dropped.
func (o Outcome) Truncated() bool { return o.Stdout.Dropped > 0 || o.Stderr.Dropped > 0 }

// Run runs a command to its end. Its error says why the command could not be
// started, or is ctx.Err(); a command that fails is not an error.
func Run(ctx context.Context, spec Spec) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	// The child is told to die with the thread that started it, so that it
	// does not survive us; the thread must then last as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	began := now(spec)
	p, err := start(spec)
	if err != nil {
		return Outcome{}, err
	}
	if spec.Started != nil {
		spec.Started()
	}
	var out Outcome
	err = p.wait(ctx, spec.Timeout, &out)
	out.Escaped = p.stdout.held || p.stderr.held
	out.Stdout, out.Stderr = p.stdout.finish(), p.stderr.finish()
	out.Duration = now(spec).Sub(began)
	return out, err
}

func now(spec Spec) (t time.Time) {
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
	told           *os.File // how it ended, if Init is set
}

// serial numbers the commands of this process.
var serial atomic.Int64

func start(spec Spec) (*process, error) {
	argv := append(slices.Clone(spec.Through), spec.Shell.argv(spec.Command)...)
	cmd := program.Exactly(context.Background(), argv[0], argv[1:]...)
	cmd.Dir = spec.Dir
	// A line is to mean what it says: what changes that, and functions that stand in for commands, are left out.
	cmd.Env = make([]string, 0, len(spec.Env)+3)
	for _, kv := range spec.Env {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "BASH") && !slices.Contains(meanings, name) && !strings.HasPrefix(value, "() {") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	if spec.Dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+spec.Dir)
	}
	// If we run in a command ourselves, its mark comes first: what is ours is also its.
	outer := markName
	for _, kv := range spec.Env {
		if strings.HasPrefix(kv, markName) {
			outer = kv + "/"
		}
	}
	mark := fmt.Sprintf("%s%v-%d", outer, self(), serial.Add(1))
	cmd.Env = append(cmd.Env, mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Terminal != nil && len(spec.Through) == 0 { // else the program it is run by does so
		cmd.SysProcAttr.Setctty = true
	}
	dieWithUs(cmd.SysProcAttr)
	if spec.Attr != nil {
		spec.Attr(cmd.SysProcAttr)
	}
	adopt()

	var live sync.Mutex
	stdout, toStdout, err := newPump(spec.Limit, spec.Stdout, &live)
	if err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	defer toStdout.Close()
	stderr, toStderr, err := newPump(spec.Limit, spec.Stderr, &live)
	if err != nil {
		stdout.close()
		return nil, fmt.Errorf("start command: %w", err)
	}
	defer toStderr.Close()
	cmd.Stdout, cmd.Stderr = toStdout, toStderr
	if len(spec.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(spec.Stdin)
	}
	if t := spec.Terminal; t != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = t, t, t
	}
	told, err := spec.listen(cmd)
	if err == nil {
		err = launch(cmd)
	}
	for _, f := range cmd.ExtraFiles {
		if f != spec.Journal {
			f.Close() // the child has it now; nil says no more than that it is
		}
	}
	if err != nil {
		stdout.close()
		stderr.close()
		told.Close() // nil says no more than that it is
		return nil, whyNotStarted(spec, err)
	}
	f := &family{session: cmd.Process.Pid, mark: mark, pipes: []uint64{inode(toStdout), inode(toStderr)}, hit: make(map[int]bool)}
	if told == nil {
		f.recognise()
	}
	p := &process{cmd: cmd, family: f, exited: make(chan struct{}), stdout: stdout, stderr: stderr, told: told}
	stdout.run()
	stderr.run()
	return p, nil
}

// launch starts the shell and enrols it before anybody can take it for an
// orphan.
func launch(cmd *program.Cmd) error {
	shells.Lock()
	defer shells.Unlock()
	err := cmd.Start()
	if err == nil {
		shells.running[cmd.Process.Pid] = true
	}
	return err
}

// inode is the number of a pipe.
func inode(f *os.File) uint64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	return st.Ino
}

func whyNotStarted(spec Spec, err error) error {
	if errors.Is(err, syscall.E2BIG) && len(spec.Command) < maxArgument {
		return fmt.Errorf("start command: its environment is too long: %w", syscall.E2BIG)
	}
	if errors.Is(err, syscall.E2BIG) {
		return fmt.Errorf("command is too long (%d bytes); put it in a file: %w", len(spec.Command), syscall.E2BIG)
	}
	if _, gone := os.Stat(spec.Dir); spec.Dir != "" && gone != nil {
		return fmt.Errorf("start command: its directory does not exist: %w", gone)
	}
	return fmt.Errorf("start command: %w", err)
}

// wait sees the command to its end, by itself or by force, and notes how it
// ended. Whatever it left running is stopped.
func (p *process) wait(ctx context.Context, timeout time.Duration, out *Outcome) error {
	var reaper sync.WaitGroup
	reaper.Go(func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // how it ended is in ProcessState
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
	if p.told == nil || !p.endInit(out) {
		out.Stopped = p.family.stop()
		reaper.Wait()
		p.family.reap()
		ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if out.ExitCode = ws.ExitStatus(); ws.Signaled() {
			out.ExitCode, out.Signal = 128+int(ws.Signal()), unix.SignalName(ws.Signal())
		}
	}
	reaper.Wait()
	shells.Lock()
	delete(shells.running, p.family.session)
	shells.Unlock()
	// If a process beyond our reach keeps the output open we take what is there.
	hurry := time.NewTimer(drainGrace)
	defer hurry.Stop()
	for _, pump := range []*pump{p.stdout, p.stderr} {
		select {
		case <-pump.done:
		case <-hurry.C:
			p.stdout.hurry()
			p.stderr.hurry()
			<-pump.done
		}
	}
	if out.TimedOut {
		out.ExitCode = TimeoutCode
	}
	return err
}

// A Program is the shell that runs command lines, by its path. The zero Program
// is the system's plain shell.
type Program string

// plain is the shell that every system has.
const plain Program = "/bin/sh"

// known are the places of bash. PATH is not asked: what it finds first could be
// the project's own.
var known = []Program{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"}

// Find is bash where there is one, else the plain shell.
func Find() Program {
	for _, p := range known {
		if info, err := os.Stat(string(p)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p
		}
	}
	return plain
}

// Bash reports whether lines are run by bash.
func (p Program) Bash() bool { return filepath.Base(string(p)) == "bash" }

// argv runs a line in a shell that reads no file before it.
func (p Program) argv(line string) []string {
	switch {
	case p.Bash():
		return []string{string(p), "--noprofile", "--norc", "-c", line}
	case p == "":
		p = plain
	}
	return []string{string(p), "-c", line}
}

// meanings are the variables by which an environment changes what a line means
// to a shell: files to run first, options, where cd leads, what patterns match.
var meanings = []string{"ENV", "SHELLOPTS", "CDPATH", "GLOBIGNORE", "GLOBSORT", "EXECIGNORE", "POSIXLY_CORRECT", "PROMPT_COMMAND", "IFS", "PS0", "PS1", "PS2", "PS4"}

// listen gives a program that is the first of a command's processes the means
// to tell how that ended, and is where we hear it; nil if there is no such
// program.
func (s Spec) listen(cmd *program.Cmd) (*os.File, error) {
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
