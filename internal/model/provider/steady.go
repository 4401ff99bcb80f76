package provider

import (
	"context"
	"iter"

	"coder/internal/core/clip"
)

// Steady wraps p and stops a reply that certainly only repeats itself, as small models sometimes do, with
// [StopLoop], and a reply that reaches [LongestReply] with [StopSize]. It then abandons the request.
func Steady(p Provider) Provider { return steady{p} }

type steady struct{ next Provider }

func (s steady) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var text, thought echo
		room := LongestReply
		for d, err := range s.next.Stream(ctx, req) {
			if _, again := d.(Restart); again {
				text, thought, room = echo{}, echo{}, LongestReply
			}
			fits := true
			if err == nil {
				d, fits = within(d, &room)
			}
			if d != nil || err != nil {
				if !yield(d, err) {
					return
				}
			}
			switch d := d.(type) {
			case TextDelta:
				text.add(string(d))
			case ReasoningDelta:
				thought.add(d.Text)
			case CallDelta, Done:
			}
			switch {
			case !fits:
				yield(Done{Stop: StopSize}, nil)
				return
			case text.endless || thought.endless:
				yield(Done{Stop: StopLoop}, nil)
				return
			}
		}
	}
}

// callCost is the size of a call besides its arguments, so that a reply of very many calls is also too
// long. A byte of arguments counts argWeight times.
const (
	callCost  = 4 << 10
	argWeight = 4
)

// within subtracts the size of d from the remaining room. It
// cuts d to what fits, or to nothing if d cannot be cut.
func within(d Delta, room *int) (left Delta, fits bool) {
	switch p := d.(type) {
	case TextDelta:
		p = TextDelta(clip.Head(string(p), *room))
		*room -= len(d.(TextDelta))
		left = p
		if p == "" {
			left = nil
		}
	case ReasoningDelta:
		*room -= len(p.Text) + p.Held
		if p.Text = clip.Head(p.Text, max(0, len(p.Text)+min(0, *room))); len(p.Details) > LongestReply {
			p.Details = nil
		}
		left = p
	case CallDelta:
		cost := argWeight*len(p.Args) + len(p.Extra) + len(p.ID) + len(p.Name)
		if p.Name != "" {
			cost += callCost
		}
		if *room -= cost; *room < 0 {
			if argWeight*len(p.Args) < cost { // it begins a call, which is useless without its arguments
				return nil, false
			}
			p.Args = clip.Head(p.Args, max(0, len(p.Args)+*room/argWeight))
		}
		left = p
	default:
		return d, true
	}
	return left, *room >= 0
}

// These bounds make repetition certain: a passage of at most longestPassage
// bytes, leastEchoes times in a row, leastEcho bytes in total.
const (
	longestPassage = 1 << 10
	leastEchoes    = 8
	leastEcho      = 4 << 10
	echoStep       = 512 // bytes between two checks
)

// echo detects a text that only repeats itself.
type echo struct {
	tail    []byte
	fresh   int // bytes since the last check
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

// repeats reports whether the last n bytes are one passage repeated.
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
