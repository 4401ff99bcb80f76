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
	defaultThreshold     = 0.8
	defaultRecent        = 12
	minRecent            = 4    // fewest messages to keep
	keptFraction         = 0.5  // of the threshold: limit for the kept messages
	summaryFraction      = 0.25 // of the threshold: limit for the summary
	defaultSummaryTokens = 8000 // tokens for the summary without a limit
	minSummaryTokens     = 300
)

// Counter returns the number of tokens in a message.
type Counter func(chat.Message) int

// Limits says when a conversation is too long and how much of it to keep.
type Limits struct {
	Tokens    int     // the model's window; zero means no limit
	Threshold float64 // share of Tokens that triggers compaction; zero means 0.8
	Recent    int     // messages to keep unchanged; zero means 12
	// Force compacts a conversation of any length, because the user asked. It keeps fewer messages.
	Force bool
}

// IsExceeded reports whether a conversation of used tokens is too long.
func (l Limits) IsExceeded(used int) bool {
	return l.Tokens > 0 && float64(used) > l.MaxTokens()
}

// MaxTokens returns how many tokens a conversation may use before it is too long.
func (l Limits) MaxTokens() float64 {
	if l.Threshold <= 0 || l.Threshold > 1 {
		return float64(l.Tokens) * defaultThreshold
	}
	return float64(l.Tokens) * l.Threshold
}

// SummaryTokens returns how many tokens a summary may use.
func (l Limits) SummaryTokens() int {
	if l.Tokens <= 0 {
		return defaultSummaryTokens
	}
	return min(max(int(l.MaxTokens()*summaryFraction), minSummaryTokens), 2*defaultSummaryTokens)
}

// Reasons why a conversation stays unchanged.
var (
	ErrTooShort = errors.New("nothing to compact")
	ErrNoGain   = errors.New("a summary would not be shorter")
)

// Plan divides a conversation: Old becomes a summary, Kept stays.
type Plan struct {
	Summarized, Kept []chat.Message
}

// NewPlan divides view after a complete round, before a message from the user if there is one
// nearby. It keeps the recent messages, or fewer if they are too long, or returns [ErrTooShort].
func NewPlan(view []chat.Message, l Limits, count Counter) (Plan, error) {
	safe := cutPoints(view, l.Force)
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
	at := preferredCut(view, safe, len(view)-keep)
	if l.Tokens > 0 {
		at = fittingCut(view, safe, at, int(l.MaxTokens()*keptFraction), count)
	}
	old := view[:at:at]
	if len(old) == 1 && IsSummary(old[0]) {
		return Plan{}, ErrTooShort
	}
	return Plan{Summarized: old, Kept: view[at:len(view):len(view)]}, nil
}

// cutPoints lists where view can be cut without separating a call
// from its result. The last message stays, unless all is set.
func cutPoints(view []chat.Message, all bool) []int {
	parted := make([]int, len(view)+2) // how many pairs begin, and end, at an index
	open := make(map[string]int)       // index of the last call with an id
	for i, m := range view {
		for r := range chat.PartsOf[chat.ToolResult](m) {
			if call, ok := open[r.CallID]; ok {
				parted[call+1]++
				parted[i+1]--
			}
		}
		for c := range chat.PartsOf[chat.ToolCall](m) {
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

// preferredCut returns the boundary to cut at, at or before want: the nearest one before a message from the
// user if it is close enough, otherwise the nearest. It returns the first boundary if all are after want.
func preferredCut(view []chat.Message, safe []int, want int) int {
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

// fittingCut moves a cut forward until the kept messages fit into budget or no boundary is left.
func fittingCut(view []chat.Message, safe []int, at, budget int, count Counter) int {
	kept := totalTokens(view[at:], count)
	for _, next := range safe {
		if next <= at {
			continue
		}
		if kept <= budget {
			break
		}
		kept -= totalTokens(view[at:next], count)
		at = next
	}
	return at
}

func totalTokens(ms []chat.Message, count Counter) int {
	n := 0
	for _, m := range ms {
		n += count(m)
	}
	return n
}

// CompareMessages reports how a replacement changed messages: how many are gone,
// replaced by a summary or by nothing, and how many of the others are shorter.
func CompareMessages(old, stand []chat.Message) (dropped, shortened int) {
	rest := stand
	if len(rest) > 0 && IsSummary(rest[0]) && !(len(rest) == len(old) && IsSummary(old[0])) {
		if rest = rest[1:]; !slices.ContainsFunc(rest, func(m chat.Message) bool { return !isSkillMessage(m) }) {
			rest = nil // made from dropped messages
		}
	}
	rest = rest[max(len(rest)-len(old), 0):]
	dropped = len(old) - len(rest)
	for i, m := range rest {
		if was := old[dropped+i]; !chat.IsSame(m, was) && len(jsonx.MustMarshal(m)) < len(jsonx.MustMarshal(was)) {
			shortened++
		}
	}
	return dropped, shortened
}

// Apply returns the conversation with summary in place of the old messages. If the result is not
// shorter, the error is [ErrNoGain]; a caller who must compact anyway may still use the messages.
func (p Plan) Apply(summary chat.Message, count Counter) ([]chat.Message, error) {
	messages := append([]chat.Message{summary}, p.Kept...)
	if count(summary) >= totalTokens(p.Summarized, count) {
		return messages, ErrNoGain
	}
	return messages, nil
}
