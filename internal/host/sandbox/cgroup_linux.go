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
	// groupPrefix begins the name of a command's control group. The number and the
	// start time of the coder that made it follow.
	groupPrefix = "coder-"
	// moreTasks is how far above the bound on processes the group refuses more: the
	// helper can still see that a command is over the bound.
	moreTasks = 100
	// removeTries and removePause are for a group whose last process is just ending.
	removeTries, removePause = 50, 2 * time.Millisecond
	// mostLeft is what a command may leave in a group that is used again, in bytes. What
	// it put into files in memory would count for the next command.
	mostLeft = 16 << 20
)

// Files of a group, by version of control groups.
const (
	limitV1, limitV2   = "memory.limit_in_bytes", "memory.max"
	eventsV1, eventsV2 = "memory.oom_control", "memory.events"
	hitsV1             = "memory.failcnt"
	tasksLimit         = "pids.max"
)

// groupPlace is where control groups for commands can be made. The zero groupPlace
// is nowhere.
type groupPlace struct {
	memory string // the folder that holds the groups which bound memory
	tasks  string // that of the groups which bound processes; may be empty or the same
}

// groupFinder finds the groupPlace of a process.
type groupFinder struct {
	root      string                // of the file system; empty for the real one
	delegated func(dir string) bool // reports whether the system left a group to its user
}

// here is where this process makes control groups. What a coder before it left
// there is removed first.
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

// isDelegated reports whether systemd, or somebody in its place, marked a group as
// delegated.
func isDelegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 1)
		if n, err := unix.Getxattr(dir, name, value); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// find prefers version 2. A mixed machine has the memory controller in one of both.
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

// second is where version 2 lets us bound memory: in our own group if it may hold
// processes beside groups, else beside our own group if that was delegated. There a
// command would leave our own group, so it must have no bounds of its own.
func (f groupFinder) second(own string) string {
	if controls(own) && f.writable(own, "cgroup.procs") {
		return own
	}
	parent := filepath.Dir(own)
	_, err := os.Stat(filepath.Join(parent, "cgroup.procs")) // above the mount is none
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

// controls reports whether the groups in one of version 2 bound memory.
func controls(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return err == nil && slices.Contains(strings.Fields(string(text)), "memory")
}

// writable reports whether we may make groups in a group, and it has a file that we
// may write.
func (f groupFinder) writable(dir, file string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil && unix.Access(filepath.Join(dir, file), unix.W_OK) == nil
}

// folder is where our group for a controller is seen, or "".
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

// group is a control group for one command at a time.
type group struct {
	dirs   []string // the first bounds memory
	bounds Bounds
}

// groups are those of this process. Making one for each command would cost more than
// all that the helper does with it.
var groups struct {
	sync.Mutex
	made int
	free []group // no process is in them
}

// hold has the helper of the line start its command in a control group with bounds.
// Where that cannot be done the line stays as it is. Release says that the command has
// ended.
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

// take returns a group that nobody uses; none if memory cannot be bounded.
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

// make makes the folders of a group.
func (p groupPlace) make(serial int) (g group) {
	number := processNumber()
	name := fmt.Sprintf("%s%s-%s-%d", groupPrefix, number, startOf(number), serial)
	for _, in := range p.dirs() {
		g.dirs = append(g.dirs, filepath.Join(in, name))
		_ = os.Mkdir(filepath.Join(in, name), 0o755) // without it no bound can be set
	}
	return g
}

// bound sets the bounds of a group, and reports whether memory is bounded. The helper
// watches processes too, so theirs need not be.
func (g group) bound(b Bounds) bool {
	tasks := "max"
	if b.Processes > 0 {
		tasks = strconv.Itoa(b.Processes + moreTasks)
	}
	_ = write(filepath.Join(g.dirs[len(g.dirs)-1], tasksLimit), tasks)
	memory := strconv.FormatInt(b.Memory, 10)
	return write(filepath.Join(g.dirs[0], limitV1), memory) || write(filepath.Join(g.dirs[0], limitV2), memory)
}

// release keeps a group for the next command if nothing of this one is left in it.
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

// dropGroups removes the groups that nobody uses.
func dropGroups() {
	groups.Lock()
	defer groups.Unlock()
	for _, g := range groups.free {
		g.remove()
	}
	groups.free = nil
}

// write writes to a file that is there.
func write(file, text string) bool {
	fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err == nil
}

// remove waits shortly for the last processes of a group. What stays is removed by the
// next coder.
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

// sweepGroups removes the groups in a folder whose coder is gone.
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
			_ = unix.Rmdir(filepath.Join(in, name)) // one with processes stays
		}
	}
}

// startOf is when a process started, as the kernel counts, or "".
func startOf(number string) string {
	const started = 19
	fields := statOf(number)
	if len(fields) <= started {
		return ""
	}
	return fields[started]
}

// membership is what the helper needs of its command's group: descriptors that no
// command inherits. The nil membership is of no group.
type membership struct {
	folder      int   // of a group of version 2, else -1
	in, out     []int // of version 1: where a thread writes itself to join, and to return
	events, hit int   // count what the kernel ended, and how often the limit was met; hit may be -1

	ooms, hits int64 // what was counted before
}

// openGroup opens a command's group before the helper is confined. A group that cannot
// be opened is none: the helper watches the command in any case.
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

// tasksIn is the file that a thread writes itself to. A file that is open for writing
// would keep its mount from being made read-only: where that is about to be done it is
// opened in the mounts of the process that started us.
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

// fork starts a command in the group. The helper is not in it: the kernel does not
// choose the helper when it ooms for memory. In version 1 a child is born where the
// thread is that makes it, and moving a thread costs less than moving a process.
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
		_, _ = unix.Write(fd, []byte("0")) // if it is gone the helper watches alone
	}
	pid, err = program.Fork(path, argv, attr)
	for _, fd := range m.out {
		_, _ = unix.Write(fd, []byte("0"))
	}
	return pid, err
}

// exceeded reports whether the kernel ended something because the group met its limit.
func (m *membership) exceeded() bool {
	ooms, hits := m.counts()
	return ooms > m.ooms && hits > m.hits // else the whole machine had no more
}

func (m *membership) counts() (ooms, hits int64) {
	if m.hit >= 0 {
		return counter(m.events, "oom_kill"), counter(m.hit, "")
	}
	return counter(m.events, "oom_kill"), counter(m.events, "oom")
}

// counter reads a number from a file that names its numbers, or has one without a name.
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
