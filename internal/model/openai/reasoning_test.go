package openai

import "testing"

func TestOpening(t *testing.T) {
	for _, tc := range []struct{ in, thought, answer string }{
		{"hello", "", "hello"},
		{"<think>a b</think>\n\nhello", "a b", "hello"},
		{" \n<think>a</think>hello", "a", "hello"},
		{"<think></think>hello", "", "hello"},
		{"<think>a</think> b </think> c", "a", "b </think> c"},
		{"<think>never closed", "never closed", ""},
		{"<think>a</thin", "a</thin", ""},
		{"<thin", "", "<thin"},
		{"<thinking>a</thinking>", "", "<thinking>a</thinking>"},
		{"say <think>a</think>", "", "say <think>a</think>"},
		{" \n ", "", " \n "},
		{"  indented", "", "  indented"},
		{"", "", ""},
	} {
		for size := 1; size <= len(tc.in)+1; size++ {
			var o thinkSplitter
			var thought, answer string
			for rest := tc.in; rest != ""; {
				n := min(size, len(rest))
				th, an := o.split(rest[:n])
				thought, answer, rest = thought+th, answer+an, rest[n:]
			}
			th, an := o.flush()
			if thought+th != tc.thought || answer+an != tc.answer {
				t.Errorf("%q in pieces of %d: thought %q, answer %q", tc.in, size, thought+th, answer+an)
			}
		}
	}
}
