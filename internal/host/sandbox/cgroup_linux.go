package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"coder/internal/host/program"
)

const (
	// groupPrefix begins the name of a command's control group. The process id and start time of its coder
	// follow.
	groupPrefix = "coder-"
	// taskMargin is how far the group's limit is above the bound on processes, so that the helper can still
	// detect the excess.
	taskMargin = 100
	// removeTries and removePause are for a group whose last process is ending.
	removeTries, removePause = 50, 2 * time.Millisecond
	// maxLeftover is the memory in bytes that a command may leave in a reused group. Its in-memory files would
	// count for the next command.
	maxLeftover = 16 << 20
)

// Control files of a group, by cgroup version.
const (
	limitV1, limitV2   = "memory.limit_in_bytes", "memory.max"
	eventsV1, eventsV2 = "memory.oom_control", "memory.events"
	hitsV1             = "memory.failcnt"
	tasksLimit         = "pids.max"
)

// groupParents is where coder can create control groups for commands. The zero groupParents is nowhere.
type groupParents struct {
	memory string // parent of the groups that limit memory
	tasks  string // parent of the groups that limit processes; may be empty or the same
}

// groupFinder finds the groupParents for a process.
type groupFinder struct {
	root      string                // root of the file system; empty for the real one
	delegated func(dir string) bool // reports whether a group is delegated to its user
}

// ownGroupParents returns where this process creates control groups. It first removes those of dead coder
// processes.
var ownGroupParents = sync.OnceValue(func() groupParents {
	place := groupFinder{delegated: isDelegated}.find()
	for _, dir := range place.dirs() {
		removeStaleGroups(dir)
	}
	return place
})

func (p groupParents) dirs() (dirs []string) {
	if p.memory != "" {
		dirs = append(dirs, p.memory)
	}
	if p.tasks != "" && p.tasks != p.memory {
		dirs = append(dirs, p.tasks)
	}
	return dirs
}

// isDelegated reports whether systemd or a similar manager marked a group as delegated.
func isDelegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 1)
		if n, err := unix.Getxattr(dir, name, value); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// find prefers cgroup v2. A hybrid machine has the memory controller in one of the two.
func (f groupFinder) find() groupParents {
	text, err := os.ReadFile(f.root + "/proc/self/cgroup")
	if err != nil {
		return groupParents{}
	}
	own := make(map[string]string) // our group, by controller; that of version 2 is ""
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 {
			for controller := range strings.SplitSeq(parts[1], ",") {
				own[controller] = parts[2]
			}
		}
	}
	if dir := f.ownGroupDir(own, ""); dir != "" {
		if place := f.findV2(dir); place != "" {
			return groupParents{memory: place, tasks: place}
		}
	}
	dir := f.ownGroupDir(own, "memory")
	if dir != "" && f.isWritable(dir, limitV1) && !settingIs(filepath.Join(dir, "memory.use_hierarchy"), "0") {
		place := groupParents{memory: dir}
		if dir := f.ownGroupDir(own, "pids"); dir != "" && f.isWritable(dir, "tasks") {
			place.tasks = dir
		}
		return place
	}
	return groupParents{}
}

// findV2 returns where cgroup v2 allows limits on memory: in this process's own group if that may hold
// processes besides groups, else beside it if delegated. In the latter case a command leaves coder's
// group, which must therefore have no limits.
func (f groupFinder) findV2(own string) string {
	if canLimitMemory(own) && f.isWritable(own, "cgroup.procs") {
		return own
	}
	parent := filepath.Dir(own)
	_, err := os.Stat(filepath.Join(parent, "cgroup.procs")) // missing above the mount
	if err != nil || !canLimitMemory(parent) || !f.isWritable(parent, "cgroup.procs") {
		return ""
	}
	if !f.delegated(parent) && !f.delegated(own) {
		return ""
	}
	for _, bound := range []string{limitV2, "memory.high", "memory.swap.max", "cpu.max"} {
		text, err := os.ReadFile(filepath.Join(own, bound))
		if err == nil && !strings.HasPrefix(string(text), "max") {
			return ""
		}
	}
	return parent
}

// canLimitMemory reports whether the children of a v2 group can limit memory.
func canLimitMemory(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return err == nil && slices.Contains(strings.Fields(string(text)), "memory")
}

// isWritable reports whether this process may create groups in a group and write the given file in it.
func (f groupFinder) isWritable(dir, file string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil && unix.Access(filepath.Join(dir, file), unix.W_OK) == nil
}

// ownGroupDir returns the mounted path of coder's own group for a controller, or "".
func (f groupFinder) ownGroupDir(own map[string]string, controller string) string {
	group, ok := own[controller]
	if !ok || strings.HasPrefix(group, "/..") {
		return ""
	}
	text, _ := os.ReadFile(f.root + "/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		mount, kind := strings.Fields(before), strings.Fields(after)
		const root, at = 3, 4
		if len(mount) <= at || len(kind) < 3 {
			continue
		}
		second := kind[0] == "cgroup2" && controller == ""
		first := kind[0] == "cgroup" && controller != "" && slices.Contains(strings.Split(kind[2], ","), controller)
		if below, err := filepath.Rel(mount[root], group); (second || first) && err == nil && filepath.IsLocal(below) {
			return filepath.Join(f.root+mount[at], below)
		}
	}
	return ""
}

// group is a control group, used by one command at a time.
type group struct {
	dirs   []string // the first one limits memory
	bounds Bounds
}

// groupPool are this process's control groups, reused because creating one costs more than everything else
// the helper does with it.
var groupPool struct {
	sync.Mutex
	made int
	free []group // without processes
}

// useGroup makes the line's helper start its command in a control group with bounds. If that is not
// possible, it returns the line unchanged. Call release when the command has ended.
func useGroup(argv []string, b Bounds) (held []string, release func()) {
	g, ok := ownGroupParents().acquire(b)
	if !ok {
		return argv, func() {}
	}
	held = slices.Clone(argv)
	for _, dir := range slices.Backward(g.dirs) {
		held = slices.Insert(held, 2, "--group="+dir)
	}
	return held, sync.OnceFunc(g.release)
}

// acquire returns an unused group, or none if memory cannot be limited.
func (p groupParents) acquire(b Bounds) (g group, ok bool) {
	if p.memory == "" || b.Memory <= 0 {
		return g, false
	}
	groupPool.Lock()
	defer groupPool.Unlock()
	if n := len(groupPool.free); n > 0 {
		g, groupPool.free = groupPool.free[n-1], groupPool.free[:n-1]
	} else {
		groupPool.made++
		g = p.create(groupPool.made)
	}
	if g.bounds != b && !g.setLimits(b) {
		g.remove()
		return g, false
	}
	g.bounds = b
	return g, true
}

// create creates the folders of a group.
func (p groupParents) create(serial int) (g group) {
	number := ownNumber()
	name := fmt.Sprintf("%s%s-%s-%d", groupPrefix, number, startTime(number), serial)
	for _, in := range p.dirs() {
		g.dirs = append(g.dirs, filepath.Join(in, name))
		_ = os.Mkdir(filepath.Join(in, name), 0o755) // on failure, setting a bound fails
	}
	return g
}

// setLimits sets the limits of a group, and reports whether memory is limited. The process limit is
// optional, since the helper checks it too.
func (g group) setLimits(b Bounds) bool {
	tasks := "max"
	if b.Processes > 0 {
		tasks = strconv.Itoa(b.Processes + taskMargin)
	}
	_ = writeExisting(filepath.Join(g.dirs[len(g.dirs)-1], tasksLimit), tasks)
	memory := strconv.FormatInt(b.Memory, 10)
	return writeExisting(filepath.Join(g.dirs[0], limitV1), memory) ||
		writeExisting(filepath.Join(g.dirs[0], limitV2), memory)
}

// release keeps a group for reuse if nothing of its command is left in it.
func (g group) release() {
	for _, file := range []string{"memory.usage_in_bytes", "memory.current"} {
		text, _ := os.ReadFile(filepath.Join(g.dirs[0], file))
		used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		procs, _ := os.ReadFile(filepath.Join(g.dirs[0], "cgroup.procs"))
		if err == nil && used < maxLeftover && len(procs) == 0 {
			groupPool.Lock()
			groupPool.free = append(groupPool.free, g)
			groupPool.Unlock()
			return
		}
	}
	g.remove()
}

// removeUnusedGroups removes the unused groups.
func removeUnusedGroups() {
	groupPool.Lock()
	defer groupPool.Unlock()
	for _, g := range groupPool.free {
		g.remove()
	}
	groupPool.free = nil
}

// writeExisting writes to an existing file.
func writeExisting(file, text string) bool {
	fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err == nil
}

// remove waits briefly for the last processes of a group. The next coder removes what remains.
func (g group) remove() {
	for _, dir := range g.dirs {
		for range removeTries {
			if !errors.Is(unix.Rmdir(dir), unix.EBUSY) {
				break
			}
			time.Sleep(removePause)
		}
	}
}

// removeStaleGroups removes the groups in a folder whose coder has ended.
func removeStaleGroups(in string) {
	folder, err := os.Open(in)
	if err != nil {
		return
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, groupPrefix)
		parts := strings.Split(rest, "-")
		if ours && len(parts) == 3 && startTime(parts[0]) != parts[1] {
			_ = unix.Rmdir(filepath.Join(in, name)) // fails if it has processes
		}
	}
}

// startTime returns when a process started, in the kernel's units, or "".
func startTime(number string) string {
	const started = 19
	fields := readStat(number)
	if len(fields) <= started {
		return ""
	}
	return fields[started]
}

// groupHandle is the helper's access to its command's group: descriptors that no command inherits. The
// nil membership has no group.
type groupHandle struct {
	dirFD             int   // of a v2 group, else -1
	joinFDs, leaveFDs []int // v1: files through which a thread joins and returns
	eventsFD, hitFD   int   // counters of kills and of the limit being hit; hit may be -1

	startOOMs, startHits int64 // initial values of the counters
}

// openGroup opens a command's group before the helper is confined. On failure it returns nil: the helper
// checks the bounds in any case.
func openGroup(o helperSpec) *groupHandle {
	m := &groupHandle{dirFD: -1, eventsFD: -1, hitFD: -1}
	for _, dir := range o.groups {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.events")); err == nil { // version 2
			m.eventsFD, m.dirFD = openInDir(dir, eventsV2, unix.O_RDONLY), openInDir(dir, "", unix.O_PATH|unix.O_DIRECTORY)
			continue
		}
		if fd := openInDir(dir, eventsV1, unix.O_RDONLY); fd >= 0 {
			m.eventsFD, m.hitFD = fd, openInDir(dir, hitsV1, unix.O_RDONLY)
		}
		in, out := o.openTasks(dir), o.openTasks(filepath.Dir(dir))
		if in >= 0 && out >= 0 {
			m.joinFDs, m.leaveFDs = append(m.joinFDs, in), append(m.leaveFDs, out)
			continue
		}
		closeAll(in, out)
	}
	m.startOOMs, m.startHits = m.readCounters()
	return m
}

func openInDir(dir, file string, flags int) int {
	fd, err := unix.Open(filepath.Join(dir, file), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// openTasks opens the file through which a thread joins the group. A file open for writing would keep its
// mount from becoming read-only; if that is still to happen, openTasks opens it through the mounts of the
// process that started the helper.
func (o helperSpec) openTasks(dir string) int {
	if o.stage == stageNamespaces {
		dir = "/proc/" + o.starter + "/root" + dir
	}
	return openInDir(dir, "tasks", unix.O_WRONLY)
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// fork starts a command in the group. The helper stays outside, so that the kernel never kills it for
// memory. In v1 a child starts in its parent thread's group, and moving a thread is cheaper than moving
// a process.
func (m *groupHandle) fork(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	defer func() {
		closeAll(append(append(m.joinFDs, m.leaveFDs...), m.dirFD)...)
		m.joinFDs, m.leaveFDs, m.dirFD = nil, nil, -1
	}()
	if m.dirFD >= 0 {
		within := *attr.Sys
		within.UseCgroupFD, within.CgroupFD = true, m.dirFD
		pid, err = program.ForkExec(path, argv, &syscall.ProcAttr{Env: attr.Env, Files: attr.Files, Sys: &within})
		if err == nil {
			return pid, nil
		}
	}
	for _, fd := range m.joinFDs {
		_, _ = unix.Write(fd, []byte("0")) // if the group is gone, the helper checks alone
	}
	pid, err = program.ForkExec(path, argv, attr)
	for _, fd := range m.leaveFDs {
		_, _ = unix.Write(fd, []byte("0"))
	}
	return pid, err
}

// hasHitLimit reports whether the kernel killed something because the group hit its limit.
func (m *groupHandle) hasHitLimit() bool {
	ooms, hits := m.readCounters()
	return ooms > m.startOOMs && hits > m.startHits // otherwise the whole machine ran out
}

func (m *groupHandle) readCounters() (ooms, hits int64) {
	if m.hitFD >= 0 {
		return readCounter(m.eventsFD, "oom_kill"), readCounter(m.hitFD, "")
	}
	return readCounter(m.eventsFD, "oom_kill"), readCounter(m.eventsFD, "oom")
}

// readCounter reads a named number from a file, or its only number.
func readCounter(fd int, name string) int64 {
	if fd < 0 {
		return 0
	}
	text := make([]byte, 1024)
	n, err := unix.Pread(fd, text, 0)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text[:n])) {
		fields := strings.Fields(line)
		if len(fields) == 1 && name == "" || len(fields) == 2 && fields[0] == name {
			value, _ := strconv.ParseInt(fields[len(fields)-1], 10, 64)
			return value
		}
	}
	return 0
}
