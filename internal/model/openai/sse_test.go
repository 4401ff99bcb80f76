package openai

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func seeds() []string {
	one := `data: {"choices":[{"index":0,"delta":{"content":"h` + "世👋" + `i"}}]}`
	call := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]}}]}`
	return []string{
		one + "\n\ndata: [DONE]\n\n",
		one + "\r\n\r\n" + one + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"\ufeff: comment\n\nevent: message\nid: 1\nretry: 5\n" + one + "\n\n",
		"data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]",
		one + "\n" + one + "\n" + call + "\n\n" + `data: {"choices":[{"finish_reason":"tool_calls"}]}` + "\n\n",
		"event: error\ndata: {\"message\":\"no\"}\n\n",
		"data: {\"error\":{\"message\":\"no\",\"code\":429}}\n\n",
		"data: nonsense\n\n", "data:\n\n\n", "hello", "<html>", "\n\n\n", "",
		`{"choices":[{"message":{"content":"x","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":1}}}]},"finish_reason":"stop"}]}`,
		`{"choices":[{"message":{"content":"x"}}]}{"usage":{"prompt_tokens":1}}`, `[{"error":{"message":"x"}}]`, `{"choices":[`,
		`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}],"content":[{"type":"text","text":"b"},"c"]}}]}` + "\n",
		`data: {"choices":[{"delta":{"function_call":{"name":"f","arguments":"{"}}}],"x_groq":{"usage":{"completion_tokens":"3"}}}` + "\n\n",
	}
}

// events lists what a source gives, one line per event.
func eventsOf(from io.Reader) string {
	s := &source{from: from, alive: func(bool) {}}
	f, err := s.sniff()
	var b strings.Builder
	fmt.Fprintln(&b, f, err)
	if err != nil {
		return b.String()
	}
	for {
		e, err := s.next()
		if err != nil {
			fmt.Fprintf(&b, "%v %q\n", err, s.stray)
			return b.String()
		}
		fmt.Fprintf(&b, "%q %q %v\n", e.name, e.data, e.whole)
	}
}

// Whatever comes, and however it is cut, nothing panics and the events and the
// reply are the same.
func FuzzSource(f *testing.F) {
	for i, s := range seeds() {
		f.Add([]byte(s), uint8(i+1))
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		cut := func(size int) io.Reader { return &cutReader{slices.Clone(body), size, io.EOF} }
		if a, b := eventsOf(cut(len(body))), eventsOf(cut(int(size))); a != b {
			t.Errorf("in one piece:\n%s in pieces of %d:\n%s", a, size, b)
		}
		r1, err1 := read(cut(len(body)))
		r2, err2 := read(cut(int(size)))
		if a, b := fmt.Sprintf("%+v %v", r1, err1), fmt.Sprintf("%+v %v", r2, err2); !strings.Contains(a, "0x") && a != b {
			t.Errorf("in one piece:\n%s\nin pieces of %d:\n%s", a, size, b)
		}
		if err1 != nil && len(r1.Message.Calls()) > 0 {
			t.Errorf("calls from a reply that failed: %+v, %v", r1, err1)
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

func TestLinesHaveALimit(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), &repeater{})
	_, err := read(endless)
	if err == nil || !strings.Contains(err.Error(), errLongLine.Error()) {
		t.Errorf("got %v", err)
	}
}

type repeater struct{}

func (*repeater) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func BenchmarkRead(b *testing.B) {
	chunk := `data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"some-model-name","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	const chunks = 20_000
	body := []byte(strings.Repeat(chunk, chunks) + "data: [DONE]\n\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r, err := read(bytes.NewReader(body))
		if err != nil || len(r.Message.Text()) != chunks*5 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
}
