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

	"coder/internal/core/message"
)

// KillStrays ends the remaining processes of commands whose program was killed and could not stop them, and
// returns how many it ended. It never touches processes of a running program, of another user, or of
// another PID namespace; nor those of the command in which it runs. It cannot find a process that
// dropped its environment. If having is not empty, it only ends processes with that entry in the
// environment, such as WORKSPACE=/w. The error is ctx.Err() or reports processes that would not end.
func KillStrays(ctx context.Context, having string) (ended int, err error) {
	met := make(map[int]bool)
	left := findStrays(having)
	for sig, wait := syscall.SIGTERM, killGrace; len(left) > 0; sig, wait = syscall.SIGKILL, endGrace {
		for _, p := range left {
			met[p.pid] = true
			handle, err := os.FindProcess(p.pid) // opened before the check that it is still the same process
			if err != nil {
				continue
			}
			pid := strconv.Itoa(p.pid)
			if now, ok := parseStat(pid); ok && now.started == p.started && readMark(pid) == p.mark {
				_ = handle.Signal(sig) // on failure it counts as left
			}
			_ = handle.Release()
		}
		if left, err = awaitStrays(ctx, having, wait); err != nil || sig == syscall.SIGKILL {
			break
		}
	}
	for pid := range met {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // if it was an adopted child
	}
	if err == nil && len(left) > 0 {
		err = message.Errorf("stop leftover processes: %d are still running", len(left))
	}
	return len(met) - len(left), err
}

// ProcessName returns a name that only this program's process ever has. The names of its commands'
// processes begin with it.
func ProcessName() string { return ownStarter().String() }

// HasEnded reports whether the program with that name has certainly ended. Only then there may be something
// to sweep.
func HasEnded(name string) bool {
	var p starterID
	n, err := fmt.Sscanf(name, "%d.%d.%d", &p.pid, &p.started, &p.pidNamespace)
	return n == 3 && err == nil && p.pid > 0 && p.pidNamespace != 0 && p.pidNamespace == ownStarter().pidNamespace &&
		p.hasEnded()
}

// endGrace is how long the system may take to end a killed process.
const endGrace = 5 * time.Second

// awaitStrays returns the strays that remain after the given time, or returns earlier if there are none.
func awaitStrays(ctx context.Context, having string, within time.Duration) (left []stray, err error) {
	for pause := time.Millisecond; ; pause *= 2 {
		if left = findStrays(having); len(left) == 0 || within <= 0 {
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

// stray is a process of a command whose program has ended.
type stray struct {
	pid     int
	started uint64
	mark    string
}

// findStrays finds them. It omits processes that share a command with a running program, such as the shell
// that started it.
func findStrays(having string) (list []stray) {
	spared := addPrefixes(nil, readMark("self"))
	for _, p := range listProcesses() {
		if p.isZombie || p.pid == os.Getpid() {
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
		mark := readMark(pid)
		switch ownerOf(mark) {
		case ownerRunning:
			spared = addPrefixes(spared, mark)
		case ownerEnded:
			if having == "" || slices.Contains(readEnviron(pid), having) {
				list = append(list, stray{p.pid, p.started, mark})
			}
		}
	}
	return slices.DeleteFunc(list, func(s stray) bool { return spared[s.mark] })
}

// readEnviron returns the readable environment of a process.
func readEnviron(pid string) []string {
	text, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\x00")
}

// readMark returns the mark in a process's environment, or "".
func readMark(pid string) string {
	mark := ""
	for _, kv := range readEnviron(pid) {
		if m, ok := strings.CutPrefix(kv, markName); ok {
			mark = m
		}
	}
	return mark
}

// addPrefixes adds a mark and the marks of its enclosing commands to a set.
func addPrefixes(set map[string]bool, mark string) map[string]bool {
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

// ownerState is the state of the program that owns a process.
type ownerState int

const (
	ownerUnknown ownerState = iota // undetermined; the process is left alone
	ownerRunning                   // a program that is still running
	ownerEnded
)

// ownerOf returns the owner of the processes with a mark: one program for each nested command.
func ownerOf(mark string) ownerState {
	sum := ownerUnknown
	for part := range strings.SplitSeq(mark, "/") {
		var who starterID
		var n int64
		if _, err := fmt.Sscanf(part, "%d.%d.%d-%d", &who.pid, &who.started, &who.pidNamespace, &n); err != nil ||
			who.pid <= 0 || who.pidNamespace == 0 || who.pidNamespace != ownStarter().pidNamespace {
			return ownerUnknown
		}
		if !who.hasEnded() {
			return ownerRunning
		}
		sum = ownerEnded
	}
	return sum
}

// starterID is a process that runs commands. The system reuses its process id, but not together with the
// start time.
type starterID struct {
	pid          int
	started      uint64
	pidNamespace uint64 // PID namespace
}

func (p starterID) String() string { return fmt.Sprintf("%d.%d.%d", p.pid, p.started, p.pidNamespace) }

// hasEnded returns true only if certain.
func (p starterID) hasEnded() bool {
	if err := syscall.Kill(p.pid, 0); err == syscall.ESRCH {
		return true
	}
	now, ok := parseStat(strconv.Itoa(p.pid))
	return ok && (now.isZombie || now.started != p.started)
}

// ownStarter returns this program's process.
var ownStarter = sync.OnceValue(func() starterID {
	p := starterID{pid: os.Getpid()}
	if now, ok := parseStat("self"); ok {
		p.started = now.started
	}
	link, _ := os.Readlink("/proc/self/ns/pid")
	number := strings.TrimSuffix(strings.TrimPrefix(link, "pid:["), "]")
	p.pidNamespace, _ = strconv.ParseUint(number, 10, 64)
	return p
})
