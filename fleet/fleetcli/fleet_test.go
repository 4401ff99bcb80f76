package fleetcli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/fleet/fleetcli"
	"coder/fleet/queue"
	"coder/internal/cli"
)

// TestMain makes the test binary double as the program, so that servers, workers
// and tasks are processes of their own.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "coder":
		os.Exit(cli.Main(cli.NewEnv()))
	case os.Getenv("CODER_FLEET_TEST") != "":
		os.Exit(fleetcli.Main(cli.NewEnv()))
	}
	os.Exit(m.Run())
}

// fleet is a server on this machine, with a home of its own.
type fleet struct {
	t      *testing.T
	home   string
	repo   string
	server *exec.Cmd
	lease  time.Duration
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetWith(t, 2*time.Second)
}

// newFleetWith is a fleet in which claims last so long.
func newFleetWith(t *testing.T, lease time.Duration) *fleet {
	t.Helper()
	f := bare(t)
	f.lease = lease
	f.server = f.start("up", "--slots", "0", "--listen", "127.0.0.1:0", "--lease", lease.String())
	return f
}

// bare is a home and a repository, and no server yet.
func bare(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, home: t.TempDir(), repo: t.TempDir()}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "one"}} {
		if args[0] == "add" {
			if err := os.WriteFile(filepath.Join(f.repo, "a.txt"), []byte("one\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = f.repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return f
}

func (f *fleet) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "CODER_FLEET_TEST=1", "HOME="+f.home, "CODER_HOME=", "XDG_CACHE_HOME=", "USER=ann", "GORACE=atexit_sleep_ms=0", "LANG=C", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1")
	return cmd
}

// start starts a server or a worker, and waits until reports version there.
func (f *fleet) start(args ...string) *exec.Cmd {
	f.t.Helper()
	cmd := f.command(args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if f.t.Failed() && says.Len() > 0 {
			f.t.Logf("%v: %s", args, says.String())
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		f.t.Fatalf("%v said %q: %v", args, line, err)
	}
	return cmd
}

// run runs a command to its end.
func (f *fleet) run(args ...string) (out string, code int) {
	f.t.Helper()
	cmd := f.command(args...)
	cmd.Dir = f.repo
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		f.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func (f *fleet) must(args ...string) string {
	f.t.Helper()
	out, code := f.run(args...)
	if code != 0 {
		f.t.Fatalf("%v: exit code %d: %s", args, code, out)
	}
	return strings.TrimSpace(out)
}

// coder runs the program that people start, which finds the other on its PATH.
func (f *fleet) coder(args ...string) string {
	f.t.Helper()
	cmd := f.command(args...)
	dir := f.t.TempDir()
	for _, name := range []string{"coder", "coder-fleet"} {
		if err := os.Symlink(cmd.Path, filepath.Join(dir, name)); err != nil {
			f.t.Fatal(err)
		}
	}
	cmd.Path, cmd.Args[0], cmd.Dir = filepath.Join(dir, "coder"), "coder", f.repo
	path := dir + string(os.PathListSeparator) + os.Getenv("PATH")
	cmd.Env = append(cmd.Env, "PATH="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Errorf("coder %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (f *fleet) script(text string) string {
	path := filepath.Join(f.home, "script")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// patience is how long a busy machine may take for anything.
const patience = 5 * time.Minute

// until waits for a task to stand in a certain way.
func (f *fleet) until(id string, status ...queue.Status) (t queue.Task) {
	f.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if err := json.Unmarshal([]byte(f.must("result", id, "--json")), &t); err != nil {
			f.t.Fatal(err)
		}
		if slices.Contains(status, t.Status) {
			return t
		}
		if t.Status.Ended() || time.Now().After(end) {
			f.t.Fatalf("task %s is %s (%s), want %v: %s", id, t.Status, t.Reason, status, f.must("ps"))
		}
	}
}

// waitFor waits until a file has so many lines.
func (f *fleet) waitFor(path string, lines int) {
	f.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(path)
		if strings.Count(string(text), "\n") >= lines {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("%s holds %q", path, text)
		}
	}
}

// A task is asked about, answered by a person who is known by their key, done, and
// comes back as a branch; its log is whole.
func TestATaskFromHandingInToItsBranch(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	id := f.must("submit", "add a line", "--repo", f.repo, "--base", "main", "--script", f.script("want add a line\ncall bash {\"command\":\"echo two >> a.txt\"}\nrepeat\nelse\nsay all done\n"))
	if got := f.must("ps"); !strings.Contains(got, "queued") {
		t.Errorf("before there is a worker: %s", got)
	}
	w := f.start("worker", "--slots", "1", "--name", "w1")
	task := f.until(id, queue.Waiting)
	if got := f.must("status"); !strings.Contains(got, "tasks: waiting 1") || !strings.Contains(got, task.Question.ID) {
		t.Errorf("one waits for a person: %s", got)
	}
	for end := time.Now().Add(patience); !strings.Contains(f.must("workers"), "0/1"); { // the slot is free a moment later
		if time.Now().After(end) {
			t.Fatalf("who waits for a person holds a slot: %s", f.must("workers"))
		}
	}
	forged := f.command("answer", id, "--option", "approve")
	forged.Env = append(forged.Env, "CODER_FLEET_USER=eve")
	if out, err := forged.CombinedOutput(); err == nil || !strings.Contains(string(out), "eve is not enrolled") {
		t.Errorf("an answer by nobody: %v: %s", err, out)
	}
	if got := f.coder("tasks"); !strings.Contains(got, "add a line") || !strings.Contains(got, "coder respond "+task.Question.ID) {
		t.Errorf("coder tasks says %s", got)
	}
	if got := f.coder("respond", task.Question.ID, "--option", "approve"); !strings.Contains(got, "answered") {
		t.Errorf("coder respond says %s", got)
	}
	task = f.until(id, queue.Done)
	if r := task.Result; r.Answer != "all done" || r.Calls != 1 || len(r.Decisions) != 1 || r.Decisions[0].By != "ann" || !r.Decisions[0].Signed {
		t.Errorf("the result is %+v", r)
	}
	if got := f.must("result", id, "--patch"); !strings.Contains(got, "+two") {
		t.Errorf("the patch is %s", got)
	}
	f.must("result", id, "--branch")
	cmd := exec.Command("git", "show", "coder/"+id+":a.txt")
	cmd.Dir = f.repo
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "one\ntwo\n" {
		t.Errorf("the branch holds %q, %v", out, err)
	}
	if got := f.must("verify"); !strings.Contains(got, "logs checked: 1, incomplete: 0") {
		t.Error(got)
	}
	if got := f.must("metrics"); !strings.Contains(got, `coder_fleet_tasks{status="done"} 1`) {
		t.Error(got)
	}
	var s queue.Standing
	if err := json.Unmarshal([]byte(f.must("status", "--json")), &s); err != nil || s.Counts[queue.Done] != 1 || s.Takeovers != 0 || s.Tasks[0].Taken != 2 || len(s.Workers) != 1 || s.Slots != 1 || len(s.Tasks) != 1 || s.Tasks[0].ID != id || s.Tasks[0].Spec.Script != "" || s.Queue.Limit == 0 {
		t.Errorf("the whole stands as %+v, %v", s, err)
	}
	f.must("drain", "w1")
	if err := w.Wait(); err != nil {
		t.Errorf("the worker left with %v", err)
	}
	f.loseEverything()
	if got := f.must("restore"); !strings.Contains(got, fmt.Sprintf("%s: %d records added", id, task.Result.Records)) {
		t.Errorf("a fleet that lost everything: %s", got)
	}
	if got := f.must("prune", "--older-than", "1d", "--yes"); got != "tasks removed: 0" {
		t.Error(got)
	}
	if got := f.must("verify", id) + f.must("logs", id) + f.must("restore"); !strings.Contains(got, "incomplete: 0") || !strings.Contains(got, "all done") || !strings.Contains(got, "has every record") {
		t.Errorf("restored as %s", got)
	}
	if got := f.must("prune", "--older-than", "0s") + f.must("prune", "--older-than", "0s", "--yes") + f.must("ps"); !strings.Contains(got, "would remove: 1") || !strings.Contains(got, "removed: 1") || !strings.Contains(got, "no tasks; ") {
		t.Error(got)
	}
	if got := f.must("metrics"); !strings.Contains(got, `stream_messages{stream="coder-log"} 0`) {
		t.Errorf("a log is left: %s", got)
	}
}

// loseEverything has the server begin anew without what it kept.
func (f *fleet) loseEverything() {
	f.t.Helper()
	_ = f.server.Process.Kill()
	_ = f.server.Wait()
	if err := os.RemoveAll(filepath.Join(f.home, ".coder", "fleet", "data")); err != nil {
		f.t.Fatal(err)
	}
	f.start("up", "--slots", "0", "--listen", "127.0.0.1:0", "--lease", "1s")
}

// A worker is killed in the middle of a call. Another goes on from the log and the
// last checkpoint: what was done stays done, the call under way is of unknown
// outcome, nothing is done twice.
func TestADeadWorkersTaskIsTakenOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	effects := filepath.Join(t.TempDir(), "effects")
	id := f.must("submit", "two steps", "--repo", f.repo, "--mode", "yolo", "--script", f.script(fmt.Sprintf(`want two steps
call bash {"command":"echo kept >> a.txt; echo one >> %s"}
repeat
else
want outcome is unknown
say the second step may or may not be done
else
call bash {"command":"echo lost >> a.txt; echo two >> %[1]s; sleep 600"}
`, effects)))
	first := f.start("worker", "--slots", "1", "--name", "w1", "--allow-yolo")
	f.waitFor(effects, 2)
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.start("worker", "--slots", "1", "--name", "w2", "--allow-yolo")
	task := f.until(id, queue.Done)
	if r := task.Result; task.Worker != "w2" || r.Unknown != 1 || r.Calls != 2 || task.Taken != 2 || task.Lapsed != 1 {
		t.Errorf("taken over as %+v: %+v", task, r)
	}
	if got, err := os.ReadFile(effects); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("the effects are %q, %v", got, err)
	}
	if got := f.must("result", id, "--patch"); !strings.Contains(got, "+kept") || strings.Contains(got, "+lost") {
		t.Errorf("the files are not those of the last checkpoint: %s", got)
	}
	if got := f.must("verify", id); !strings.Contains(got, "incomplete: 0") {
		t.Error(got)
	}
}

// What is wrong with one task is said on it, and others are none the worse.
func TestTroubleIsSaidOnTheTask(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start("worker", "--slots", "2")
	gone := filepath.Join(t.TempDir(), "gone")
	say := f.script("say hello\nrepeat\n")
	lost := f.must("submit", "x", "--repo", "file://"+gone, "--script", say)
	branch := f.must("submit", "x", "--repo", "file://"+f.repo, "--base", "nowhere", "--script", say)
	wild := f.must("submit", "x", "--repo", f.repo, "--mode", "yolo", "--script", say)
	broken := f.must("submit", "x", "--repo", f.repo, "--script", f.script("not a script"), "--max-attempts", "1")
	fine := f.must("submit", "x", "--repo", f.repo, "--script", f.script("say hello\nrepeat\n"))
	if r := f.until(fine, queue.Done).Result; r.Answer != "hello" || r.Branch != "" {
		t.Errorf("a task beside them: %+v", r)
	}
	for id, says := range map[string]string{lost: "clone ", branch: "nowhere not found", wild: "--allow-yolo"} {
		if task := f.until(id, queue.Failed); !strings.Contains(task.Reason, says) {
			t.Errorf("%s failed with %q, want %q", id, task.Reason, says)
		}
	}
	if task := f.until(broken, queue.Aside); !strings.Contains(task.Reason, "script line 1") {
		t.Errorf("set aside with %q", task.Reason)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"cancel", "task_none"}, 42, "unknown task"},
		{[]string{"cancel", fine}, 1, "has ended"},
		{[]string{"answer", fine, "--option", "approve"}, 2, "is not waiting for an answer"},
		{[]string{"submit", "x"}, 2, "needs --repo"},
		{[]string{"submit", "x", "--repo", "/does/not/exist"}, 2, "does not exist"},
		{[]string{"submit", "x", "--repo", f.home}, 2, "is not a git repository"},
		{[]string{"submit", "x", "--repo", f.repo, "--base", "nowhere"}, 2, "nowhere not found"},
		{[]string{"submit", "x", "--repo", f.repo, "--base", "--upload-pack=x"}, 2, "--upload-pack=x not found"},
		{[]string{"submit", "x", "--repo", f.repo, "--script", "/does/not/exist"}, 2, "read the script"},
		{[]string{"submit", "x", "--repo", "https://me:key@example.invalid/x"}, 2, "contains a secret"},
		{[]string{"submit", "x", "--repo", f.repo, "--mode", "wild"}, 2, "--mode must be one of"},
		{[]string{"submit", "x", "--repo", f.repo, "--count", "0"}, 2, "--count must be"},
		{[]string{"drain", "nobody"}, 2, "unknown worker nobody"},
		{[]string{"up", "--listen", "0.0.0.0:0"}, 1, "--tls-cert and --tls-key"},
		{[]string{"ps", "--dir", gone}, 42, "no fleet found here"},
		{[]string{"pss"}, 2, "did you mean ps?"},
		{[]string{"workers", "extra"}, 2, "takes no arguments"},
		{[]string{"ps", "extra"}, 42, "unknown task"},
		{[]string{"restore", "extra"}, 2, "takes no arguments"},
		{[]string{"logs"}, 2, "needs one task"},
		{[]string{"verify", "task_none"}, 42, "unknown task"},
		{[]string{"worker", "--slots", "0"}, 2, "at least one slot"},
		{[]string{"prune", "--older-than", "soon"}, 2, "12h or 30d"},
		{[]string{"metrics", "--listen", "nowhere"}, 1, "serve metrics"},
		{[]string{"submit", "--help"}, 0, "submit a task"},
	} {
		if out, code := f.run(c.args...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, out)
		}
	}
}
