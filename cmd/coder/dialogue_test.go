package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// dialogue lets a file drive a program by lines: dialogue CODE FILE COMMAND...,
// where CODE is the exit code to expect. What follows "> " is sent; "< " waits
// for a line that the expression behind it matches, and "! " makes sure that
// none matched since the one before. A line "end" ends the input, "term" tells
// the program to end.
func dialogue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: dialogue CODE FILE COMMAND...")
	}
	script := ts.ReadFile(args[1])
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "HOME="+ts.Getenv("HOME"), "PATH="+ts.Getenv("PATH"), noRaceWait)
	if bin, err := exec.LookPath(args[2]); err == nil {
		cmd.Path, cmd.Err = bin, nil
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	d := &talk{ts: ts, in: in, out: bufio.NewReader(out)}
	for line := range strings.Lines(script) {
		d.line(strings.TrimRight(line, "\n"), cmd)
	}
	_ = in.Close() // it may be closed
	_, _ = io.Copy(&d.all, d.out)
	err = cmd.Wait()
	ts.Logf("%s\nstderr: %s", d.all.String(), stderr.String())
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "said"), []byte(d.all.String()), 0o600))
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "warned"), []byte(stderr.String()), 0o600))
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}

type talk struct {
	ts    *testscript.TestScript
	in    io.WriteCloser
	out   *bufio.Reader
	all   strings.Builder
	since []string
}

func (d *talk) line(line string, cmd *exec.Cmd) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case ">":
		_, err := io.WriteString(d.in, rest+"\n")
		d.ts.Check(err)
	case "<":
		re := regexp.MustCompile(rest)
		for d.since = nil; ; {
			said, err := d.out.ReadString('\n')
			d.all.WriteString(said)
			if err != nil {
				d.ts.Fatalf("no line matched %s; these came:\n%s", rest, d.all.String())
			}
			if re.MatchString(said) {
				return
			}
			d.since = append(d.since, said)
		}
	case "!":
		for _, said := range d.since {
			if regexp.MustCompile(rest).MatchString(said) {
				d.ts.Fatalf("%s matched: %s", rest, said)
			}
		}
	case "end":
		d.ts.Check(d.in.Close())
	case "term":
		d.ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// sdks is where make tools puts the packages that drive sessions.
func sdks(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	return filepath.Join(home, ".local", "share", "agent-sdks")
}

// TestSDKsDriveSessions has the packages that people drive agents with do whole
// sessions: permissions, other arguments, hooks, an interrupt, another model.
func TestSDKsDriveSessions(t *testing.T) {
	dir := sdks(t)
	here, err := filepath.Abs(filepath.Join("testdata", "drive"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		with  []string
		needs string
	}{
		"python":     {[]string{filepath.Join(dir, "python", "bin", "python"), "sdk.py"}, "python/bin/python"},
		"typescript": {[]string{"node", "sdk.mjs"}, "node_modules/@anthropic-ai/claude-agent-sdk"},
	} {
		t.Run(name, func(t *testing.T) { drivenBy(t, dir, tt.needs, here, tt.with) })
	}
}

// drivenBy runs a program that drives the one under test, in a folder of its own.
func drivenBy(t *testing.T, dir, needs, here string, with []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, needs)); err != nil {
		t.Skipf("%s is not there (make tools installs it)", needs)
	}
	if _, err := exec.LookPath(with[0]); err != nil {
		t.Skipf("%s is not there", with[0])
	}
	coder, err := exec.LookPath("coder")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), with[0], filepath.Join(here, with[1]), coder, filepath.Join(here, "script"), filepath.Join(here, "counts"), filepath.Join(dir, "node_modules"))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "HOME="+t.TempDir(), noRaceWait)
	said, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) || !strings.Contains(string(said), "driven\n") {
		t.Errorf("%v\n%s", err, said)
	}
}
