package confine_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/host/sandbox"
	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// The test program is also what a command reaches sockets with.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "__socket" {
		syscall.Exit(useSocket(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// useSocket dials a socket, or listens on one until it is ended.
func useSocket(use, path string) int {
	if use == "listen" {
		l, err := net.Listen("unix", path)
		if err == nil {
			fmt.Println("listening")
			_, err = l.Accept()
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c.Close()
	return 0
}

// TestANamedSocketNeedsAPersonsYes dials sockets of programs outside from confined
// lines that name them.
func TestANamedSocketNeedsAPersonsYes(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if backend := sandbox.Find(t.Context(), sandbox.Options{Exe: exe}).Backend(); backend != sandbox.Namespaces {
		t.Skip("there are no namespaces here")
	}
	dir, err := os.MkdirTemp("/tmp", "c-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"work", "home/.gnupg/d", "run/gnupg"} {
		if err := os.MkdirAll(in(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sockets := []string{"tmux", "work/nvim", "home/.gnupg/S.gpg-agent", "home/.gnupg/d/S.gpg-agent", "run/gnupg/S.gpg-agent", "agent"}
	for _, name := range sockets {
		l, err := net.Listen("unix", in(name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	other := exec.Command(exe, "__socket", "listen", "relative") // a name within where it works
	other.Dir = in("work")
	startListening(t, other)
	if err := os.Symlink(in("tmux"), in("work/link")); err != nil {
		t.Fatal(err)
	}

	var named []string
	o := confine.Options{
		Demand: confine.Auto, Exe: exe, Root: in("work"), Home: in("home"), Runtime: in("run"), Agent: in("agent"), Write: []string{in("home/.gnupg")},
		Network: func() bool { return true }, LooksIncomplete: func() bool { return false },
		NamedFiles: func(risk.Report) []string { return named },
	}
	c := confine.New(o)
	defer c.Close()
	o.Rerun = true
	rerun := confine.New(o)
	defer rerun.Close()
	reaches := func(c *confine.Confiner, approved bool, line tool.Line, socket string) bool {
		got, err := c.Command(tool.WithApproval(t.Context(), approved), line)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "__socket", "dial", socket)
		cmd.Dir = o.Root
		sandbox.Wrapper{Argv: got.Wrapper, Attr: got.Attr}.Apply(cmd)
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), sandbox.SetupPrefix) {
			t.Fatalf("%s: %s", socket, out)
		}
		return err == nil
	}
	for _, of := range []struct {
		line, socket string
		named        []string
		approved     bool // whether a yes makes it reachable
	}{
		{"tmux -S tmux send-keys", in("tmux"), []string{in("tmux")}, true},
		{"tmux -S link send-keys", in("work/link"), []string{in("work/link"), in("tmux")}, true},
		{"nvim --server nvim", in("work/nvim"), []string{in("work/nvim")}, true},
		{"nvim --server relative", in("work/relative"), []string{in("work/relative")}, true},
		{"x", in("home/.gnupg/S.gpg-agent"), []string{in("home/.gnupg/S.gpg-agent")}, true},
		{"x", in("home/.gnupg/d/S.gpg-agent"), []string{in("home/.gnupg/d")}, false},
		{"x", in("run/gnupg/S.gpg-agent"), []string{in("run/gnupg")}, false},
		{"gpg --sign x", in("run/gnupg/S.gpg-agent"), nil, true},
		{"ssh host", in("agent"), nil, true},
		{"make", in("tmux"), nil, false},
	} {
		named = of.named
		if reaches(c, false, read(of.line), of.socket) {
			t.Errorf("%s: reaches %s unasked", of.line, of.socket)
		}
		if got := reaches(c, true, read(of.line), of.socket); got != of.approved {
			t.Errorf("%s: with a yes it reaches %s: %v", of.line, of.socket, got)
		}
		if reaches(rerun, true, read(of.line), of.socket) {
			t.Errorf("%s: reaches %s with a yes of a record", of.line, of.socket)
		}
	}

	// A server of the session's own is there for its next commands.
	named = nil
	got, err := c.Command(t.Context(), read("server"))
	if err != nil {
		t.Fatal(err)
	}
	own := exec.Command(exe, "__socket", "listen", in("work/own"))
	own.Dir = o.Root
	sandbox.Wrapper{Argv: got.Wrapper, Attr: got.Attr}.Apply(own)
	startListening(t, own)
	if !reaches(c, false, read("make"), in("work/own")) {
		t.Error("a server that a command started is out of reach of the next")
	}
}

// startListening starts a program and returns once it listens.
func startListening(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
	})
	if n, _ := out.Read(make([]byte, 32)); n == 0 {
		t.Fatal("it does not listen")
	}
}

// TestOnlyAnApprovedLineIsUnbounded: whether or not anything else confines it.
func TestOnlyAnApprovedLineIsUnbounded(t *testing.T) {
	o, _ := helpless(t, confine.Off)
	o.MemoryMB, o.Processes = 64, 7
	rerun := o
	rerun.Rerun = true
	for _, c := range []struct {
		what     string
		o        confine.Options
		approved bool
		line     tool.Line
		bounded  bool
	}{
		{"let pass", o, false, read("make"), true},
		{"only reads", o, false, read("ls"), true},
		{"approved", o, true, read("make"), false},
		{"approved on record", rerun, true, read("make"), true},
	} {
		got, err := confine.New(c.o).Command(tool.WithApproval(t.Context(), c.approved), c.line)
		if err != nil || slices.Contains(got.Wrapper, "--bounds=67108864,7") != c.bounded {
			t.Errorf("%s: bounded is not %v: %q, %v", c.what, c.bounded, got.Wrapper, err)
		}
		through, release := got.TightenWrapper()
		release()
		if grouped := len(through) > len(got.Wrapper); grouped && !c.bounded || !slices.Equal(through[len(through)-len(got.Wrapper)+2:], got.Wrapper[2:]) {
			t.Errorf("%s: held by %q", c.what, through)
		}
	}
	o.MemoryMB = -1
	got, err := confine.New(o).Command(t.Context(), read("make"))
	if argv := strings.Join(got.Wrapper, " "); err != nil || !strings.Contains(argv, "--bounds=") || strings.Contains(argv, "--bounds=-") {
		t.Errorf("half of the memory: %q, %v", argv, err)
	}
}
