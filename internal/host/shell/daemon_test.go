package shell_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/shell"
)

// daemons are commands that leave their session, each in its own way. They
// leave the number of what they left behind in the file left.
var daemons = map[string]string{
	"setsid":                         "setsid -f sh -c 'echo $$ >left; exec sleep 1000'",
	"setsid, quiet":                  "setsid -f sh -c 'echo $$ >left; exec sleep 1000' >/dev/null 2>&1 </dev/null",
	"double fork":                    "setsid sh -c '(sh -c \"echo \\$\\$ >left; exec sleep 1000\" &) &' >/dev/null 2>&1",
	"nohup":                          "nohup sh -c 'echo $$ >left; exec sleep 1000' >/dev/null 2>&1 & :",
	"deaf":                           "setsid -f sh -c 'trap \"\" TERM HUP INT; echo $$ >left; while :; do sleep 1; done' >/dev/null 2>&1",
	"without environment":            "env -i /usr/bin/setsid -f /bin/sh -c 'echo $$ >left; exec /bin/sleep 1000'",
	"without environment, quiet":     "env -i /usr/bin/setsid -f /bin/sh -c 'echo $$ >left; exec /bin/sleep 1000' >/dev/null 2>&1 </dev/null",
	"two forks, without environment": "env -i /usr/bin/setsid /bin/sh -c '(/bin/sh -c \"echo \\$\\$ >left; exec /bin/sleep 1000\" &) &' >/dev/null 2>&1",
	"two hundred":                    "for i in $(seq 200); do setsid -f sleep 1000 >/dev/null 2>&1; done; setsid -f sh -c 'echo $$ >left; exec sleep 1000'",
}

func TestDaemonsDoNotGetAway(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	if _, err := exec.LookPath("/usr/bin/setsid"); err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no setsid here")
	}
	const wait = "; while [ ! -s left ]; do sleep 0.01; done; echo started"
	for name, daemon := range daemons {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o, err := run(t, t.Context(), shell.Spec{Command: daemon + wait, Dir: dir, Timeout: time.Minute})
			if err != nil || o.Stdout.Text() != "started\n" || o.TimedOut || o.Escaped || !o.Stopped {
				t.Errorf("at its end: %q, %+v, %v", o.Stdout.Text(), o, err)
			}
			gone(t, dir)
			for limit := time.Second; ; limit *= 2 { // until it came that far
				o, err = run(t, t.Context(), shell.Spec{Command: daemon + wait + "; sleep 1000", Dir: dir, Timeout: limit})
				if err != nil || !o.TimedOut || o.Escaped {
					t.Errorf("out of time: %+v, %v", o, err)
				}
				if o.Stdout.Text() != "" {
					break
				}
			}
			gone(t, dir)
			ctx, cancel := context.WithCancel(t.Context())
			o, err = run(t, ctx, shell.Spec{Command: daemon + wait + "; sleep 1000", Dir: dir, Stdout: writer(func([]byte) { cancel() })})
			if !errors.Is(err, context.Canceled) || o.Escaped {
				t.Errorf("cancelled: %+v, %v", o, err)
			}
			gone(t, dir)
		})
	}
	// What was dead before we looked is seen off by the commands that follow.
	sh(t, "setsid -f true; sleep 0.1")
	sh(t, ":")
	sh(t, ":")
	if left := zombies(); len(left) > 0 {
		t.Errorf("zombies %v", left)
	}
}

// ended waits for a process to end; that somebody is told of it may take longer.
func ended(pid int) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || bytes.Contains(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z ")) {
			return true
		}
	}
	return false
}

// gone sees that the process whose number is in the file left has ended.
func gone(t *testing.T, dir string) {
	t.Helper()
	b, err := os.ReadFile(dir + "/left")
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(dir + "/left")
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if !ended(pid) {
		t.Errorf("process %d is still there", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// zombies are our dead children.
func zombies() (pids []string) {
	for _, pid := range children() {
		if b, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && bytes.Contains(b, []byte(") Z ")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Children that others started are neither killed nor waited for.
func TestOthersChildrenAreLeftAlone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only linux tells them apart")
	}
	server := exec.Command("/bin/cat")
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	server.Env = []string{}
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	quick := exec.Command("/bin/sh", "-c", "exit 7")
	quick.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begun := writer(func([]byte) { // while the command runs
		if server.Process == nil {
			if err := errors.Join(server.Start(), quick.Start()); err != nil || !ended(quick.Process.Pid) {
				t.Error("the children of somebody else did not start and end", err)
			}
		}
	})
	if _, err := run(t, t.Context(), shell.Spec{Command: "echo x; sleep 0.1; setsid -f sleep 1000", Stdout: begun}); err != nil {
		t.Fatal(err)
	}
	if err := quick.Wait(); quick.ProcessState == nil || quick.ProcessState.ExitCode() != 7 {
		t.Errorf("a child that ended meanwhile: %v", err)
	}
	in.Close()
	if err := server.Wait(); err != nil {
		t.Errorf("a child of somebody else: %v", err)
	}
}

// What one command leaves outside its session is not taken for another's,
// whichever began first.
func TestCommandsDoNotStopEachOther(t *testing.T) {
	if _, err := exec.LookPath("/usr/bin/setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	const daemon = "/bin/sh -c 'echo $$ >left; exec /bin/sleep 1000' >/dev/null 2>&1 </dev/null; while [ ! -s left ]; do sleep 0.01; done; echo up; read x <second; kill -0 $(cat left) && echo alive"
	for name, command := range map[string]string{"marked": "/usr/bin/setsid -f " + daemon, "without environment": "env -i /usr/bin/setsid -f " + daemon} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			older := background(t, dir, "first", "echo up; read x <first")
			younger := background(t, dir, "second", command)
			older()
			sh(t, "setsid -f sleep 1000")
			if got := younger(); got != "up\nalive\n" {
				t.Errorf("output %q", got)
			}
			gone(t, dir)
		})
	}
}

// background starts a command, waits for its first words and returns a function
// that lets it go on, by a pipe it reads from, and waits for its end.
func background(t *testing.T, dir, fifo, command string) (finish func() string) {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(dir, fifo), 0o600); err != nil {
		t.Fatal(err)
	}
	var (
		once  sync.Once
		ended sync.WaitGroup
		out   string
	)
	begun := make(chan struct{})
	ended.Go(func() {
		spec := shell.Spec{Command: command, Dir: dir, Stdout: writer(func([]byte) { once.Do(func() { close(begun) }) })}
		o, err := run(t, t.Context(), spec)
		if err != nil {
			t.Error(err)
		}
		out = o.Stdout.Text()
	})
	<-begun
	return func() string {
		if err := os.WriteFile(filepath.Join(dir, fifo), []byte("x\n"), 0); err != nil {
			t.Error(err)
		}
		ended.Wait()
		return out
	}
}
