package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"coder/internal/model/provider"
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

// Whatever comes, and however it is cut, nothing panics and the reply is the
// same.
func FuzzRead(f *testing.F) {
	for i, s := range seeds() {
		f.Add([]byte(s), uint8(i+1))
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		cut := func(size int) io.Reader { return &cutReader{slices.Clone(body), size, io.EOF} }
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

func TestLinesHaveALimit(t *testing.T) {
	for name, endless := range map[string]io.Reader{
		"a line":    io.MultiReader(strings.NewReader("data: "), repeater("x")),
		"an event":  io.MultiReader(strings.NewReader("data: {\n"), repeater("data: 1234567\n")),
		"a body":    io.MultiReader(strings.NewReader(`{"choices":[`), repeater("1,")),
		"a comment": repeater(": no end "),
		"blanks":    repeater(" "),
	} {
		_, err := read(endless)
		want := "the reply has a line longer than 16 MiB"
		if name == "a body" {
			want = "the reply has a single piece longer than 16 MiB"
		}
		// That the address is that of an API is beyond doubt.
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, provider.ErrNotAnAPI) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// repeater says the same over and over.
type repeater string

func (r repeater) Read(p []byte) (int, error) {
	n := 0
	for len(p)-n >= len(r) {
		n += copy(p[n:], r)
	}
	if n == 0 {
		n = copy(p, r)
	}
	return n, nil
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
