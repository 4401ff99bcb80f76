package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coder/internal/core/message"
	"coder/internal/host/program"
)

const (
	// endGrace is how long processes may take to end after SIGTERM.
	endGrace = 500 * time.Millisecond
	// killRounds limits the rounds that kill newly forked processes.
	killRounds = 50
)

// supervisor is the helper as the first of a command's processes. In a separate PID namespace, the kernel
// ends the others with it. Otherwise it adopts orphaned processes and ends them itself.
type supervisor struct {
	commandPID  int  // process id
	ownPIDSpace bool // in a separate PID namespace
	bounds      Bounds
	group       *groupHandle
	ended       bool // the command has ended with status
	status      syscall.WaitStatus
}

// supervise runs the command as a child in its own session, waits for its end, and then stops its remaining
// processes. The child inherits this thread's confinement.
func supervise(o helperSpec, tell *os.File, group *groupHandle) (code int, err error) {
	path, err := program.LookPath(o.argv[0])
	if err != nil {
		return 0, message.Errorf("start command: %w", err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // caught, because the command would inherit "ignored"
	a := &supervisor{ownPIDSpace: os.Getpid() == 1, bounds: o.bounds, group: group}
	// In its own PID namespace the first process inherits orphans anyway, must not be inspected from inside,
	// and the kernel ends the command with it. Otherwise the helper adopts orphans, and the command dies
	// with it.
	option, on, death := unix.PR_SET_CHILD_SUBREAPER, uintptr(1), syscall.SIGKILL
	if a.ownPIDSpace {
		option, on, death = unix.PR_SET_DUMPABLE, 0, 0
	}
	if err := unix.Prctl(option, on, 0, 0, 0); err != nil {
		return 0, message.Errorf("start command: %w", err)
	}
	_, noTerminal := unix.IoctlGetTermios(0, unix.TCGETS)
	files := []uintptr{0, 1, 2}
	if o.outlet && o.stage == stageOpen { // the helper inside hands it over
		files = append(files, ^uintptr(0), OutletFD)
	}
	if o.journalRun != "" {
		startJournal(o, path)
	}
	a.commandPID, err = group.fork(path, o.argv, &syscall.ProcAttr{
		Env: unix.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: noTerminal == nil,
			Pdeathsig: death},
	})
	if err != nil {
		return 0, message.Errorf("start %s: %w", path, err)
	}
	stopped := a.wait(asked)
	if o.journalRun != "" {
		endJournal(o)
	}
	end := ExitStatus{Code: a.status.ExitStatus(), Stopped: stopped}
	if a.status.Signaled() {
		end.Code, end.Signal = 0, a.status.Signal()
	}
	if tell != nil {
		_, _ = fmt.Fprint(tell, end) // the reader may be gone
	}
	if end.Signal != 0 {
		return 128 + int(end.Signal), nil
	}
	return end.Code, nil
}

// wait waits until the command ends or a signal asks to end it, and then stops the remaining processes.
// It reports whether it had to stop any. It kills processes over a bound at once, and prints which
// bound. A command that the kernel killed for memory counts as killed, whatever its shell returned.
func (a *supervisor) wait(asked <-chan os.Signal) (stopped bool) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	var look <-chan time.Time
	if a.bounds != (Bounds{}) {
		ticker := time.NewTicker(measureInterval)
		defer ticker.Stop()
		look = ticker.C
	}
	for a.reap() && !a.ended {
		select {
		case <-children:
		case <-look:
			over := a.bounds.exceededLimit(descendants(ownNumber()))
			if over == "" && a.group.hasHitLimit() {
				over = a.bounds.memoryMessage()
			}
			if over != "" {
				a.stopOverLimit(over, children)
				return false
			}
		case <-asked:
			return a.stop(children)
		}
	}
	if a.group.hasHitLimit() {
		a.stopOverLimit(a.bounds.memoryMessage(), children)
		return false
	}
	return a.reap() && a.stop(children)
}

// stopOverLimit kills a command that exceeds a bound, and prints the reason.
func (a *supervisor) stopOverLimit(over string, children <-chan os.Signal) {
	fmt.Fprintln(os.Stderr, "coder stopped the command: "+over)
	a.kill(children)
	a.status = syscall.WaitStatus(syscall.SIGKILL) // a shell may have exited by itself meanwhile
}

// reap collects all ended children and reports whether others are left.
func (a *supervisor) reap() (left bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == a.commandPID:
			a.ended, a.status = true, ws
		}
	}
}

// stop ends all processes, with SIGTERM first.
func (a *supervisor) stop(children <-chan os.Signal) bool {
	a.signal(syscall.SIGTERM)
	late := time.NewTimer(endGrace)
	defer late.Stop()
	for a.reap() {
		select {
		case <-children:
			continue
		case <-late.C:
		}
		break
	}
	a.kill(children)
	return true
}

// kill kills all processes, including those forked meanwhile.
func (a *supervisor) kill(children <-chan os.Signal) {
	for range killRounds {
		if !a.reap() {
			break
		}
		a.signal(syscall.SIGKILL)
		select {
		case <-children:
		case <-time.After(endGrace / killRounds):
		}
	}
}

// signal signals all processes except the helper.
func (a *supervisor) signal(sig syscall.Signal) {
	if a.ownPIDSpace {
		_ = syscall.Kill(-1, sig)
		return
	}
	_ = syscall.Kill(-a.commandPID, sig)
	for _, p := range descendants(ownNumber()) {
		if pid, err := strconv.Atoi(p.number); err == nil {
			_ = syscall.Kill(pid, sig)
		}
	}
}

// process is an entry of the process table.
type process struct {
	number, parent string
	threads        int
	resident       int64 // resident bytes, partly shared with others
}

// readStat returns the fields of /proc/<number>/stat after the process name.
func readStat(number string) []string {
	stat, _ := os.ReadFile("/proc/" + number + "/stat")
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // the name may contain anything
}

// readProcess reads a process's entry in the mounted process table.
func readProcess(number string) (p process, ok bool) {
	fields := readStat(number)
	const parent, threads, resident = 1, 17, 21
	if len(fields) <= resident {
		return p, false
	}
	p = process{number: number, parent: fields[parent]}
	p.threads, _ = strconv.Atoi(fields[threads])
	pages, _ := strconv.ParseInt(fields[resident], 10, 64)
	p.resident = pages * int64(os.Getpagesize())
	return p, true
}

// descendants returns the processes below one, according to the process table.
func descendants(of string) (list []process) {
	children := make(map[string][]process)
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, ok := readProcess(name); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	list = children[of]
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i].number]...)
	}
	return list
}

// readParent returns the parent of a process in the mounted process table, or "".
func readParent(number string) string {
	p, _ := readProcess(number)
	return p.parent
}

// ownNumber returns this process's own number there, or "".
func ownNumber() string {
	number, _ := os.Readlink("/proc/self")
	return number
}
