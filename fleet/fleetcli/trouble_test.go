package fleetcli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/fleet/queue"
)

// small makes dir a file system of so many megabytes, or skips the test.
func small(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small file system")
	}
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size+",mode=700", "tmpfs", dir).Run(); err != nil {
		t.Skip("cannot mount a small file system here")
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// fill leaves nothing of the disk of dir; it is undone by free.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "fill")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// eventually tries something until it holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// The disk of the server is full, and has room again: the server goes on by itself,
// what it took in is done once, and who was told of no receipt was told what that
// means.
func TestAServerWhoseDiskWasFullGoesOn(t *testing.T) {
	t.Parallel()
	f := bare(t)
	data := filepath.Join(f.home, ".coder", "fleet", "data")
	small(t, data, "48m")
	f.start("up", "--slots", "0", "--listen", "127.0.0.1:0", "--lease", "2s")
	script := f.script("say hello\nrepeat\n")
	submit := func() (string, int) { return f.run("submit", "x", "--repo", f.repo, "--script", script) }
	var taken []string
	free := fill(t, data)
	eventually(t, "a server with a full disk takes tasks for ever", func() bool {
		out, code := submit()
		if code == 0 {
			taken = append(taken, strings.TrimSpace(out))
			return false
		}
		if !strings.Contains(out, "may have been handed in all the same") {
			t.Errorf("a task that nobody may have got: %s", out)
		}
		return true
	})
	free()
	eventually(t, "a server that has room again takes nothing", func() bool {
		out, code := submit()
		if code == 0 {
			taken = append(taken, strings.TrimSpace(out))
		}
		return code == 0
	})
	f.start("worker", "--slots", "1", "--name", "w1")
	for _, id := range taken {
		f.until(id, queue.Done)
	}
	if got := f.must("verify"); !strings.Contains(got, "not whole: 0") {
		t.Error(got)
	}
}

// The disk of a worker is full: it takes nothing and says so; a task that it has is
// tried again when there is room, and loses nothing that was done.
func TestAWorkerWhoseDiskWasFullGoesOn(t *testing.T) {
	t.Parallel()
	f := bare(t)
	work := filepath.Join(f.home, "work")
	small(t, work, "16m")
	f.start("up", "--slots", "0", "--listen", "127.0.0.1:0", "--lease", "2s", "--work", work)
	goOn := filepath.Join(f.home, "go")
	id := f.must("submit", "two files", "--repo", f.repo, "--mode", "yolo", "--script", f.script(`call bash {"command":"echo one > one.txt"}
---
call bash {"command":"echo . > `+goOn+`.begun; while ! test -e `+goOn+`; do sleep 0.05; done; head -c 100000 /dev/urandom > big.bin"}
---
say all done
repeat
`))
	f.start("worker", "--slots", "1", "--name", "w1", "--allow-yolo", "--min-free-mb", "4")
	f.waitFor(goOn+".begun", 1)
	free := fill(t, work)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the worker does not say that its disk is full", func() bool {
		return strings.Contains(f.must("workers"), "takes nothing: ")
	})
	other := f.must("submit", "x", "--repo", f.repo, "--script", f.script("say hello\nrepeat\n"))
	if got := f.must("ps"); !strings.Contains(got, "disk") && !strings.Contains(got, "space") {
		t.Errorf("the task does not say what is wrong: %s", got)
	}
	free()
	f.until(other, queue.Done)
	if task := f.until(id, queue.Done); task.Result.Branch == "" {
		t.Errorf("it ended as %+v", task.Result)
	}
	if got := f.must("result", id, "--patch"); !strings.Contains(got, "one.txt") {
		t.Errorf("what was done before is lost: %s", got)
	}
}

// A budget that is spent ends the task and says so, and keeps what was done; so do
// settings that cannot be: nobody tries them for ever. Others are none the worse.
func TestASpentBudgetEndsTheTaskAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	step := "want %s\nusage 100000 10000\ncall write {\"path\":\"b.txt\",\"content\":\"two\\n\"}\nrepeat\nelse\nusage 100000 10000\nsay done\n"
	unpriced := f.must("submit", "no price", "--repo", f.repo, "--max-budget-usd", "1", "--script", f.script(strings.Replace(step, "%s", "no price", 1)))
	w := f.start("worker", "--slots", "2", "--name", "w1")
	if task := f.until(unpriced, queue.Failed); !strings.Contains(task.Reason, "the price of script is not known") || task.Taken != 3 {
		t.Errorf("without a price: %+v", task)
	}
	f.must("drain", "w1")
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(f.home, ".coder", "config.json"), []byte(`{"provider":{"model_info":{"script":{"price_in":1,"price_out":1}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	spent := f.must("submit", "spend it", "--repo", f.repo, "--mode", "auto-edit", "--max-budget-usd", "0.15", "--script", f.script(strings.Replace(step, "%s", "spend it", 1)))
	enough := f.must("submit", "spend it", "--repo", f.repo, "--mode", "auto-edit", "--max-budget-usd", "5", "--script", f.script(strings.Replace(step, "%s", "spend it", 1)))
	f.start("worker", "--slots", "2", "--name", "w2")
	task := f.until(spent, queue.Failed)
	if !strings.Contains(task.Reason, "the budget does not cover the next request") || task.CostUSD <= 0 || task.Taken != 1 || task.Result.Branch == "" {
		t.Errorf("a spent budget: %+v: %+v", task, task.Result)
	}
	if task := f.until(enough, queue.Done); task.CostUSD < 0.2 {
		t.Errorf("the one beside it cost %v", task.CostUSD)
	}
}
