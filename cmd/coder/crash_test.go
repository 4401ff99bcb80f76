package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/app"
	"coder/internal/core/event"
)

// program is the test binary dressed up as coder, in a workspace of its own.
type program struct {
	t    *testing.T
	self string
	ws   string
	env  []string

	stdin io.Reader
}

// noRaceWait keeps a process built with the race detector from waiting a second
// at its end.
const noRaceWait = "GORACE=atexit_sleep_ms=0"

// app is the program's parts in its workspace.
func (p *program) app(o app.Options) *app.Workspace {
	p.t.Helper()
	o.Dir = p.ws
	env := app.Env{Exe: p.self, Environ: p.env, Dir: p.ws, Now: time.Now}
	settings, err := app.Load(env, o)
	if err != nil {
		p.t.Fatal(err)
	}
	a, err := app.New(env, o, settings, func(text string) { p.t.Log(text) })
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

func newProgram(t *testing.T) *program {
	t.Helper()
	return programIn(t, t.TempDir())
}

// programIn is the program with dir as its home, and the workspace in there.
func programIn(t *testing.T, dir string) *program {
	t.Helper()
	p := &program{t: t, self: filepath.Join(dir, "coder"), ws: filepath.Join(dir, "ws")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(self, p.self), os.Mkdir(p.ws, 0o755)); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), noRaceWait}
	return p
}

func (p *program) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.ws, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// cmd prepares a run of coder.
func (p *program) cmd(args ...string) *exec.Cmd {
	c := exec.Command(p.self, args...)
	c.Dir = p.ws
	c.Env = p.env
	return c
}

// run runs coder to its end, wherever that is.
func (p *program) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	c := p.cmd(args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = p.stdin, &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

const killedTurn = `
say I will
call read {"path": "a.txt"}
call bash {"command": "echo ran >> ran.txt"}
---
say done
`

// TestKillAtEveryRecord kills the process at each record of a turn, just
// before and just after it is written. On reopening, all that was acknowledged
// is there and nothing half; the session goes on, and what ran ran once.
func TestKillAtEveryRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, after := range []string{"", "+"} {
		for _, next := range [][]string{{"and now"}, {}} {
			for n := 1; ; n++ {
				name := fmt.Sprintf("%d%s/%d", n, after, len(next))
				finished := false
				t.Run(name, func(t *testing.T) { finished = killAt(t, n, after, next) })
				if finished || t.Failed() {
					break
				}
			}
		}
	}
}

// killAt reports whether the turn was over before it could be killed.
func killAt(t *testing.T, n int, after string, next []string) (finished bool) {
	p := newProgram(t)
	p.file("a.txt", "x\n")
	script := p.file("model", killedTurn)
	alive := p.env
	p.env = append(alive, "CODER_TEST_DIE="+strconv.Itoa(n)+after)
	_, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s1", "--script", script, "go")
	if code == 0 {
		return true
	}
	if code != -1 {
		t.Fatalf("it ended by itself with code %d: %s", code, stderr)
	}
	p.env = alive
	acknowledged := n - 1
	if after != "" {
		acknowledged = n
	}
	rs, err := readSession(p.ws, "s1")
	if err != nil || len(rs) != acknowledged {
		t.Fatalf("%d records are left, want the %d acknowledged ones: %v", len(rs), acknowledged, err)
	}
	if acknowledged == 0 {
		return false
	}
	more := p.file("more", "say went on\nrepeat\n")
	out, stderr, code := p.run(append([]string{"-p", "--auto-approve", "-r", "s1", "--script", more}, next...)...)
	if len(next) == 0 && code == 42 && strings.Contains(stderr, "no unfinished turn") {
		return false // it was killed between the end of the turn and the end of the process
	}
	answered := len(next) == 0 && out == "done\n" // the answer was on record, and the model is not asked again
	if code != 0 || out != "went on\n" && !answered {
		t.Fatalf("going on gave %q, code %d: %s", out, code, stderr)
	}
	if err := wellFormed(p.ws); err != nil {
		t.Error(err)
	}
	ran, _ := os.ReadFile(filepath.Join(p.ws, "ran.txt"))
	if len(ran) > len("ran\n") {
		t.Errorf("the command ran more than once: %q", ran)
	}
	checkSnapshot(t, p.ws, strings.TrimSpace(out))
	return false
}

// A command ends a turn that was cut off as a prompt does, wherever that was; so does a
// program that has files taken back.
func TestACommandEndsWhatWasCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const rewind = `{"type":"control_request","request_id":"r","request":{"subtype":"rewind_files","user_message_id":"%s"}}` + "\n"
	driven := []string{"--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--replay-user-messages"}
	said := `{"type":"user","message":{"content":"go"}}` + "\n"
	message := regexp.MustCompile(`"type":"user".*"uuid":"([^"]+)"`)
	for _, next := range [][]string{{"/cost"}, {"/undo"}, {"/restore", "5"}, driven} {
		for n := 4; n < 15; n++ {
			p := newProgram(t)
			p.file("a.txt", "x\n")
			alive := p.env
			p.env = append(alive, fmt.Sprintf("CODER_TEST_DIE=%d+", n))
			first := p.cmd(append(slices.Clone(driven), "-p", "--auto-approve", "--session-id", "s1", "--script", p.file("model", killedTurn))...)
			first.Stdin = strings.NewReader(said)
			told, _ := first.Output()
			if first.ProcessState.ExitCode() != -1 {
				break // it was over before it could be killed
			}
			p.env = alive
			silent := p.file("silent", "")
			c := p.cmd(append([]string{"-p", "-r", "s1", "--script", silent}, strings.Join(next, " "))...)
			if len(next) > 2 {
				c = p.cmd(append(slices.Clone(driven), "-p", "-r", "s1", "--script", silent)...)
				id := message.FindSubmatch(told)
				if id == nil {
					continue // nobody was told of it
				}
				c.Stdin = strings.NewReader(fmt.Sprintf(rewind, id[1]))
			}
			out, err := c.CombinedOutput()
			if err != nil && next[0] != "/restore" { // of what was cut off it may refuse to bring files back
				t.Errorf("%q after %d: %v\n%s", next, n, err, out)
			}
			if out, _, _ := p.run("tasks"); !strings.Contains(out, "stopped") && !strings.Contains(out, "done") {
				t.Errorf("%q after %d: %s", next, n, out)
			}
			if out, stderr, code := p.run("audit", "verify", "s1"); code != 0 || strings.Contains(out, "never ended") {
				t.Errorf("%q after %d: %s%s", next, n, out, stderr)
			}
		}
	}
}

// checkSnapshot holds the session file against the last answer.
func checkSnapshot(t *testing.T, ws, answer string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ws, ".coder/sessions/s1.json"))
	if err != nil || !bytes.Contains(text, []byte(answer)) {
		t.Errorf("the session file is not up to date: %v", err)
	}
}

// TestKillAtAnyTime kills a running process from outside and goes on with its
// session, again and again in the same session.
func TestKillAtAnyTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	rounds, chance := 12, rand.New(rand.NewPCG(1, 2))
	if n, err := strconv.Atoi(os.Getenv("CODER_SOAK")); err == nil {
		rounds, chance = n, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	p := newProgram(t)
	p.file("a.txt", "x\n")
	script := p.file("model", "wait 5ms\nsay one two three\ncall read {\"path\":\"a.txt\"}\ncall bash {\"command\":\"sleep 0.02\"}\n---\nwait 5ms\nsay done\n")
	if _, stderr, code := p.run("-p", "--auto-approve", "--session-id", "s1", "--script", script, "first"); code != 0 {
		t.Fatal(stderr)
	}
	seen := 0
	for range rounds {
		c := p.cmd("-p", "--auto-approve", "-r", "s1", "--script", script, "again")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(chance.IntN(120)) * time.Millisecond)
		_ = c.Process.Kill()
		_ = c.Wait()
		rs, err := readSession(p.ws, "s1")
		if err != nil {
			t.Fatal(err)
		}
		if len(rs) < seen {
			t.Fatalf("%d records, where there were %d", len(rs), seen)
		}
		seen = len(rs)
	}
	if out, stderr, code := p.run("-p", "--auto-approve", "-r", "s1", "--script", script, "last"); code != 0 || out != "done\n" {
		t.Fatalf("%q, code %d: %s", out, code, stderr)
	}
	if err := wellFormed(p.ws); err != nil {
		t.Error(err)
	}
}

// TestTheLastSessionIsTheOneLastUsed is not misled by a session that crashed
// and whose file was made later.
func TestTheLastSessionIsTheOneLastUsed(t *testing.T) {
	p := newProgram(t)
	script := p.file("model", "say hello\n")
	alive := p.env
	p.env = append(alive, "CODER_TEST_DIE=5+")
	p.run("-p", "--session-id", "s1", "--script", script, "first")
	p.env = alive
	p.run("-p", "--session-id", "s2", "--script", script, "second")
	if _, stderr, code := p.run("-p", "-c", "--script", script, "third"); code != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(filepath.Join(p.ws, ".coder/log/s2/conversation.jsonl"))
	if err != nil || !strings.Contains(string(text), "third") {
		t.Errorf("the prompt went to another session: %v", err)
	}
}

// TestAReaderThatGoesAway ends the turn in good order.
func TestAReaderThatGoesAway(t *testing.T) {
	p := newProgram(t)
	p.file("a.txt", "x")
	script := p.file("model", "call read {\"path\":\"a.txt\"}\nrepeat 30\n---\nsay done\n")
	for _, format := range []string{"--output-format=stream-json", "--events=native"} {
		c := p.cmd("-p", format, "--session-id", "s"+format[2:3], "--script", script, "go")
		var errs bytes.Buffer
		c.Stderr = &errs
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout = w
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		_, _ = r.Read(make([]byte, 1))
		_ = r.Close()
		_ = c.Wait()
		if code := c.ProcessState.ExitCode(); code != 1 || strings.Count(errs.String(), "no longer read") != 1 {
			t.Errorf("%s: code %d: %s", format, code, &errs)
		}
		rs, err := readSession(p.ws, "s"+format[2:3])
		if err != nil || len(rs) == 0 {
			t.Fatalf("%s: %d records, %v", format, len(rs), err)
		}
		if _, ok := rs[len(rs)-1].Event.(event.TaskFailed); !ok {
			t.Errorf("%s: the last record is %T", format, rs[len(rs)-1].Event)
		}
	}
}

// TestInterruptFromOutside stops a running turn the polite way.
func TestInterruptFromOutside(t *testing.T) {
	p := newProgram(t)
	script := p.file("model", "say starting\ncall bash {\"command\":\"touch begun; sleep 60; touch ended\"}\n---\nsay never\n")
	c := p.cmd("-p", "--auto-approve", "--session-id", "s1", "--script", script, "go")
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(p.ws, "begun"))
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 130 || !strings.Contains(errs.String(), "coder: interrupted") {
		t.Errorf("code %d: %s", code, &errs)
	}
	if err := wellFormed(p.ws); err != nil {
		t.Error(err)
	}
	rs, err := readSession(p.ws, "s1")
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := rs[len(rs)-1].Event.(event.TaskCanceled); !ok || e.Reason != "interrupted" {
		t.Errorf("the last record is %T", rs[len(rs)-1].Event)
	}
	if _, _, code := p.run("-p", "-c", "--script", p.file("m2", "want interrupted\nsay ok"), "go on"); code == 0 {
		t.Log("resumed")
	} else {
		t.Errorf("resuming gave code %d", code)
	}
}

// TestTwoProcessesOnOneSession lets the second one know who holds it.
func TestTwoProcessesOnOneSession(t *testing.T) {
	p := newProgram(t)
	script := p.file("model", "call bash {\"command\":\"touch begun; sleep 60\"}\n---\nsay never\n")
	c := p.cmd("-p", "--auto-approve", "--session-id", "s1", "--script", script, "go")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(p.ws, "begun"))
	_, stderr, code := p.run("-p", "-r", "s1", "--script", script, "me too")
	if code != 1 || !strings.Contains(stderr, fmt.Sprintf("session s1 is in use by process %d", c.Process.Pid)) {
		t.Errorf("code %d: %s", code, stderr)
	}
	_ = c.Process.Signal(os.Interrupt)
	_ = c.Wait()
	if err := wellFormed(p.ws); err != nil {
		t.Error(err)
	}
}

// waitFor waits until a file that is like path exists. It is not a measurement: it only gives up
// when something is broken.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 90000 {
		if found, _ := filepath.Glob(path); len(found) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s never came to be", path)
}
