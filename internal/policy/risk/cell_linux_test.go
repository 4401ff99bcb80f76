package risk_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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
type cell struct{ shells []shellIn }

type shellIn struct {
	name string
	argv []string // before the script
}

const (
	cellWork     = "/work" // the empty folder
	cellMarks    = "/mark" // what stand-ins leave
	cellProgress = "/progress"
	cellScript   = "/script"
	cellToken    = "/this-is-the-cell"
)

// cellHolds is all that there is.
var cellHolds = []string{"bin", "lib", "lib64", "usr", "etc", "tmp", "dev", "work", "mark", cellToken[1:]}

// readingPrograms are real in the cell, as far as the machine has them.
var readingPrograms = strings.Fields("ls cat head tail wc cut tr sort uniq grep sed awk find xargs env timeout nice date printf test [ stat basename dirname " +
	"realpath readlink nl tac rev fold paste join comm cmp diff od seq expr true false echo pwd id uname")

// idlePrograms only read, and do nothing in the cell.
var idlePrograms = strings.Fields("git rg jq tree file du df ps which whereis whoami sleep less man go node npm python python3 hostname xxd base64 getent column strings md5sum sha256sum tput uptime free")

// writingPrograms leave a mark with their name.
var writingPrograms = strings.Fields("touch rm mv cp mkdir rmdir tee dd chmod chown ln install truncate curl wget make docker ssh sudo tar perl ruby M a b.txt f E x")

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
	c := &cell{shells: shellsIn()}
	if os.Getpid() != 1 || !apart() {
		return nil, errors.New("these are not namespaces of our own")
	}
	if len(c.shells) == 0 {
		return nil, errors.New("no shell is installed")
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128m,mode=755")); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	if err := c.furnish(dir); err != nil {
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
	return errors.Join(standIns(dir, append(idle, idlePrograms...), script), standIns(dir, writingPrograms, script+marks), lock(dir))
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
	Marks       []string // the stand-ins that ran
	Wrote       []string // what else was written
}

// run runs lines in a shell, each in a shell of its own, and says what those did
// that did something. If real, programs that read are run; otherwise they are
// functions that do nothing, which is much faster.
func (c *cell) run(s shellIn, lines []string, real bool) (deeds []deed, err error) {
	for from := 0; from < len(lines); {
		n, err := c.batch(s, lines[from:], real)
		if err != nil {
			return nil, err
		}
		found := c.look()
		for i, line := range lines[from : from+n] {
			d := deed{Shell: s.name, Line: line, Marks: found.marks[strconv.Itoa(i)], Wrote: found.wrote}
			d.Marks = append(d.Marks, found.marks["none"]...)
			if n > 1 && len(found.wrote)+len(found.marks["none"]) > 0 { // whose that is cannot be told
				alone, err := c.run(s, []string{line}, real)
				if err != nil {
					return nil, err
				}
				deeds = append(deeds, alone...)
			} else if len(d.Marks)+len(d.Wrote) > 0 {
				deeds = append(deeds, d)
			}
		}
		from += n
	}
	return deeds, nil
}

// patience is how long one line may take.
const patience = time.Second

// batch runs lines in one process and returns how many it came through; one that
// does not end is ended, and counts.
func (c *cell) batch(s shellIn, lines []string, real bool) (int, error) {
	var script strings.Builder
	for _, name := range readingPrograms {
		if !real && name != "[" && name != "test" {
			script.WriteString(name + "() { :; }\n")
		}
	}
	for i, line := range lines {
		fmt.Fprintf(&script, "echo %d >%s\nL='%s' LINE=%d\nexport LINE\n(eval \"$L\") </dev/null >/dev/null 2>&1\n", i, cellProgress, strings.ReplaceAll(line, "'", `'\''`), i)
	}
	script.WriteString("echo end >" + cellProgress + "\n")
	if err := errors.Join(os.WriteFile(cellScript, []byte(script.String()), 0o600), os.WriteFile(cellProgress, nil, 0o600)); err != nil {
		return 0, err
	}
	cmd := exec.Command(s.argv[0], append(s.argv[1:], cellScript)...)
	cmd.Dir, cmd.Env = cellWork, []string{"PATH=/bin", "HOME=/work", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL} // all of it ends with the shell
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	last, since := "", time.Now()
	for {
		select {
		case <-ended:
			return reached(len(lines)), nil
		case <-time.After(50 * time.Millisecond):
		}
		if at, _ := os.ReadFile(cellProgress); string(at) != last {
			last, since = string(at), time.Now()
		} else if time.Since(since) > patience {
			_ = cmd.Process.Kill()
			<-ended
			return reached(len(lines)), nil
		}
	}
}

// reached is how many lines were begun.
func reached(of int) int {
	at, _ := os.ReadFile(cellProgress)
	if n, err := strconv.Atoi(strings.TrimSpace(string(at))); err == nil {
		return n + 1
	}
	return of
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
	_ = os.Remove(cellProgress)
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
	return l
}

// told is what a cell tells those outside, a line of JSON each.
type told struct {
	Failed   string         `json:",omitzero"` // the cell could not be made
	Broke    string         `json:",omitzero"` // it could not be used any more
	Unlawful []deed         `json:",omitempty"`
	Judged   int            `json:",omitzero"`
	Ran      map[string]int `json:",omitempty"`
	Unseen   []deed         `json:",omitempty"`
}

func tell(t told) {
	text, _ := json.Marshal(t)
	fmt.Println(string(text))
}

// hear reads what a cell tells.
func hear(out *bufio.Scanner) (all []told) {
	for out.Scan() {
		var t told
		if json.Unmarshal(out.Bytes(), &t) == nil {
			all = append(all, t)
		}
	}
	return all
}
