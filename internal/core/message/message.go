// Package message keeps a sentence for people as a value: its English format and its arguments. A face can then
// say the sentence in another language.
package message

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Message is a sentence for people. Faces translate an argument that is a Message or an error, too. A string is
// data, and stays. Without arguments, Format is the sentence itself.
type Message struct {
	Format string
	Args   []any
}

// New returns the sentence with a format and arguments as for [fmt.Sprintf].
func New(format string, args ...any) Message {
	if len(args) == 0 {
		return Message{Format: fmt.Sprintf(format, args...)}
	}
	return Message{format, args}
}

// String returns the sentence in English.
func (m Message) String() string {
	if len(m.Args) == 0 {
		return m.Format
	}
	return fmt.Errorf(m.Format, m.Args...).Error() // which also formats %w
}

// Errorf returns an error like [fmt.Errorf], which [Of] can take apart again.
func Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	m := Message{format, args}
	if len(args) == 0 {
		m.Format = err.Error()
	}
	switch wraps := err.(type) {
	case interface{ Unwrap() error }:
		return &wrapping{sentence{err.Error(), m}, wraps.Unwrap()}
	case interface{ Unwrap() []error }:
		return &joining{sentence{err.Error(), m}, wraps.Unwrap()}
	}
	return &sentence{err.Error(), m}
}

// sentence is an error with its message.
type sentence struct {
	text    string
	message Message
}

func (s *sentence) Error() string    { return s.text }
func (s *sentence) Message() Message { return s.message }

type wrapping struct {
	sentence
	err error
}

func (w *wrapping) Unwrap() error { return w.err }

type joining struct {
	sentence
	errs []error
}

func (j *joining) Unwrap() []error { return j.errs }

// Of returns the sentence of err: its own Message, that of the error that err wraps under the same text, or its text.
func Of(err error) Message {
	switch e := err.(type) {
	case interface{ Message() Message }:
		return e.Message()
	case *fs.PathError:
		return Message{e.Op + " %s: %w", []any{e.Path, e.Err}}
	case *os.LinkError:
		return Message{e.Op + " %s %s: %w", []any{e.Old, e.New, e.Err}}
	case *os.SyscallError:
		return Message{e.Syscall + ": %w", []any{e.Err}}
	case interface{ Unwrap() []error }:
		return ofJoined(err, e.Unwrap())
	}
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error() {
		return Of(inner)
	}
	return Message{Format: err.Error()}
}

// ofJoined returns the sentence of err, which wraps errs as [errors.Join] does, a line each, or otherwise.
func ofJoined(err error, errs []error) Message {
	lines := Message{Args: make([]any, len(errs))}
	for i, e := range errs {
		if i > 0 {
			lines.Format += "\n"
		}
		lines.Format += "%w"
		lines.Args[i] = e
	}
	if len(errs) > 0 && lines.String() == err.Error() {
		return lines
	}
	return Message{Format: err.Error()}
}
