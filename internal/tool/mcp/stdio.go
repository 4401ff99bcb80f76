package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/child"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxMessage limits the size of a server's message.
	maxMessage = 16 << 20
	// endGrace is how long a server has to end when its input closes, and again when it is asked to end.
	endGrace = 500 * time.Millisecond
)

// errMessageTooLong is the error of a server that sends an endless message.
var errMessageTooLong = message.Errorf("the server sent a message larger than %d MB", maxMessage>>20)

// pipe is the connection to a program over its standard streams. It skips output that is not a message.
type pipe struct {
	*child.Process
	in       *bufio.Reader
	buffered []byte        // of a line already read
	readErr  error         // why reading ended; valid once ended is closed
	ended    chan struct{} // closed when reading ends
}

func newPipe(process *child.Process) *pipe {
	return &pipe{Process: process, in: bufio.NewReaderSize(process, 64<<10), ended: make(chan struct{})}
}

// transport returns the library's transport over p. p limits the size of messages.
func (p *pipe) transport() sdk.Transport {
	return &sdk.IOTransport{Reader: p, Writer: p, MaxLineLength: -1}
}

// Read returns messages, one per line.
func (p *pipe) Read(b []byte) (int, error) {
	for len(p.buffered) == 0 {
		if p.readErr != nil {
			return 0, p.readErr
		}
		line, err := readLine(p.in, false)
		p.buffered = splitMessages(line)
		if err != nil {
			p.readErr = err
			close(p.ended)
		}
	}
	n := copy(b, p.buffered)
	p.buffered = p.buffered[n:]
	return n, nil
}

// splitMessages returns the messages in a line: none if the line is not meant as one, several if it is a batch.
func splitMessages(line []byte) (lines []byte) {
	line = bytes.TrimSpace(line)
	raw := []json.RawMessage{line}
	if bytes.HasPrefix(line, []byte("[")) && json.Unmarshal(line, &raw) != nil {
		return nil
	}
	for _, r := range raw {
		if _, err := jsonrpc.DecodeMessage(r); err == nil {
			lines = append(append(lines, r...), '\n')
		}
	}
	return lines
}

// Close ends the program and waits for it.
func (p *pipe) Close() error {
	p.CloseInput(endGrace)
	return nil
}

// readLine reads a line of at most maxMessage bytes. A longer
// line is an error, reported at once or at its end.
func readLine(in *bufio.Reader, toEnd bool) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage; !long {
			line = append(line, part...)
		}
		switch more := errors.Is(err, bufio.ErrBufferFull); {
		case long && !(more && toEnd):
			return nil, errMessageTooLong
		case !more:
			return line, err
		}
	}
}
