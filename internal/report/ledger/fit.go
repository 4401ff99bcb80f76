package ledger

import tokens "coder/internal/agent/prompt"

// estimateNext returns the estimated tokens of the next request: the provider's
// count for the last request and its reply, plus later messages.
func (b *Ledger) estimateNext() int {
	counted, since := b.messageLog.TokenUsage(tokens.EstimateMessageTokens)
	if counted == 0 { // it was shortened since
		return int(b.scale * float64(b.WindowTokens()))
	}
	return counted + int(b.scale*float64(since))
}

// Scale scales the window's content to a total number of tokens.
func (b *Ledger) Scale(used int) {
	sizes := make([]int, len(b.Entries))
	for i, e := range b.Entries {
		sizes[i] = e.Tokens
	}
	for i, n := range Apportion(sizes, used) {
		b.Entries[i].Tokens = n
	}
}

// Apportion divides a sum in proportion to sizes, as closely as integers allow.
func Apportion(sizes []int, sum int) []int {
	all, before, given := 0, 0, 0
	for _, n := range sizes {
		all += n
	}
	shares := make([]int, len(sizes))
	for i, n := range sizes {
		before += n
		upTo := int(float64(sum)*float64(before)/float64(max(all, 1)) + 0.5)
		shares[i], given = upTo-given, upTo
	}
	return shares
}

// WindowTokens returns how many tokens are in the window.
func (b *Ledger) WindowTokens() (n int) {
	for _, e := range b.Entries {
		n += e.Tokens
	}
	return n
}
