package ledger

import tokens "coder/internal/agent/prompt"

// used returns the estimated tokens of the next request: the provider's
// count for the last request and its reply, plus later messages.
func (b *Book) used() int {
	counted, since := b.talk.Estimate(tokens.MessageTokens)
	if counted == 0 { // it was shortened since
		return int(b.fit * float64(b.Window()))
	}
	return counted + int(b.fit*float64(since))
}

// Fit scales the window's content to a total number of tokens.
func (b *Book) Fit(used int) {
	sizes := make([]int, len(b.Entries))
	for i, e := range b.Entries {
		sizes[i] = e.Now
	}
	for i, n := range Shares(sizes, used) {
		b.Entries[i].Now = n
	}
}

// Shares divides a sum in proportion to sizes, as closely as integers allow.
func Shares(sizes []int, sum int) []int {
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

// Window returns how many tokens are in the window.
func (b *Book) Window() (n int) {
	for _, e := range b.Entries {
		n += e.Now
	}
	return n
}
