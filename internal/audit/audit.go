// Package audit reads the audit log as someone does who trusts nobody: [Verify]
// checks that no line of it was changed, removed or put in between, and [Calls]
// shows what was asked of the world and what came of it.
//
// Every line of the log carries the hash of the line before it, the first one
// none. A log that ends early still verifies; compare the number of lines with
// what the rest of the session says was done.
package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"coder/internal/event"
)

// Hash is what the next line carries as its prev: the SHA-256 of line, without
// its newline, in hex.
func Hash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// BreakError says where the chain of an audit log breaks.
type BreakError struct {
	Line int // the first is 1
	Why  string
}

func (e *BreakError) Error() string {
	return fmt.Sprintf("audit log, line %d: %s", e.Line, e.Why)
}

// Verify walks an audit log and returns how many of its lines hold together
// from the start. The error is a [*BreakError] if a line does not.
func Verify(log io.Reader) (n int, err error) {
	in := bufio.NewReader(log)
	var prev string
	var seq uint64
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return n, fmt.Errorf("read audit log: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return n, &BreakError{n + 1, "it has no end"}
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if seq, err = follows(line, seq, prev); err != nil {
			return n, &BreakError{n + 1, err.Error()}
		}
		prev = Hash(line)
		n++
	}
}

// follows checks one line against what came before it and returns its Seq.
func follows(line []byte, seq uint64, prev string) (uint64, error) {
	r, claimed, err := event.Decode(line, event.Audit)
	if err != nil {
		return 0, err
	}
	if r.Seq <= seq {
		return 0, fmt.Errorf("record %d stands after record %d", r.Seq, seq)
	}
	if claimed != prev {
		return 0, fmt.Errorf("record %d follows a line that is not the one before it", r.Seq)
	}
	return r.Seq, nil
}
