package stdio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"coder/internal/host/stdio"
)

func TestLinesComeOneByOneWithTheirEndTakenOff(t *testing.T) {
	const text = "one\n\ntwo\r\n三"
	file := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, in := range map[string]io.Reader{
		"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"with its end": iotest.DataErrReader(strings.NewReader(text)), "file": f,
	} {
		t.Run(name, func(t *testing.T) {
			r := stdio.NewReader(in)
			for _, want := range []string{"one", "", "two\r", "三"} {
				if line, err := r.ReadLine(t.Context(), 10); err != nil || line != want {
					t.Errorf("got %q, %v; want %q", line, err, want)
				}
			}
			for range 2 {
				if line, err := r.ReadLine(t.Context(), 10); err != io.EOF || line != "" {
					t.Errorf("after the end: %q, %v", line, err)
				}
			}
		})
	}
}

func TestWhatIsTooLongIsNotTaken(t *testing.T) {
	if line, err := stdio.NewReader(strings.NewReader("1234\n12345\n")).ReadLine(t.Context(), 4); line != "1234" || err != nil {
		t.Errorf("a line of the limit: %q, %v", line, err)
	}
	for _, in := range []string{"12345\n", "12345", strings.Repeat("x", 100_000)} {
		if _, err := stdio.NewReader(strings.NewReader(in)).ReadLine(t.Context(), 4); !errors.Is(err, stdio.ErrTooLong) {
			t.Errorf("line %.8q: %v", in, err)
		}
		if _, err := stdio.NewReader(strings.NewReader(in)).ReadRest(t.Context(), 4); !errors.Is(err, stdio.ErrTooLong) {
			t.Errorf("rest %.8q: %v", in, err)
		}
	}
	if text, err := stdio.NewReader(strings.NewReader("12\n4")).ReadRest(t.Context(), 4); text != "12\n4" || err != nil {
		t.Errorf("the rest: %q, %v", text, err)
	}
}

// TestAContextEndsEveryWaitForInput waits where nothing ever comes, and reads on
// when something does.

func TestTheLineAfterOneThatIsTooLongIsGiven(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"at once":      strings.NewReader("12345678\nnext\n"),
		"byte by byte": iotest.OneByteReader(strings.NewReader("12345678\nnext\n")),
		"twice":        strings.NewReader("12345678\n12345\nnext"),
	} {
		r := stdio.NewReader(in)
		line, err := r.ReadLine(t.Context(), 4)
		for errors.Is(err, stdio.ErrTooLong) {
			line, err = r.ReadLine(t.Context(), 4)
		}
		if line != "next" || err != nil {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		if _, err := r.ReadLine(t.Context(), 4); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
	r := stdio.NewReader(strings.NewReader("12345678"))
	if _, err := r.ReadLine(t.Context(), 4); !errors.Is(err, stdio.ErrTooLong) {
		t.Error(err)
	}
	if _, err := r.ReadLine(t.Context(), 4); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestAContextEndsEveryWaitForInput(t *testing.T) {
	pipe, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	named, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	for _, tt := range []struct {
		name string
		in   io.Reader
		to   io.Writer
	}{{"pipe", pipe, into}, {"fifo", named, named}, {"reader", r, w}} {
		t.Run(tt.name, func(t *testing.T) {
			in := stdio.NewReader(tt.in)
			for _, read := range []func(context.Context, int) (string, error){in.ReadLine, in.ReadRest} {
				ctx, cancel := context.WithCancel(t.Context())
				started := make(chan struct{})
				go func() { <-started; cancel() }()
				close(started)
				if _, err := read(ctx, 100); !errors.Is(err, context.Canceled) {
					t.Fatalf("it ended with %v", err)
				}
			}
			go func() { _, _ = io.WriteString(tt.to, "late\n") }()
			if line, err := in.ReadLine(t.Context(), 100); line != "late" || err != nil {
				t.Errorf("then %q, %v", line, err)
			}
		})
	}
}

// TestOutputThatNobodyTakesIsGivenUpWhenTheProgramIsToEnd and not before.
func TestOutputThatNobodyTakesIsGivenUpWhenTheProgramIsToEnd(t *testing.T) {
	r, w := io.Pipe() // takes nothing until it is read
	ctx, cancel := context.WithCancel(t.Context())
	out := stdio.NewWriter(ctx, w)
	go func() { _, _ = r.Read(make([]byte, 4)) }()
	if n, err := out.Write([]byte("read")); n != 4 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	go cancel()
	for range 2 {
		_, err := out.Write([]byte("stuck"))
		if !errors.Is(err, stdio.ErrStalled) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	_ = r.Close() // lets go of the write that was given up
	var kept bytes.Buffer
	if n, err := stdio.NewWriter(ctx, &kept).Write([]byte("last words")); n != 10 || err != nil || kept.String() != "last words" {
		t.Errorf("what is taken at once still goes out: %d, %v, %q", n, err, &kept)
	}
}
