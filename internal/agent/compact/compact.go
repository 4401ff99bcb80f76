// Package compact shortens a conversation that has grown too long for its
// model. It only computes: messages go in and messages come out, and the caller
// asks the model and records what was decided.
//
// Three promises hold whatever the conversation:
//  1. A call is never parted from its result.
//  2. What the person said survives, shortened at most.
//  3. The result is smaller than what it replaces, or the caller is told.
package compact

import (
	"errors"
	"slices"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
)

// Defaults and shares of the limit.
const (
	defaultThreshold = 0.8
	defaultRecent    = 12
	minRecent        = 4    // messages kept, however few are asked for
	keptShare        = 0.5  // of the threshold: what the kept messages may take
	summaryShare     = 0.25 // of the threshold: what the summary may take
	defaultRoom      = 8000 // tokens for the summary where there is no limit
	minRoom          = 300
)

// A Count is how many tokens a message takes.
type Count func(chat.Message) int

// Limits says when a conversation is too long and what is to stay of it.
type Limits struct {
	Tokens    int     // what the model can take; zero means no limit
	Threshold float64 // the share of Tokens from which on to compact; zero means 0.8
	Recent    int     // messages to keep as they are; zero means 12
	// Force compacts although nothing is too long, because the person said so.
	// Then fewer messages are kept.
	Force bool
}

// Due reports whether a conversation that uses so many tokens is too long.
func (l Limits) Due(used int) bool {
	return l.Tokens > 0 && float64(used) > l.Allowed()
}

// Allowed is how many tokens a conversation may use before it is too long.
func (l Limits) Allowed() float64 {
	if l.Threshold <= 0 || l.Threshold > 1 {
		return float64(l.Tokens) * defaultThreshold
	}
	return float64(l.Tokens) * l.Threshold
}

// Room is how many tokens a summary may take.
func (l Limits) Room() int {
	if l.Tokens <= 0 {
		return defaultRoom
	}
	return min(max(int(l.Allowed()*summaryShare), minRoom), 2*defaultRoom)
}

// Reasons why a conversation stays as it is.
var (
	ErrTooShort = errors.New("nothing to compact")
	ErrNoGain   = errors.New("a summary would not be shorter")
)

// Plan is a conversation in two: Old is to be summarised, Kept stays.
type Plan struct {
	Old, Kept []chat.Message
}

// Cut parts view between a call's result and what follows it, before something
// the person said if there is such a place nearby. It keeps the recent
// messages, or fewer if they alone would be too much, or returns [ErrTooShort].
func Cut(view []chat.Message, l Limits, count Count) (Plan, error) {
	safe := boundaries(view, l.Force)
	if len(safe) == 0 {
		return Plan{}, ErrTooShort
	}
	keep := max(l.Recent, minRecent)
	if l.Recent <= 0 {
		keep = defaultRecent
	}
	if l.Force {
		keep = min(keep, len(view)/3)
	}
	at := preferred(view, safe, len(view)-keep)
	if l.Tokens > 0 {
		at = affordable(view, safe, at, int(l.Allowed()*keptShare), count)
	}
	old := view[:at:at]
	if len(old) == 1 && IsSummary(old[0]) {
		return Plan{}, ErrTooShort
	}
	return Plan{Old: old, Kept: view[at:len(view):len(view)]}, nil
}

// boundaries lists where view can be cut without parting a call from its
// result. The last message stays, unless all may go.
func boundaries(view []chat.Message, all bool) []int {
	parted := make([]int, len(view)+2) // how many pairs begin, and end, at a place
	open := make(map[string]int)       // where the last call with an id stands
	for i, m := range view {
		for r := range chat.Select[chat.ToolResult](m) {
			if call, ok := open[r.CallID]; ok {
				parted[call+1]++
				parted[i+1]--
			}
		}
		for c := range chat.Select[chat.ToolCall](m) {
			open[c.ID] = i
		}
	}
	last := len(view) - 1
	if all {
		last = len(view)
	}
	var safe []int
	for at, over := 1, 0; at <= last; at++ {
		over += parted[at]
		if over == 0 && (at == len(view) || view[at].Role != chat.Tool) {
			safe = append(safe, at)
		}
	}
	return safe
}

// preferred is the boundary to cut at, at want or before: the nearest one where
// the person speaks, if it is near enough, else the nearest. If all come after
// want it is the first.
func preferred(view []chat.Message, safe []int, want int) int {
	i, found := slices.BinarySearch(safe, want)
	if !found {
		i--
	}
	if i < 0 {
		return safe[0]
	}
	near := safe[i] - max(minRecent, (len(view)-want)/2)
	for j := i; j >= 0 && safe[j] >= near; j-- {
		if safe[j] < len(view) && view[safe[j]].Role == chat.User {
			return safe[j]
		}
	}
	return safe[i]
}

// affordable moves a cut on until what is kept takes no more than budget, or
// there is no further place.
func affordable(view []chat.Message, safe []int, at, budget int, count Count) int {
	kept := total(view[at:], count)
	for _, next := range safe {
		if next <= at {
			continue
		}
		if kept <= budget {
			break
		}
		kept -= total(view[at:next], count)
		at = next
	}
	return at
}

func total(ms []chat.Message, count Count) int {
	n := 0
	for _, m := range ms {
		n += count(m)
	}
	return n
}

// Compare tells what became of messages that others stand for: how many are gone, for a
// summary or for nothing, and how many of the rest are shorter than they were.
func Compare(old, stand []chat.Message) (dropped, shortened int) {
	rest := stand
	if len(rest) > 0 && IsSummary(rest[0]) && !(len(rest) == len(old) && IsSummary(old[0])) {
		if rest = rest[1:]; !slices.ContainsFunc(rest, func(m chat.Message) bool { return !isSkill(m) }) {
			rest = nil // made of what is gone
		}
	}
	rest = rest[max(len(rest)-len(old), 0):]
	dropped = len(old) - len(rest)
	for i, m := range rest {
		if was := old[dropped+i]; !chat.Same(m, was) && len(jsonx.Must(m)) < len(jsonx.Must(was)) {
			shortened++
		}
	}
	return dropped, shortened
}

// With is the conversation with summary in place of the old messages. If that
// is not shorter the error is [ErrNoGain]; the messages are good even so, for a
// caller who was told to compact whatever it takes.
func (p Plan) With(summary chat.Message, count Count) ([]chat.Message, error) {
	messages := append([]chat.Message{summary}, p.Kept...)
	if count(summary) >= total(p.Old, count) {
		return messages, ErrNoGain
	}
	return messages, nil
}
