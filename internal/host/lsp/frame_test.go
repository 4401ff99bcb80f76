package lsp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestReadFrame(t *testing.T) {
	for _, tc := range []struct{ name, in, want, err string }{
		{"plain", "Content-Length: 2\r\n\r\n{}", "{}", ""},
		{"empty", "Content-Length: 0\r\n\r\n", "", ""},
		{"any case", "content-LENGTH :  2  \r\n\r\n{}", "{}", ""},
		{"other fields", "Content-Type: a:b\r\nContent-Length: 2\r\nX:\r\n\r\n{}", "{}", ""},
		{"plain line ends", "Content-Length: 2\n\n{}", "{}", ""},
		{"bytes, not characters", "Content-Length: 4\r\n\r\n😀", "😀", ""},
		{"no more than announced", "Content-Length: 1\r\n\r\n{}", "{", ""},
		{"end", "", "", "EOF"},
		{"no length", "X: 1\r\n\r\n{}", "", "without a Content-Length"},
		{"nothing before the empty line", "\r\n{}", "", "without a Content-Length"},
		{"text", "Hello\n", "", `not a header line: "Hello"`},
		{"not a number", "Content-Length: many\r\n\r\n", "", "not a length"},
		{"negative", "Content-Length: -1\r\n\r\n", "", "not a length"},
		{"beyond numbers", "Content-Length: 99999999999999999999\r\n\r\n", "", "not a length"},
		{"too large", "Content-Length: 67108865\r\n\r\n", "", "too large"},
		{"two lengths", "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "", "two lengths"},
		{"cut in the header", "Content-Le", "", "unexpected EOF"},
		{"cut after the header", "Content-Length: 2\r\n", "", "unexpected EOF"},
		{"cut in the body", "Content-Length: 3\r\n\r\n{}", "", "unexpected EOF"},
		{"endless line", strings.Repeat("a", 1<<20), "", "too long"},
		{"endless header", strings.Repeat("a:b\r\n", 1<<20), "", "more than 16 lines"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readFrame(bufio.NewReader(strings.NewReader(tc.in)))
			if tc.err == "" && (err != nil || string(got) != tc.want) {
				t.Errorf("read %q, %v, want %q", got, err, tc.want)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || len(err.Error()) > 500) {
				t.Errorf("error %v, want one with %q", err, tc.err)
			}
			if (tc.in == "") != (err == io.EOF) {
				t.Errorf("error %v for %q", err, tc.in)
			}
		})
	}
}

func TestAnnouncedIsNotAllocated(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readFrame(bufio.NewReader(strings.NewReader("Content-Length: 67108864\r\n\r\nshort")))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, io.ErrUnexpectedEOF) || took > 16<<20 {
		t.Errorf("%d bytes were taken for a message of 5, %v", took, err)
	}
}

func TestFramesSurviveTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 8).Draw(t, "bodies")
		var wire bytes.Buffer
		for _, b := range bodies {
			wire.Write(encodeFrame(b))
		}
		r := bufio.NewReader(iotest.OneByteReader(&wire))
		for i, want := range bodies {
			if got, err := readFrame(r); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("message %d: %q, %v, want %q", i, got, err, want)
			}
		}
		if _, err := readFrame(r); err != io.EOF {
			t.Fatalf("after the last: %v", err)
		}
	})
}

// FuzzRead reads whatever a server may write as messages.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"Content-Length: 2\r\n\r\n{}",
		"Content-Length: 46\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1,2]}}",
		"Content-Length: 52\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"x\",\"params\":null}Content-Length: 1\n\n[",
		"Content-Type: x\r\nContent-Length: 00003\r\n\r\nabc",
		"content-length:1\n\n1", "\r\n\r\n", "Content-Length: 18446744073709551616\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		read := 0
		for {
			body, err := readFrame(r)
			if err != nil {
				if len(err.Error()) > 1000 {
					t.Fatalf("error of %d bytes", len(err.Error()))
				}
				return
			}
			if read += len(body); read > len(data) {
				t.Fatalf("read %d bytes of %d", read, len(data))
			}
			if got, err := readFrame(bufio.NewReader(bytes.NewReader(encodeFrame(body)))); err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%q became %q, %v", body, got, err)
			}
		}
	})
}

// FuzzConversation lets a server say anything to a client that has asked it.
func FuzzConversation(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"contents":"x"}}`,
		`{"id":1,"error":{"code":1,"message":"no"}}`, `{"id":1.5}`, `{"id":"1"}`, `[]`, `null`, `{"id":1,"result":7}`,
		`{"method":"textDocument/publishDiagnostics","params":{"uri":"file:///a","version":1,"diagnostics":[{"range":{},"message":"m","code":{}}]}}`,
		`{"method":"$/progress","params":{"token":1,"value":{"kind":"begin"}}}`,
		`{"id":[],"method":"workspace/configuration","params":{"items":[{"section":"x"}]}}`,
		`{"id":null,"method":"client/registerCapability","params":{"registrations":[{"method":"textDocument/diagnostic"}]}}`,
	} {
		f.Add([]byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		said := bytes.NewReader(append(encodeFrame(one), encodeFrame(two)...))
		s := newServer(Kind{Name: "x"}, "/", "/", &recording{Reader: said})
		answer := make(chan rpcMessage, 1)
		s.conn.nextID, s.conn.pending[1] = 1, answer
		s.conn.run() // until it has heard everything
		select {
		case m := <-answer:
			var v any
			_ = m.decode(&v)
		default:
		}
		if s.isAlive() {
			t.Fatal("the connection outlives the server")
		}
	})
}

// recording is a line to a server that says what was recorded.
type recording struct{ io.Reader }

func (*recording) Write(b []byte) (int, error) { return len(b), nil }
func (*recording) Close() error                { return nil }
func (*recording) Wait()                       {}
func (*recording) ExitReport() string          { return "" }
