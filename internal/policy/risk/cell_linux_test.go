package risk_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A cell is a root of its own in which shells may run anything: it holds only
// the shells, programs that read, stand-ins for all others, and an empty
// folder. There is no way to make one but enter, which fails unless nothing of
// the machine can be reached any more.
//
// Nor can a line take the machine's processes, memory or time: see [cell.batch].
type cell struct {
	shells   []shellIn
	user     int           // who runs lines: not root, whom no limit binds
	pids     int           // the highest number of a process
	patience time.Duration // for one line
}

type shellIn struct {
	name string
	argv []string // before the script
}

const (
	cellWork   = "/work" // the empty folder
	cellMarks  = "/mark" // what stand-ins leave
	cellScript = "/script"
	cellToken  = "/this-is-the-cell"
)

// What lines may take of the machine.
const (
	mostProcesses = 128      // at once, for all lines of a batch
	mostMemory    = 64 << 10 // KiB, for one process
	crowd         = 48       // processes at once by which a line multiplies: no line that is made up has as many commands
	flood         = 100      // processes in all, more than lines usually start, by which one of them multiplies: fewer than it takes to reach the limit
	cellUser      = 1000     // runs lines where we are root
)

// cellHolds is all that there is.
var cellHolds = []string{"bin", "lib", "lib64", "usr", "etc", "tmp", "dev", "work", "mark", cellToken[1:]}

// readingPrograms are real in the cell, as far as the machine has them.
var readingPrograms = strings.Fields("ls cat head tail wc cut tr sort uniq grep sed awk find xargs env timeout nice date printf test [ stat basename dirname " +
	"realpath readlink nl tac rev fold paste join comm cmp diff od seq expr true false echo pwd id uname tar")

// idlePrograms only read, and do nothing in the cell.
var idlePrograms = strings.Fields("git rg jq tree file du df ps which whereis whoami sleep less man go node npm python python3 hostname xxd base64 getent column strings md5sum sha256sum tput uptime free unzip zcat")

// writingPrograms leave a mark with their name.
var writingPrograms = strings.Fields("touch rm mv cp mkdir rmdir tee dd chmod chown ln install truncate curl wget make docker ssh sudo perl ruby M a b.txt f E x")

// shellsIn are the shells of the machine.
func shellsIn() (list []shellIn) {
	for _, s := range []shellIn{{"bash", []string{"/bin/bash", "--noprofile", "--norc"}}, {"dash", []string{"/bin/dash"}}, {"busybox", []string{"/bin/busybox", "sh"}}} {
		if _, err := exec.LookPath(filepath.Base(s.argv[0])); err == nil {
			list = append(list, s)
		}
	}
	return list
}

// imprison is a run of this test's program in namespaces of its own.
func imprison(env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), env...), outsideVariable+"="+namespaces())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	if os.Getuid() == 0 {
		other := syscall.SysProcIDMap{ContainerID: cellUser, HostID: 65534, Size: 1}
		cmd.SysProcAttr.UidMappings = append(cmd.SysProcAttr.UidMappings, other)
		cmd.SysProcAttr.GidMappings = append(cmd.SysProcAttr.GidMappings, other)
	}
	return cmd
}

// outsideVariable tells the cell in which namespaces the machine is.
const outsideVariable = "CODER_SHELL_OUTSIDE"

// namespaces names those we are in.
func namespaces() string {
	var all []string
	for _, name := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		to, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return ""
		}
		all = append(all, to)
	}
	return strings.Join(all, " ")
}

// apart reports whether none of our namespaces is one of the machine.
func apart() bool {
	inside, outside := strings.Fields(namespaces()), strings.Fields(os.Getenv(outsideVariable))
	return len(inside) == 6 && len(outside) == 6 && !slices.ContainsFunc(inside, func(n string) bool { return slices.Contains(outside, n) })
}

// enter makes the root below dir and goes there for good.
func enter(dir string) (*cell, error) {
	c := &cell{shells: shellsIn(), patience: time.Second}
	if os.Getpid() != 1 || !apart() {
		return nil, errors.New("these are not namespaces of our own")
	}
	if len(c.shells) == 0 {
		return nil, errors.New("no shell is installed")
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128m,mode=755")); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	if err := errors.Join(c.furnish(dir), c.bind()); err != nil {
		return nil, fmt.Errorf("furnish: %w", err)
	}
	old := filepath.Join(dir, "old")
	if err := errors.Join(os.Mkdir(old, 0o700), unix.PivotRoot(dir, old), os.Chdir("/"), unix.Unmount("/old", unix.MNT_DETACH), os.Remove("/old")); err != nil {
		return nil, fmt.Errorf("change the root: %w", err)
	}
	if err := c.verify(); err != nil {
		return nil, err
	}
	return c, nil
}

// bind limits what those that we start may take.
func (c *cell) bind() error {
	text, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return err
	}
	if c.pids, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return err
	}
	return errors.Join(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: mostProcesses, Max: mostProcesses}), unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
}

// verify sees that nothing of the machine is left.
func (c *cell) verify() error {
	if _, err := os.Stat(cellToken); err != nil {
		return fmt.Errorf("this is not the cell: %w", err)
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(cellHolds, e.Name()) {
			return fmt.Errorf("the cell holds %s", e.Name())
		}
	}
	for _, gone := range []string{"/proc", "/sys", "/home", "/root", "/etc/passwd", "/etc/hostname"} {
		if _, err := os.Lstat(gone); err == nil {
			return fmt.Errorf("the cell holds %s", gone)
		}
	}
	networks, err := net.Interfaces()
	if err != nil || len(networks) > 1 {
		return fmt.Errorf("the cell has a network: %v, %v", networks, err)
	}
	return nil
}

// furnish puts into the cell what belongs there.
func (c *cell) furnish(dir string) error {
	for _, d := range []string{"bin", "lib", "usr", "etc", "tmp", "dev", "work", "mark"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, cellToken), nil, 0o600); err != nil {
		return err
	}
	null := filepath.Join(dir, "dev/null")
	if err := errors.Join(os.WriteFile(null, nil, 0o666), unix.Mount("/dev/null", null, "", unix.MS_BIND, "")); err != nil {
		return err
	}
	for _, s := range c.shells {
		if err := bring(dir, filepath.Base(s.argv[0])); err != nil {
			return err
		}
	}
	var idle []string
	for _, name := range readingPrograms {
		if err := bring(dir, name); err != nil {
			idle = append(idle, name)
		}
	}
	script := "#!" + c.shells[len(c.shells)-1].argv[0] + strings.Repeat(" sh", len(c.shells[len(c.shells)-1].argv)/2%2) + "\n"
	if slices.ContainsFunc(c.shells, func(s shellIn) bool { return s.name == "dash" }) {
		script = "#!/bin/dash\n"
	}
	marks := "case $#$1 in 1-v|1-V|1--version|1--help) exit;; esac\n: > \"" + cellMarks + "/${LINE:-none}.${0##*/}\"\n"
	return errors.Join(standIns(dir, append(idle, idlePrograms...), script), standIns(dir, writingPrograms, script+marks), c.handOver(dir), lock(dir))
}

// handOver lets lines write wherever they could as root.
func (c *cell) handOver(dir string) (err error) {
	if os.Chown(dir, cellUser, cellUser) != nil {
		return nil // there is no other user: we are not root
	}
	c.user = cellUser
	for _, d := range []string{"tmp", "work", "mark"} {
		err = errors.Join(err, os.Chown(filepath.Join(dir, d), cellUser, cellUser))
	}
	return err
}

// lock sees that no line can take the cell apart.
func lock(dir string) (err error) {
	for _, d := range []string{"bin", "lib", "lib64", "usr", "etc", "dev"} {
		d = filepath.Join(dir, d)
		if _, missing := os.Stat(d); missing == nil {
			err = errors.Join(err, unix.Mount(d, d, "", unix.MS_BIND|unix.MS_REC, ""), unix.Mount("", d, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
		}
	}
	for _, d := range []string{"work", "mark", "tmp"} { // a mount cannot be removed
		d = filepath.Join(dir, d)
		err = errors.Join(err, unix.Mount(d, d, "", unix.MS_BIND, ""))
	}
	return err
}

func standIns(dir string, names []string, script string) (err error) {
	for _, name := range names {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "bin", name), []byte(script), 0o755))
	}
	return err
}

var loaded = regexp.MustCompile(`(/\S+) \(0x`)

// bring copies a program and what it loads.
func bring(dir, name string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	out, _ := exec.Command("ldd", path).Output() // a program that loads nothing is no error
	for _, m := range loaded.FindAllStringSubmatch(string(out), -1) {
		if err := copyInto(dir, m[1], m[1]); err != nil {
			return err
		}
	}
	return copyInto(dir, path, "/bin/"+name)
}

func copyInto(dir, from, to string) error {
	to = filepath.Join(dir, to)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755))
}

// A deed is what a line did in a shell.
type deed struct {
	Shell, Line string
	Marks       []string `json:",omitempty"` // the stand-ins that ran
	Wrote       []string `json:",omitempty"` // what else was written
	Processes   int      `json:",omitzero"`  // how many outlived it, or how many it had when they were too many at once
	Begun       int      `json:",omitzero"`  // how many it started, if too many
	Endless     bool     `json:",omitzero"`  // it was ended
}

// did reports whether a line did more than take its time.
func (d deed) did() bool { return len(d.Marks)+len(d.Wrote)+d.Processes+d.Begun > 0 }

// multiplied reports whether a line started processes without bound.
func (d deed) multiplied() bool { return d.Processes >= crowd || d.Begun > 0 }

// A manner is how lines are run.
type manner struct {
	real   bool // programs that read are run; otherwise they are functions that do nothing, which is much faster
	writes bool // lines may write
}

// usual is how many processes lines start at most, by experience.
func (m manner) usual(lines int) int {
	if m.real || m.writes {
		return 3 * lines
	}
	return 3 * lines / 2
}

// run runs lines in a shell, each in a shell of its own, and says what those did
// that did something.
func (c *cell) run(s shellIn, lines []string, how manner) (deeds []deed, err error) {
	for from := 0; from < len(lines); {
		end, err := c.batch(s, lines[from:], how)
		if err != nil {
			return nil, err
		}
		found := c.look()
		if how.writes {
			found.wrote = nil
		}
		unclear := len(found.wrote)+len(found.marks["none"])+end.processes+end.begun > 0 // whose that is cannot be told
		for i, line := range lines[from : from+end.came] {
			d := deed{Shell: s.name, Line: line, Marks: append(found.marks[strconv.Itoa(i)], found.marks["none"]...), Wrote: found.wrote, Processes: end.processes, Begun: end.begun}
			d.Endless = end.endless && i == end.came-1
			if end.came > 1 && unclear {
				alone, err := c.run(s, []string{line}, how)
				if err != nil {
					return nil, err
				}
				deeds = append(deeds, alone...)
			} else if d.did() || d.Endless {
				deeds = append(deeds, d)
			}
		}
		from += end.came
	}
	return deeds, nil
}

// An ending is how a batch ended.
type ending struct {
	came      int  // how many lines it came to
	processes int  // those that outlived their line; all there are if they are too many
	begun     int  // how many processes there were, if too many
	endless   bool // the last line was ended
}

// batch runs lines in one process until they have ended, one does not, or they
// multiply. They are bound by limits of the system that they cannot raise, in a
// name space that ends, with all of them, when batch returns.
func (c *cell) batch(s shellIn, lines []string, how manner) (ending, error) {
	if err := os.WriteFile(cellScript, []byte(batchScript(lines, how.real)), 0o644); err != nil {
		return ending{}, err
	}
	hear, progress, err := os.Pipe()
	if err != nil {
		return ending{}, err
	}
	defer hear.Close()
	cmd := exec.Command(s.argv[0], append(s.argv[1:], cellScript)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = cellWork, []string{"PATH=/bin", "HOME=/work", "LANG=C.UTF-8"}, []*os.File{progress}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL} // all of it ends with the shell
	if c.user != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.user), Gid: uint32(c.user), NoSetGroups: true}
	}
	nudge, err := cmd.StdinPipe()
	if err != nil {
		return ending{}, err
	}
	if err := errors.Join(cmd.Start(), progress.Close()); err != nil {
		return ending{}, err
	}
	end := c.watch(cmd.Process.Pid, len(lines), how, hear, nudge)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return end, nil
}

// batchScript says which line comes next before each, and that all have ended.
// Then it takes leave of its dead whenever it is nudged.
func batchScript(lines []string, real bool) string {
	var script strings.Builder
	fmt.Fprintf(&script, "ulimit -v %d || exit\n", mostMemory)
	script.WriteString("yes() { :; }\n") // it has no end
	for _, name := range readingPrograms {
		if !real && name != "[" && name != "test" {
			script.WriteString(name + "() { :; }\n")
		}
	}
	for i, line := range lines {
		fmt.Fprintf(&script, "command echo %d >&3\nL='%s' LINE=%d\nexport LINE\n(eval \"$L\") </dev/null >/dev/null 2>&1 3>&-\n", i, strings.ReplaceAll(line, "'", `'\''`), i)
	}
	fmt.Fprintf(&script, "command echo %d >&3\nwhile read L; do (:); done\n", len(lines))
	return script.String()
}

// watch follows a batch whose shell has this number.
func (c *cell) watch(shell, lines int, how manner, progress io.Reader, nudge io.Writer) ending {
	lineBegun := make(chan int)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(lineBegun)
		for scan := bufio.NewScanner(progress); scan.Scan(); {
			n, _ := strconv.Atoi(scan.Text())
			select {
			case lineBegun <- n:
			case <-stop:
				return
			}
		}
	}()
	at, since, look := 0, time.Now(), time.NewTicker(50*time.Millisecond)
	defer look.Stop()
	for at < lines {
		select {
		case n, more := <-lineBegun:
			if !more { // it could start no more processes
				return ending{came: at + 1, processes: mostProcesses}
			}
			at, since = n, time.Now()
			continue
		case <-look.C:
		}
		if n, _ := c.alive(shell); n >= crowd {
			return ending{came: at + 1, processes: n}
		}
		if time.Since(since) > c.patience {
			return ending{came: at + 1, endless: true}
		}
	}
	for own := 0; ; own += 3 { // at most two probes, and what a nudge starts
		n, begun := c.alive(shell)
		begun -= own
		if n == 0 || n >= crowd || time.Since(since) > c.patience {
			if begun < how.usual(lines)+flood {
				begun = 0
			}
			return ending{came: lines, processes: n, begun: begun}
		}
		if _, err := nudge.Write([]byte("\n")); err != nil {
			return ending{came: lines, processes: mostProcesses}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// alive is how many processes there are besides a shell, of all that were
// begun after it. Numbers are given in order, so those in question lie before
// that of a new process.
func (c *cell) alive(shell int) (n, begun int) {
	newest := c.newest(shell)
	if newest == 0 {
		return mostProcesses, 0
	}
	for p := shell + 1; p < newest; p++ {
		if pid := p % c.pids; pid > 1 && unix.Kill(pid, 0) == nil {
			n++
		}
	}
	if n == 0 && c.newest(shell) != newest+1 {
		n = 1 // one that was begun meanwhile, perhaps by another that has ended
	}
	return n, newest - shell - 1
}

// newest is the number of a process that is new; 0 if there can be none.
func (c *cell) newest(shell int) int {
	probe := exec.Command(c.shells[0].argv[0], "-c", ":")
	if probe.Start() != nil {
		return 0
	}
	_ = probe.Wait()
	if probe.Process.Pid < shell {
		return probe.Process.Pid + c.pids
	}
	return probe.Process.Pid
}

// leavings are what lines left.
type leavings struct {
	marks map[string][]string // the stand-ins that ran, by the number of the line
	wrote []string
}

// look takes away what lines left and says what it was.
func (c *cell) look() leavings {
	l := leavings{marks: make(map[string][]string)}
	marks, _ := os.ReadDir(cellMarks)
	for _, m := range marks {
		line, name, _ := strings.Cut(m.Name(), ".")
		l.marks[line] = append(l.marks[line], name)
		_ = os.Remove(filepath.Join(cellMarks, m.Name()))
	}
	_ = os.Remove(cellScript)
	for _, dir := range []string{"/", cellWork, "/tmp"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if dir != "/" || !slices.Contains(cellHolds, e.Name()) {
				l.wrote = append(l.wrote, path)
				_ = os.RemoveAll(path)
			}
		}
	}
	l.wrote = append(l.wrote, c.reopen()...)
	return l
}

// reopen takes back what lines did to the rights of the folders that are theirs,
// and says of which.
func (c *cell) reopen() (changed []string) {
	for _, dir := range []string{"/", cellWork, cellMarks, "/tmp"} {
		if at, err := os.Stat(dir); err == nil && at.Mode() != os.ModeDir|0o755 {
			changed = append(changed, "the rights of "+dir)
			_ = os.Chmod(dir, 0o755)
		}
	}
	return changed
}

// told is what a cell tells those outside, a line of JSON each.
type told struct {
	Failed   string         `json:",omitzero"`  // the cell could not be made
	Broke    string         `json:",omitzero"`  // it could not be used any more
	Unlawful []deed         `json:",omitempty"` // of lines that were judged to only read
	Unseen   []deed         `json:",omitempty"` // of lines whose every command was told
	Endless  []deed         `json:",omitempty"` // lines that had to be ended
	Judged   int            `json:",omitzero"`
	Ran      map[string]int `json:",omitempty"`
}

func tell(t told) {
	text, _ := json.Marshal(t)
	fmt.Println(string(text))
}
