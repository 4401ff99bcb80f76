package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/program"
)

const (
	starterName = "__starter"
	runnerName  = "__runner"
)

// startAndGo starts what confines a command and is gone before it was told to
// die with us, as one that is killed just then.
func startAndGo(argv []string) int {
	exe, _ := os.Executable()
	line := namespaceWrapper(exe, helperSpec{argv: argv})
	cmd := exec.Command("/bin/sh", append([]string{"-c", fmt.Sprintf(`while test -d /proc/%d; do sleep 0.01; done; exec "$@"`, os.Getpid()), "sh"}, line.Argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	line.Attr(cmd.SysProcAttr)
	cmd.SysProcAttr.Pdeathsig = 0
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestConfinedNothingRunsForAStarterThatIsGone closes the time between the birth
// of the helper and the moment from which it dies with whoever started it.
func TestConfinedNothingRunsForAStarterThatIsGone(t *testing.T) {
	findOnly(t, Namespaces)
	var said bytes.Buffer
	starter := exec.Command(self(t), starterName, "/bin/sh", "-c", "echo it runs; sleep 5")
	starter.Stdout, starter.Stderr = &said, &said // until the last of them has ended
	if err := starter.Run(); err != nil || !strings.Contains(said.String(), errStarterGone.Error()) {
		t.Errorf("%v: %s", err, &said)
	}
}

// startAndWait runs a command confined by a backend in a folder.
func startAndWait(args []string) int {
	exe, _ := os.Executable()
	s := Find(context.Background(), Options{Exe: exe, Launcher: program.NewOutside(os.Environ(), "/nowhere"), Backend: args[0]})
	line, err := s.Wrap(Limits{Write: []string{args[1]}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cmd := exec.Command("/bin/sh", "-c", "setsid sleep 600 & sleep 600")
	line.Apply(cmd)
	fmt.Println("starts")
	_ = cmd.Run()
	return 0
}

// TestConfinedNothingOutlivesAStarterThatIsKilled at any instant, from the start
// of the helper on.
func TestConfinedNothingOutlivesAStarterThatIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		for i := range 24 {
			dir := t.TempDir()
			mark := "STARTER_MARK=" + dir
			starter := exec.Command(self(t), runnerName, s.Backend(), dir)
			starter.Env = append(os.Environ(), mark)
			out, err := starter.StdoutPipe()
			if err == nil {
				err = starter.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			said, _ := bufio.NewReader(out).ReadString('\n')
			time.Sleep(time.Duration(i) * time.Millisecond)
			_ = starter.Process.Kill()
			_ = starter.Wait()
			if left := lasting(mark); said != "starts\n" || len(left) > 0 {
				t.Errorf("%q; killed %d ms later it leaves %q", said, i, left)
			}
		}
	})
}

// lasting are the processes with mark in their environment that do not end.
// Those that are about to are given the time.
func lasting(mark string) (left []string) {
	for range 90000 {
		left = nil
		all, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range all {
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(mark+"\x00")) {
				line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
				left = append(left, string(line))
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left
}
