package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"coder/internal/host/program"

	"github.com/creack/pty"
)

// pushing writes a reply piece by piece.
type pushing interface {
	io.Writer
	push() // sends what was written
}

// lastWord ends a reply, so that it is seen when all of it is shown.
const lastWord = "finis"

// steady is a reply of so many pieces a second, for a while, and then silence.
func steady(rate int, lasts, silent time.Duration) reply {
	return func(w io.Writer) {
		const beat = 2 * time.Millisecond
		began, sent := time.Now(), 0
		for now := began; now.Sub(began) < lasts; now = time.Now() {
			for due := int(now.Sub(began).Seconds() * float64(rate)); sent < due; sent++ {
				// no two alike: nothing repeats itself
				event(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":" word%d"}}]}`, sent*7919%100_003))
			}
			w.(pushing).push()
			time.Sleep(beat)
		}
		event(w, `{"choices":[{"index":0,"delta":{"content":" `+lastWord+`"}}]}`)
		w.(pushing).push()
		time.Sleep(silent)
		end(w, "stop")
	}
}

// screen is a terminal with the program on it.
type screen struct {
	file *os.File
	cmd  *program.Cmd

	mu   sync.Mutex // guards the fields below
	sent bytes.Buffer
	came *sync.Cond // something was sent
}

// onScreen starts the program on a terminal.
func (b *runner) onScreen() (*screen, error) {
	ws, err := b.workspace()
	if err != nil {
		return nil, err
	}
	cmd := program.ConfinedCommand(b.coder)
	cmd.Dir = ws
	cmd.Env = []string{
		"HOME=" + b.dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8",
		"CODER_BASE_URL=" + b.server.url(), "CODER_API_KEY=k", "CODER_MODEL=m",
	}
	s := &screen{cmd: cmd}
	s.came = sync.NewCond(&s.mu)
	if s.file, err = pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
		return nil, err
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := s.file.Read(buf)
			s.mu.Lock()
			s.sent.Write(buf[:n])
			s.came.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s, nil
}

// leave ends the program.
func (s *screen) leave() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // by that
	_ = s.file.Close()       // nothing is written any more
}

// mark is how much was sent so far.
func (s *screen) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.Len()
}

// until waits until text was sent after from.
func (s *screen) until(text string, from int) error {
	late := time.AfterFunc(time.Minute, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.came.Broadcast()
	})
	defer late.Stop()
	began := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !bytes.Contains(s.sent.Bytes()[from:], []byte(text)) {
		if time.Since(began) >= time.Minute {
			return fmt.Errorf("%q was not shown within a minute", text)
		}
		s.came.Wait()
	}
	return nil
}

// between is what was sent from one mark to another.
func (s *screen) between(from, to int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.sent.Bytes()[from:to])
}

// key types a character and waits until it is on the screen.
func (s *screen) key(c rune) (time.Duration, error) {
	from, began := s.mark(), time.Now()
	if _, err := s.file.WriteString(string(c)); err != nil {
		return 0, err
	}
	err := s.until(string(c), from)
	return time.Since(began), err
}

// typing measures how soon a key is on the screen while a reply streams, and what a
// key and a beat of the spinner cost in bytes.
func (b *runner) typing(int) error {
	b.server.play(steady(2000, 8*time.Second, 8*time.Second))
	s, err := b.onScreen()
	if err != nil {
		return err
	}
	defer s.leave()
	if err := s.until("> ", 0); err != nil {
		return err
	}
	const unused = '\u4e00' // characters of which nothing else writes any
	var keys []int
	for i := range 20 {
		time.Sleep(60 * time.Millisecond)
		from := s.mark()
		if _, err := s.key(unused + rune(i)); err != nil {
			return err
		}
		time.Sleep(40 * time.Millisecond) // all that belongs to it
		keys = append(keys, s.mark()-from)
	}
	if _, err := s.file.WriteString("\r"); err != nil {
		return err
	}
	if err := s.until("word", 0); err != nil {
		return err
	}
	var waits []time.Duration
	for i := range 60 {
		time.Sleep(70 * time.Millisecond)
		wait, err := s.key(unused + 100 + rune(i))
		if err != nil {
			return err
		}
		waits = append(waits, wait)
	}
	fmt.Printf("a key on screen, 2,000 chunks/s %s   median %.1f ms (limit 30)\n", spread(waits), ms(median(waits)))
	time.Sleep(6 * time.Second) // the stream has ended, the turn has not
	from := s.mark()
	time.Sleep(2 * time.Second)
	ticks := s.between(from, s.mark())
	n := 0
	for _, frame := range "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" {
		n += strings.Count(ticks, string(frame))
	}
	var sum int
	for _, k := range keys {
		sum += k
	}
	fmt.Printf("bytes on a terminal           a key (of three bytes) %d   a beat of the spinner %d (%d beats in 2 s)\n",
		sum/len(keys), len(ticks)/max(n, 1), n)
	return nil
}

// watching measures the processor time of a reply that streams at a terminal, over that of
// a reply in one piece.
func (b *runner) watching(int) error {
	const lasts = 4 * time.Second
	reading := func(r reply) (time.Duration, error) {
		b.server.play(r)
		s, err := b.onScreen()
		if err != nil {
			return 0, err
		}
		defer s.leave()
		if err := s.until("> ", 0); err != nil {
			return 0, err
		}
		from := s.mark()
		if _, err := s.file.WriteString("go\r"); err != nil {
			return 0, err
		}
		if err := s.until(lastWord, from); err != nil {
			return 0, err
		}
		s.leave()
		return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime(), nil
	}
	var long, short []time.Duration
	for range 3 {
		used, err := reading(steady(2000, lasts, 0))
		if err != nil {
			return err
		}
		long = append(long, used)
		if used, err = reading(text(lastWord)); err != nil {
			return err
		}
		short = append(short, used)
	}
	fmt.Printf("processor time at a terminal, 2,000 chunks/s for %s %s   one chunk %s   %.1f%% of a processor\n",
		lasts, spread(long), spread(short), 100*float64(median(long)-median(short))/float64(lasts))
	return nil
}
