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
	"sync/atomic"
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

// groupFinder looks for a groupPlace.
type groupFinder struct {
	root      string                // of the file system; empty for the real one
	delegated func(dir string) bool // reports whether the system left a group to its user
}

// here is where this process makes control groups. Groups that killed processes left
// there are removed first.
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
	if dir := f.folder(own, "memory"); dir != "" && f.writable(dir, limitV1) && !says(filepath.Join(dir, "memory.use_hierarchy"), "0") {
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
	if err != nil || !controls(parent) || !f.writable(parent, "cgroup.procs") || !f.delegated(parent) && !f.delegated(own) {
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

// made numbers the groups of this process.
var made atomic.Int64

// hold makes a control group within bounds and has the helper of the line start the
// command in it. Where that cannot be done the line stays as it is. Release removes the
// group when the command has ended.
func hold(argv []string, b Bounds) (held []string, release func()) {
	dirs := here().group(b)
	if len(dirs) == 0 {
		return argv, func() {}
	}
	held = slices.Clone(argv)
	for _, dir := range dirs {
		held = slices.Insert(held, 2, "--group="+dir)
	}
	return held, func() { removeGroups(dirs) }
}

// group makes the folders of one command's group; none if its memory cannot be bounded.
func (p groupPlace) group(b Bounds) (dirs []string) {
	if p.memory == "" || b.Memory <= 0 {
		return nil
	}
	number := processNumber()
	name := fmt.Sprintf("%s%s-%s-%d", groupPrefix, number, startOf(number), made.Add(1))
	for _, in := range p.dirs() {
		dir := filepath.Join(in, name)
		if os.Mkdir(dir, 0o755) == nil {
			dirs = append(dirs, dir)
		}
	}
	if memory := filepath.Join(p.memory, name); !limit(memory, limitV1, b.Memory) && !limit(memory, limitV2, b.Memory) {
		removeGroups(dirs)
		return nil
	}
	if p.tasks != "" && b.Processes > 0 {
		_ = limit(filepath.Join(p.tasks, name), tasksLimit, int64(b.Processes+moreTasks)) // the helper watches them too
	}
	return dirs
}

// limit writes a number to a file of a group that is there.
func limit(dir, file string, n int64) bool {
	fd, err := unix.Open(filepath.Join(dir, file), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, strconv.AppendInt(nil, n, 10))
	return err == nil
}

// removeGroups waits shortly for the last processes of a group. What stays is removed
// by the next coder.
func removeGroups(dirs []string) {
	for _, dir := range dirs {
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
	events, hit int   // count what the kernel killed, and how often the limit was met; hit may be -1
}

// openGroup opens a command's group before the helper is confined. A group that cannot
// be opened is none: the helper watches the command in any case.
func openGroup(dirs []string, s stage) *membership {
	m := &membership{folder: -1, events: -1, hit: -1}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.events")); err == nil { // version 2
			m.events, m.folder = openIn(dir, eventsV2, unix.O_RDONLY), openIn(dir, "", unix.O_PATH|unix.O_DIRECTORY)
			continue
		}
		if fd := openIn(dir, eventsV1, unix.O_RDONLY); fd >= 0 {
			m.events, m.hit = fd, openIn(dir, hitsV1, unix.O_RDONLY)
		}
		in, out := openTasks(dir, s), openTasks(filepath.Dir(dir), s)
		if in >= 0 && out >= 0 {
			m.in, m.out = append(m.in, in), append(m.out, out)
			continue
		}
		closeAll(in, out)
	}
	return m
}

func openIn(dir, file string, flags int) int {
	fd, err := unix.Open(filepath.Join(dir, file), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// openTasks opens what a thread writes itself to. A file that is open for writing would
// keep its mount from being made read-only: where that is about to be done, the file is
// opened in a copy of the mount that nobody else has.
func openTasks(dir string, s stage) int {
	if s != stageNamespaces {
		return openIn(dir, "tasks", unix.O_WRONLY)
	}
	copied, err := clone(unix.AT_FDCWD, dir, dir, unix.AT_SYMLINK_NOFOLLOW, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(copied.fd)
	fd, err := unix.Openat(copied.fd, "tasks", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// fork starts a command in the group. The helper is not in it: the kernel does not
// choose the helper when it kills for memory. In version 1 a child is born where the
// thread is that makes it, and moving a thread costs less than moving a process.
func (m *membership) fork(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	defer func() {
		closeAll(append(append(m.in, m.out...), m.folder)...)
		m.in, m.out, m.folder = nil, nil, -1
	}()
	if m.folder >= 0 {
		within := *attr.Sys
		within.UseCgroupFD, within.CgroupFD = true, m.folder
		if pid, err = program.Fork(path, argv, &syscall.ProcAttr{Env: attr.Env, Files: attr.Files, Sys: &within}); err == nil {
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

// killed reports whether the kernel killed a process because the group met its limit.
func (m *membership) killed() bool {
	if m.events < 0 {
		return false
	}
	kills, met := counter(m.events, "oom_kill"), counter(m.events, "oom")
	if m.hit >= 0 {
		met = counter(m.hit, "")
	}
	return kills > 0 && met > 0 // else the whole machine had no more
}

// counter reads a number from a file that names its numbers, or has one without a name.
func counter(fd int, name string) int64 {
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
