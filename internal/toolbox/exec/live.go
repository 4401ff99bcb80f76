//go:build unix

package exec

import (
	"io"
	"unicode/utf8"

	"coder/internal/shell"
)

// live shows a command's output while it runs: cleaned, in whole runes, and no
// more of it than a result may hold.
type live struct {
	stdout, stderr shell.LiveWriter
	to             *limited
}

func newLive(out io.Writer, limit int) *live {
	to := &limited{to: out, left: limit}
	return &live{stdout: shell.LiveWriter{To: to}, stderr: shell.LiveWriter{To: to}, to: to}
}

// end shows what was held back. The command must have ended.
func (l *live) end() {
	_ = l.stdout.Flush() // a viewer that is gone does not concern the command
	_ = l.stderr.Flush()
}

// limited passes on the first bytes written to it and then a last line.
type limited struct {
	to   io.Writer
	left int
	over bool
}

func (l *limited) Write(b []byte) (int, error) {
	if l.over || l.to == nil {
		return len(b), nil
	}
	if len(b) <= l.left {
		l.left -= len(b)
		return l.to.Write(b)
	}
	l.over = true
	fits := l.left
	for fits > 0 && !utf8.RuneStart(b[fits]) {
		fits--
	}
	_, err := io.WriteString(l.to, string(b[:fits])+"\n"+truncatedLine+"\n")
	return len(b), err
}
