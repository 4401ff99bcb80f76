package fleetcli_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/fleet/engine"
	"coder/fleet/queue"
)

// outageTask appends to effects, works until the file go is there, and appends again.
func (f *fleet) outageTask(effects, begun, goOn string) string {
	return f.must("submit", "work on", "--repo", f.repo, "--mode", "yolo", "--script", f.script(fmt.Sprintf(`want work on
call bash {"command":"echo one >> %s; echo . >> %s; while ! test -e %s; do sleep 0.05; done; echo two >> a.txt"}
repeat
else
want outcome is unknown
say nobody knows
else
say all done
`, effects, begun, goOn)))
}

// away ends the server for several leases, does something meanwhile, and starts it
// at the same place.
func (f *fleet) away(meanwhile func()) {
	f.t.Helper()
	link, err := engine.Find(filepath.Join(f.home, ".coder", "fleet"))
	if err != nil {
		f.t.Fatal(err)
	}
	at, err := url.Parse(link.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = f.server.Process.Kill()
	_ = f.server.Wait()
	meanwhile()
	time.Sleep(f.lease + time.Second) // claims lapse
	f.server = f.start("up", "--slots", "0", "--listen", at.Host, "--lease", f.lease.String())
}

// The engine is away for longer than any claim lasts. Work goes on meanwhile; when it
// is back everybody has what they had, and nothing is done twice or unknown.
func TestAnEngineThatIsAwayCostsNobodyTheirTask(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, 10*time.Second) // what lives keeps its claims also on a busy machine
	dir := t.TempDir()
	begun, goOn := filepath.Join(dir, "begun"), filepath.Join(dir, "go")
	for i := range 3 {
		f.start("worker", "--slots", "2", "--name", fmt.Sprintf("w%d", i), "--allow-yolo")
	}
	ids := map[string]string{}
	for i := range 4 {
		effects := filepath.Join(dir, fmt.Sprintf("effects%d", i))
		ids[f.outageTask(effects, begun, goOn)] = effects
	}
	f.waitFor(begun, len(ids))
	f.away(func() {
		if err := os.WriteFile(goOn, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	for id, effects := range ids {
		task := f.until(id, queue.Done)
		if r := task.Result; task.Taken != 1 || r.Unknown != 0 || r.Calls != 1 || r.Answer != "all done" {
			t.Errorf("task %s was taken up %d times and ended as %+v", id, task.Taken, r)
		}
		if got, err := os.ReadFile(effects); err != nil || string(got) != "one\n" {
			t.Errorf("the effects are %q, %v", got, err)
		}
	}
	if got := f.must("verify"); !strings.Contains(got, "incomplete: 0") {
		t.Error(got)
	}
}

// A worker that dies while the engine is away does not take its task along.
func TestAWorkerThatDiesWhileTheEngineIsAwayIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dir := t.TempDir()
	effects, goOn := filepath.Join(dir, "effects"), filepath.Join(dir, "go")
	dies := f.start("worker", "--slots", "1", "--name", "w1", "--allow-yolo")
	id := f.outageTask(effects, effects, goOn)
	f.waitFor(effects, 2)
	f.away(func() { _ = dies.Process.Signal(syscall.SIGKILL) })
	f.start("worker", "--slots", "1", "--name", "w2", "--allow-yolo")
	if task := f.until(id, queue.Done); task.Worker != "w2" || task.Taken != 2 || task.Result.Unknown != 1 {
		t.Errorf("it ended as %+v: %+v", task, task.Result)
	}
	if got, err := os.ReadFile(effects); err != nil || string(got) != "one\n.\n" {
		t.Errorf("the effects are %q, %v", got, err)
	}
}

// A task that was canceled is never begun, or begun again: not by the worker that
// finds it in the queue, nor by the one that takes over from a dead one.
func TestACanceledTaskIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dir := t.TempDir()
	effects, never := filepath.Join(dir, "effects"), filepath.Join(dir, "never")
	queued, another := f.outageTask(never, never, never), f.outageTask(never, never, never)
	if got := f.must("cancel", queued, another); strings.Count(got, "is canceled") != 2 {
		t.Error(got)
	}
	running := f.outageTask(effects, effects, never)
	w := f.start("worker", "--slots", "1", "--name", "w1", "--allow-yolo")
	f.waitFor(effects, 2)
	if err := w.Process.Signal(syscall.SIGSTOP); err != nil { // it cannot do what it is told
		t.Fatal(err)
	}
	if got := f.must("cancel", running); !strings.Contains(got, "being canceled") {
		t.Error(got)
	}
	_ = w.Process.Kill()
	f.start("worker", "--slots", "2", "--name", "w2", "--allow-yolo")
	for _, id := range []string{queued, another, running} {
		if task := f.until(id, queue.Canceled); !strings.Contains(task.Reason, "canceled by ann") || task.Status == queue.Canceled && task.Worker == "w2" {
			t.Errorf("canceled as %+v", task)
		}
	}
	fine := f.must("submit", "x", "--repo", f.repo, "--script", f.script("say hello\nrepeat\n"))
	f.until(fine, queue.Done) // by now w2 has seen everything that the queue held
	if got, err := os.ReadFile(effects); err != nil || string(got) != "one\n.\n" {
		t.Errorf("the effects are %q, %v", got, err)
	}
	if _, err := os.Stat(never); err == nil {
		t.Error("a task was begun that had been canceled")
	}
	if out, _ := exec.Command("pgrep", "-f", never).Output(); len(out) > 0 {
		t.Errorf("a process is left: %s", out)
	}
}
