//go:build unix

package tty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// playEnv names the part that this test binary plays when a test starts it
// again on a terminal of its own.
const playEnv = "TTY_TEST_PART"

func TestMain(m *testing.M) {
	part, ok := parts[os.Getenv(playEnv)]
	if !ok {
		goleak.VerifyTestMain(m)
		return
	}
	part()
}

var parts = map[string]func(){"keys": keysPart, "panic": panicPart, "shell": shellPart, "ask": askPart}

// keysPart says every event it reads, and leaves at q.
func keysPart() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	t, err := Open(os.Stdin, os.Stdout, Options{})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	defer t.Close()
	t.SetRaw()
	fmt.Print("ready\r\n")
	for {
		events, err := t.Read(ctx)
		if err != nil {
			fmt.Printf("end: %v\r\n", err)
			return
		}
		for _, e := range events {
			if !act(t, e) {
				return
			}
		}
	}
}

// askPart asks for the background and lets go of the terminal when an answer is there,
// unread; then it says what is left of it.
func askPart() {
	t, err := Open(os.Stdin, os.Stdout, Options{Background: true})
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	t.SetRaw()
	t.Restore()
	t.SetRaw() // which does not ask again
	fmt.Print("ready\r\n")
	t.poll(waitForever)
	t.askedAt = time.Now()
	t.Close()
	n, err := unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, 0)
	fmt.Println("left", n, err)
}

func act(t *Terminal, e Event) bool {
	switch e := e.(type) {
	case Resize:
		cols, rows := t.Size()
		fmt.Printf("size %d %d\r\n", cols, rows)
	case Paste:
		fmt.Printf("pasted %d lines\r\n", strings.Count(e.Text, "\r"))
	default:
		fmt.Printf("<%s>\r\n", said([]Event{e}))
	}
	switch k, _ := e.(Key); keySaid(k) {
	case "ctrl+z":
		t.Suspend()
	case "q":
		return false
	}
	return true
}

func panicPart() {
	t, err := Open(os.Stdin, os.Stdout, Options{})
	if err != nil {
		panic(err)
	}
	defer t.Close()
	t.SetRaw()
	fmt.Print("ready\r\n")
	t.Read(context.Background())
	panic("on purpose")
}

// shellPart is a shell with one job, which it continues once when it stops.
func shellPart() {
	signal.Ignore(syscall.SIGTTOU)
	before, _ := term.GetState(0)
	job := exec.Command(os.Args[0])
	job.Env = append(os.Environ(), playEnv+"=keys")
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := job.Start(); err != nil {
		fmt.Println("start:", err)
		return
	}
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(job.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
			fmt.Println("job ended:", status.ExitStatus(), err)
			return
		}
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp())
		now, _ := term.GetState(0)
		fmt.Println("job stopped, terminal restored:", reflect.DeepEqual(before, now))
		time.Sleep(2 * stopTimeout) // as long as a person is away, at least
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, job.Process.Pid)
		unix.Kill(-job.Process.Pid, unix.SIGCONT)
	}
}

// stage is a terminal with a program on it.
type stage struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	before *term.State
	cmd    *exec.Cmd
	chunks chan string
	seen   string // not yet expected
	said   string // before the last that was
}

const patience = 2 * time.Minute

func play(t *testing.T, part string) *stage {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo terminal: ", err)
	}
	pty.Setsize(master, &pty.Winsize{Cols: 80, Rows: 24})
	s := &stage{t: t, master: master, slave: slave, chunks: make(chan string)}
	if s.before, err = term.GetState(int(slave.Fd())); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), playEnv+"="+part)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.listen()
	t.Cleanup(s.leave)
	return s
}

func (s *stage) listen() {
	defer close(s.chunks)
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		if err != nil {
			return
		}
		s.chunks <- string(buf[:n])
	}
}

func (s *stage) leave() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.slave.Close()
	for range s.chunks {
	}
	s.master.Close()
}

// expect waits until want has been said since the last time.
func (s *stage) expect(want string) {
	s.t.Helper()
	late := time.After(patience)
	for !strings.Contains(s.seen, want) {
		select {
		case chunk := <-s.chunks:
			s.seen += chunk
		case <-late:
			s.t.Fatalf("no %q in %q", want, s.seen)
		}
	}
	s.said, s.seen, _ = strings.Cut(s.seen, want)
}

func (s *stage) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.master, text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) isRaw() bool {
	s.t.Helper()
	now, err := term.GetState(int(s.slave.Fd()))
	if err != nil {
		s.t.Fatal(err)
	}
	return !reflect.DeepEqual(now, s.before)
}

// ended waits for the program to end, and checks what it left.
func (s *stage) ended() {
	s.t.Helper()
	s.expect(reportsOff)
	ended := make(chan struct{})
	go func() { s.cmd.Wait(); close(ended) }()
	for {
		select {
		case <-s.chunks:
		case <-ended:
			if s.isRaw() {
				s.t.Error("the terminal was not restored")
			}
			return
		case <-time.After(patience):
			s.t.Fatal("the program does not end")
		}
	}
}

func TestTheTerminalIsRestored(t *testing.T) {
	tests := []struct {
		name, part string
		end        func(s *stage)
	}{
		{"at the end", "keys", func(s *stage) { s.send("q") }},
		{"after a panic", "panic", func(s *stage) { s.send("x") }},
		{"after a signal", "keys", func(s *stage) { s.cmd.Process.Signal(syscall.SIGTERM) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, tt.part)
			s.expect(reportsOn)
			s.expect("ready")
			if !s.isRaw() {
				t.Error("not raw while running")
			}
			tt.end(s)
			s.ended()
		})
	}
}

func TestSuspendAndContinue(t *testing.T) {
	s := play(t, "shell")
	s.expect("ready")
	s.send("\x1a")
	s.expect(reportsOff)
	s.expect("job stopped, terminal restored: true")
	s.expect(reportsOn)
	s.expect("Resumed")
	if !s.isRaw() {
		t.Error("not raw after going on")
	}
	s.send("a")
	s.expect("<a>")
	if strings.Contains(s.said, "Resumed") {
		t.Error("told twice that it goes on")
	}
	s.send("q")
	s.expect("job ended: 0")
}

func TestSuspendWhereNobodyCouldContinueGoesOn(t *testing.T) {
	s := play(t, "keys")
	s.expect("ready")
	s.send("\x1a")
	s.expect("Resumed")
	s.send("a")
	s.expect("<a>")
}

func TestKeysOverATerminal(t *testing.T) {
	s := play(t, "keys")
	s.expect("ready")
	s.send("\x1b")
	s.expect("<esc>")
	s.send("\x1b[A你")
	s.expect("<up>")
	s.expect("<你>")
	s.send("\x03")
	s.expect("<ctrl+c>")
	pty.Setsize(s.master, &pty.Winsize{Cols: 33, Rows: 11})
	s.expect("size 33 11")
	s.send("\x1b[200~" + strings.Repeat("a line of text\r", 5000) + "\x1b[201~x")
	s.expect("pasted 5000 lines")
	s.expect("<x>")
	s.send("q")
	s.ended()
}

func TestReadEndsWithItsContext(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo terminal: ", err)
	}
	defer master.Close()
	defer slave.Close()
	tt, err := Open(slave, slave, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tt.Close()
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { _, err := tt.Read(ctx); ended <- err }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Read: %v", err)
		}
	}
	if err := tt.SetRaw(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(master, "x")
	if events, err := tt.Read(context.Background()); err != nil || said(events) != "x" {
		t.Errorf("after a cancelled Read: %s, %v", said(events), err)
	}
	master.Close()
	if _, err := tt.Read(context.Background()); err != io.EOF {
		t.Errorf("without a terminal: %v", err)
	}
}

func TestAPipeIsNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Open(r, w, Options{}); !errors.Is(err, ErrNotTerminal) {
		t.Errorf("Open: %v", err)
	}
}

// The answer to a question to the terminal is an event, or is taken on the way out: it is
// never left for whoever reads the terminal next.
func TestTheBackgroundIsAskedOnceAndNothingIsLeft(t *testing.T) {
	s := play(t, "ask")
	s.expect("ready")
	if n := strings.Count(s.said, askBackground); n != 1 {
		t.Errorf("asked %d times: %q", n, s.said)
	}
	s.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
	s.expect("left 0 <nil>")
	k := play(t, "keys")
	k.expect("ready")
	if strings.Contains(k.said, askBackground) {
		t.Error("it was asked without being wanted")
	}
	k.send("a\x1b]11;rgb:0000/0000/0000\abq")
	k.expect("<a>")
	k.expect("<background(dark)>")
	k.expect("<b>")
	k.ended()
}
