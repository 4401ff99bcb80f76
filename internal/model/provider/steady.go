package provider

import (
	"context"
	"iter"
)

// Steady wraps p so that a reply which only repeats itself, as small models'
// sometimes do, is ended where that is certain, with [StopLoop]. The request is
// abandoned there.
func Steady(p Provider) Provider { return steady{p} }

type steady struct{ next Provider }

func (s steady) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var text, thought echo
		for d, err := range s.next.Stream(ctx, req) {
			if !yield(d, err) {
				return
			}
			switch d := d.(type) {
			case TextDelta:
				text.add(string(d))
			case ReasoningDelta:
				thought.add(d.Text)
			case Restart:
				text, thought = echo{}, echo{}
			case CallDelta, Done:
			}
			if text.endless || thought.endless {
				yield(Done{Stop: StopLoop}, nil)
				return
			}
		}
	}
}

// What is certain: a passage of at most so many bytes came so often in a row,
// and that was so much altogether.
const (
	longestPassage = 1 << 10
	leastEchoes    = 8
	leastEcho      = 4 << 10
	echoStep       = 512 // bytes between two looks
)

// echo follows a text and notices when it only repeats itself.
type echo struct {
	tail    []byte
	fresh   int // bytes since the last look
	endless bool
}

func (e *echo) add(text string) {
	e.tail = append(e.tail, text...)
	if e.fresh += len(text); e.fresh < echoStep {
		return
	}
	e.fresh = 0
	if over := len(e.tail) - leastEchoes*longestPassage; over > 0 {
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
	for passage := 1; passage <= longestPassage && !e.endless; passage++ {
		e.endless = e.repeats(passage, max(leastEcho, leastEchoes*passage))
	}
}

// repeats reports whether the last n bytes are one passage over and over.
func (e *echo) repeats(passage, n int) bool {
	if n > len(e.tail) {
		return false
	}
	last := e.tail[len(e.tail)-n:]
	for i := n - 1; i >= passage; i-- {
		if last[i] != last[i-passage] {
			return false
		}
	}
	return true
}
