package sandbox

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"coder/internal/shell"
)

// What package shell promises holds for confined commands too.
func TestConfinedCommandsLeaveNothingBehind(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		spec := shell.Spec{Limit: 1 << 20, Dir: w.work, Env: []string{"PATH=" + os.Getenv("PATH"), "T=" + w.temp}, Through: wrap(t, s, w.limits())}
		spec.Command = `setsid sh -c 'echo $$ > $T/daemon; exec sleep 600' & sleep 600 & while ! test -s $T/daemon; do sleep 0.01; done; echo started`
		out, err := shell.Run(t.Context(), spec)
		if err != nil || out.ExitCode != 0 || !out.Stopped || !strings.Contains(string(out.Stdout.Head), "started") {
			t.Errorf("%+v, %v", out, err)
		}
		gone(t, w)

		spec.Command, spec.Timeout = `setsid sh -c 'echo $$ > $T/daemon; trap "" TERM; while :; do sleep 1; done' & sleep 600`, 300*time.Millisecond
		if out, err = shell.Run(t.Context(), spec); err != nil || !out.TimedOut {
			t.Errorf("%+v, %v", out, err)
		}
		gone(t, w)

		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		spec.Timeout = 0
		if _, err = shell.Run(ctx, spec); err == nil {
			t.Error("no error though cancelled")
		}
		gone(t, w)
	})
}

// gone makes sure that the daemon has ended.
func gone(t *testing.T, w world) {
	t.Helper()
	pid, err := os.ReadFile(w.temp + "/daemon")
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("a daemon lives on: %s", stat)
	}
}
