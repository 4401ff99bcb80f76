//go:build unix

package bash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"coder/internal/core/secret"
	"coder/internal/host/shell"
)

const (
	maxPending = 256 << 10 // bytes held before a file is created
	maxLog     = 64 << 20  // bytes of a log
	maxLogs    = 10_000    // that are counted
	privateDir = 0o700     // mode of the log directory
)

// log is the whole output of a command, unchanged. It becomes a file only when it is long or requested.
type log struct {
	Options
	pending []byte
	file    *os.File
	name    string
	left    int  // bytes still allowed in the file
	broken  bool // a file cannot be created
	crowded bool // the session's other logs left too little room
}

// room is the disk space left for a session's logs. It is safe for concurrent use.
type room struct {
	mu   sync.Mutex
	left int64
	seen bool // logs of an earlier run of the session are counted
}

// take reserves up to n bytes and returns how many.
func (l *log) take(n int) int {
	if l.RunsLimit <= 0 {
		return n
	}
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	if !l.room.seen {
		l.room.seen, l.room.left = true, l.RunsLimit
		files, _, _ := l.Workspace.ReadDir(l.RunsDir, maxLogs)
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				l.room.left -= info.Size()
			}
		}
	}
	n = int(min(int64(n), max(l.room.left, 0)))
	l.room.left -= int64(n)
	return n
}

func (o Options) newLog(command string) *log {
	return &log{Options: o, pending: fmt.Appendf(nil, "$ %s\n\n", o.Conceals.Text(command)), left: maxLog, broken: o.RunsDir == ""}
}

func (l *log) Write(b []byte) (int, error) {
	switch {
	case l.broken:
	case l.file == nil && len(l.pending)+len(b) <= maxPending:
		l.pending = append(l.pending, b...)
	default:
		l.open()
		l.put(b)
	}
	return len(b), nil
}

// open creates the file and writes what was held back. If
// that fails there is no log; the command runs anyway.
func (l *log) open() {
	if l.file == nil && !l.broken {
		l.broken = l.private() != nil
	}
	for l.file == nil && !l.broken {
		l.name = path.Join(l.RunsDir, fmt.Sprintf("bash-%04d.log", l.logs.Add(1)))
		f, err := l.Workspace.Create(l.name, 0o600)
		switch {
		case err == nil:
			l.file = f
			l.put(l.pending)
			l.pending = nil
		case !errors.Is(err, fs.ErrExist):
			l.broken = true
		}
	}
}

// private makes the log directory unreadable for others: output may contain anything.
func (l *log) private() error {
	dir, err := l.Workspace.Locate(l.RunsDir)
	if err != nil {
		return err
	}
	var missing []string
	for up := dir; up != "." && up != "/"; up = path.Dir(up) {
		if _, err := l.Workspace.Lstat(up); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, up)
	}
	for _, up := range slices.Backward(missing) {
		if err := l.Workspace.Mkdir(up, privateDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	info, err := l.Workspace.Lstat(dir)
	if err == nil && info.Mode().Perm() != privateDir {
		err = l.Workspace.Chmod(dir, privateDir)
	}
	return err
}

func (l *log) put(b []byte) {
	if l.broken || l.left == 0 {
		return
	}
	fits := l.take(min(len(b), l.left))
	l.crowded = fits < min(len(b), l.left)
	if l.left -= fits; l.crowded || l.left == 0 {
		b = fmt.Appendf(nil, "%s\n%s\n", b[:fits], truncatedLine)
		l.left = 0
	}
	if _, err := l.file.Write(b); err != nil {
		l.broken = true
	}
}

// keep ensures that the file exists and returns its name, or "" if it cannot be created.
func (l *log) keep() string {
	if l.open(); l.file == nil {
		return ""
	}
	return l.name
}

func (l *log) close() {
	if l.file != nil {
		_ = l.file.Close() // written as it came
	}
}

// live passes on a command's output while it runs, cleaned, in whole runes and with keys masked: to the
// viewer at most as much as a result may have, to the log all of it.
type live struct {
	stdout, stderr stream
}

// stream is one of the two streams of a command.
type stream struct {
	clean    shell.LiveWriter
	conceals *secret.ConcealingWriter
}

func newLive(to io.Writer, draw func(line string), c *secret.Concealer) *live {
	one := func() stream {
		w := c.Writer(to)
		s := stream{shell.LiveWriter{To: w}, w}
		if draw != nil {
			s.clean.Draw = func(line string) { draw(c.Text(line)) }
		}
		return s
	}
	return &live{one(), one()}
}

// tee writes to both; a failure of one does not affect the other.
type tee [2]io.Writer

func (t tee) Write(b []byte) (int, error) {
	_, _ = t[0].Write(b)
	_, _ = t[1].Write(b)
	return len(b), nil
}

// end shows what was held back. The command must have ended.
func (l *live) end() {
	for _, s := range []*stream{&l.stdout, &l.stderr} {
		_ = s.clean.Flush() // a viewer that is gone does not concern the command
		_ = s.conceals.Flush()
	}
}

// limited passes on the first bytes written to it, in whole lines, and then a line that says so. It reports
// from time to time how many lines it omitted and the last of them, and at the end passes on the last lines.
type limited struct {
	to   io.Writer
	left int
	over bool
	mid  bool                         // the passed-on text has no line end yet
	tell func(last string, lines int) // nil: no reports
	now  func() time.Time

	lines int       // omitted lines
	ends  []byte    // the end of the omitted text
	told  time.Time // time of the last report
}

// These are the interval of reports about omitted text, and how much of its end is kept.
const (
	tellEvery = 200 * time.Millisecond
	keptEnd   = 4 << 10
)

func (l *limited) Write(b []byte) (int, error) {
	if l.to == nil {
		return len(b), nil
	}
	if !l.over && len(b) <= l.left {
		l.left, l.mid = l.left-len(b), !bytes.HasSuffix(b, []byte("\n"))
		return l.to.Write(b)
	}
	fits := 0
	var err error
	if !l.over {
		l.over = true
		fits = bytes.LastIndexByte(b[:l.left], '\n') + 1
		text := string(b[:fits])
		if fits == 0 && l.mid {
			text = "\n"
		}
		_, err = io.WriteString(l.to, text+truncatedLine+"\n")
	}
	l.leaveOut(b[fits:])
	return len(b), err
}

func (l *limited) leaveOut(b []byte) {
	l.lines += bytes.Count(b, []byte("\n"))
	l.ends = append(l.ends, b[max(0, len(b)-keptEnd):]...)
	l.ends = append(l.ends[:0], l.ends[max(0, len(l.ends)-keptEnd):]...)
	if l.tell == nil || l.now == nil {
		return
	}
	if now := l.now(); now.Sub(l.told) >= tellEvery {
		l.told = now
		all := bytes.TrimRight(l.ends, "\n")
		l.tell(string(bytes.ToValidUTF8(all[bytes.LastIndexByte(all, '\n')+1:], nil)), l.lines)
	}
}

// end passes on the last lines. The command must have ended.
func (l *limited) end() {
	if !l.over {
		return
	}
	last := l.ends
	if cut := bytes.IndexByte(last, '\n'); len(last) == keptEnd && cut >= 0 {
		last = last[cut+1:]
	}
	if l.tell != nil {
		l.tell("", l.lines-bytes.Count(last, []byte("\n")))
	}
	_, _ = l.to.Write(bytes.ToValidUTF8(last, nil)) // a viewer that is gone does not concern the command
}
