package ledger

import tokens "coder/internal/agent/prompt"

// used is how many tokens the next request would have: what the provider counted for
// the last one and its reply, and what was said since.
func (b *Book) used() int {
	counted, since := b.talk.Estimate(tokens.MessageTokens)
	if counted == 0 { // it was made shorter since
		return int(b.fit * float64(b.Window()))
	}
	return counted + int(b.fit*float64(since))
}

// Fit has what is in the window come to so many tokens in all.
func (b *Book) Fit(used int) {
	sizes := make([]int, len(b.Entries))
	for i, e := range b.Entries {
		sizes[i] = e.Now
	}
	for i, n := range Shares(sizes, used) {
		b.Entries[i].Now = n
	}
}

// Shares is a sum in parts that are to each other as sizes are, as nearly as whole
// numbers can be.
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

// Window is how many tokens are in the window.
func (b *Book) Window() (n int) {
	for _, e := range b.Entries {
		n += e.Now
	}
	return n
}
