package provider_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

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
			r, err := provider.Collect(provider.Steady(e).Stream(t.Context(), provider.Request{}), unwatched)
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
		r, err := provider.Collect(provider.Steady(seq(whole)).Stream(t.Context(), provider.Request{}), unwatched)
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
