package provider_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/model/provider"
)

// endless says the same for as long as somebody listens.
type endless struct {
	head, passage string
	thinking      bool
	size          int
	heard         *int
}

func (e endless) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for text := e.head + e.passage; ; text += e.passage {
			for len(text) >= e.size {
				var d provider.Delta = provider.TextDelta(text[:e.size])
				if e.thinking {
					d = provider.ReasoningDelta{Text: text[:e.size], Field: "f"}
				}
				if *e.heard += e.size; *e.heard > 1<<20 || !yield(d, nil) {
					return
				}
				text = text[e.size:]
			}
		}
	}
}

func TestAReplyThatOnlyRepeatsItselfIsEnded(t *testing.T) {
	for name, e := range map[string]endless{
		"a word":      {passage: "no "},
		"a sentence":  {head: "Well. ", passage: "I will read the file again.\n"},
		"a call":      {passage: "<read>{\"path\": \"a\"}</read>\n"},
		"blanks":      {head: "x", passage: " "},
		"a paragraph": {head: "So:\n", passage: strings.Repeat("abcdefghij klmnop", 50) + ".\n\n"},
		"thinking":    {passage: "Wait, let me think. ", thinking: true},
	} {
		for _, size := range []int{1, 7, 600} {
			e.size, e.heard = size, new(int)
			r, err := provider.Collect(provider.GuardReply(e).Stream(t.Context(), provider.Request{}), unwatched)
			if err != nil || r.Stop != provider.StopLoop || *e.heard > 10<<10 {
				t.Errorf("%s by %d: stop %q after %d bytes, %v", name, size, r.Stop, *e.heard, err)
			}
		}
	}
}

func TestAReplyThatGoesOnIsNotEnded(t *testing.T) {
	var numbered, verses strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&numbered, "%d. the same item\n", i)
	}
	for i := range 90 {
		fmt.Fprintf(&verses, "%d bottles of beer on the wall, take one down and pass it around\n", i)
	}
	for name, text := range map[string]string{
		"a list": numbered.String(), "a song": verses.String(), "a rule": strings.Repeat("-", 2000) + "\nend",
		"seven times": strings.Repeat(strings.Repeat("x", 999)+"\n", 7), "a table": strings.Repeat("| a | b |\n", 300),
	} {
		whole := stream(nil, provider.TextDelta(text), provider.Done{Stop: provider.StopEnd})
		r, err := provider.Collect(provider.GuardReply(seq(whole)).Stream(t.Context(), provider.Request{}), unwatched)
		if err != nil || r.Stop != provider.StopEnd || r.Message.Text() != text {
			t.Errorf("%s: stop %q, %v", name, r.Stop, err)
		}
	}
}

// seq is a provider of one reply.
type seq iter.Seq2[provider.Delta, error]

func (s seq) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return iter.Seq2[provider.Delta, error](s)
}

func TestAReplyHasABound(t *testing.T) {
	const mib = 1 << 20
	var b strings.Builder
	for i := 0; b.Len() < mib; i++ {
		fmt.Fprintf(&b, "%d is no repetition\n", i)
	}
	piece := b.String()
	args := func(i int, n int) provider.Delta {
		return provider.CallDelta{Index: i, ID: fmt.Sprint("c", i), Name: "write", Args: `{"text":"` + strings.Repeat("x", n) + `"}`}
	}
	for name, tc := range map[string]struct {
		next  func(i int) provider.Delta
		text  int // bytes that are taken; 0 means MaxReplyBytes, -1 any
		calls int
	}{
		"text":      {next: func(i int) provider.Delta { return provider.TextDelta(fmt.Sprint(i, piece)) }},
		"thinking":  {next: func(i int) provider.Delta { return provider.ReasoningDelta{Text: fmt.Sprint(i, piece), Field: "f"} }},
		"signature": {next: func(int) provider.Delta { return provider.ReasoningDelta{Held: mib} }, text: -1},
		"arguments": {next: func(i int) provider.Delta { return provider.CallDelta{Index: 0, Args: fmt.Sprint(i, piece)} }, text: provider.MaxArgumentBytes, calls: 1},
		"all of them": {next: func(i int) provider.Delta {
			return []provider.Delta{provider.TextDelta(fmt.Sprint(i, piece)), provider.ReasoningDelta{Text: fmt.Sprint(i, piece)}, args(i/3, mib)}[i%3]
		}, text: 8*mib + 64<<10, calls: 2},
		"calls": {next: func(i int) provider.Delta { return args(i, 1) }, text: -1, calls: provider.MaxReplyBytes / (4<<10 + 4*12 + 9)},
		"runes": {next: func(i int) provider.Delta {
			return provider.TextDelta(strings.Repeat(string(rune(0x4E00+i)), 1<<15) + "a")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			endless := seq(func(yield func(provider.Delta, error) bool) {
				for ; asked < 100_000 && yield(tc.next(asked), nil); asked++ {
				}
			})
			r, err := provider.Collect(provider.GuardReply(endless).Stream(t.Context(), provider.Request{}), unwatched)
			if err != nil || r.Stop != provider.StopSize || asked > 5_000 {
				t.Fatalf("stop %q after %d pieces, %v", r.Stop, asked, err)
			}
			size := len(r.Message.Text()) + len(r.Message.Reasoning())
			for _, c := range r.Message.Calls() {
				size += max(len(c.Args), len(c.Broken))
			}
			most := cmp.Or(tc.text, provider.MaxReplyBytes)
			if tc.text >= 0 && (size > most || size < most-64<<10) || !utf8.ValidString(r.Message.Text()) {
				t.Errorf("%d bytes were taken", size)
			}
			calls := r.Message.Calls()
			if len(calls) != tc.calls {
				t.Fatalf("%d calls, want %d", len(calls), tc.calls)
			}
			if n := len(calls); n > 0 && calls[n-1].Broken == "" {
				t.Error("the last call counts as whole")
			}
		})
	}
}

func TestAReplyThatIsAskedForAgainHasItsOwnBound(t *testing.T) {
	half := provider.TextDelta(strings.Repeat(strings.Repeat("-", 1500)+"\n", provider.MaxReplyBytes/1501*2/3))
	again := stream(nil, half, provider.Restart{Attempt: 2, MaxAttempts: 2}, half, provider.Done{Stop: provider.StopEnd})
	r, err := provider.Collect(provider.GuardReply(seq(again)).Stream(t.Context(), provider.Request{}), unwatched)
	if err != nil || r.Stop == provider.StopSize {
		t.Errorf("stop %q, %v", r.Stop, err)
	}
}

func TestArgumentsThatAreNestedTooDeepAreBroken(t *testing.T) {
	for depth, broken := range map[int]bool{900: false, 1001: true, 5000: true, 100_000: true} {
		deep := `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}"
		r, err := provider.Collect(stream(nil, provider.CallDelta{ID: "c", Name: "f", Args: deep}, provider.Done{Stop: provider.StopTools}), unwatched)
		if err != nil || (r.Message.Calls()[0].Broken != "") != broken {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}
