package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/host/shell"
)

// What package shell promises holds for confined commands too.
func TestConfinedCommandsLeaveNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		line := wrap(t, s, w.limits())
		spec := shell.Spec{
			OutputLimit: 1 << 20, Dir: w.work, Env: []string{"PATH=" + os.Getenv("PATH"), "T=" + w.temp},
			Prefix: line.Argv, Attr: line.Attr, Init: line.Init,
		}
		spec.Command = `setsid sh -c 'echo $$ > $T/daemon; sleep 600; :' $T & sleep 600 & while ! test -s $T/daemon; do sleep 0.01; done; echo started`
		out, err := shell.Run(t.Context(), spec)
		if err != nil || out.ExitCode != 0 || !out.Stopped && s.Backend() != Bubblewrap || !strings.Contains(string(out.Stdout.Head), "started") {
			t.Errorf("%+v, %v", out, err)
		}
		gone(t, w)

		spec.Command, spec.Timeout = `setsid sh -c 'echo $$ > $T/daemon; trap "" TERM; while :; do sleep 1; done' $T & sleep 600`, 300*time.Millisecond
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

// gone makes sure that no process is left that was given the world's name.
func gone(t *testing.T, w world) {
	t.Helper()
	if !exists(w.temp + "/daemon") {
		t.Fatal("the daemon was not started")
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if text, _ := os.ReadFile(line); strings.Contains(string(text), w.temp) && strings.Contains(string(text), "daemon") {
			t.Errorf("a daemon lives on: %s %q", line, text)
		}
	}
}
