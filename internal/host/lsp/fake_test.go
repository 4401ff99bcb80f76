package lsp

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"coder/testkit/lsptest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	lsptest.Main()
	goleak.VerifyTestMain(m)
}

// kindOf is a server that is this test binary.
func kindOf(t testing.TB) Kind {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Kind{
		Name: "fakels", Language: "Fake", Command: []string{self},
		Files: map[string]string{".fake": "fake"}, Markers: [][]string{{"fake.project"}},
		Settings: map[string]any{"fake": map[string]any{"colour": "blue"}},
	}
}

// open makes a pool whose server is a real process that behaves as how says,
// and sees that nothing of it is left in the end.
func open(t testing.TB, how string) (*Pool, string) {
	t.Helper()
	dir := t.TempDir()
	mark := "LSP_TEST_MARK=" + t.Name() + dir
	p := New(Options{
		Root: dir, Servers: []Kind{kindOf(t)}, Program: "test",
		Env: []string{lsptest.Env + "=" + how, mark, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"},
	})
	t.Cleanup(func() {
		p.Close()
		noneLeft(t, mark)
	})
	return p, dir
}

// noneLeft sees that there are no processes that have mark in their environment,
// giving those that were killed the time to die.
func noneLeft(t testing.TB, mark string) {
	t.Helper()
	for range 90000 {
		if len(marked(mark)) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	left := marked(mark)
	t.Errorf("processes left: %v", left)
	for _, pid := range left {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// marked finds the living processes that have mark in their environment.
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

// pipe is a line to a fake server in this process, for tests that need their
// own time.
type pipe struct {
	net.Conn
	server sync.WaitGroup
}

func (p *pipe) Wait()              { p.server.Wait() }
func (p *pipe) ExitReport() string { return "" }

// inside makes a pool whose servers are goroutines; how is asked for each new
// one how it is to behave.
func inside(t testing.TB, how func() string) *Pool {
	p := New(Options{Root: t.TempDir(), Servers: []Kind{kindOf(t)}})
	p.launch = func([]string, string, []string) (transport, error) {
		ours, theirs := net.Pipe()
		l := &pipe{Conn: ours}
		f := &lsptest.Server{How: how(), In: theirs, Out: theirs, Err: io.Discard, Exit: func(int) { theirs.Close() }}
		l.server.Go(func() {
			defer theirs.Close()
			f.Serve()
		})
		return l, nil
	}
	return p
}

func always(how string) func() string { return func() string { return how } }
