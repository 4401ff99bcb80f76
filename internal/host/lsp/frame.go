package lsp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	maxFrame  = 64 << 20 // bytes of one message
	maxHeader = 4 << 10  // bytes of one header line
	maxLines  = 16       // header lines of one message
	shown     = 80       // bytes of garbage shown in an error
)

// errTooLarge is the error of a message that exceeds maxFrame.
var errTooLarge = errors.New("message is too large")

// readFrame reads the next message: header lines, an empty line, and as many
// bytes as the header says. Its error is io.EOF only if there is no message.
// Memory grows with what arrives, not with what is announced.
func readFrame(r *bufio.Reader) ([]byte, error) {
	size := int64(-1)
	for n := 0; ; n++ {
		if n == maxLines {
			return nil, fmt.Errorf("header of more than %d lines", maxLines)
		}
		line, err := readLine(r)
		if err == io.EOF && n == 0 && line == "" {
			return nil, io.EOF
		}
		if err != nil {
			return nil, fmt.Errorf("read a header: %w", unexpected(err))
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("not a header line: %.*q", shown, line)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		announced, err := strconv.ParseUint(strings.TrimSpace(value), 10, 63)
		switch {
		case err != nil:
			return nil, fmt.Errorf("not a length: %.*q", shown, line)
		case size >= 0:
			return nil, errors.New("header with two lengths")
		case announced > maxFrame:
			return nil, fmt.Errorf("%w: %d bytes", errTooLarge, announced)
		}
		size = int64(announced)
	}
	if size < 0 {
		return nil, errors.New("header without a Content-Length")
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, size); err != nil {
		return nil, fmt.Errorf("read a message of %d bytes: %w", size, unexpected(err))
	}
	return body.Bytes(), nil
}

// readLine reads a line of at most maxHeader bytes without its end.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		b, err := r.ReadByte()
		if err != nil {
			return string(line), err
		}
		if b == '\n' {
			return string(bytes.TrimSuffix(line, []byte("\r"))), nil
		}
		if line = append(line, b); len(line) > maxHeader {
			return "", fmt.Errorf("header line is too long: %.*q", shown, line)
		}
	}
}

// unexpected tells an end in the middle of a message from one between messages.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// frame puts the header before a message.
func frame(body []byte) []byte {
	return fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(body), body)
}
