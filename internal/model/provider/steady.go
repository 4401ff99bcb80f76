package provider

import (
	"context"
	"iter"

	"coder/internal/core/clip"
)

// GuardReply wraps p and stops a reply that certainly only repeats itself, as small models sometimes do, with
// [StopLoop], and a reply that reaches [MaxReplyBytes] with [StopSize]. It then abandons the request.
func GuardReply(p Provider) Provider { return replyGuard{p} }

type replyGuard struct{ next Provider }

func (s replyGuard) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		var text, thought loopDetector
		room := MaxReplyBytes
		for d, err := range s.next.Stream(ctx, req) {
			if _, again := d.(Restart); again {
				text, thought, room = loopDetector{}, loopDetector{}, MaxReplyBytes
			}
			fits := true
			if err == nil {
				d, fits = consumeRoom(d, &room)
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
			case text.isLoop || thought.isLoop:
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

// consumeRoom subtracts the size of d from the remaining room. It
// cuts d to what fits, or to nothing if d cannot be cut.
func consumeRoom(d Delta, room *int) (left Delta, fits bool) {
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
		if p.Text = clip.Head(p.Text, max(0, len(p.Text)+min(0, *room))); len(p.Details) > MaxReplyBytes {
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

// These bounds make repetition certain: a passage of at most maxPassage
// bytes, minEchoes times in a row, minEchoBytes bytes in total.
const (
	maxPassage   = 1 << 10
	minEchoes    = 8
	minEchoBytes = 4 << 10
	echoInterval = 512 // bytes between two checks
)

// loopDetector detects a text that only repeats itself.
type loopDetector struct {
	tail      []byte
	unchecked int // bytes since the last check
	isLoop    bool
}

func (e *loopDetector) add(text string) {
	e.tail = append(e.tail, text...)
	if e.unchecked += len(text); e.unchecked < echoInterval {
		return
	}
	e.unchecked = 0
	if over := len(e.tail) - minEchoes*maxPassage; over > 0 {
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
	for passage := 1; passage <= maxPassage && !e.isLoop; passage++ {
		e.isLoop = e.isRepeating(passage, max(minEchoBytes, minEchoes*passage))
	}
}

// isRepeating reports whether the last n bytes are one passage repeated.
func (e *loopDetector) isRepeating(passage, n int) bool {
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
