//go:build unix

package bash

import (
	"io"
	"unicode/utf8"

	"coder/internal/core/secret"
	"coder/internal/host/shell"
)

// live hands on a command's output while it runs, cleaned, in whole runes and
// without keys: to whoever watches no more of it than a result may hold, to the
// log all of it.
type live struct {
	stdout, stderr stream
}

// stream is one of the two streams of a command.
type stream struct {
	clean    shell.LiveWriter
	conceals *secret.ConcealingWriter
}

func newLive(to io.Writer, c *secret.Concealer) *live {
	one := func() stream {
		w := c.Writer(to)
		return stream{shell.LiveWriter{To: w}, w}
	}
	return &live{one(), one()}
}

// tee writes to each of two; that one fails does not concern the other.
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
