package transport

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// events lists what a source gives, one line per event.
func eventsOf(from io.Reader) string {
	s := &bodyReader{from: from, progress: func() {}}
	f, err := s.sniff()
	var b strings.Builder
	fmt.Fprintln(&b, f, err)
	if err != nil {
		return b.String()
	}
	for {
		e, err := s.next()
		if err != nil {
			fmt.Fprintf(&b, "%v %q\n", err, s.strayLine)
			return b.String()
		}
		fmt.Fprintf(&b, "%q %q %v\n", e.name, e.data, e.isComplete)
	}
}

// Whatever comes, and however it is cut, nothing panics and the events are the
// same.
func FuzzSource(f *testing.F) {
	one := `data: {"content":"h` + "世👋" + `i"}`
	for i, s := range []string{
		one + "\n\ndata: [DONE]\n\n",
		one + "\r\n\r\n" + one + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"\ufeff: comment\n\nevent: message\nid: 1\nretry: 5\n" + one + "\n\n",
		"data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]",
		one + "\n" + one + "\n\n" + "event: error\ndata: {\"message\":\"no\"}\n\n",
		"data: nonsense\n\n", "data:\n\n\n", "hello", "<html>", "\n\n\n", "", `{"a":1}{"b":1}`, `[{"error":{"message":"x"}}]`, `{"a":[`,
	} {
		f.Add([]byte(s), uint8(i+1))
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		var pieces []io.Reader
		for p := range slices.Chunk(body, max(int(size), 1)) {
			pieces = append(pieces, bytes.NewReader(p))
		}
		if a, b := eventsOf(bytes.NewReader(body)), eventsOf(io.MultiReader(pieces...)); a != b {
			t.Errorf("in one piece:\n%s in pieces of %d:\n%s", a, size, b)
		}
	})
}

func TestEvents(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"one", "data: {}\n\n", `"" "{}" true`},
		{"without a blank line between", "data: {}\ndata: {\"a\":1}\n\n", `"" "{}" true|"" "{\"a\":1}" true`},
		{"over several lines", "data: {\ndata: }\n\n", `"" "{\n}" true`},
		{"named", "event: error\ndata: {}\n\ndata: {}\n\n", `"error" "{}" true|"" "{}" true`},
		{"name without data", "event: ping\n\ndata: {}\n\n", `"" "{}" true`},
		{"not JSON", "data: oops\n\ndata: {}\n\n", `"" "oops" false|"" "{}" true`},
		{"not JSON and last", "data: oops\n", `"" "oops" false`},
		{"last line without an end", "data: {}", `"" "{}" true`},
		{"last line cut", "data: {}\n\ndata: {\"a\"", `"" "{}" true`},
		{"second of two lines cut", "data: {\ndata: \"a\":", ``},
		{"second of two lines without an end", "data: {\ndata: }", `"" "{\n}" true`},
		{"end mark", "data: [DONE]", `"" "[DONE]" false`},
		{"end mark with blanks", "data:  [DONE] \r\n", `"" " [DONE] " false`},
		{"no data", "data\n\ndata:\n\n", ``},
		{"other fields", "id: 1\nretry: 2\nfoo: bar\n: c\n\ndata: 1\n\n", `"" "1" true`},
	} {
		lines := strings.Split(strings.TrimSpace(eventsOf(strings.NewReader(tc.in))), "\n")
		if got := strings.Join(lines[1:len(lines)-1], "|"); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}
