package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"coder/internal/core/event"

	"github.com/creack/pty"
)

// held is the program where it waits for something that never comes.
type held struct {
	*program
	*exec.Cmd
	said   safeBuffer // on stderr, or at the terminal
	stdin  io.Writer  // or the keyboard
	ended  chan error
	ending func() // lets go of what it waits for
}

// safeBuffer is what a program said so far.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// hold starts the program with an open pipe for its input.
func hold(t *testing.T, args ...string) *held {
	h := &held{program: newProgram(t)}
	h.file("model", "say ok\nrepeat\n")
	h.Cmd = h.cmd(append([]string{"--script", "model", "--session-id", "s1"}, args...)...)
	h.Stderr = &h.said
	return h
}

// start starts it. Stdin is a pipe that stays open unless the test set another.
func (h *held) start() *held {
	h.t.Helper()
	if h.Stdin == nil {
		in, err := h.StdinPipe()
		if err != nil {
			h.t.Fatal(err)
		}
		h.stdin = in
	}
	if err := h.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.ended = make(chan error, 1)
	go func() { h.ended <- h.Wait() }()
	h.t.Cleanup(func() {
		_ = h.Process.Kill()
		if h.ending != nil {
			h.ending()
		}
	})
	return h
}

// at runs it at a terminal of the given kind. The screen is read unless it is
// to be stuck.
func (h *held) at(kind string, stuck bool) *held {
	h.t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		h.t.Fatal(err)
	}
	h.Stdin, h.Stdout, h.Stderr, h.stdin = slave, slave, slave, master
	h.Env = append(h.Env, "TERM="+kind, "LANG=C.UTF-8")
	h.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	h.start()
	_ = slave.Close()
	if !stuck {
		go func() { _, _ = io.Copy(&h.said, master) }()
	}
	h.ending = func() { _ = master.Close() }
	return h
}

// until waits for what it says.
func (h *held) until(text string) *held {
	h.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(h.said.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("it never said %q but:\n%s", text, h.said.String())
		}
	}
	return h
}

func (h *held) write(text string) *held {
	h.t.Helper()
	if _, err := io.WriteString(h.stdin, text); err != nil {
		h.t.Fatal(err)
	}
	return h
}

func (h *held) made(name string) *held {
	h.t.Helper()
	waitFor(h.t, filepath.Join(h.ws, name))
	return h
}

const userLine = `{"type":"user","message":{"content":"hi"}}` + "\n"

// waits are the places where the program may have to wait without end.
var waits = map[string]func(t *testing.T) *held{
	"prompt on stdin": func(t *testing.T) *held { return hold(t, "-p").start().until("waiting for the end of stdin") },
	"stream-json input": func(t *testing.T) *held {
		return hold(t, "-p", "--input-format", "stream-json").start().write(userLine).made(".coder/sessions/s1.json")
	},
	"half a message": func(t *testing.T) *held {
		return hold(t, "-p", "--input-format", "stream-json").start().write(userLine + `{"type":`).made(".coder/sessions/s1.json")
	},
	"piped lines": func(t *testing.T) *held { return hold(t).start().write("hi\n").made(".coder/sessions/s1.json") },
	"a named pipe as stdin": func(t *testing.T) *held {
		h := hold(t)
		path := filepath.Join(h.ws, "in")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		h.Stdin, h.stdin, h.ending = f, f, func() { _ = f.Close() }
		return h.start().write("hi\n").made(".coder/sessions/s1.json")
	},
	"stalled stdout": func(t *testing.T) *held {
		h := hold(t, "-p", "--output-format", "stream-json", "go")
		return h.stall(&h.Stdout)
	},
	"stalled events": func(t *testing.T) *held {
		h := hold(t, "-p", "--events", "native", "go")
		return h.stall(&h.Stdout)
	},
	"stalled stderr": func(t *testing.T) *held {
		h := hold(t, "-p", "--verbose", "go")
		return h.stall(&h.Stderr)
	},
	"stalled lines": func(t *testing.T) *held {
		h := hold(t, "go")
		return h.stall(&h.Stdout)
	},
	"a silent provider": func(t *testing.T) *held { return silentProvider(t, hold(t, "-p", "go")).start() },
	"a silent provider, at the terminal": func(t *testing.T) *held {
		return silentProvider(t, hold(t, "go")).at("xterm", false)
	},
	"a command":                      func(t *testing.T) *held { return running(t, "touch begun; sleep 300") },
	"a command that ignores signals": func(t *testing.T) *held { return running(t, "trap '' TERM INT HUP; touch begun; sleep 300; sleep 300") },
	"a command with a session of its own": func(t *testing.T) *held {
		return running(t, "setsid sh -c 'touch begun; exec sleep 300' & wait; sleep 300")
	},
	"a background command": func(t *testing.T) *held {
		h := hold(t, "-p", "--auto-approve", "--input-format", "stream-json")
		h.file("model", `call bash {"command": "touch begun; exec sleep 300", "run_in_background": true}`+"\n---\nsay ok\nrepeat\n")
		return h.start().write(userLine).made("begun").made(".coder/sessions/s1.json")
	},
	"trust": func(t *testing.T) *held {
		h := hold(t)
		if err := os.Mkdir(filepath.Join(h.ws, ".coder"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.file(".coder/config.json", `{"permission": {"bash": "allow"}}`)
		return h.at("xterm", false).until("[y/N]")
	},
	"first start": func(t *testing.T) *held {
		h := hold(t)
		h.Args = h.Args[:1]
		return h.at("xterm", false).until("another address")
	},
	"a terminal that prints lines": func(t *testing.T) *held { return hold(t).at("dumb", false).until("[build]") },
	"a question in lines": func(t *testing.T) *held {
		return asking(hold(t, "go")).at("dumb", false).until("No, and tell coder")
	},
	"a terminal":               func(t *testing.T) *held { return hold(t).at("xterm", false).until("[build]") },
	"a question at a terminal": func(t *testing.T) *held { return asking(hold(t, "go")).at("xterm", false).until("No, and tell coder") },
	"a stalled terminal": func(t *testing.T) *held {
		h := hold(t, "--yolo", "go")
		h.file("model", `call bash {"command": "touch begun"}`+"\n---\nsay "+words("word", 40_000)+"\nrepeat\n")
		h.at("xterm", true).made("begun")
		return h.full(h.stdin.(*os.File))
	},
	"an editor": func(t *testing.T) *held {
		h := hold(t)
		h.Env = append(h.Env, "EDITOR="+editor(t, "touch begun\nexec sleep 300\n"))
		return h.at("xterm", false).until("[build]").write("\x07").made("begun")
	},
}

// editor is a program outside the workspace: none is started from there.
func editor(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// stall gives the program an output that nobody reads, and more to say than
// fits into it.
func (h *held) stall(to *io.Writer) *held {
	h.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	h.file("model", "reason "+words("thought", 20_000)+"\nsay "+words("word", 60_000)+"\ncall bash {\"command\": \"touch begun\"}\n---\nsay never\n")
	*to, h.Stdin = w, strings.NewReader("")
	h.start()
	_ = w.Close()
	h.ending = func() { _ = r.Close() }
	return h.full(r)
}

// words are many words, none like the one before: a reply that only repeats itself
// is ended.
func words(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", word, i)
	}
	return b.String()
}

// full waits until the program is stuck because r takes nothing more.
func (h *held) full(r *os.File) *held {
	h.t.Helper()
	size, end := 0, time.Now().Add(patience)
	for ; time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		now := unread(h.t, r)
		if now > 3<<10 && now == size {
			return h
		}
		size = now
	}
	h.t.Fatalf("%d bytes wait to be read, and it goes on", size)
	return nil
}

// silentProvider has h talk to a server that never answers.
func silentProvider(t *testing.T, h *held) *held {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	begun := filepath.Join(h.ws, "begun")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = os.WriteFile(begun, nil, 0o600)
		}
	}()
	h.Args = append(h.Args[:1], h.Args[3:]...) // without the script
	h.Env = append(h.Env, "CODER_BASE_URL=http://"+l.Addr().String(), "CODER_API_KEY=k", "CODER_MODEL=m")
	h.Stdin = strings.NewReader("")
	return h
}

// running holds the program while a command runs.
func running(t *testing.T, command string) *held {
	h := hold(t, "-p", "--auto-approve", "go")
	h.file("model", "call bash {\"command\": \""+command+"\"}\n---\nsay never\n")
	h.Stdin = strings.NewReader("")
	return h.start().made("begun")
}

// asking has the model ask for something that must be approved.
func asking(h *held) *held {
	h.file("model", "call bash {\"command\": \"touch approved\"}\n---\nsay never\n")
	return h
}

// TestEveryWaitCanBeEnded sends every signal to the program wherever it can be
// stuck: it ends by itself, with the code that says so, and leaves a session
// that can be gone on with and no process of its own.
func TestEveryWaitCanBeEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, wait := range waits {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			t.Run(name+"/"+sig.String(), func(t *testing.T) {
				t.Parallel()
				h := wait(t)
				if strings.HasPrefix(name, "a silent provider") {
					h.made("begun")
				}
				if err := h.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				h.ends()
			})
		}
	}
}

// ends waits for the end of the program and looks at what it left.
func (h *held) ends() {
	h.t.Helper()
	told := time.Now()
	select {
	case <-h.ended:
		h.t.Logf("it took %v", time.Since(told).Round(time.Millisecond))
	case <-time.After(patience):
		h.t.Fatalf("it does not end; it said:\n%s", h.said.String())
	}
	if code := h.ProcessState.ExitCode(); code != 130 {
		h.t.Errorf("exit code %d: %s", code, h.said.String())
	}
	h.noChildren()
	rs, err := readSession(h.ws, "s1")
	if err != nil {
		h.t.Error(err)
	}
	if len(rs) == 0 {
		return
	}
	switch e := rs[len(rs)-1].Event.(type) {
	case event.InteractionRequested: // it stays open
	case event.TaskCanceled, event.TaskCompleted, event.TaskFailed:
		if err := wellFormed(h.ws); err != nil {
			h.t.Error(err)
		}
	default:
		h.t.Errorf("the last record is %T", e)
	}
}

// noChildren checks that no command of the workspace runs any more.
func (h *held) noChildren() {
	h.t.Helper()
	mark := []byte("CODER_WORKSPACE=" + h.ws + "\x00")
	var left []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left = nil
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range environs {
			if env, err := os.ReadFile(path); err == nil && bytes.Contains(append(env, 0), mark) {
				line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
				left = append(left, string(line))
			}
		}
		if len(left) == 0 {
			return
		}
	}
	h.t.Errorf("still running: %q", left)
}

// TestCtrlCEndsEveryWaitAtATerminal is the same with the key.
func TestCtrlCEndsEveryWaitAtATerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, wait := range waits {
		switch name {
		case "trust", "first start", "a terminal that prints lines", "a question in lines", "a terminal", "a question at a terminal", "a silent provider, at the terminal":
		default:
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := wait(t)
			if name == "a silent provider, at the terminal" {
				h.made("begun")
			}
			h.write("\x03").ends()
		})
	}
}
