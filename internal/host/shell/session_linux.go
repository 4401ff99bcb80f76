package shell

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// killWithParent makes the kernel kill the shell when coder dies unexpectedly.
func killWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// becomeSubreaper makes orphans of commands children of this process, so that a process that left its session and
// lost its environment can still be found.
var becomeSubreaper = sync.OnceFunc(func() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // otherwise only other signs identify them
})

// recordStart records when the shell started. No process of the family is older.
func (f *family) recordStart() {
	if p, ok := parseStat(strconv.Itoa(f.session)); ok {
		f.started = p.started
	}
}

// livingMembers returns the family's processes that have not ended. The group is not enough to identify them,
// because a shell may put its children into new groups (set -m). A daemon makes a new session, but keeps
// the mark in its environment or the output open, or is an orphan that can belong to no other command.
func (f *family) livingMembers() (list []member) {
	for _, p := range candidateProcesses() {
		if p.isZombie || p.pid == os.Getpid() {
			continue
		}
		if p.session == f.session || p.started >= f.started && f.started > 0 && f.owns(p) {
			list = append(list, member{p.pid, p.group})
		}
	}
	return list
}

// owns reports whether a process outside the session belongs to the family.
func (f *family) owns(p procEntry) bool {
	if isRunning(p.pid) || isRunning(p.session) {
		return false
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	if err != nil {
		return false
	}
	for kv := range strings.SplitSeq(string(environ), "\x00") {
		if strings.HasPrefix(kv, markName) {
			return kv == f.mark || strings.HasPrefix(kv, f.mark+"/")
		}
	}
	if p.parent != os.Getpid() {
		return hasAnyPipe(p.pid, f.pipes)
	}
	return hasAnyPipe(p.pid, f.pipes) || p.session != sessionID(os.Getpid()) && isOnlyCommand() &&
		!sharesPipe(p.pid, f.pipes) && !sharesPipe(p.session, f.pipes)
}

func isRunning(pid int) bool {
	runningShells.RLock()
	defer runningShells.RUnlock()
	return runningShells.running[pid]
}

// isOnlyCommand reports whether no other command is running, so that an orphan can only belong to this one.
func isOnlyCommand() bool {
	runningShells.RLock()
	defer runningShells.RUnlock()
	return len(runningShells.running) <= 1
}

func sessionID(pid int) int {
	sid, _ := unix.Getsid(pid)
	return sid
}

// sharesPipe reports whether a process has one of coder's pipes, except the command's own, as its input
// or output: then another part of the program started it.
func sharesPipe(pid int, but []uint64) bool {
	ours := pipeInodes(os.Getpid())
	for _, fd := range []string{"0", "1", "2"} {
		if n := pipeInode(pid, fd); n != 0 && slices.Contains(ours, n) && !slices.Contains(but, n) {
			return true
		}
	}
	return false
}

func hasAnyPipe(pid int, inodes []uint64) bool {
	return slices.ContainsFunc(pipeInodes(pid), func(n uint64) bool { return slices.Contains(inodes, n) })
}

// pipeInodes returns the inode numbers of a process's pipes.
func pipeInodes(pid int) (inodes []uint64) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if n := pipeInode(pid, name); n != 0 {
			inodes = append(inodes, n)
		}
	}
	return inodes
}

// pipeInode returns the inode of the pipe at a process's descriptor, or 0.
func pipeInode(pid int, fd string) uint64 {
	to, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + fd)
	s, _ := strings.CutPrefix(to, "pipe:[")
	n, _ := strconv.ParseUint(strings.TrimSuffix(s, "]"), 10, 64)
	return n
}

// suspectOrphans are dead children that lead a session and were not started here: orphans, unless another part
// of the program is about to wait for them. If they remain when the next command ends, nobody will.
var suspectOrphans = struct {
	sync.Mutex
	started map[int]uint64
}{started: make(map[int]uint64)}

// reap collects dead orphans one by one. It never waits for a child that another part of the program
// started.
func (f *family) reap() {
	suspectOrphans.Lock()
	defer suspectOrphans.Unlock()
	us, ours := os.Getpid(), sessionID(os.Getpid())
	seen := make(map[int]uint64)
	for _, p := range candidateProcesses() {
		if !p.isZombie || p.parent != us || p.session == ours || isRunning(p.pid) {
			continue
		}
		if p.session == p.pid && suspectOrphans.started[p.pid] != p.started && !f.signalled[p.pid] {
			seen[p.pid] = p.started
			continue
		}
		_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
	}
	suspectOrphans.started = seen
}

// candidateProcesses returns the processes that may belong to commands. It returns none if this process has no
// child, because orphans become its children, see adopt. One call tells that; descendants of children
// cannot be listed reliably.
func candidateProcesses() []procEntry {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		switch err {
		case unix.EINTR:
		case unix.ECHILD:
			return nil
		default:
			return listProcesses()
		}
	}
}

type procEntry struct {
	pid, parent, group, session int
	started                     uint64
	isZombie                    bool // a zombie
}

func listProcesses() (list []procEntry) {
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
		if p, ok := parseStat(name); ok {
			list = append(list, p)
		}
	}
	return list
}

// parseStat parses a process's line: number (name) state parent group session … The name may contain
// anything, so it counts from the last parenthesis.
func parseStat(pid string) (p procEntry, ok bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return p, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return p, false
	}
	p.pid, _ = strconv.Atoi(pid)
	p.parent, _ = strconv.Atoi(string(fields[1]))
	p.group, _ = strconv.Atoi(string(fields[2]))
	p.session, _ = strconv.Atoi(string(fields[3]))
	p.started, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	p.isZombie = fields[0][0] == 'Z' || fields[0][0] == 'X'
	return p, true
}
