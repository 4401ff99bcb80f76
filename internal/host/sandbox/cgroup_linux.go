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
	// moreTasks is how far the group's limit is above the bound on processes, so that the helper can still
	// detect the excess.
	moreTasks = 100
	// removeTries and removePause are for a group whose last process is ending.
	removeTries, removePause = 50, 2 * time.Millisecond
	// mostLeft is the memory in bytes that a command may leave in a reused group. Its in-memory files would
	// count for the next command.
	mostLeft = 16 << 20
)

// Control files of a group, by cgroup version.
const (
	limitV1, limitV2   = "memory.limit_in_bytes", "memory.max"
	eventsV1, eventsV2 = "memory.oom_control", "memory.events"
	hitsV1             = "memory.failcnt"
	tasksLimit         = "pids.max"
)

// groupPlace is where coder can create control groups for commands. The zero groupPlace is nowhere.
type groupPlace struct {
	memory string // parent of the groups that limit memory
	tasks  string // parent of the groups that limit processes; may be empty or the same
}

// groupFinder finds the groupPlace for a process.
type groupFinder struct {
	root      string                // root of the file system; empty for the real one
	delegated func(dir string) bool // reports whether a group is delegated to its user
}

// here returns where this process creates control groups. It first removes those of dead coder
// processes.
var here = sync.OnceValue(func() groupPlace {
	place := groupFinder{delegated: isDelegated}.find()
	for _, dir := range place.dirs() {
		sweepGroups(dir)
	}
	return place
})

func (p groupPlace) dirs() (dirs []string) {
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
func (f groupFinder) find() groupPlace {
	text, err := os.ReadFile(f.root + "/proc/self/cgroup")
	if err != nil {
		return groupPlace{}
	}
	own := make(map[string]string) // our group, by controller; that of version 2 is ""
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 {
			for controller := range strings.SplitSeq(parts[1], ",") {
				own[controller] = parts[2]
			}
		}
	}
	if dir := f.folder(own, ""); dir != "" {
		if place := f.second(dir); place != "" {
			return groupPlace{memory: place, tasks: place}
		}
	}
	dir := f.folder(own, "memory")
	if dir != "" && f.writable(dir, limitV1) && !says(filepath.Join(dir, "memory.use_hierarchy"), "0") {
		place := groupPlace{memory: dir}
		if dir := f.folder(own, "pids"); dir != "" && f.writable(dir, "tasks") {
			place.tasks = dir
		}
		return place
	}
	return groupPlace{}
}

// second returns where cgroup v2 allows limits on memory: in this process's own group if that may hold
// processes besides groups, else beside it if delegated. In the latter case a command leaves coder's
// group, which must therefore have no limits.
func (f groupFinder) second(own string) string {
	if controls(own) && f.writable(own, "cgroup.procs") {
		return own
	}
	parent := filepath.Dir(own)
	_, err := os.Stat(filepath.Join(parent, "cgroup.procs")) // missing above the mount
	if err != nil || !controls(parent) || !f.writable(parent, "cgroup.procs") {
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

// controls reports whether the children of a v2 group can limit memory.
func controls(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return err == nil && slices.Contains(strings.Fields(string(text)), "memory")
}

// writable reports whether this process may create groups in a group and write the given file in it.
func (f groupFinder) writable(dir, file string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil && unix.Access(filepath.Join(dir, file), unix.W_OK) == nil
}

// folder returns the mounted path of coder's own group for a controller, or "".
func (f groupFinder) folder(own map[string]string, controller string) string {
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

// groups are this process's control groups, reused because creating one costs more than everything else
// the helper does with it.
var groups struct {
	sync.Mutex
	made int
	free []group // without processes
}

// hold makes the line's helper start its command in a control group with bounds. If that is not
// possible, it returns the line unchanged. Call release when the command has ended.
func hold(argv []string, b Bounds) (held []string, release func()) {
	g, ok := here().take(b)
	if !ok {
		return argv, func() {}
	}
	held = slices.Clone(argv)
	for _, dir := range slices.Backward(g.dirs) {
		held = slices.Insert(held, 2, "--group="+dir)
	}
	return held, sync.OnceFunc(g.release)
}

// take returns an unused group, or none if memory cannot be limited.
func (p groupPlace) take(b Bounds) (g group, ok bool) {
	if p.memory == "" || b.Memory <= 0 {
		return g, false
	}
	groups.Lock()
	defer groups.Unlock()
	if n := len(groups.free); n > 0 {
		g, groups.free = groups.free[n-1], groups.free[:n-1]
	} else {
		groups.made++
		g = p.make(groups.made)
	}
	if g.bounds != b && !g.bound(b) {
		g.remove()
		return g, false
	}
	g.bounds = b
	return g, true
}

// make creates the folders of a group.
func (p groupPlace) make(serial int) (g group) {
	number := processNumber()
	name := fmt.Sprintf("%s%s-%s-%d", groupPrefix, number, startOf(number), serial)
	for _, in := range p.dirs() {
		g.dirs = append(g.dirs, filepath.Join(in, name))
		_ = os.Mkdir(filepath.Join(in, name), 0o755) // on failure, setting a bound fails
	}
	return g
}

// bound sets the limits of a group, and reports whether memory is limited. The process limit is
// optional, since the helper checks it too.
func (g group) bound(b Bounds) bool {
	tasks := "max"
	if b.Processes > 0 {
		tasks = strconv.Itoa(b.Processes + moreTasks)
	}
	_ = write(filepath.Join(g.dirs[len(g.dirs)-1], tasksLimit), tasks)
	memory := strconv.FormatInt(b.Memory, 10)
	return write(filepath.Join(g.dirs[0], limitV1), memory) || write(filepath.Join(g.dirs[0], limitV2), memory)
}

// release keeps a group for reuse if nothing of its command is left in it.
func (g group) release() {
	for _, file := range []string{"memory.usage_in_bytes", "memory.current"} {
		text, _ := os.ReadFile(filepath.Join(g.dirs[0], file))
		used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		procs, _ := os.ReadFile(filepath.Join(g.dirs[0], "cgroup.procs"))
		if err == nil && used < mostLeft && len(procs) == 0 {
			groups.Lock()
			groups.free = append(groups.free, g)
			groups.Unlock()
			return
		}
	}
	g.remove()
}

// dropGroups removes the unused groups.
func dropGroups() {
	groups.Lock()
	defer groups.Unlock()
	for _, g := range groups.free {
		g.remove()
	}
	groups.free = nil
}

// write writes to an existing file.
func write(file, text string) bool {
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

// sweepGroups removes the groups in a folder whose coder has ended.
func sweepGroups(in string) {
	folder, err := os.Open(in)
	if err != nil {
		return
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, groupPrefix)
		parts := strings.Split(rest, "-")
		if ours && len(parts) == 3 && startOf(parts[0]) != parts[1] {
			_ = unix.Rmdir(filepath.Join(in, name)) // fails if it has processes
		}
	}
}

// startOf returns when a process started, in the kernel's units, or "".
func startOf(number string) string {
	const started = 19
	fields := statOf(number)
	if len(fields) <= started {
		return ""
	}
	return fields[started]
}

// membership is the helper's access to its command's group: descriptors that no command inherits. The
// nil membership has no group.
type membership struct {
	folder      int   // of a v2 group, else -1
	in, out     []int // v1: files through which a thread joins and returns
	events, hit int   // counters of kills and of the limit being hit; hit may be -1

	ooms, hits int64 // initial values of the counters
}

// openGroup opens a command's group before the helper is confined. On failure it returns nil: the helper
// checks the bounds in any case.
func openGroup(o order) *membership {
	m := &membership{folder: -1, events: -1, hit: -1}
	for _, dir := range o.groups {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.events")); err == nil { // version 2
			m.events, m.folder = openIn(dir, eventsV2, unix.O_RDONLY), openIn(dir, "", unix.O_PATH|unix.O_DIRECTORY)
			continue
		}
		if fd := openIn(dir, eventsV1, unix.O_RDONLY); fd >= 0 {
			m.events, m.hit = fd, openIn(dir, hitsV1, unix.O_RDONLY)
		}
		in, out := o.tasksIn(dir), o.tasksIn(filepath.Dir(dir))
		if in >= 0 && out >= 0 {
			m.in, m.out = append(m.in, in), append(m.out, out)
			continue
		}
		closeAll(in, out)
	}
	m.ooms, m.hits = m.counts()
	return m
}

func openIn(dir, file string, flags int) int {
	fd, err := unix.Open(filepath.Join(dir, file), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// tasksIn opens the file through which a thread joins the group. A file open for writing would keep its
// mount from becoming read-only; if that is still to happen, tasksIn opens it through the mounts of the
// process that started the helper.
func (o order) tasksIn(dir string) int {
	if o.stage == stageNamespaces {
		dir = "/proc/" + o.starter + "/root" + dir
	}
	return openIn(dir, "tasks", unix.O_WRONLY)
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
func (m *membership) fork(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	defer func() {
		closeAll(append(append(m.in, m.out...), m.folder)...)
		m.in, m.out, m.folder = nil, nil, -1
	}()
	if m.folder >= 0 {
		within := *attr.Sys
		within.UseCgroupFD, within.CgroupFD = true, m.folder
		pid, err = program.Fork(path, argv, &syscall.ProcAttr{Env: attr.Env, Files: attr.Files, Sys: &within})
		if err == nil {
			return pid, nil
		}
	}
	for _, fd := range m.in {
		_, _ = unix.Write(fd, []byte("0")) // if the group is gone, the helper checks alone
	}
	pid, err = program.Fork(path, argv, attr)
	for _, fd := range m.out {
		_, _ = unix.Write(fd, []byte("0"))
	}
	return pid, err
}

// exceeded reports whether the kernel killed something because the group hit its limit.
func (m *membership) exceeded() bool {
	ooms, hits := m.counts()
	return ooms > m.ooms && hits > m.hits // otherwise the whole machine ran out
}

func (m *membership) counts() (ooms, hits int64) {
	if m.hit >= 0 {
		return counter(m.events, "oom_kill"), counter(m.hit, "")
	}
	return counter(m.events, "oom_kill"), counter(m.events, "oom")
}

// counter reads a named number from a file, or its only number.
func counter(fd int, name string) int64 {
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
