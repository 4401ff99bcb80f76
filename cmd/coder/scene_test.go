package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"coder/internal/host/patch"
	"coder/internal/ui/cells"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/txtar"
)

// verbs are what a scene is written in. testdata/screens/README.md tells them.
var verbs = map[string]func(s *scene, args []string) error{
	"coder":   (*scene).coder,
	"bare":    func(s *scene, args []string) error { return s.start(append(slices.Clone(s.flags), args...)...) },
	"plain":   (*scene).plain,
	"far":     (*scene).far,
	"sends":   (*scene).sends,
	"env":     (*scene).set,
	"serve":   (*scene).serve,
	"newer":   (*scene).newer,
	"looked":  (*scene).hasLooked,
	"keys":    (*scene).keys,
	"paste":   (*scene).paste,
	"wait":    (*scene).wait,
	"idle":    (*scene).idle,
	"screen":  (*scene).screen,
	"resize":  (*scene).resize,
	"signal":  (*scene).signal,
	"hangup":  (*scene).hangup,
	"shell":   (*scene).shell,
	"ends":    (*scene).ends,
	"release": func(s *scene, _ []string) error { return os.WriteFile(s.file("go-on"), nil, 0o644) },
	"empty":   func(s *scene, args []string) error { return os.WriteFile(s.file(args[0]), nil, 0o644) },
	"exit":    func(s *scene, args []string) error { code, _ := strconv.Atoi(args[0]); return s.exit(code) },
	"leave":   (*scene).leave,
	"made":    (*scene).made,
	"absent":  (*scene).absent,
	"holds":   (*scene).holds,
	"alive":   (*scene).alive,
	"gone":    (*scene).gone,
	"logged":  (*scene).logged,
	"same":    (*scene).same,
	"piped":   (*scene).piped,
	"respond": (*scene).respond,
	"also":    (*scene).also,
}

// coder starts the program with the script model and the session s, unless the
// arguments say otherwise.
// set adds variables; $HERE in one is the folder above the workspace.
func (s *scene) set(args []string) error {
	for _, arg := range args {
		s.env = append(s.env, strings.ReplaceAll(arg, "$HERE", s.dir))
	}
	return nil
}

func (s *scene) coder(args []string) error {
	resumes := slices.ContainsFunc(args, func(a string) bool { return a == "-c" || a == "-r" || a == "--session-id" })
	if !resumes {
		args = append([]string{"--session-id", "s"}, args...)
	}
	if !slices.Contains(args, "--script") {
		args = append([]string{"--script", "../model"}, args...)
	}
	return s.start(append(slices.Clone(s.flags), args...)...)
}

// keys presses keys: keys "hello\r".
func (s *scene) keys(args []string) error {
	s.mark = s.glass.received()
	for _, text := range args {
		if err := s.send(text); err != nil {
			return err
		}
	}
	return nil
}

// far puts a slow line between the program and the person, who types on without
// waiting: each key arrives by itself, and what is shown comes late: far 200ms.
func (s *scene) far(args []string) (err error) {
	s.lag, err = time.ParseDuration(args[0])
	return err
}

func (s *scene) send(text string) error {
	for s.lag > 0 && text != "" {
		n := max(1, cells.EscapeLen(text))
		if r, size := utf8.DecodeRuneInString(text); r != '\x1b' {
			n = size
		}
		if _, err := s.pty.WriteString(text[:n]); err != nil {
			return err
		}
		text = text[n:]
		time.Sleep(s.lag / 8)
	}
	_, err := s.pty.WriteString(text)
	return err
}

// paste pastes a file: paste ../text. With a number it pastes so many lines.
func (s *scene) paste(args []string) error {
	var text string
	if n, err := strconv.Atoi(args[0]); err == nil {
		for i := range n {
			text += fmt.Sprintf("line %d\r", i+1)
		}
	} else {
		data, err := os.ReadFile(s.file(args[0]))
		if err != nil {
			return err
		}
		text = strings.NewReplacer("\n", "\r", "/tmp/c-00000000", s.dir).Replace(string(data)) // as terminals send it
	}
	s.mark = s.glass.received()
	return s.send("\x1b[200~" + text + "\x1b[201~")
}

// wait waits until a text has been shown, so many times in all: wait 2 "done".
func (s *scene) wait(args []string) error {
	want := 1
	if len(args) == 2 {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		want, args = n, args[1:]
	}
	if !s.until(func() bool { return s.glass.count(args[0]) >= want }) {
		return fmt.Errorf("shown %d times", s.glass.count(args[0]))
	}
	return nil
}

// idle waits for a prompt with nothing typed.
func (s *scene) idle([]string) error {
	if !s.until(func() bool { return s.glass.received() > s.mark && s.glass.idle() }) {
		return errors.New("no prompt")
	}
	return nil
}

// screen holds the whole glass against its picture: screen NAME.
func (s *scene) screen(args []string) error {
	name := pictured + s.look + " " + args[0]
	if *update {
		s.page.mu.Lock()
		defer s.page.mu.Unlock()
		s.page.new = append(s.page.new, txtar.File{Name: name, Data: []byte(s.settled())})
		return nil
	}
	want := s.page.pictures[name]
	quiet := func() time.Duration {
		if s.glass.idle() { // there is nothing left to do
			return silence / 4
		}
		return silence
	}
	if !s.unless(func() bool { return s.picture() == want }, quiet) {
		difference, _, _ := patch.Unified(args[0], []byte(want), []byte(s.picture()))
		name, _, _ := strings.Cut(s.t.Name(), "/"+s.look)
		return fmt.Errorf("the screen is another one (- as pictured, + as it is):\n%s\nIf that is how it is to look: go test ./cmd/coder -run '%s$' -update", difference, name)
	}
	return nil
}

// settled is the picture once it changes no more.
func (s *scene) settled() string {
	for {
		was := s.picture()
		time.Sleep(700 * time.Millisecond)
		if s.picture() == was {
			return was
		}
	}
}

// plain checks that no codes for terminals were sent.
func (s *scene) plain([]string) error {
	if !s.glass.plain() {
		return errors.New("codes were sent")
	}
	return nil
}

// resize changes the size of the terminal: resize 40 12.
func (s *scene) resize(args []string) error {
	cols, err := strconv.Atoi(args[0])
	rows, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	s.mark = s.glass.received()
	s.glass.resize(cols, rows)
	return pty.Setsize(s.pty, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
}

var signals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
	"CONT": syscall.SIGCONT,
}

// signal sends the program a signal: signal TERM.
func (s *scene) signal(args []string) error { return s.cmd.Process.Signal(signals[args[0]]) }

// hangup takes the terminal away.
func (s *scene) hangup([]string) error { return errors.Join(s.tty.Close(), s.pty.Close()) }

// ends waits for the end of the program, whatever its exit code.
func (s *scene) ends([]string) error {
	select {
	case <-s.ended:
		s.ended = nil
		return nil
	case <-time.After(patience):
		return errors.New("it does not end")
	}
}

// shell starts a shell with job control that knows coder.
func (s *scene) shell([]string) error {
	rc := fmt.Sprintf("PS1='$ '\ncoder() { %s/coder --script ../model --session-id s; }\n", s.dir)
	if err := os.WriteFile(s.file("../rc"), []byte(rc), 0o644); err != nil {
		return err
	}
	s.program = "/bin/bash"
	return s.start("--noprofile", "--rcfile", "../rc", "-i")
}

// leave ends the program with Ctrl+D.
func (s *scene) leave([]string) error {
	return errors.Join(s.keys([]string{"\x04"}), s.exit(0))
}

// made waits until a file is there: made begun.
func (s *scene) made(args []string) error {
	if !s.until(func() bool { _, err := os.Stat(s.file(args[0])); return err == nil }) {
		return errors.New("it never came to be")
	}
	return nil
}

func (s *scene) absent(args []string) error {
	if _, err := os.Stat(s.file(args[0])); err == nil {
		return errors.New("it is there")
	}
	return nil
}

// holds compares a file: holds a.txt "text\n".
func (s *scene) holds(args []string) error {
	data, err := os.ReadFile(s.file(args[0]))
	if err == nil && string(data) != args[1] {
		err = fmt.Errorf("it holds %q", data)
	}
	return err
}

// process is the one whose number is in a file.
func (s *scene) process(file string) (pid int, err error) {
	data, err := os.ReadFile(s.file(file))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

// alive checks that the process whose number is in a file runs.
func (s *scene) alive(args []string) error {
	pid, err := s.process(args[0])
	if err == nil && !s.until(func() bool { return !s.dead(pid) }) { // while it becomes another program it has no environment
		err = fmt.Errorf("process %d is dead", pid)
	}
	return err
}

// gone waits until the process whose number is in a file is no more.
func (s *scene) gone(args []string) error {
	pid, err := s.process(args[0])
	if err != nil {
		return err
	}
	if !s.until(func() bool { return s.dead(pid) }) {
		return fmt.Errorf("process %d lives", pid)
	}
	return nil
}

// dead reports whether a process of a command here is no more, or only waits to
// be buried. Its number is the one it has in the process table of its own.
func (s *scene) dead(pid int) bool {
	mark := []byte("CODER_WORKSPACE=" + s.file("") + "\x00")
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		if !bytes.Contains(environ, mark) || bytes.Contains(status, []byte("\nState:\tZ")) {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok && slices.Contains(strings.Fields(numbers), strconv.Itoa(pid)) {
				return false
			}
		}
	}
	return true
}

// logged counts what matches in the session's logs: logged 1 REGEXP.
func (s *scene) logged(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	found, err := s.find(args[1])
	if err == nil && len(found) != want {
		err = fmt.Errorf("found %d times: %q", len(found), found)
	}
	return err
}

// same checks that all that matches in the logs is the same text: same REGEXP.
func (s *scene) same(args []string) error {
	found, err := s.find(args[0])
	if err == nil && len(slices.Compact(found)) != 1 {
		err = fmt.Errorf("found %q", found)
	}
	return err
}

// find is what matches in the logs, or the group of it.
func (s *scene) find(expr string) (found []string, err error) {
	pattern, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	logs, err := logFiles(s.file(".coder/log/*"))
	if err != nil || len(logs) == 0 {
		return nil, fmt.Errorf("no logs: %w", err)
	}
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, m := range pattern.FindAllSubmatch(data, -1) {
			found = append(found, string(m[len(m)-1]))
		}
	}
	return found, nil
}

// piped runs the program with its input from a pipe and its output into one;
// what it says is kept in a file: piped "hi\n" said.
func (s *scene) piped(args []string) error {
	c := exec.Command(filepath.Join(s.dir, "coder"), append(slices.Clone(s.flags), "--script", "../model", "--session-id", "s")...)
	c.Dir, c.Env, c.Stdin = s.file(""), s.env, strings.NewReader(args[0])
	out, err := c.Output()
	if i := bytes.IndexFunc(out, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
		return fmt.Errorf("a control character at byte %d of %q", i, out)
	}
	return errors.Join(err, os.WriteFile(s.file(args[1]), out, 0o644))
}

// also runs a subcommand of the program in another process: also trust.
func (s *scene) also(args []string) error {
	c := exec.Command(filepath.Join(s.dir, "coder"), args...)
	c.Dir, c.Env = s.file(""), s.env
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// respond answers the last question from another process, which ends with the
// given code: respond 0 --option approve.
func (s *scene) respond(args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	ids, err := s.find(`"type":"UserInteractionRequested".*?"interactionId":"([^"]+)"`)
	if err != nil || len(ids) == 0 {
		return fmt.Errorf("nothing was asked: %w", err)
	}
	c := exec.Command(filepath.Join(s.dir, "coder"), append([]string{"respond", ids[len(ids)-1]}, args[1:]...)...)
	c.Dir, c.Env = s.file(""), s.env
	if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != want {
		return fmt.Errorf("exit code %d: %s", c.ProcessState.ExitCode(), out)
	}
	return nil
}

// sends waits until these bytes have been sent, so many times in all; 0 says that they
// have not.
func (s *scene) sends(args []string) error {
	n, more := 1, false // so often, or more often
	if len(args) == 2 {
		var err error
		if n, err = strconv.Atoi(strings.TrimSuffix(args[0], "+")); err != nil {
			return err
		}
		more = strings.HasSuffix(args[0], "+")
		args = args[1:]
	}
	count := func() int {
		s.glass.mu.Lock()
		defer s.glass.mu.Unlock()
		return strings.Count(s.glass.raw, args[0])
	}
	if n > 0 && !s.until(func() bool { return count() >= n }) || count() != n && !more {
		return fmt.Errorf("%q was sent %d times", args[0], count())
	}
	return nil
}
