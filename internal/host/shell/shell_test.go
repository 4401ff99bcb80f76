package shell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/shell"

	"go.uber.org/goleak"
)

// limit is what the tests keep of a stream.
const limit = 64 << 10

// run runs a command and sees that no process of it is left.
func run(t *testing.T, ctx context.Context, spec shell.Spec) (shell.Outcome, error) {
	t.Helper()
	mark := fmt.Sprintf("SHELL_TEST_MARK=%s %d %d", t.Name(), os.Getpid(), marks.next()) // no other run of the tests has it
	spec.Env = append(spec.Env, "PATH="+os.Getenv("PATH"), mark)
	if spec.OutputLimit == 0 {
		spec.OutputLimit = limit
	}
	spec.Now = time.Now
	out, err := shell.Run(ctx, spec)
	if left := marked(mark); len(left) > 0 {
		t.Errorf("processes left after %.60q: %v", spec.Command, left)
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return out, err
}

func sh(t *testing.T, command string) shell.Outcome {
	t.Helper()
	out, err := run(t, t.Context(), shell.Spec{Command: command, Dir: t.TempDir(), Timeout: time.Minute})
	if err != nil {
		t.Fatalf("%.60q: %v", command, err)
	}
	return out
}

type counter struct {
	mu sync.Mutex
	n  int64
}

func (c *counter) next() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

var marks counter

// marked finds the living processes that have mark in their environment, also
// those that left their session.
func marked(mark string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !bytes.Contains(env, []byte(mark+"\x00")) {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		pids = append(pids, pid)
	}
	return pids
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, command  string
		code           int
		signal         string
		stdout, stderr string
	}{
		{"output", "echo out; echo err >&2", 0, "", "out\n", "err\n"},
		{"exit code", "exit 3", 3, "", "", ""},
		{"not found", "no-such-command-here 2>/dev/null", 127, "", "", ""},
		{"not executable", ": > f; ./f 2>/dev/null", 126, "", "", ""},
		{"shell killed", "kill -9 $$", 137, "SIGKILL", "", ""},
		{"shell crashed", "kill -SEGV $$", 139, "SIGSEGV", "", ""},
		{"standard input is empty", "cat; read x || echo nothing", 0, "", "nothing\n", ""},
		{"no terminal", "(: < /dev/tty) 2>/dev/null || echo none", 0, "", "none\n", ""},
		{"no terminal to set", "stty -echo raw 2>/dev/null || echo none", 0, "", "none\n", ""},
		{"nobody to ask", "sudo -k -n true 2>/dev/null; ssh -o BatchMode=yes -o ConnectTimeout=1 127.0.0.1 -p 1 true 2>/dev/null || echo no", 0, "", "no\n", ""},
		{"closed output", "exec >&-; sleep 0.1; echo x 2>/dev/null; exit 5", 5, "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := sh(t, tc.command)
			if o.ExitCode != tc.code || o.Signal != tc.signal || o.TimedOut || o.IsTruncated() {
				t.Errorf("outcome = %+v", o)
			}
			if got := o.Stdout.Text(); got != tc.stdout {
				t.Errorf("stdout = %q, want %q", got, tc.stdout)
			}
			if got := o.Stderr.Text(); got != tc.stderr {
				t.Errorf("stderr = %q, want %q", got, tc.stderr)
			}
		})
	}
}

func TestEnvironmentIsOnlyWhatIsGiven(t *testing.T) {
	t.Setenv("PROVIDER_API_KEY", "secret")
	out, err := shell.Run(t.Context(), shell.Spec{Command: "export -p", Env: []string{"GIVEN=1"}, OutputLimit: limit})
	if err != nil || strings.Contains(out.Stdout.Text(), "secret") || !strings.Contains(out.Stdout.Text(), "GIVEN") {
		t.Errorf("environment %q, %v", out.Stdout.Text(), err)
	}
	out, err = shell.Run(t.Context(), shell.Spec{Command: "export -p", OutputLimit: limit})
	if err != nil || strings.Contains(out.Stdout.Text(), "secret") {
		t.Errorf("without an environment: %q, %v", out.Stdout.Text(), err)
	}
}

func TestProfileIsNotRun(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(home+"/.profile", []byte("echo noise; exit 9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, t.Context(), shell.Spec{Command: "echo done", Env: []string{"HOME=" + home}})
	if err != nil || out.ExitCode != 0 || out.Stdout.Text() != "done\n" {
		t.Errorf("%q, %+v, %v", out.Stdout.Text(), out, err)
	}
}

func TestFloodIsBounded(t *testing.T) {
	for _, tc := range []struct{ name, command, head, tail string }{
		{"lines", "seq 1 2000000", "1\n2\n", "1999999\n2000000\n"},
		{"zeroes", "head -c 50000000 /dev/zero", "\x00\x00", "\x00\x00"},
		{"one endless line", "yes a | head -c 30000000 | tr -d '\\n'; printf END", "aaa", "aEND"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := sh(t, tc.command)
			if !o.IsTruncated() || o.Stdout.Len() != limit {
				t.Errorf("kept %d bytes, dropped %d", o.Stdout.Len(), o.Stdout.Dropped)
			}
			if !bytes.HasPrefix(o.Stdout.Head, []byte(tc.head)) || !bytes.HasSuffix(o.Stdout.Tail, []byte(tc.tail)) {
				t.Errorf("kept %q … %q", o.Stdout.Head[:10], o.Stdout.Tail[len(o.Stdout.Tail)-10:])
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	for _, tc := range []struct{ name, command, stdout string }{
		{"sleeps", "echo begun; sleep 1000", "begun\n"},
		{"floods", "yes > /dev/null", ""},
		{"ignores the request", "trap '' TERM INT; while :; do sleep 1; done", ""},
		{"has children that do", "(trap '' TERM; sleep 1000) & sleep 1000", ""},
		{"is stopped", "kill -STOP $$", ""},
		{"has children in groups of their own", withJobs("sleep 1000 & wait"), ""},
		{"ends well when asked to", "trap 'exit 0' TERM; sleep 1000 & wait", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := run(t, t.Context(), shell.Spec{Command: tc.command, Timeout: 100 * time.Millisecond})
			if err != nil || !o.TimedOut || o.ExitCode != shell.TimeoutCode || !o.Stopped {
				t.Errorf("outcome = %+v, %v", o, err)
			}
			if got := o.Stdout.Text(); got != tc.stdout {
				t.Errorf("stdout = %q", got)
			}
		})
	}
}

// withJobs runs a command where job control puts each child into a group of its
// own, if there is a shell here that does so without a terminal.
func withJobs(command string) string {
	if _, err := exec.LookPath("bash"); err != nil {
		return command
	}
	return "exec bash -c 'set -m; " + command + "'"
}

func TestCancel(t *testing.T) {
	for _, command := range []string{"echo x; sleep 1000", "yes", "trap '' TERM; echo x; while :; do sleep 1; done"} {
		ctx, cancel := context.WithCancel(t.Context())
		begun := writer(func([]byte) { cancel() })
		o, err := run(t, ctx, shell.Spec{Command: command, Stdout: begun})
		if !errors.Is(err, context.Canceled) || o.Stdout.Len() == 0 {
			t.Errorf("%q: %v, %d bytes", command, err, o.Stdout.Len())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(t, ctx, shell.Spec{Command: "touch " + t.TempDir() + "/x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// The timeouts here are far beyond any patience: if Run waited for the children
// the test would not end.
func TestBackgroundProcessesAreStopped(t *testing.T) {
	for _, command := range []string{
		"sleep 1000 & echo started",
		"sleep 1000 >/dev/null 2>&1 & echo started",
		"for i in $(seq 200); do sleep 1000 & done; echo started",
		withJobs("sleep 1000 & echo started"),
		"(sleep 1000; echo late) & echo started",
	} {
		o := sh(t, command)
		if o.Stdout.Text() != "started\n" || o.ExitCode != 0 || !o.Stopped || o.TimedOut || o.Escaped {
			t.Errorf("%q: %q, %+v", command, o.Stdout.Text(), o)
		}
	}
	if o := sh(t, "echo started"); o.Stopped {
		t.Error("something was stopped where nothing ran")
	}
}

func TestLastBytesAreNeverLost(t *testing.T) {
	for i := range 300 {
		o, err := shell.Run(t.Context(), shell.Spec{Command: "printf tail-marker; printf err-marker >&2", OutputLimit: limit})
		if err != nil || o.Stdout.Text() != "tail-marker" || o.Stderr.Text() != "err-marker" {
			t.Fatalf("run %d: %q, %q", i, o.Stdout.Text(), o.Stderr.Text())
		}
	}
	if o := sh(t, "head -c 60000 /dev/zero | tr '\\0' x; sleep 1000 &"); o.Stdout.Len() != 60000 {
		t.Errorf("%d bytes of 60000", o.Stdout.Len())
	}
}

func TestManyCommandsLeaveNoChildren(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	before := children()
	for range 500 {
		if _, err := shell.Run(t.Context(), shell.Spec{Command: ":"}); err != nil {
			t.Fatal(err)
		}
	}
	if after := children(); len(after) > len(before) {
		t.Errorf("children %v, were %v", after, before)
	}
}

// children are our own, zombies included.
func children() (pids []string) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}

func TestNotStarted(t *testing.T) {
	told := 0
	started := func() { told++ }
	if _, err := run(t, t.Context(), shell.Spec{Command: ":", Started: started}); err != nil || told != 1 {
		t.Errorf("told %d times that it has started, %v", told, err)
	}
	if _, err := run(t, t.Context(), shell.Spec{Command: ":", Dir: "/no/such/place", Started: started}); err == nil || told != 1 {
		t.Errorf("told %d times, %v", told, err)
	}
	long := strings.Repeat("x", 4<<20)
	if _, err := run(t, t.Context(), shell.Spec{Command: ": " + long}); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("command of 4 MB: %v", err)
	}
	_, err := run(t, t.Context(), shell.Spec{Command: ":", Env: []string{"LONG=" + long}})
	if !errors.Is(err, syscall.E2BIG) || !strings.Contains(err.Error(), "environment") {
		t.Errorf("environment of 4 MB: %v", err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	_, err = run(t, t.Context(), shell.Spec{Command: ":", Dir: gone})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("missing directory: %v", err)
	}
	if _, err := run(t, t.Context(), shell.Spec{Command: "a\x00b"}); err == nil {
		t.Error("a command with a NUL byte was started")
	}
}

func TestCommandRunsThroughAnotherProgram(t *testing.T) {
	through := []string{"/usr/bin/env", "WITHIN=yes", "CODER_TEST=a b"}
	spec := shell.Spec{Command: `echo "$WITHIN" "$CODER_TEST" "$0"; exit 3`, Prefix: through, Env: []string{"WITHIN=no"}}
	o, err := run(t, t.Context(), spec)
	if err != nil || o.Stdout.Text() != "yes a b /bin/sh\n" || o.ExitCode != 3 {
		t.Errorf("%q, %+v, %v", o.Stdout.Text(), o, err)
	}
	o, err = run(t, t.Context(), shell.Spec{Command: "setsid -f sleep 1000; echo up; sleep 1000", Prefix: through, Timeout: time.Second})
	if err != nil || !o.TimedOut || o.Stdout.Text() != "up\n" {
		t.Errorf("out of time: %+v, %v", o, err)
	}
	if _, err = run(t, t.Context(), shell.Spec{Command: ":", Prefix: []string{"/no/such/program"}}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestDirectoryRemovedByCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := run(t, t.Context(), shell.Spec{Command: `echo "$PWD"; rm -rf "$PWD"`, Dir: dir})
	if err != nil || o.Stdout.Text() != dir+"\n" {
		t.Fatalf("%q, %v", o.Stdout.Text(), err)
	}
	if _, err = run(t, t.Context(), shell.Spec{Command: ":", Dir: dir}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("next command: %v", err)
	}
}

func TestLiveOutputComesWhileTheCommandRuns(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	var once sync.Once
	release := writer(func(b []byte) { // only what we see lets the command go on
		seen.Write(b)
		once.Do(func() { go os.WriteFile(fifo, []byte("x\n"), 0) })
	})
	o, err := run(t, t.Context(), shell.Spec{Command: "echo first; read x < " + fifo + "; echo second >&2", Stdout: release, Stderr: release})
	if err != nil || o.ExitCode != 0 || seen.String() != "first\nsecond\n" {
		t.Errorf("saw %q, %+v, %v", seen.String(), o, err)
	}
	broken := &failing{}
	if o, err = run(t, t.Context(), shell.Spec{Command: "echo a; sleep 0.05; echo b", Stdout: broken}); err != nil || o.Stdout.Text() != "a\nb\n" || broken.calls != 1 {
		t.Errorf("with a broken writer: %q, %d calls, %v", o.Stdout.Text(), broken.calls, err)
	}
}

type failing struct{ calls int }

func (f *failing) Write([]byte) (int, error) { f.calls++; return 0, errors.New("broken") }

func TestCommandsRunSideBySide(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			want := strconv.Itoa(i) + "\n"
			if o, err := run(t, t.Context(), shell.Spec{Command: "sleep 0.05; echo " + strconv.Itoa(i)}); err != nil || o.Stdout.Text() != want {
				t.Errorf("%q, %v", o.Stdout.Text(), err)
			}
		})
	}
	all.Wait()
}

// The shell of a process that is killed outright dies with it.
func TestShellDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only linux can do this")
	}
	const role = "SHELL_TEST_ROLE"
	if os.Getenv(role) != "" {
		mark := "SHELL_TEST_MARK=" + os.Getenv(role)
		shell.Run(t.Context(), shell.Spec{Command: "echo up; exec sleep 1000", Stdout: os.Stdout, Env: []string{"PATH=" + os.Getenv("PATH"), mark}})
		return
	}
	id := "parent" + strconv.Itoa(os.Getpid())
	parent := exec.Command(os.Args[0], "-test.run=^TestShellDiesWithItsParent$")
	parent.Env = append(os.Environ(), role+"="+id)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	parent.Process.Kill()
	parent.Wait()
	for range 90000 { // being killed takes a moment
		if len(marked("SHELL_TEST_MARK="+id)) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the command outlived the process that ran it")
	for _, pid := range marked("SHELL_TEST_MARK=" + id) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestDurationIsByTheGivenClock(t *testing.T) {
	ticks := time.Unix(0, 0)
	clock := func() time.Time { ticks = ticks.Add(time.Second); return ticks }
	if o, err := shell.Run(t.Context(), shell.Spec{Command: ":", Now: clock}); err != nil || o.Duration != time.Second {
		t.Errorf("duration %v, %v", o.Duration, err)
	}
}

func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		if _, err := shell.Run(b.Context(), shell.Spec{Command: "echo x", OutputLimit: limit}); err != nil {
			b.Fatal(err)
		}
	}
}
