//go:build unix

package bash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"coder/internal/core/display"
	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/testkit/tooltest"
)

// open makes the tool in a workspace of its own. The environment carries a mark
// by which every process of the test is found again when it ends.
func open(t *testing.T, o bash.Options) (sh tool.Tool, dir string) {
	t.Helper()
	dir = t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	mark := "BASH_TEST_MARK=" + strings.ReplaceAll(dir, "=", "")
	t.Cleanup(func() {
		ws.Close()
		for _, pid := range marked(mark) {
			t.Errorf("process %d was left", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	o.Workspace, o.Now = ws, time.Now
	o.Env = append(o.Env, "PATH="+os.Getenv("PATH"), mark)
	return runner(o), dir
}

// runner is the tool that runs a command.
func runner(o bash.Options) tool.Tool {
	tools, _ := bash.All(o)
	return tools[0]
}

// marked finds living processes by their environment.
func marked(mark string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && bytes.Contains(env, []byte(mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

type outcome struct {
	OK                      bool
	Command, Stdout, Stderr string
	Signal, Error, Note     string
	ExitCode                int    `json:"exit_code"`
	DurationMS              *int64 `json:"duration_ms"`
	TimedOut                *bool  `json:"timed_out"`
	Truncated               *bool
	LogPath                 string `json:"log_path"`
}

func run(t *testing.T, sh tool.Tool, args string, live io.Writer) (outcome, tool.Result) {
	t.Helper()
	c, err := sh.Prepare(t.Context(), json.RawMessage(args))
	if err != nil {
		t.Fatalf("%.100s: %v", args, err)
	}
	r, err := c.Run(t.Context(), live)
	if err != nil {
		t.Fatalf("%.100s: %v", args, err)
	}
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	var o outcome
	if err := json.Unmarshal(b, &o); err != nil || o.DurationMS == nil || o.TimedOut == nil || o.Truncated == nil {
		t.Fatalf("result %s: %v", b, err)
	}
	return o, r
}

func command(c string) string {
	b, err := json.Marshal(map[string]string{"command": c})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestContract(t *testing.T) {
	tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
		sh, dir := open(t, bash.Options{})
		return tooltest.Fixture{
			Tool: sh, Dir: dir,
			Good: []string{`{"command":"echo hi"}`, `{"cmd":"touch made","timeout":"5000"}`, `{"command":"exit 3","description":"fails"}`},
			Bad:  []string{`{"command":""}`, `{"command":" \n"}`, `{"command":"a\u0000b"}`, `{"command":"x","timeout":-1}`, command(strings.Repeat("x", 200_000))},
		}
	})
}

func TestPlan(t *testing.T) {
	sh, _ := open(t, bash.Options{})
	for _, tc := range []struct{ command, title string }{
		{"ls -l", "ls -l"},
		{"echo a\necho b", "echo a …"},
		{"  echo" + strings.Repeat(" ", 10_000) + "x; rm y\n", "echo x; rm y"},
		{"echo " + strings.Repeat("世", 1000), "echo " + strings.Repeat("世", 195) + "…"},
	} {
		c, err := sh.Prepare(t.Context(), json.RawMessage(command(tc.command)))
		if err != nil {
			t.Fatal(err)
		}
		p := c.Plan()
		want := []tool.Effect{{Kind: tool.Exec, Target: tc.command}}
		if p.Title != tc.title || len(p.Effects) != 1 || p.Effects[0] != want[0] || p.Preview != (display.Code{Lang: "sh", Source: tc.command}) {
			t.Errorf("plan of %.20q = %.80q %.80v", tc.command, p.Title, p.Effects)
		}
	}
}

func TestBash(t *testing.T) {
	sh, dir := open(t, bash.Options{})
	for _, tc := range []struct {
		name, command  string
		code           int
		stdout, stderr string
		err, note      string
	}{
		{"both streams", "printf a; printf b >&2; exit 3", 3, "a", "b", "exit code 3", ""},
		{"in the workspace", "pwd -P", 0, realPath(t, dir) + "\n", "", "", ""},
		{"signal", "kill -9 $$", 137, "", "", "ended by SIGKILL", ""},
		{"not UTF-8", `printf 'a\000b\377'`, 0, "ab\ufffd", "", "", ""},
		{"escapes", `printf '\033[2J\033]52;c;AAAA\a\033]0;t\a\033[6n\033[201~x'`, 0, "x", "", "", ""},
		{"hidden and reordering characters", `printf 'a\342\200\256b\342\200\213c\363\240\201\201'`, 0, "a<U+202E>b<U+200B>c<U+E0041>", "", "", ""},
		{"progress", `for i in $(seq 500); do printf '\r%d' $i; done`, 0, "500", "", "", ""},
		{"background", "sleep 1000 & echo started", 0, "started\n", "", "", "processes left running in the background were stopped"},
		{"no questions", "git --version >/dev/null 2>&1; echo $GIT_TERMINAL_PROMPT $TERM; cat", 0, "0 dumb\n", "", "", ""},
		{"nothing lasts", "cd /; X=1; :", 0, "", "", "", ""},
		{"really", "pwd -P; echo $X", 0, realPath(t, dir) + "\n\n", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, r := run(t, sh, command(tc.command), io.Discard)
			if o.ExitCode != tc.code || o.Stdout != tc.stdout || o.Stderr != tc.stderr || o.Error != tc.err || o.Note != tc.note {
				t.Errorf("result = %+v", o)
			}
			if o.OK != (tc.code == 0) || r.Failed == o.OK || *o.TimedOut || *o.Truncated || o.LogPath != "" || o.Command != tc.command {
				t.Errorf("result = %+v, failed %v", o, r.Failed)
			}
		})
	}
}

func realPath(t *testing.T, dir string) string {
	t.Helper()
	p, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTimeouts(t *testing.T) {
	sh, _ := open(t, bash.Options{CommandTimeout: 300 * time.Millisecond})
	for _, args := range []string{
		`{"command":"echo begun; sleep 1000"}`,
		`{"command":"echo begun; sleep 1000","timeout":100}`,
		`{"command":"echo begun; sleep 1000","timeout":100000000}`,
		`{"command":"echo begun; trap '' TERM; while :; do sleep 1; done"}`,
	} {
		o, r := run(t, sh, args, io.Discard)
		if o.ExitCode != 124 || !*o.TimedOut || o.OK || !r.Failed || o.Stdout != "begun\n" || !strings.HasPrefix(o.Error, "timed out after") || !strings.HasPrefix(r.Summary, "timed out") {
			t.Errorf("%s: %+v, %q", args, o, r.Summary)
		}
	}
	if !strings.Contains(sh.Spec().Doc, "default and maximum 300 ms") {
		t.Errorf("the description does not name the limit: %s", sh.Spec().Doc)
	}
}

func TestOutputLimit(t *testing.T) {
	sh, _ := open(t, bash.Options{OutputLimit: 100})
	o, _ := run(t, sh, command("yes | head -c 1000"), io.Discard)
	if !*o.Truncated || !o.OK || !strings.HasSuffix(o.Stdout, "\n[output truncated]\n") || !strings.Contains(o.Stdout, "[900 bytes left out]") || o.Stderr != "" {
		t.Errorf("result = %+v", o)
	}
	if n := strings.Count(o.Stdout, "y"); n > 52 {
		t.Errorf("kept %d lines of 50", n)
	}
	if o, _ = run(t, sh, command("yes | head -c 100"), io.Discard); *o.Truncated || strings.Contains(o.Stdout, "truncated") {
		t.Errorf("exactly the limit: %+v", o)
	}
}

func TestLongOutputIsSaved(t *testing.T) {
	sh, dir := open(t, bash.Options{RunsDir: ".coder/runs/s1"})
	for i := 1; i <= 2; i++ {
		o, _ := run(t, sh, command("seq 1 20000; echo oops >&2"), io.Discard)
		if !*o.Truncated || o.LogPath != ".coder/runs/s1/bash-000"+strconv.Itoa(i)+".log" {
			t.Fatalf("truncated %v, log %q", *o.Truncated, o.LogPath)
		}
		if n := utf8.RuneCountInString(o.Stdout); n > 30_100 || !strings.HasPrefix(o.Stdout, "1\n2\n") || !strings.HasSuffix(o.Stdout, "\n20000\n[output truncated]\n") {
			t.Errorf("stdout of %d characters: %.10q", n, o.Stdout)
		}
		name := filepath.Join(dir, o.LogPath)
		log, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(log), "$ seq 1 20000") || !strings.Contains(string(log), "\n10000\n") || !strings.Contains(string(log), "oops") {
			t.Errorf("log of %d bytes, %v", len(log), err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of the log: %v", info.Mode())
		}
	}
	again, err := os.ReadDir(filepath.Join(dir, ".coder/runs/s1"))
	if err != nil || len(again) != 2 {
		t.Errorf("%d logs, %v", len(again), err)
	}
}

// TestASessionSavesNoMoreThanItMay: what an earlier run of the session saved counts.
func TestASessionSavesNoMoreThanItMay(t *testing.T) {
	o := bash.Options{RunsDir: ".coder/runs/s1", RunsLimit: 250_000}
	sh, dir := open(t, o)
	runs := filepath.Join(dir, o.RunsDir)
	if err := errors.Join(os.MkdirAll(runs, 0o700), os.WriteFile(filepath.Join(runs, "bash-0001.log"), make([]byte, 100_000), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i, cut := range []bool{false, true, true} {
		r, _ := run(t, sh, command("seq 1 20000"), io.Discard) // 108,894 bytes
		log, err := os.ReadFile(filepath.Join(dir, r.LogPath))
		if got := strings.HasSuffix(string(log), "[output truncated]\n"); err != nil || got != cut || strings.Contains(r.Note, "storage.runs_session_bytes") != cut {
			t.Errorf("%d: the log of %d bytes is cut: %v, %v, note %q", i, len(log), got, err, r.Note)
		}
	}
	files, err := os.ReadDir(runs)
	size := int64(0)
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if err != nil || len(files) != 4 || size > o.RunsLimit+100 {
		t.Errorf("%d files of %d bytes, %v", len(files), size, err)
	}
}

// What commands print is nobody else's business, also where the directories
// were there before.
func TestLogsArePrivate(t *testing.T) {
	for _, there := range []string{"", ".coder", ".coder/runs", ".coder/runs/s1"} {
		sh, dir := open(t, bash.Options{RunsDir: ".coder/runs/s1"})
		if there != "" {
			if err := os.MkdirAll(filepath.Join(dir, there), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		o, _ := run(t, sh, command("seq 1 20000"), io.Discard)
		for name, want := range map[string]os.FileMode{".coder/runs/s1": 0o700, o.LogPath: 0o600} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
				t.Errorf("with %q there: %s is %v, %v", there, name, info.Mode(), err)
			}
		}
		if there == "" {
			if info, err := os.Stat(filepath.Join(dir, ".coder/runs")); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("runs: %v, %v", info, err)
			}
		}
	}
}

// A repository may hold a link where the logs should go.
func TestLogsStayInTheWorkspace(t *testing.T) {
	sh, dir := open(t, bash.Options{RunsDir: ".coder/runs/s1"})
	out := t.TempDir()
	if err := os.Symlink(out, dir+"/.coder"); err != nil {
		t.Fatal(err)
	}
	o, _ := run(t, sh, command("seq 1 20000"), io.Discard)
	if left, _ := os.ReadDir(out); len(left) != 0 || o.LogPath != "" || !o.OK {
		t.Errorf("outside: %v, log %q", left, o.LogPath)
	}
}

func TestFlood(t *testing.T) {
	sh, _ := open(t, bash.Options{CommandTimeout: 500 * time.Millisecond})
	var live bytes.Buffer
	for _, c := range []string{"yes", "cat /dev/zero", "yes | tr -d '\\n'"} {
		live.Reset()
		o, r := run(t, sh, command(c), &live)
		b, err := json.Marshal(r.Value)
		if err != nil || len(b) > 200_000 || !*o.TimedOut || live.Len() > 1<<20+5000 {
			t.Errorf("%s: result of %d bytes, live %d, timed out %v", c, len(b), live.Len(), *o.TimedOut)
		}
	}
}

// drawing is a viewer that is told what is not passed on.
type drawing struct {
	bytes.Buffer
	last  string
	lines int
}

func (d *drawing) Draw(line string, lines int) { d.last, d.lines = line, max(d.lines, lines) }

// Whoever watches sees how a command goes on that prints more than is passed on.
func TestWhatIsNotPassedOnIsTold(t *testing.T) {
	sh, dir := open(t, bash.Options{OutputLimit: 1000})
	live := make(chan string, 1)
	v := &telling{to: live}
	go func() {
		<-live
		_ = os.WriteFile(dir+"/seen", nil, 0o600)
	}()
	run(t, sh, command("seq 1000; until [ -e seen ]; do sleep .01; done; seq 1001 3000"), v)
	lines := strings.Count(v.String(), "\n") - 1 // but for the one that says so
	if v.lines+lines != 3000 {
		t.Errorf("%d lines passed on, %d left out", lines, v.lines)
	}
}

// telling says what is told first.
type telling struct {
	drawing
	to chan<- string
}

func (v *telling) Draw(line string, lines int) {
	if v.drawing.Draw(line, lines); v.to != nil {
		v.to <- line
		v.to = nil
	}
}

func TestLiveOutputSaysThatItWasCut(t *testing.T) {
	sh, _ := open(t, bash.Options{OutputLimit: 1000})
	var live bytes.Buffer
	run(t, sh, command("seq 100000"), &live)
	first, last, cut := strings.Cut(live.String(), "\n[output truncated]\n")
	if !cut || len(first) < 900 || !strings.HasSuffix(last, "\n99999\n100000\n") || live.Len() > 5200 {
		t.Errorf("%d bytes of live output: %.40q", live.Len(), live.String())
	}
	live.Reset()
	run(t, sh, command("yes | head -c 1000"), &live)
	if live.Len() != 1000 {
		t.Errorf("%d bytes of live output, which fit", live.Len())
	}
}

func TestRandomBytes(t *testing.T) {
	sh, _ := open(t, bash.Options{})
	var live bytes.Buffer
	o, _ := run(t, sh, command("head -c 4096 /dev/urandom"), &live)
	for _, s := range []string{o.Stdout, live.String()} {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
			t.Errorf("output %q", s)
		}
	}
}

func TestLiveOutputComesFirst(t *testing.T) {
	sh, dir := open(t, bash.Options{})
	fifo := dir + "/go"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	var once sync.Once
	live := writer(func(b []byte) { // the command goes on when its first words were seen
		seen.Write(b)
		once.Do(func() { go os.WriteFile(fifo, []byte("x\n"), 0) })
	})
	o, _ := run(t, sh, command(`printf '\033[1mfirst\033[0m '; read x < go; echo second`), live)
	if !o.OK || seen.String() != "first second\n" {
		t.Errorf("saw %q, result %+v", seen.String(), o)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestCancel(t *testing.T) {
	sh, _ := open(t, bash.Options{})
	c, err := sh.Prepare(t.Context(), json.RawMessage(command("echo x; sleep 1000")))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = c.Run(ctx, writer(func([]byte) { cancel() }))
	if err != context.Canceled {
		t.Errorf("Run: %v", err)
	}
}

func TestWorkspaceRemoved(t *testing.T) {
	sh, dir := open(t, bash.Options{})
	if o, _ := run(t, sh, command(`rm -rf "$PWD"`), io.Discard); !o.OK {
		t.Fatalf("result = %+v", o)
	}
	c, err := sh.Prepare(t.Context(), json.RawMessage(command("echo x")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), io.Discard); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("Run: %v", err)
	}
}

func TestEnvironmentIsWhatIsGiven(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	sh, _ := open(t, bash.Options{Env: []string{"GIVEN=yes"}})
	o, _ := run(t, sh, command("env"), io.Discard)
	if strings.Contains(o.Stdout, "sk-secret") || !strings.Contains(o.Stdout, "GIVEN=yes\n") {
		t.Errorf("environment: %s", o.Stdout)
	}
}

// Without a PATH there is still a shell, and it says what it cannot find.
func TestNoPath(t *testing.T) {
	sh, _ := open(t, bash.Options{})
	o, _ := run(t, sh, command("PATH=; ls"), io.Discard)
	if o.ExitCode != 127 || !strings.Contains(o.Stderr, "ls") {
		t.Errorf("%+v", o)
	}
}

// What would open an editor or a pager, or ask for a password, ends at once.
func TestNobodyIsAsked(t *testing.T) {
	sh, _ := open(t, bash.Options{CommandTimeout: time.Minute})
	for _, c := range []string{
		"git init -q . && git -c user.name=a -c user.email=b@c commit --allow-empty",
		"git -c credential.helper= ls-remote http://127.0.0.1:1/x",
		"sudo -k; sudo true",
		"vim -c 'sleep 1' -c q",
		"read -r answer",
	} {
		if o, _ := run(t, sh, command("exec 2>&1; "+c), io.Discard); *o.TimedOut || strings.ContainsRune(o.Stdout, 0x1b) {
			t.Errorf("%s: %+v", c, o)
		}
	}
}

// TestACallOnRecordAsksByAnyName that a model may have used.
func TestACallOnRecordAsksByAnyName(t *testing.T) {
	for input, want := range map[string][2]bool{
		`{"command":"x"}`: {}, `{"command":"x","background":true}`: {true, false}, `{"cmd":"x","run_in_background":true}`: {true, false},
		`{"command":"x","unconfined":true}`: {false, true}, `{"command":"x","dangerouslyDisableSandbox":true,"isBackground":true}`: {true, true},
		`{"command":"x","unconfined":false}`: {}, `{"unconfined":true}`: {}, `{"command":"x","unconfined":true,"other":1}`: {}, `no JSON`: {},
	} {
		if background, unconfined := bash.Asks([]byte(input)); background != want[0] || unconfined != want[1] {
			t.Errorf("%s: background %v, unconfined %v", input, background, unconfined)
		}
	}
}
