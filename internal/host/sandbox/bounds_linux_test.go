package sandbox

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestConfinedBounds runs commands that use more than they may, in every way that
// they are attended to.
func TestConfinedBounds(t *testing.T) {
	commands := []struct {
		what, script string
		bounds       Bounds
		over         string // what the message says; nothing if it ends well
	}{
		{"one process", `$SELF __attack fill 300`, Bounds{Memory: 100 << 20}, "more than 100 MB of memory (safety.memory_limit_mb)"},
		{"several together", `for i in 1 2 3; do $SELF __attack fill 60 & done; sleep 30`, Bounds{Memory: 120 << 20}, "more than 120 MB"},
		{"one that left the group", `setsid $SELF __attack fill 300 & sleep 30`, Bounds{Memory: 100 << 20}, "more than 100 MB"},
		{"a bomb", `i=0; while [ $i -lt 300 ]; do sleep 30 & i=$((i+1)); done; sleep 30`, Bounds{Processes: 100}, "more than 100 processes and threads (safety.max_processes)"},
		{"shared memory", `$SELF __attack share 80`, Bounds{Memory: 200 << 20}, ""},
		{"too much of that", `$SELF __attack share 300`, Bounds{Memory: 200 << 20}, "more than 200 MB"},
		{"a file without a name", `$SELF __attack memfd 300`, Bounds{Memory: 200 << 20}, "more than 200 MB"},
		{"a small one", `$SELF __attack memfd 50`, Bounds{Memory: 200 << 20}, ""},
		{"enough", `$SELF __attack some 20`, Bounds{Memory: 200 << 20, Processes: 100}, ""},
		{"no bound", `$SELF __attack some 100`, Bounds{}, ""},
	}
	run := func(t *testing.T, w world, through func(Bounds) Wrapper) {
		for _, c := range commands {
			got := w.run(t, through(c.bounds), c.script)
			switch {
			case c.over == "" && (got.code != 0 || got.stderr != ""):
				t.Errorf("%s: %+v", c.what, got)
			case c.over != "" && (got.signal != syscall.SIGKILL || !strings.Contains(got.stderr, "coder stopped the command: ") || !strings.Contains(got.stderr, c.over)):
				t.Errorf("%s: %+v", c.what, got)
			}
		}
	}
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		run(t, w, func(b Bounds) Wrapper {
			l := w.limits()
			l.Bounds = b
			return wrap(t, s, l)
		})
	})
	t.Run("unconfined", func(t *testing.T) {
		run(t, newWorld(t), func(b Bounds) Wrapper { return Supervised(self(t), b).WithReport() })
	})
}

// TestConfinedSegmentsCount fills a segment that no process has in its own memory.
func TestConfinedSegmentsCount(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		if s.Backend() != Namespaces {
			t.Skip("there are no segments, or a helper outside of their name space attends")
		}
		w := newWorld(t)
		l := w.limits()
		l.Bounds = Bounds{Memory: 200 << 20}
		if got := w.run(t, wrap(t, s, l), `$SELF __attack detach 300`); got.signal != syscall.SIGKILL || !strings.Contains(got.stderr, "more than 200 MB") {
			t.Errorf("%+v", got)
		}
		if got := w.run(t, wrap(t, s, l), `$SELF __attack detach 50`); got.code != 0 || got.stderr != "" {
			t.Errorf("%+v", got)
		}
	})
}

// A process that ends while memory is counted holds none.
func TestMemoryOfAProcessThatEnded(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if n := usedMemory([]process{{number: strconv.Itoa(cmd.Process.Pid), resident: 300 << 20}}); n != 0 {
		t.Errorf("%d bytes", n)
	}
}
