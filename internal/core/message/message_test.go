package message_test

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"testing"

	"coder/internal/core/message"
)

var errInner = errors.New("no access")

func TestErrorsWrapAsThoseOfFmt(t *testing.T) {
	other := errors.New("other")
	for _, tt := range []struct {
		format string
		args   []any
	}{
		{"100%%", nil},
		{"read %s: %d%%", []any{"a", 3}},
		{"read %s: %w", []any{"a", errInner}},
		{"%w, then %w", []any{errInner, other}},
		{"%v", []any{errInner}},
	} {
		got, want := message.Errorf(tt.format, tt.args...), fmt.Errorf(tt.format, tt.args...)
		if got.Error() != want.Error() || message.Of(got).String() != want.Error() {
			t.Errorf("%q: %v and %v, want %v", tt.format, got, message.Of(got), want)
		}
		for _, target := range []error{errInner, other} {
			if errors.Is(got, target) != errors.Is(want, target) {
				t.Errorf("%q: errors.Is(%v) is %v", tt.format, target, errors.Is(got, target))
			}
		}
		if errors.Unwrap(got) != errors.Unwrap(want) {
			t.Errorf("%q unwraps to %v", tt.format, errors.Unwrap(got))
		}
	}
}

// sameText wraps an error under the same text.
type sameText struct{ error }

func (s sameText) Unwrap() error { return s.error }

func TestTheSentenceOfAnErrorIsItsFormatAndArguments(t *testing.T) {
	read := message.Errorf("read %s: %w", "a", errInner)
	for _, tt := range []struct {
		err  error
		want message.Message
	}{
		{read, message.Message{Format: "read %s: %w", Args: []any{"a", errInner}}},
		{sameText{read}, message.Message{Format: "read %s: %w", Args: []any{"a", errInner}}},
		{errors.Join(read, errInner), message.Message{Format: "%w\n%w", Args: []any{read, errInner}}},
		{&fs.PathError{Op: "open", Path: "a", Err: errInner}, message.Message{Format: "open %s: %w", Args: []any{"a", errInner}}},
		{errInner, message.Message{Format: "no access"}},
		{errors.New("100%"), message.Message{Format: "100%"}},
		{message.Errorf("100%%"), message.Message{Format: "100%"}},
	} {
		if got := message.Of(tt.err); !reflect.DeepEqual(got, tt.want) || got.String() != tt.err.Error() {
			t.Errorf("%v: %#v, want %#v", tt.err, got, tt.want)
		}
	}
}
