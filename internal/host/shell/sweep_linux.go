package shell

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Sweep ends what is left of commands whose program was killed outright and
// could not stop them itself, and reports how many processes it ended. Those of
// a program that is still there, of another user, or of another name space of
// process numbers are never touched; nor is the command we run in ourselves. A
// process that has dropped its environment is not found. Having, if not empty,
// is an entry that the environment of what is ended must hold, such as
// WORKSPACE=/w. The error is ctx.Err() or says that something would not end.
func Sweep(ctx context.Context, having string) (ended int, err error) {
	met := make(map[int]bool)
	left := strays(having)
	for sig, wait := syscall.SIGTERM, killGrace; len(left) > 0; sig, wait = syscall.SIGKILL, endGrace {
		for _, p := range left {
			met[p.pid] = true
			handle, err := os.FindProcess(p.pid) // taken before we look whether it is still the one that was found
			if err != nil {
				continue
			}
			pid := strconv.Itoa(p.pid)
			if now, ok := status(pid); ok && now.started == p.started && markOf(pid) == p.mark {
				_ = handle.Signal(sig) // if it cannot be, it is counted as left
			}
			_ = handle.Release()
		}
		if left, err = outlast(ctx, having, wait); err != nil || sig == syscall.SIGKILL {
			break
		}
	}
	for pid := range met {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // if it was ours by inheritance
	}
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("stop leftover processes: %d are still running", len(left))
	}
	return len(met) - len(left), err
}

// ProgramName is the name of this program, which no other has or will have: that of
// commands' processes begins with it.
func ProgramName() string { return self().String() }

// Ended reports whether it is certain that the program of that name runs no
// more. Only then there may be something to sweep.
func Ended(name string) bool {
	var p starter
	n, err := fmt.Sscanf(name, "%d.%d.%d", &p.pid, &p.started, &p.space)
	return n == 3 && err == nil && p.pid > 0 && p.space != 0 && p.space == self().space && p.gone()
}

// endGrace is how long the system may take to end a process it was told to
// kill.
const endGrace = 5 * time.Second

// outlast is which strays are still there after the given time, or sooner if
// none is.
func outlast(ctx context.Context, having string, within time.Duration) (left []stray, err error) {
	for pause := time.Millisecond; ; pause *= 2 {
		if left = strays(having); len(left) == 0 || within <= 0 {
			return left, nil
		}
		pause = min(pause, within, 50*time.Millisecond)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return left, ctx.Err()
		}
		within -= pause
	}
}

// stray is a process of a command whose program is gone.
type stray struct {
	pid     int
	started uint64
	mark    string
}

// strays finds them. What shares a command with a program that is still there,
// such as the shell that started it, is none.
func strays(having string) (list []stray) {
	spared := prefixes(nil, markOf("self"))
	for _, p := range processes() {
		if p.dead || p.pid == os.Getpid() {
			continue
		}
		pid := strconv.Itoa(p.pid)
		info, err := os.Stat("/proc/" + pid)
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		mark := markOf(pid)
		switch whose(mark) {
		case somebody:
			spared = prefixes(spared, mark)
		case nobody:
			if having == "" || slices.Contains(environ(pid), having) {
				list = append(list, stray{p.pid, p.started, mark})
			}
		}
	}
	return slices.DeleteFunc(list, func(s stray) bool { return spared[s.mark] })
}

// environ is the environment of a process, as far as it can be read.
func environ(pid string) []string {
	text, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\x00")
}

// markOf is the mark in a process's environment, "" if it has none.
func markOf(pid string) string {
	mark := ""
	for _, kv := range environ(pid) {
		if m, ok := strings.CutPrefix(kv, markName); ok {
			mark = m
		}
	}
	return mark
}

// prefixes adds a mark and those of the commands around it to a set.
func prefixes(set map[string]bool, mark string) map[string]bool {
	if set == nil {
		set = make(map[string]bool)
	}
	for i := range mark {
		if mark[i] == '/' {
			set[mark[:i]] = true
		}
	}
	if mark != "" {
		set[mark] = true
	}
	return set
}

// owner is who looks after a marked process.
type owner int

const (
	unknown  owner = iota // cannot be told; it is left alone
	somebody              // a program that is still there
	nobody
)

// whose tells who looks after the processes with a mark: one program for every
// command that is nested there.
func whose(mark string) owner {
	sum := unknown
	for part := range strings.SplitSeq(mark, "/") {
		var who starter
		var n int64
		if _, err := fmt.Sscanf(part, "%d.%d.%d-%d", &who.pid, &who.started, &who.space, &n); err != nil || who.pid <= 0 || who.space == 0 || who.space != self().space {
			return unknown
		}
		if !who.gone() {
			return somebody
		}
		sum = nobody
	}
	return sum
}

// starter is a process that runs commands. Its number is given to another one
// day; together with the time of its birth it is not.
type starter struct {
	pid     int
	started uint64
	space   uint64 // of the process numbers
}

func (p starter) String() string { return fmt.Sprintf("%d.%d.%d", p.pid, p.started, p.space) }

// gone is only true where it is certain.
func (p starter) gone() bool {
	if err := syscall.Kill(p.pid, 0); err == syscall.ESRCH {
		return true
	}
	now, ok := status(strconv.Itoa(p.pid))
	return ok && (now.dead || now.started != p.started)
}

// self is this program.
var self = sync.OnceValue(func() starter {
	p := starter{pid: os.Getpid()}
	if now, ok := status("self"); ok {
		p.started = now.started
	}
	link, _ := os.Readlink("/proc/self/ns/pid")
	number := strings.TrimSuffix(strings.TrimPrefix(link, "pid:["), "]")
	p.space, _ = strconv.ParseUint(number, 10, 64)
	return p
})
