package main

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"coder/internal/app"
	"coder/internal/ui/cells"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/term"
)

var update = flag.Bool("update", false, "rewrite the pictures of the screen tests")

// TestScreens plays the scenes of testdata/screens: the real program on a real
// pseudo-terminal. A scene is one page: what is done, what the model says, the
// files there are, and what the screen then shows. See README.md beside them.
func TestScreens(t *testing.T) {
	pages, err := filepath.Glob("testdata/screens/*.txtar")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no scenes: %v", err)
	}
	for _, path := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { playPage(t, path) })
	}
}

// page is a file with a scene.
type page struct {
	steps    []step
	on       []string // the looks it is played with
	files    []txtar.File
	pictures map[string]string

	mu  sync.Mutex // guards new
	new []txtar.File
}

type step struct {
	line int
	verb string
	args []string
}

func playPage(t *testing.T, path string) {
	t.Parallel()
	p, err := readPage(path)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		t.Cleanup(func() { p.rewrite(t, path) })
	}
	for _, look := range p.on {
		t.Run(look, func(t *testing.T) {
			t.Parallel()
			newScene(t, p, look).play()
		})
	}
}

const pictured = "screen "

func readPage(path string) (*page, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	p := &page{on: []string{"80x24"}, pictures: make(map[string]string)}
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		words, err := split(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		switch {
		case len(words) == 0:
		case words[0] == "on":
			p.on = words[1:]
		default:
			p.steps = append(p.steps, step{i + 1, words[0], words[1:]})
		}
	}
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, pictured) {
			p.pictures[f.Name] = string(f.Data)
			if line, ok := crowded(f); ok {
				return nil, fmt.Errorf("%s: %s: a longer time would not fit into the line %q", path, f.Name, line)
			}
		} else {
			p.files = append(p.files, f)
		}
	}
	return p, nil
}

// crowded finds a line of a picture that would be cut or wrapped otherwise if
// something took longer: 999 ms instead of 3 ms.
func crowded(picture txtar.File) (line string, found bool) {
	var cols, rows int
	look := strings.Fields(picture.Name)[1]
	if _, err := fmt.Sscanf(look, "%dx%d", &cols, &rows); err != nil {
		return "", false
	}
	for line := range strings.Lines(codes.ReplaceAllString(string(picture.Data), "")) {
		longest := strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "TIME", "999 ms")
		if strings.Contains(line, "TIME") && cells.Width(longest) >= cols {
			return line, true
		}
	}
	return "", false
}

var codes = regexp.MustCompile(`\{[^}]*\}`)

// split parts a line into words; one in quotes is as Go writes it.
func split(line string) (words []string, err error) {
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			return words, nil
		}
		word, rest, _ := strings.Cut(line, " ")
		if line[0] == '"' {
			if word, err = strconv.QuotedPrefix(line); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			rest = line[len(word):]
			if word, err = strconv.Unquote(word); err != nil {
				return nil, err
			}
		}
		words, line = append(words, word), rest
	}
}

// rewrite puts the new pictures into the page.
func (p *page) rewrite(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if t.Failed() || err != nil {
		t.Logf("%s is left as it was: %v", path, err)
		return
	}
	archive.Files = p.files
	for _, look := range p.on { // in an order that stays
		for _, f := range p.new {
			if strings.HasPrefix(f.Name, pictured+look+" ") {
				archive.Files = append(archive.Files, f)
			}
		}
	}
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Error(err)
	}
}

// scene is one play of a page.
type scene struct {
	t    *testing.T
	page *page
	look string

	looked  *atomic.Bool // for newer versions
	program string       // run instead of coder
	dir     string       // of the same length every time, since it is shown
	env     []string
	flags   []string
	cols    int
	rows    int
	colour  bool

	glass    *glass
	pty, tty *os.File
	cmd      *exec.Cmd
	before   *term.State
	ended    chan error
	watching sync.WaitGroup
	mark     int           // what had been shown when keys were last pressed
	lag      time.Duration // that what is shown takes, on a slow line
}

func newScene(t *testing.T, p *page, look string) *scene {
	t.Helper()
	s := &scene{t: t, page: p, look: look, cols: 80, rows: 24, dir: shortDir(t)}
	s.env = []string{
		"HOME=" + filepath.Join(s.dir, "home"), "PATH=" + os.Getenv("PATH") + ":" + filepath.Join(s.dir, "bin"),
		"LANG=C.UTF-8", "TMPDIR=" + s.dir, "SHELL=/bin/sh", noRaceWait, "CODER_TEST_PATIENCE=20",
	}
	terminal := "TERM=xterm" // the emulator cuts lines and does not wrap them again
	for _, word := range strings.Split(look, ",") {
		switch word {
		case "colour":
			s.colour, terminal = true, "TERM=xterm-256color"
		case "zh":
			s.flags = append(s.flags, "--lang", "zh-CN")
		default:
			if _, err := fmt.Sscanf(word, "%dx%d", &s.cols, &s.rows); err != nil {
				t.Fatalf("look %q: %v", word, err)
			}
		}
	}
	if s.env = append(s.env, terminal); !s.colour {
		s.env = append(s.env, "NO_COLOR=1")
	}
	s.prepare()
	return s
}

// shortDir is a folder of its own with a short name.
func shortDir(t *testing.T) string {
	t.Helper()
	var name [4]byte
	for i := range name {
		name[i] = byte(rand.IntN(256))
	}
	dir := "/tmp/c-" + hex.EncodeToString(name[:])
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// prepare makes the workspace. Programs that may be missing here are there, so
// that the banner does not depend on it.
func (s *scene) prepare() {
	self, err := os.Executable()
	s.check(err)
	for _, dir := range []string{"w", "home", "bin"} {
		s.check(os.Mkdir(filepath.Join(s.dir, dir), 0o755))
	}
	s.check(os.Symlink(self, filepath.Join(s.dir, "coder")))
	for _, name := range []string{"git", "rg"} {
		s.check(os.WriteFile(filepath.Join(s.dir, "bin", name), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	}
	for _, f := range s.page.files {
		path := s.file(f.Name)
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o755
		}
		s.check(errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.Data, mode)))
	}
}

// file is a path in the workspace; one with ../ is beside it.
func (s *scene) file(name string) string { return filepath.Join(s.dir, "w", name) }

func (s *scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) play() {
	s.t.Cleanup(s.end)
	for _, st := range s.page.steps {
		do, ok := verbs[st.verb]
		if !ok {
			s.t.Fatalf("line %d: there is no %q", st.line, st.verb)
		}
		if err := do(s, st.args); err != nil {
			s.t.Fatalf("line %d: %s %q: %v\nthe screen:\n%s", st.line, st.verb, st.args, err, s.picture())
		}
	}
}

func (s *scene) end() {
	if s.cmd == nil {
		return
	}
	if s.ended != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	s.unplug()
	s.glass.close()
	for _, fault := range s.glass.wrong() {
		s.t.Error(fault)
	}
}

// unplug takes the terminal away when all that was written has been seen.
func (s *scene) unplug() {
	_ = s.tty.Close() // closed already after a hangup
	s.watching.Wait()
	_ = s.pty.Close()
}

func (s *scene) picture() string {
	if s.glass == nil {
		return "(none yet)\n"
	}
	return s.normal(s.glass.picture(s.colour))
}

// What differs from one play to the next.
var (
	took    = regexp.MustCompile(`\b\d+(\.\d+)?[ \x{a0}]?(ms|s)\b`)
	dated   = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d\b`)
	tokens  = regexp.MustCompile(`context: \d+ tokens`)
	filled  = regexp.MustCompile(`script · \d+%`)
	request = regexp.MustCompile(`\d{4,}( tokens in| tokens became| 个 token，)`) // an estimate of all that is sent
	shorter = regexp.MustCompile(`(condensed: |became |已压缩：|变为 )\d+`)
	process = regexp.MustCompile(`(process|进程) \d+`)
	spinner = regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`)
)

func (s *scene) normal(picture string) string {
	picture = strings.ReplaceAll(picture, s.dir, "/tmp/c-00000000")
	picture = strings.ReplaceAll(picture, "coder "+app.Version, "coder VERSION")
	picture = tokens.ReplaceAllString(picture, "context: N tokens")
	picture = filled.ReplaceAllString(picture, "script · N%")
	picture = request.ReplaceAllString(picture, "N$1")
	picture = shorter.ReplaceAllString(picture, "${1}N")
	picture = process.ReplaceAllString(picture, "$1 N")
	picture = spinner.ReplaceAllString(picture, "⠋")
	picture = dated.ReplaceAllString(picture, "2026-01-01 00:00")
	return port.ReplaceAllString(took.ReplaceAllString(picture, "TIME"), "127.0.0.1:PORT0")
}

// patience is how long something may take before it is taken for broken, and silence how long if
// the program prints nothing. They are spent only where something is broken, so they can be long
// enough for a busy machine.
const (
	patience = 4 * time.Minute
	silence  = time.Minute
)

// until waits for something to become so.
func (s *scene) until(is func() bool) bool {
	return s.unless(is, func() time.Duration { return silence })
}

// unless is until with another bound for silence.
func (s *scene) unless(is func() bool, silence func() time.Duration) bool {
	begun := time.Now()
	said, heard := begun, s.glass.received()
	for time.Since(begun) < patience && time.Since(said) < silence() {
		if is() {
			return true
		}
		if n := s.glass.received(); n != heard {
			said, heard = time.Now(), n
		}
		time.Sleep(5 * time.Millisecond)
	}
	return is()
}

// start runs the program on a terminal of its own and shows what it writes.
func (s *scene) start(args ...string) error {
	if err := s.plugIn(); err != nil {
		return err
	}
	if err := s.run(args...); err != nil {
		return err
	}
	s.watching.Go(func() { s.watch(s.pty) })
	return nil
}

// plugIn makes a terminal.
func (s *scene) plugIn() error {
	if s.cmd != nil {
		s.unplug()
	}
	var err error
	if s.pty, s.tty, err = pty.Open(); err != nil {
		return err
	}
	if err := pty.Setsize(s.pty, &pty.Winsize{Cols: uint16(s.cols), Rows: uint16(s.rows)}); err != nil {
		return err
	}
	if rows, cols, err := pty.Getsize(s.tty); err != nil || rows != s.rows || cols != s.cols {
		return fmt.Errorf("the terminal is %dx%d: %w", cols, rows, err)
	}
	if s.before, err = term.GetState(int(s.tty.Fd())); err != nil {
		return err
	}
	if s.glass == nil {
		s.glass = newGlass(s.cols, s.rows)
	}
	s.glass.plug(s.pty)
	return nil
}

// run starts the program.
func (s *scene) run(args ...string) error {
	s.cmd = exec.Command(cmp.Or(s.program, filepath.Join(s.dir, "coder")), args...)
	s.cmd.Dir, s.cmd.Env = s.file(""), s.env
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.tty, s.tty, s.tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.cmd.Wait() }()
	return nil
}

// watch shows what the program writes until its terminal is closed.
func (s *scene) watch(from *os.File) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		time.Sleep(s.lag)
		_, _ = s.glass.Write(buf[:n]) // never fails
		if err != nil {
			return
		}
	}
}

// exit waits for the end of the program. The terminal is then as it was.
func (s *scene) exit(want int) error {
	select {
	case <-s.ended:
		s.ended = nil
	case <-time.After(patience):
		return errors.New("it does not end")
	}
	if got := s.cmd.ProcessState.ExitCode(); got != want {
		return fmt.Errorf("exit code %d, want %d", got, want)
	}
	if after, err := term.GetState(int(s.tty.Fd())); err == nil && want >= 0 && !reflect.DeepEqual(after, s.before) {
		return fmt.Errorf("the terminal is not as it was: %+v, was %+v", after, s.before)
	}
	return nil
}
