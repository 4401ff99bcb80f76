//go:build unix

package bash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/testkit/tooltest"
)

// openAll makes all tools in a workspace of its own.
func openAll(t *testing.T, o bash.Options) (set tool.Set, jobs *bash.Jobs, dir string) {
	t.Helper()
	dir = t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	mark := "BASH_TEST_MARK=" + strings.ReplaceAll(dir, "=", "")
	o.Workspace, o.Now = ws, time.Now
	o.Env = append(o.Env, "PATH="+os.Getenv("PATH"), mark)
	tools, jobs := bash.All(o)
	t.Cleanup(func() {
		jobs.Close()
		ws.Close()
		for _, pid := range marked(mark) {
			t.Errorf("process %d was left", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	set, err = tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set, jobs, dir
}

type jobState struct {
	OK          bool
	ID, Command string
	State       string
	Running     bool
	ExitCode    *int `json:"exit_code"`
	Signal      string
	Error       string
	Output      string
	LogPath     string `json:"log_path"`
	Jobs        []struct {
		ID, Command  string
		State, Error string
		Running      bool
		ExitCode     *int `json:"exit_code"`
		Unread       bool `json:"unread_output"`
	}
}

func use(t *testing.T, set tool.Set, name string, args any) (s jobState, err error) {
	t.Helper()
	tl, ok := set.Lookup(name)
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tl.Prepare(t.Context(), raw)
	if err != nil {
		return s, err
	}
	r, err := c.Run(t.Context(), io.Discard)
	if err != nil {
		return s, err
	}
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil || s.OK == r.Failed {
		t.Fatalf("result %s: %v", b, err)
	}
	return s, nil
}

type obj = map[string]any

func begin(t *testing.T, set tool.Set, command string) jobState {
	t.Helper()
	s, err := use(t, set, "bash", obj{"command": command, "background": true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// finish reads a job until it has ended and returns all it printed from now on.
func finish(t *testing.T, set tool.Set, id string) (s jobState, output string) {
	t.Helper()
	for range 1000 {
		var err error
		if s, err = use(t, set, "job_read", obj{"id": id, "wait_ms": 1000}); err != nil {
			t.Fatal(err)
		}
		if output += s.Output; !s.Running {
			return s, output
		}
	}
	t.Fatal("it does not end")
	return s, ""
}

func TestJob(t *testing.T) {
	set, _, dir := openAll(t, bash.Options{RunsDir: ".coder/runs/s"})
	if err := syscall.Mkfifo(dir+"/go", 0o600); err != nil {
		t.Fatal(err)
	}
	s := begin(t, set, "echo first; read x < go; echo second >&2; exit 3")
	if s.ID != "job-1" || !s.Running || s.ExitCode != nil || s.LogPath == "" {
		t.Fatalf("begun: %+v", s)
	}
	list, err := use(t, set, "jobs_list", obj{})
	if err != nil || len(list.Jobs) != 1 || !list.Jobs[0].Running || list.Jobs[0].ID != "job-1" {
		t.Errorf("list = %+v, %v", list.Jobs, err)
	}
	if err := os.WriteFile(dir+"/go", []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	end, output := finish(t, set, "1")
	if got := s.Output + output; got != "first\nsecond\n" || end.ExitCode == nil || *end.ExitCode != 3 {
		t.Errorf("output %q, %+v", got, end)
	}
	if again, _ := use(t, set, "BashOutput", obj{"bash_id": "job-1"}); again.Output != "" || again.Running {
		t.Errorf("read again: %+v", again)
	}
	log, err := os.ReadFile(filepath.Join(dir, s.LogPath))
	if err != nil || !strings.HasSuffix(string(log), "\n\nfirst\nsecond\n") {
		t.Errorf("log %q, %v", log, err)
	}
}

func TestJobIsStopped(t *testing.T) {
	set, _, _ := openAll(t, bash.Options{})
	for i, c := range []string{"echo up; sleep 1000", "trap '' TERM; echo up; while :; do sleep 1; done", "setsid -f sleep 1000; echo up; sleep 1000"} {
		begin(t, set, c)
		s, err := use(t, set, "KillShell", obj{"shell_id": fmt.Sprint("job-", i+1)})
		if err != nil || s.Running || s.ExitCode != nil {
			t.Errorf("%s: %+v, %v", c, s, err)
		}
	}
	if _, err := use(t, set, "job_stop", obj{"id": "job-1"}); err != nil {
		t.Errorf("stopped twice: %v", err)
	}
	if _, err := use(t, set, "job_stop", obj{"id": "job-9"}); err == nil || !strings.Contains(err.Error(), "job-1, job-2") {
		t.Errorf("a job that is not there: %v", err)
	}
}

// openAll's cleanup sees that nothing is left after Close.
func TestJobsEndWithTheSession(t *testing.T) {
	set, jobs, _ := openAll(t, bash.Options{})
	for range 3 {
		begin(t, set, "setsid -f sleep 1000 >/dev/null 2>&1; sleep 1000 & trap '' TERM; echo up; while :; do sleep 1; done")
	}
	if err := jobs.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := use(t, set, "bash", obj{"command": "sleep 1000", "background": true}); err == nil || !strings.Contains(err.Error(), "ending") {
		t.Errorf("started after the end: %v", err)
	}
	jobs.Close()
}

// A command in the foreground ends without taking those in the background with
// it.
func TestForegroundLeavesJobsAlone(t *testing.T) {
	set, _, _ := openAll(t, bash.Options{})
	begin(t, set, "setsid -w sh -c 'echo up; sleep 1000'")
	if _, err := use(t, set, "bash", obj{"command": "setsid -f sleep 1000; echo x"}); err != nil {
		t.Fatal(err)
	}
	if s, err := use(t, set, "job_read", obj{"id": "1"}); err != nil || !s.Running {
		t.Errorf("the job: %+v, %v", s, err)
	}
}

func TestJobOutputIsBounded(t *testing.T) {
	set, _, dir := openAll(t, bash.Options{RunsDir: ".coder/runs/s"})
	s := begin(t, set, "sleep 0.5; seq 1 200000; printf '\\033[1mend\\033[0m\\n'")
	path := filepath.Join(dir, s.LogPath)
	for range 90000 { // until all of it is out, unread
		if b, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(b), "\nend\n") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	end, output := finish(t, set, s.ID)
	if len(output) > 70<<10 || !strings.Contains(output, "bytes left out]") || !strings.Contains(output, "\n200000\nend\n") || *end.ExitCode != 0 {
		t.Errorf("%d bytes: %.60q, %+v", len(output), output, end)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "\n100000\n") {
		t.Errorf("log of %d bytes, %v", len(b), err)
	}
}

func TestJobsAreLimited(t *testing.T) {
	set, _, _ := openAll(t, bash.Options{})
	for range 16 {
		begin(t, set, "echo up; exec sleep 1000")
	}
	if _, err := use(t, set, "bash", obj{"command": "sleep 1", "background": true}); err == nil || !strings.Contains(err.Error(), "stop one first") {
		t.Errorf("one more: %v", err)
	}
	if _, err := use(t, set, "job_stop", obj{"id": "3"}); err != nil {
		t.Fatal(err)
	}
	begin(t, set, "echo again; exec sleep 1000")
}

func TestContractOfJobs(t *testing.T) {
	for name, f := range map[string]tooltest.Fixture{
		"bash":      {Good: []string{`{"command":"echo hi","background":true}`}, Bad: []string{`{"command":"","background":true}`}},
		"jobs_list": {Good: []string{`{}`}},
		"job_read":  {Good: []string{`{"id":"job-1"}`, `{"job_id":"1","wait_ms":1}`}, Bad: []string{`{"id":"job-7"}`, `{"id":""}`, `{"id":"1","wait_ms":-1}`}},
		"job_stop":  {Good: []string{`{"id":"job-1"}`}, Bad: []string{`{"id":"job-7"}`, `{"id":"../x"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
				set, _, dir := openAll(t, bash.Options{})
				if name != "bash" {
					begin(t, set, "echo up; sleep 1000")
				}
				f.Tool, _ = set.Lookup(name)
				f.Dir = dir
				return f
			})
		})
	}
}

// What a command printed before it was cancelled is given with the error.
func TestCancelledCommandKeepsItsWords(t *testing.T) {
	sh, _ := open(t, bash.Options{})
	c, err := sh.Prepare(t.Context(), json.RawMessage(command("echo partial; sleep 1000")))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Run(ctx, writer(func([]byte) { cancel() }))
	b, _ := json.Marshal(r.Value)
	if err != ctx.Err() || !r.Failed || !strings.Contains(string(b), `"stdout":"partial\n"`) || !strings.Contains(string(b), `"error":"cancelled"`) {
		t.Errorf("result %s, %v", b, err)
	}
}

func TestWholeOutputIsInTheLog(t *testing.T) {
	set, _, dir := openAll(t, bash.Options{RunsDir: "runs", OutputLimit: 1000})
	s, err := use(t, set, "bash", obj{"command": "seq 1 100000"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, s.LogPath))
	if want := numbers(100_000); err != nil || !strings.HasSuffix(string(log), want) {
		t.Errorf("log of %d bytes, %v", len(log), err)
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// A command that cannot be started is a call that failed, however long it takes
// to find out.
func TestJobThatCannotBeStarted(t *testing.T) {
	for _, tc := range []struct {
		name, say string
		options   bash.Options
		before    func(dir string) error
	}{
		{"no directory", "directory does not exist", bash.Options{}, os.RemoveAll},
		{"no program to run it by", "/no/such/program", bash.Options{Confine: through("/no/such/program")}, nil},
		{"too much to pass on", "too long", bash.Options{Env: []string{"X=" + strings.Repeat("x", 4<<20)}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, _, dir := openAll(t, tc.options)
			if tc.before != nil {
				if err := tc.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			s, err := use(t, set, "bash", obj{"command": "echo up; sleep 1000", "background": true})
			if err != nil || s.OK || s.Running || s.State != "not started" || !strings.Contains(s.Error, tc.say) || s.ExitCode != nil {
				t.Errorf("%+v, %v", s, err)
			}
			list, err := use(t, set, "jobs_list", obj{})
			if err != nil || len(list.Jobs) != 1 || list.Jobs[0].State != "not started" || !strings.Contains(list.Jobs[0].Error, tc.say) || list.Jobs[0].Running {
				t.Errorf("list %+v, %v", list, err)
			}
			if read, err := use(t, set, "job_read", obj{"id": "job-1"}); err != nil || read.OK || read.State != "not started" {
				t.Errorf("read %+v, %v", read, err)
			}
		})
	}
}

func TestJobStates(t *testing.T) {
	set, _, _ := openAll(t, bash.Options{})
	begin(t, set, "echo up; sleep 1000")
	begin(t, set, "echo bye; exit 3")
	finish(t, set, "job-2")
	begin(t, set, "echo up; sleep 1000")
	if s, err := use(t, set, "job_stop", obj{"id": "job-3"}); err != nil || s.State != "stopped" || s.Running {
		t.Errorf("stop: %+v, %v", s, err)
	}
	list, err := use(t, set, "jobs_list", obj{})
	if err != nil || len(list.Jobs) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []string{"running", "ended", "stopped"} {
		if list.Jobs[i].State != want || list.Jobs[i].Error != "" || list.Jobs[i].Running != (want == "running") {
			t.Errorf("job %d: %+v, want %s", i+1, list.Jobs[i], want)
		}
	}
	if code := list.Jobs[1].ExitCode; code == nil || *code != 3 {
		t.Errorf("exit code %v", code)
	}
}

func TestTheEndOfAJobIsReportedOnce(t *testing.T) {
	ends := make(chan bash.JobEnd, 2)
	set, jobs, _ := openAll(t, bash.Options{OnJobEnd: func(e bash.JobEnd) { ends <- e }})
	if s, err := use(t, set, "bash", map[string]any{"command": "echo now; exit 4", "background": true}); err != nil {
		t.Fatal(err)
	} else {
		for s.Running { // a read returns at output, too
			if s, err = use(t, set, "job_read", map[string]any{"id": "job-1", "wait_ms": 60000}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := use(t, set, "bash", map[string]any{"command": "while ! test -e go-on; do sleep 0.05; done; echo last words; exit 3", "background": true})
	if err != nil || !s.Running {
		t.Fatal(s, err)
	}
	if list := jobs.TakeEnds(); len(list) != 0 {
		t.Errorf("none has ended unseen: %+v", list)
	}
	if _, err := use(t, set, "bash", map[string]any{"command": "touch go-on"}); err != nil {
		t.Fatal(err)
	}
	if e := <-ends; e.Job != s.ID || e.Outcome != "exit 3" || e.LastLine != "last words" {
		t.Errorf("it ended as %+v", e)
	}
	if list := jobs.TakeEnds(); len(list) != 1 || list[0].Job != s.ID {
		t.Errorf("ended: %+v", list)
	}
	if list := jobs.TakeEnds(); len(list) != 0 {
		t.Errorf("reported twice: %+v", list)
	}
}
