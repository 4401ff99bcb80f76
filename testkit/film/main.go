// Command film records the demo as a person would see it at a terminal: as an
// asciicast, which players show again, and as a picture that moves.
//
//	film -program bin/coder -cast docs/film/demo.cast -picture docs/film/demo.svg
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"coder/internal/host/program"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

const (
	cols, rows = 96, 34
	think      = 1200 * time.Millisecond // before an answer, as people do
	quiet      = 300 * time.Millisecond  // a screen that does not change waits for somebody
	patience   = time.Minute
	choices    = 3 // lines that the choices of a question take at most
)

func main() {
	program := flag.String("program", "bin/coder", "the program to film")
	cast := flag.String("cast", "demo.cast", "where the film goes")
	picture := flag.String("picture", "demo.svg", "where the picture goes")
	moment := flag.Int("moment", 3, "the question that the picture shows where it does not move")
	flag.Parse()
	if err := film(*program, *cast, *picture, *moment); err != nil {
		fmt.Fprintln(os.Stderr, "film:", err)
		os.Exit(1)
	}
}

// camera is a terminal that remembers what it was sent, and when.
type camera struct {
	mu      sync.Mutex
	screen  *vt.Emulator
	start   time.Time
	changed time.Time
	film    []byte
}

func (c *camera) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = time.Now()
	line, err := json.Marshal([]any{c.changed.Sub(c.start).Seconds(), "o", string(p)})
	if err != nil {
		return 0, err
	}
	c.film = append(append(c.film, line...), '\n')
	return c.screen.Write(p)
}

// asks reports whether the last lines are the choices of a question and the place
// for its answer.
func (c *camera) asks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := strings.Split(strings.TrimRight(c.screen.String(), " \n"), "\n")
	last := len(lines) - 1
	return time.Since(c.changed) > quiet && strings.TrimSpace(lines[last]) == ">" &&
		strings.Contains(strings.Join(lines[max(0, last-choices):last], " "), "No, and tell coder")
}

// film runs the demo, answers its questions with yes, and keeps what was seen.
func film(file, cast, picture string, moment int) (err error) {
	home, err := os.MkdirTemp("", "film-") // whose settings nobody has changed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	cmd := program.ConfinedCommand(file, "demo")
	cache, err := os.UserCacheDir() // what the demo compiles is there already
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "NO_COLOR=", "COLUMNS=",
		"LINES=", "HOME="+home, "GOCACHE="+cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")))
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		return fmt.Errorf("start %s: %w", file, err)
	}
	c := &camera{screen: vt.NewEmulator(cols, rows), start: time.Now(), changed: time.Now()}
	var seen sync.WaitGroup
	seen.Go(func() { _, _ = io.Copy(c, terminal) }) // it ends when the program does
	seen.Go(func() { _, _ = io.Copy(terminal, c.screen) })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill() // where it has not ended by itself
		_ = terminal.Close()
		if w, ok := c.screen.InputPipe().(io.Closer); ok {
			_ = w.Close()
		}
		seen.Wait()
	}()
	shot := 0 // how much of the film is there at the moment
	for asked, deadline := 0, time.After(patience); ; {
		select {
		case <-deadline:
			return fmt.Errorf("the demo did not end in %s; its screen:\n%s", patience, c.screen.String())
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("the demo: %w", err)
			}
			if shot == 0 {
				return fmt.Errorf("the demo asked %d questions, so there is no picture of question %d", asked, moment)
			}
			head, err := json.Marshal(map[string]any{"version": 2, "width": cols, "height": rows, "title": "coder demo"})
			if err != nil {
				return err
			}
			all, err := frames(c.film)
			before, err2 := frames(c.film[:shot])
			if err = errors.Join(err, err2); err != nil {
				return err
			}
			return errors.Join(os.WriteFile(cast, append(append(head, '\n'), c.film...), 0o644),
				os.WriteFile(picture, []byte(svg(all, len(before)-1)), 0o644))
		case <-time.After(50 * time.Millisecond):
		}
		if !c.asks() {
			continue
		}
		if asked++; asked == moment {
			c.mu.Lock()
			shot = len(c.film)
			c.mu.Unlock()
		}
		time.Sleep(think)
		if _, err := terminal.WriteString("y\r"); err != nil {
			return fmt.Errorf("answer question %d: %w", asked, err)
		}
		time.Sleep(2 * quiet)
	}
}
