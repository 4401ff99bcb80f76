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

	"coder/internal/host/program"
)

const (
	// endGrace is how long processes that are asked to end may take for it.
	endGrace = 500 * time.Millisecond
	// killRounds is how often we look again for processes born while we killed.
	killRounds = 50
)

// attendant is the helper as the first of a command's processes. With a process
// table of their own the kernel ends them with it; without one they become its
// children when their parents end, and it ends them itself.
type attendant struct {
	command int  // its process number
	alone   bool // the process table is ours
	bounds  Bounds
	group   *membership
	ended   bool // the command has ended, as status says
	status  syscall.WaitStatus
}

// attend runs the command as a child, in a session of its own, and sees it to
// its end; then whatever it left running is stopped. The child inherits what
// this thread is confined to.
func attend(o order, tell *os.File, group *membership) (code int, err error) {
	path, err := program.OnPath(o.argv[0])
	if err != nil {
		return 0, fmt.Errorf("start command: %w", err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // caught, not ignored: that the command would inherit
	a := &attendant{alone: os.Getpid() == 1, bounds: o.bounds, group: group}
	// The first of its own process table has the orphans anyway, and nobody in there is to look into it; the kernel ends
	// the command with it. Otherwise they are made ours, and the command dies with us.
	option, on, death := unix.PR_SET_CHILD_SUBREAPER, uintptr(1), syscall.SIGKILL
	if a.alone {
		option, on, death = unix.PR_SET_DUMPABLE, 0, 0
	}
	if err := unix.Prctl(option, on, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("start command: %w", err)
	}
	_, noTerminal := unix.IoctlGetTermios(0, unix.TCGETS)
	files := []uintptr{0, 1, 2}
	if o.outlet && o.stage == stageOpen { // the helper in there hands it over
		files = append(files, ^uintptr(0), OutletOn)
	}
	if o.journal != "" {
		keepJournal(o, path)
	}
	a.command, err = group.fork(path, o.argv, &syscall.ProcAttr{
		Env: unix.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: noTerminal == nil, Pdeathsig: death},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", path, err)
	}
	stopped := a.see(asked)
	if o.journal != "" {
		closeJournal(o)
	}
	end := End{Code: a.status.ExitStatus(), Stopped: stopped}
	if a.status.Signaled() {
		end.Code, end.Signal = 0, a.status.Signal()
	}
	if tell != nil {
		_, _ = fmt.Fprint(tell, end) // whoever wanted to know may be gone
	}
	if end.Signal != 0 {
		return 128 + int(end.Signal), nil
	}
	return end.Code, nil
}

// see waits for the end of the command, or for being asked to end it, and stops
// what is left. It reports whether anything had to be stopped. Processes that use
// more than they may are killed at once, and what they used is said. A command that
// the kernel killed for memory counts as killed, whatever its shell made of it.
func (a *attendant) see(asked <-chan os.Signal) (stopped bool) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	var look <-chan time.Time
	if a.bounds != (Bounds{}) {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for a.reap() && !a.ended {
		select {
		case <-children:
		case <-look:
			over := a.bounds.exceeded(descendants(processNumber()))
			if over == "" && a.group.exceeded() {
				over = a.bounds.memory()
			}
			if over != "" {
				a.stopFor(over, children)
				return false
			}
		case <-asked:
			return a.stop(children)
		}
	}
	if a.group.exceeded() {
		a.stopFor(a.bounds.memory(), children)
		return false
	}
	return a.reap() && a.stop(children)
}

// stopFor kills a command that is over a bound, and says so.
func (a *attendant) stopFor(over string, children <-chan os.Signal) {
	fmt.Fprintln(os.Stderr, "coder stopped the command: "+over)
	a.kill(children)
	a.status = syscall.WaitStatus(syscall.SIGKILL) // a shell may have ended by itself meanwhile
}

// reap takes note of every child that has ended and reports whether there are
// others.
func (a *attendant) reap() (left bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == a.command:
			a.ended, a.status = true, ws
		}
	}
}

// stop ends every process, kindly first.
func (a *attendant) stop(children <-chan os.Signal) bool {
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

// kill ends every process, those included that are born meanwhile.
func (a *attendant) kill(children <-chan os.Signal) {
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

// signal reaches all processes but us.
func (a *attendant) signal(sig syscall.Signal) {
	if a.alone {
		_ = syscall.Kill(-1, sig)
		return
	}
	_ = syscall.Kill(-a.command, sig)
	for _, p := range descendants(processNumber()) {
		if pid, err := strconv.Atoi(p.number); err == nil {
			_ = syscall.Kill(pid, sig)
		}
	}
}

// process is one as the process table shows it.
type process struct {
	number, parent string
	threads        int
	resident       int64 // bytes in memory, some of which others may share
}

// statOf are the fields of a process's line in the process table, after its name.
func statOf(number string) []string {
	stat, _ := os.ReadFile("/proc/" + number + "/stat")
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // the name may hold anything
}

// look reads a process's line in the process table that is mounted.
func look(number string) (p process, ok bool) {
	fields := statOf(number)
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

// descendants are the processes below one, by the process table.
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
		if p, ok := look(name); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	list = children[of]
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i].number]...)
	}
	return list
}

// parentOf is the number of a process's parent in the process table that is
// mounted, or "".
func parentOf(number string) string {
	p, _ := look(number)
	return p.parent
}

// processNumber is our own number there, or "".
func processNumber() string {
	number, _ := os.Readlink("/proc/self")
	return number
}
