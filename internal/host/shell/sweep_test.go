//go:build linux

package shell_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/shell"
)

const (
	sweepRole = "SHELL_TEST_SWEEP"
	sweepID   = "SHELL_TEST_SWEEP_ID"
)

// only is what the environment of these tests' own processes holds. Other tests
// leave processes behind at the same time.
func only() string {
	if id, ok := os.LookupEnv(sweepID); ok {
		return sweepID + "=" + id
	}
	return sweepID + "=" + strconv.Itoa(os.Getpid())
}

// strayCommand leaves a daemon, a grandchild in the same session and one that
// does not end when asked to, and tells their numbers.
const strayCommand = `
setsid -f sh -c 'echo $$ >daemon; exec sleep 1000' >/dev/null 2>&1
(sh -c 'echo $$ >grandchild; exec sleep 1000' &) >/dev/null 2>&1
(sh -c 'trap "" TERM; echo $$ >deaf; while :; do sleep 1; done' &) >/dev/null 2>&1
while [ ! -s daemon ] || [ ! -s grandchild ] || [ ! -s deaf ]; do sleep 0.01; done
echo up
sleep 1000`

// agent starts another process that runs such a command in dir.
func agent(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSweep$")
	cmd.Env = append(os.Environ(), sweepRole+"="+dir, only())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		for _, pid := range left(t, dir) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

// left are the processes of an agent's command that still live.
func left(t *testing.T, dir string) (pids []int) {
	t.Helper()
	for _, name := range []string{"daemon", "grandchild", "deaf"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err == nil && syscall.Kill(pid, 0) == nil && !isZombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func kill(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

func TestSweep(t *testing.T) {
	if dir := os.Getenv(sweepRole); dir != "" {
		env := []string{"PATH=" + os.Getenv("PATH"), only()}
		if outer, ok := os.LookupEnv("CODER_COMMAND"); ok {
			env = append(env, "CODER_COMMAND="+outer)
		}
		shell.Run(t.Context(), shell.Spec{Command: strayCommand, Dir: dir, Stdout: os.Stdout, Env: env})
		return
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	killed, alive := t.TempDir(), t.TempDir()
	first, second := agent(t, killed), agent(t, alive)
	kill(first)
	if n := len(left(t, killed)); n != 3 {
		t.Fatalf("%d processes outlived the one that was killed; the test needs 3", n)
	}

	ended, err := shell.KillStrays(t.Context(), only())
	if err != nil || ended < 3 {
		t.Errorf("ended %d, %v", ended, err)
	}
	if pids := left(t, killed); len(pids) > 0 {
		t.Errorf("still there: %v", pids)
	}
	if pids := left(t, alive); len(pids) != 3 {
		t.Errorf("of a living program only %v remain", pids)
	}
	if _, err = shell.KillStrays(t.Context(), only()); err != nil || len(left(t, alive)) != 3 {
		t.Errorf("again: %v, %v remain", err, left(t, alive))
	}
	kill(second)
	if ended, err = shell.KillStrays(t.Context(), only()); ended < 3 || err != nil || len(left(t, alive)) > 0 {
		t.Errorf("later: ended %d, %v, left %v", ended, err, left(t, alive))
	}
}

// The mark of a program whose number was given to another since, of one in
// another name space, or one that cannot be read at all.
func TestSweepTellsWhoseProcessItIs(t *testing.T) {
	mine := ownMark(t)
	part := strings.Split(mine, ".") // number, birth, name space and command
	space := strings.Split(part[2], "-")[0]
	never := strconv.Itoa(1 << 30)
	for _, tc := range []struct {
		name, mark string
		ended      bool
	}{
		{"ours", mine, false},
		{"a number that was given to another", part[0] + ".1." + space + "-1", true},
		{"a number that nobody has", never + ".1." + space + "-1", true},
		{"another name space", never + ".1.1-1", false},
		{"an older form", never + "-1", false},
		{"nonsense", "../x", false},
		{"in a command of a living program", mine + "/" + never + ".1." + space + "-1", false},
		{"a living program in a dead one's command", never + ".1." + space + "-1/" + mine, false},
		{"two dead ones", never + ".1." + space + "-2/" + never + ".2." + space + "-1", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command("sleep", "1000")
			cmd.Env = []string{"CODER_COMMAND=" + tc.mark, only()}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			begun(t, cmd.Process.Pid)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if _, err := shell.KillStrays(t.Context(), only()); err != nil {
				t.Error(err)
			}
			alive := syscall.Kill(cmd.Process.Pid, 0) == nil && !isZombie(cmd.Process.Pid)
			cmd.Process.Kill()
			<-ended
			if alive == tc.ended {
				t.Errorf("alive %v", alive)
			}
		})
	}
}

// begun waits until the system tells the variables of a process: it is the new program a
// little sooner.
func begun(t *testing.T, pid int) {
	t.Helper()
	for {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ"); err != nil || strings.Contains(string(b), only()) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func isZombie(pid int) bool {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Contains(string(b), ") Z ")
}

// ownMark is what the commands of this process are marked with.
func ownMark(t *testing.T) string {
	t.Helper()
	o, err := shell.Run(t.Context(), shell.Spec{Command: `printf %s "$CODER_COMMAND"`, OutputLimit: limit})
	if err != nil || strings.Count(o.Stdout.Text(), ".") != 2 {
		t.Fatalf("mark %q, %v", o.Stdout.Text(), err)
	}
	return o.Stdout.Text()
}

// A program that is started in what is left of a command does not saw off the
// branch it sits on.
func TestSweepSparesTheCommandItRunsIn(t *testing.T) {
	const role = "SHELL_TEST_SWEEP_WITHIN"
	if os.Getenv(role) != "" {
		if ended, err := shell.KillStrays(t.Context(), only()); err != nil || ended != 0 {
			t.Errorf("ended %d, %v", ended, err)
		}
		return
	}
	mine := strings.Split(ownMark(t), ".")
	dead := strconv.Itoa(1<<30) + ".1." + mine[2]
	cmd := exec.Command("/bin/sh", "-c", `"$0" -test.run='^TestSweepSparesTheCommandItRunsIn$' && echo survived`, os.Args[0])
	cmd.Env = append(os.Environ(), role+"=1", "CODER_COMMAND="+dead, only())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "survived\n") {
		t.Errorf("%q, %v", out, err)
	}
}

// Sweeping while our own commands run does them no harm.
func TestSweepLeavesRunningCommandsAlone(t *testing.T) {
	r, w := io.Pipe()
	done := make(chan shell.Outcome)
	go func() {
		o, err := run(t, t.Context(), shell.Spec{Command: "echo up; sleep 0.3; echo done", Stdout: w, Timeout: time.Minute})
		if err != nil {
			t.Error(err)
		}
		w.Close()
		done <- o
	}()
	lines := bufio.NewScanner(r)
	lines.Scan()
	if ended, err := shell.KillStrays(t.Context(), only()); ended != 0 || err != nil {
		t.Errorf("ended %d, %v", ended, err)
	}
	for lines.Scan() {
	}
	if o := <-done; o.Stdout.Text() != "up\ndone\n" {
		t.Errorf("%q, %+v", o.Stdout.Text(), o)
	}
}

func TestSweepCanBeCancelled(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	dir := t.TempDir()
	kill(agent(t, dir))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shell.KillStrays(ctx, only()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := shell.KillStrays(t.Context(), only()); err != nil || len(left(t, dir)) > 0 {
		t.Errorf("then: %v, left %v", err, left(t, dir))
	}
}
