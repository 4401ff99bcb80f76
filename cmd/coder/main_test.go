package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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
	"coder/internal/cli"
	"coder/internal/core/event"
	"coder/internal/host/disk"
	"coder/testkit/faultdisk"
	"coder/testkit/lsptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary double as the program, so that scripts and
// crash tests run the real thing in processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"coder": func() {
			env := cli.NewEnv()
			env.WrapStore = func(s event.Store) event.Store {
				if path := os.Getenv("CODER_TEST_ACKS"); path != "" {
					s = acknowledged{s, path}
				}
				return mortal(s)
			}
			if by, err := time.ParseDuration(os.Getenv("CODER_TEST_CLOCK")); err == nil {
				env.Now = func() time.Time { return time.Now().Add(by) }
			}
			env.Managed = os.Getenv("CODER_TEST_MANAGED")
			env.TimeoutFactor, _ = strconv.Atoi(os.Getenv("CODER_TEST_PATIENCE"))
			if spec := os.Getenv("CODER_TEST_DISK"); spec != "" {
				env.Disk = faulty(spec)
			}
			if path := os.Getenv("CODER_TEST_TRACE"); path != "" {
				disk.Tracer = func(op, on string) { appendLine(path, op+" "+on) }
			}
			if os.Getenv("CODER_TEST_FAST") != "" {
				env.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
			}
			if address, key, ok := strings.Cut(os.Getenv("CODER_TEST_RELEASES"), " "); ok {
				env.Releases.Address, env.Releases.Key, app.Version = address, key, "1.2.3"
			}
			os.Exit(cli.Main(env))
		},
		"fakels":           lsptest.Main,
		"fakemcp":          fakeMCP,
		"conformingclient": conformingClient, "fetchpage": fetchPage,
	})
}

// appendLine adds a line to a file.
func appendLine(path, line string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(line + "\n")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		panic(err)
	}
}

// faulty is the disk that CODER_TEST_DISK asks for: "N ERROR [short] [ever]",
// such as "7 ENOSPC ever", or "OPERATION ERROR", such as "lock ENOTSUP".
func faulty(spec string) *faultdisk.Disk {
	words := strings.Fields(spec)
	d := &faultdisk.Disk{Err: diskErrors[words[1]], Short: slices.Contains(words, "short"), Ever: slices.Contains(words, "ever")}
	var err error
	if d.At, err = strconv.Atoi(words[0]); err != nil {
		d.What = words[0]
	}
	return d
}

// diskErrors are the ways in which CODER_TEST_DISK can fail.
var diskErrors = map[string]error{
	"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EDQUOT": syscall.EDQUOT, "EMFILE": syscall.EMFILE, "EROFS": syscall.EROFS, "ENOTSUP": syscall.ENOTSUP,
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			name, value, _ := strings.Cut(noRaceWait, "=")
			env.Setenv(name, value)
			env.Setenv("GOCACHE", goCache())
			top, err := filepath.Abs("../..")
			env.Setenv("REPOSITORY", top)
			env.Cd = filepath.Join(env.WorkDir, "w")
			return errors.Join(err, os.MkdirAll(home, 0o755), os.MkdirAll(env.Cd, 0o755))
		},
		Condition: func(cond string) (bool, error) {
			if cond != "cchooks" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return exec.Command("python3", "-c", "import cchooks").Run() == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"listen":    listen,
			"dialogue":  dialogue,
			"jsonlines": jsonLines,
			"cutfile":   cutFile,
			"respondto": respondTo,
			"tamper":    tamper,
			"drop":      drop,
			"graft":     graft,
			"wellformed": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(wellFormed(ts.MkAbs(args[0])))
			},
		},
	})
}

// goCache is where Go keeps what it has built, so that scripts with a home of
// their own need not build it again.
func goCache() string {
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "go-build")
}

// exits runs a command and checks its exit code: exits 42 coder -p.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var coded interface{ ExitCode() int }
		if !errors.As(err, &coded) {
			ts.Fatalf("%v", err)
		}
		got = coded.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// listen writes the address of a listener on this machine into a file, once it
// has seen that it can be reached: listen FILE.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listen FILE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	ts.Check(err)
	c.Close()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(l.Addr().String()), 0o600))
}

var interactionID = regexp.MustCompile(`"type":"UserInteractionRequested".*?"interactionId":"([^"]+)"`)

// respondTo answers the last question of a session: respondto SESSION CODE
// FLAGS..., where CODE is the exit code to expect and ID in flags the question's.
func respondTo(ts *testscript.TestScript, neg bool, args []string) {
	asked := interactionID.FindAllStringSubmatch(ts.ReadFile(".coder/log/"+args[0]+"/events.jsonl"), -1)
	if len(asked) == 0 {
		ts.Fatalf("nothing was asked in session %s", args[0])
	}
	id := asked[len(asked)-1][1]
	command := []string{args[1], "coder", "respond", id}
	for _, a := range args[2:] {
		command = append(command, strings.ReplaceAll(a, "ID.", id+"."))
	}
	exits(ts, neg, command)
}

// jsonLines checks that every line of a file is a JSON object.
func jsonLines(ts *testscript.TestScript, _ bool, args []string) {
	for i, line := range strings.Split(strings.TrimRight(ts.ReadFile(args[0]), "\n"), "\n") {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("%s:%d: %v: %s", args[0], i+1, err, line)
		}
	}
}

// cutFile cuts bytes off the end of a file: cutfile FILE 7.
func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	info, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()-int64(n)))
}

// mortal is the store of a process that is to be killed: with CODER_TEST_DIE
// set to N the process kills itself at the N-th record, after writing it if
// the number is followed by "+", before if not.
func mortal(s event.Store) event.Store {
	spec := os.Getenv("CODER_TEST_DIE")
	at, err := strconv.Atoi(strings.TrimSuffix(spec, "+"))
	if err != nil {
		return s
	}
	return &dying{Store: s, at: at, after: strings.HasSuffix(spec, "+")}
}

type dying struct {
	event.Store
	at    int
	after bool
	n     int
}

// Append is called by one writer at a time.
func (d *dying) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	d.n++
	if d.n == d.at && !d.after {
		kill()
	}
	err := d.Store.Append(ctx, last, rs...)
	if d.n == d.at {
		kill()
	}
	return err
}

func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
