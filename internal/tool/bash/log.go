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
	maxPending     = 256 << 10 // bytes held before a file is created
	maxLog         = 64 << 20  // bytes of a log
	maxLogs        = 10_000    // logs that are counted
	privateDirMode = 0o700     // mode of the log directory
)

// outputLog is the whole output of a command, unchanged. It becomes a file only when it is long or requested.
type outputLog struct {
	Options
	pending   []byte
	file      *os.File
	name      string
	remaining int  // bytes still allowed in the file
	failed    bool // a file cannot be created
	noRoom    bool // the session's other logs left too little room
}

// logSpace is the disk space left for a session's logs. It is safe for concurrent use.
type logSpace struct {
	mu        sync.Mutex
	remaining int64
	counted   bool // logs of an earlier run of the session are counted
}

// reserve reserves up to n bytes and returns how many.
func (l *outputLog) reserve(n int) int {
	if l.RunsLimit <= 0 {
		return n
	}
	l.logSpace.mu.Lock()
	defer l.logSpace.mu.Unlock()
	if !l.logSpace.counted {
		l.logSpace.counted, l.logSpace.remaining = true, l.RunsLimit
		files, _, _ := l.Workspace.ReadDir(l.RunsDir, maxLogs)
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				l.logSpace.remaining -= info.Size()
			}
		}
	}
	n = int(min(int64(n), max(l.logSpace.remaining, 0)))
	l.logSpace.remaining -= int64(n)
	return n
}

func (o Options) newLog(command string) *outputLog {
	return &outputLog{Options: o, pending: fmt.Appendf(nil, "$ %s\n\n", o.Concealer.Text(command)), remaining: maxLog,
		failed: o.RunsDir == ""}
}

func (l *outputLog) Write(b []byte) (int, error) {
	switch {
	case l.failed:
	case l.file == nil && len(l.pending)+len(b) <= maxPending:
		l.pending = append(l.pending, b...)
	default:
		l.open()
		l.writeFile(b)
	}
	return len(b), nil
}

// open creates the file and writes what was held back. If
// that fails there is no log; the command runs anyway.
func (l *outputLog) open() {
	if l.file == nil && !l.failed {
		l.failed = l.restrictDir() != nil
	}
	for l.file == nil && !l.failed {
		l.name = path.Join(l.RunsDir, fmt.Sprintf("bash-%04d.log", l.logCount.Add(1)))
		f, err := l.Workspace.Create(l.name, 0o600)
		switch {
		case err == nil:
			l.file = f
			l.writeFile(l.pending)
			l.pending = nil
		case !errors.Is(err, fs.ErrExist):
			l.failed = true
		}
	}
}

// restrictDir makes the log directory unreadable for others: output may contain anything.
func (l *outputLog) restrictDir() error {
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
		if err := l.Workspace.Mkdir(up, privateDirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	info, err := l.Workspace.Lstat(dir)
	if err == nil && info.Mode().Perm() != privateDirMode {
		err = l.Workspace.Chmod(dir, privateDirMode)
	}
	return err
}

func (l *outputLog) writeFile(b []byte) {
	if l.failed || l.remaining == 0 {
		return
	}
	fits := l.reserve(min(len(b), l.remaining))
	l.noRoom = fits < min(len(b), l.remaining)
	if l.remaining -= fits; l.noRoom || l.remaining == 0 {
		b = fmt.Appendf(nil, "%s\n%s\n", b[:fits], truncationNote)
		l.remaining = 0
	}
	if _, err := l.file.Write(b); err != nil {
		l.failed = true
	}
}

// ensureFile ensures that the file exists and returns its name, or "" if it cannot be created.
func (l *outputLog) ensureFile() string {
	if l.open(); l.file == nil {
		return ""
	}
	return l.name
}

func (l *outputLog) close() {
	if l.file != nil {
		_ = l.file.Close() // written as it came
	}
}

// liveOutput passes on a command's output while it runs, cleaned, in whole runes and with keys masked: to the
// viewer at most as much as a result may have, to the log all of it.
type liveOutput struct {
	stdout, stderr stream
}

// stream is one of the two streams of a command.
type stream struct {
	clean     shell.LiveWriter
	concealer *secret.ConcealingWriter
}

func newLive(to io.Writer, draw func(line string), c *secret.Concealer) *liveOutput {
	one := func() stream {
		w := c.Writer(to)
		s := stream{shell.LiveWriter{To: w}, w}
		if draw != nil {
			s.clean.Draw = func(line string) { draw(c.Text(line)) }
		}
		return s
	}
	return &liveOutput{one(), one()}
}

// tee writes to both; a failure of one does not affect the other.
type tee [2]io.Writer

func (t tee) Write(b []byte) (int, error) {
	_, _ = t[0].Write(b)
	_, _ = t[1].Write(b)
	return len(b), nil
}

// flush shows what was held back. The command must have ended.
func (l *liveOutput) flush() {
	for _, s := range []*stream{&l.stdout, &l.stderr} {
		_ = s.clean.Flush() // a viewer that is gone does not concern the command
		_ = s.concealer.Flush()
	}
}

// limitWriter passes on the first bytes written to it, in whole lines, and then a line that says so. It reports
// from time to time how many lines it omitted and the last of them, and at the end passes on the last lines.
type limitWriter struct {
	out       io.Writer
	remaining int
	truncated bool
	midLine   bool                         // the passed-on text has no line end yet
	report    func(last string, lines int) // nil: no reports
	now       func() time.Time

	omittedLines int       // omitted lines
	omittedTail  []byte    // the end of the omitted text
	lastReport   time.Time // time of the last report
}

// These are the interval of reports about omitted text, and how much of its end is kept.
const (
	reportInterval = 200 * time.Millisecond
	maxOmittedTail = 4 << 10
)

func (l *limitWriter) Write(b []byte) (int, error) {
	if l.out == nil {
		return len(b), nil
	}
	if !l.truncated && len(b) <= l.remaining {
		l.remaining, l.midLine = l.remaining-len(b), !bytes.HasSuffix(b, []byte("\n"))
		return l.out.Write(b)
	}
	fits := 0
	var err error
	if !l.truncated {
		l.truncated = true
		fits = bytes.LastIndexByte(b[:l.remaining], '\n') + 1
		text := string(b[:fits])
		if fits == 0 && l.midLine {
			text = "\n"
		}
		_, err = io.WriteString(l.out, text+truncationNote+"\n")
	}
	l.omit(b[fits:])
	return len(b), err
}

func (l *limitWriter) omit(b []byte) {
	l.omittedLines += bytes.Count(b, []byte("\n"))
	l.omittedTail = append(l.omittedTail, b[max(0, len(b)-maxOmittedTail):]...)
	l.omittedTail = append(l.omittedTail[:0], l.omittedTail[max(0, len(l.omittedTail)-maxOmittedTail):]...)
	if l.report == nil || l.now == nil {
		return
	}
	if now := l.now(); now.Sub(l.lastReport) >= reportInterval {
		l.lastReport = now
		all := bytes.TrimRight(l.omittedTail, "\n")
		l.report(string(bytes.ToValidUTF8(all[bytes.LastIndexByte(all, '\n')+1:], nil)), l.omittedLines)
	}
}

// finish passes on the last lines. The command must have ended.
func (l *limitWriter) finish() {
	if !l.truncated {
		return
	}
	last := l.omittedTail
	if cut := bytes.IndexByte(last, '\n'); len(last) == maxOmittedTail && cut >= 0 {
		last = last[cut+1:]
	}
	if l.report != nil {
		l.report("", l.omittedLines-bytes.Count(last, []byte("\n")))
	}
	_, _ = l.out.Write(bytes.ToValidUTF8(last, nil)) // a viewer that is gone does not concern the command
}
