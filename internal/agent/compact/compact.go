// Package compact shortens a conversation that has grown too long for its model. It
// only computes on messages; the caller asks the model and records the decisions.
//
// Package compact guarantees for every conversation:
//  1. A call is never separated from its result.
//  2. The user's words survive, at most shortened.
//  3. The result is smaller than what it replaces, or the caller gets an error.
package compact

import (
	"errors"
	"slices"

	"coder/internal/core/chat"
	"coder/internal/core/jsonx"
)

// Defaults, and shares of the limit.
const (
	defaultThreshold = 0.8
	defaultRecent    = 12
	minRecent        = 4    // fewest messages to keep
	keptShare        = 0.5  // of the threshold: limit for the kept messages
	summaryShare     = 0.25 // of the threshold: limit for the summary
	defaultRoom      = 8000 // tokens for the summary without a limit
	minRoom          = 300
)

// Count returns the number of tokens in a message.
type Count func(chat.Message) int

// Limits says when a conversation is too long and how much of it to keep.
type Limits struct {
	Tokens    int     // the model's window; zero means no limit
	Threshold float64 // share of Tokens that triggers compaction; zero means 0.8
	Recent    int     // messages to keep unchanged; zero means 12
	// Force compacts a conversation of any length, because the user asked. It keeps fewer messages.
	Force bool
}

// Due reports whether a conversation of used tokens is too long.
func (l Limits) Due(used int) bool {
	return l.Tokens > 0 && float64(used) > l.Allowed()
}

// Allowed returns how many tokens a conversation may use before it is too long.
func (l Limits) Allowed() float64 {
	if l.Threshold <= 0 || l.Threshold > 1 {
		return float64(l.Tokens) * defaultThreshold
	}
	return float64(l.Tokens) * l.Threshold
}

// Room returns how many tokens a summary may use.
func (l Limits) Room() int {
	if l.Tokens <= 0 {
		return defaultRoom
	}
	return min(max(int(l.Allowed()*summaryShare), minRoom), 2*defaultRoom)
}

// Reasons why a conversation stays unchanged.
var (
	ErrTooShort = errors.New("nothing to compact")
	ErrNoGain   = errors.New("a summary would not be shorter")
)

// Plan divides a conversation: Old becomes a summary, Kept stays.
type Plan struct {
	Old, Kept []chat.Message
}

// Cut divides view after a complete round, before a message from the user if there is one
// nearby. It keeps the recent messages, or fewer if they are too long, or returns [ErrTooShort].
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

// boundaries lists where view can be cut without separating a call
// from its result. The last message stays, unless all is set.
func boundaries(view []chat.Message, all bool) []int {
	parted := make([]int, len(view)+2) // how many pairs begin, and end, at an index
	open := make(map[string]int)       // index of the last call with an id
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

// preferred returns the boundary to cut at, at or before want: the nearest one before a message from the
// user if it is close enough, otherwise the nearest. It returns the first boundary if all are after want.
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

// affordable moves a cut forward until the kept messages fit into budget or no boundary is left.
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

// Compare reports how a replacement changed messages: how many are gone,
// replaced by a summary or by nothing, and how many of the others are shorter.
func Compare(old, stand []chat.Message) (dropped, shortened int) {
	rest := stand
	if len(rest) > 0 && IsSummary(rest[0]) && !(len(rest) == len(old) && IsSummary(old[0])) {
		if rest = rest[1:]; !slices.ContainsFunc(rest, func(m chat.Message) bool { return !isSkill(m) }) {
			rest = nil // made from dropped messages
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

// With returns the conversation with summary in place of the old messages. If the result is not
// shorter, the error is [ErrNoGain]; a caller who must compact anyway may still use the messages.
func (p Plan) With(summary chat.Message, count Count) ([]chat.Message, error) {
	messages := append([]chat.Message{summary}, p.Kept...)
	if count(summary) >= total(p.Old, count) {
		return messages, ErrNoGain
	}
	return messages, nil
}
