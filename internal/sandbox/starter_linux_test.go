package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const starterName = "__starter"

// startAndGo starts what confines a command and is gone before it was told to
// die with us, as one that is killed just then.
func startAndGo(argv []string) int {
	exe, _ := os.Executable()
	line := inOwnSpaces(exe, order{argv: argv})
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
	if err := starter.Run(); err != nil || !strings.Contains(said.String(), errGone.Error()) {
		t.Errorf("%v: %s", err, &said)
	}
}
