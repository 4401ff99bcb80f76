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
// the program to end, "touch FILE" makes a file. What a named group matched stands for its name behind a $
// in what is sent later, as $WORK does.
func dialogue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: dialogue CODE FILE COMMAND...")
	}
	script := ts.ReadFile(args[1])
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "HOME="+ts.Getenv("HOME"), "PATH="+ts.Getenv("PATH"), noRaceWait)
	if how := ts.Getenv("CODER_TEST_DISK"); how != "" {
		cmd.Env = append(cmd.Env, "CODER_TEST_DISK="+how)
	}
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
	late := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	d := &talk{ts: ts, in: in, out: bufio.NewReader(out), known: []string{"$WORK", ts.Getenv("WORK")}}
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
	known []string // names and what they stand for
}

func (d *talk) line(line string, cmd *exec.Cmd) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case ">":
		_, err := io.WriteString(d.in, strings.NewReplacer(d.known...).Replace(rest)+"\n")
		d.ts.Check(err)
	case "touch":
		d.ts.Check(os.WriteFile(filepath.Join(cmd.Dir, rest), nil, 0o600))
	case "<":
		re := regexp.MustCompile(rest)
		for d.since = nil; ; {
			said, err := d.out.ReadString('\n')
			d.all.WriteString(said)
			if err != nil {
				d.ts.Fatalf("no line matched %s; these came:\n%s", rest, d.all.String())
			}
			if m := re.FindStringSubmatch(said); m != nil {
				for i, name := range re.SubexpNames() {
					if name != "" {
						d.known = append(d.known, "$"+name, m[i])
					}
				}
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
		_, _ = io.Copy(&d.all, d.out) // until it has ended
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

// TestSDKsDriveSessions has the packages that people drive agents with, and those
// that editors are made with, do whole sessions: permissions, other arguments,
// hooks, diffs, an interrupt, another model.
func TestSDKsDriveSessions(t *testing.T) {
	dir := sdks(t)
	here, err := filepath.Abs(filepath.Join("testdata", "drive"))
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(dir, "python", "bin", "python")
	for name, tt := range map[string]struct {
		with  []string
		needs string
		plays string
	}{
		"python":            {[]string{python, "sdk.py"}, "python/lib/*/site-packages/claude_agent_sdk", "script"},
		"typescript":        {[]string{"node", "sdk.mjs"}, "node_modules/@anthropic-ai/claude-agent-sdk", "script"},
		"python editor":     {[]string{python, "editor.py"}, "python/lib/*/site-packages/acp", "edited"},
		"typescript editor": {[]string{"node", "editor.mjs"}, "node_modules/@agentclientprotocol/sdk", "edited"},
	} {
		t.Run(name, func(t *testing.T) {
			if found, err := filepath.Glob(filepath.Join(dir, tt.needs)); err != nil || len(found) == 0 {
				t.Skipf("%s is not there (make tools installs it)", tt.needs)
			}
			drivenBy(t, append(tt.with, filepath.Join(here, tt.plays)), here, dir)
		})
	}
}

// drivenBy runs a program that drives the one under test, in a folder of its own:
// its interpreter, its file, and the script that plays the model.
func drivenBy(t *testing.T, with []string, here, dir string) {
	t.Helper()
	if _, err := exec.LookPath(with[0]); err != nil {
		t.Skipf("%s is not there", with[0])
	}
	coder, err := exec.LookPath("coder")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), with[0], filepath.Join(here, with[1]), coder, with[2], filepath.Join(here, "counts"), filepath.Join(dir, "node_modules"))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "HOME="+t.TempDir(), noRaceWait)
	said, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) || !strings.Contains(string(said), "driven\n") {
		t.Errorf("%v\n%s", err, said)
	}
}
