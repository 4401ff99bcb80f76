package search

import "bytes"

// finder finds a run in a text. It is for many goroutines.
type finder struct {
	run  run
	rare int // the place of the run that fewest bytes fit
	// A run with a place that one or two bytes fit, and those rare, is found by
	// looking for these.
	one, two byte
	byByte   bool
	// Others are found by looking at where they would end: how far on the next
	// may end, going by the byte that stands there.
	skip  [256]uint8 // 0 if the run may end here
	after [256]uint8 // the same, if it does not after all
	fits  [maxRun][256]bool
}

const (
	// rareShare is how frequent a byte may be to be worth looking for.
	rareShare = 0.03
	// leastSkip is how far a finder must come on with each byte it looks at to
	// be faster than looking at each.
	leastSkip = 1.8
	// leastScore is how rare a need must be to be worth looking for, as a
	// logarithm: once in a few hundred bytes.
	leastScore = 5.5
)

// newFinders makes a finder for each run of n, none if looking for them is of
// no use.
func newFinders(n need) (all []*finder) {
	if n.score() < leastScore {
		return nil
	}
	for _, r := range n {
		f := newFinder(r[:min(len(r), maxRun)])
		ahead, total := 0.0, 0.0 // how far it comes on with each byte it looks at, on average
		for b := range 256 {
			ahead += float64(max(f.skip[b], 1)) * shares[b]
			total += shares[b]
		}
		if !f.byByte && ahead/total < leastSkip {
			return nil
		}
		all = append(all, f)
	}
	return all
}

func newFinder(r run) *finder {
	f := &finder{run: r}
	for i, s := range r {
		for b := range 256 {
			f.fits[i][b] = s.has(byte(b))
		}
		if s.share() < r[f.rare].share() {
			f.rare = i
		}
	}
	var fit []byte // what the rarest place fits
	for b := range 256 {
		if f.fits[f.rare][b] {
			fit = append(fit, byte(b))
		}
	}
	if len(fit) > 0 && len(fit) <= 2 && f.run[f.rare].share() <= rareShare {
		f.byByte, f.one, f.two = true, fit[0], fit[len(fit)-1]
	}
	last := len(r) - 1
	for b := range 256 {
		f.after[b] = uint8(len(r))
		for i := range last {
			if f.fits[i][b] {
				f.after[b] = uint8(last - i)
			}
		}
		if !f.fits[last][b] {
			f.skip[b] = f.after[b]
		}
	}
	return f
}

// find is where the run is found next, -1 if it is not.
func (f *finder) find(data []byte) int {
	if f.byByte {
		return f.findByte(data)
	}
	for end := len(f.run) - 1; end < len(data); {
		b := data[end]
		if n := f.skip[b]; n > 0 {
			end += int(n)
			continue
		}
		if at := end - len(f.run) + 1; f.at(data, at) {
			return at
		}
		end += int(f.after[b])
	}
	return -1
}

// at reports whether the run is at a place of data where there is room for it.
func (f *finder) at(data []byte, at int) bool {
	for i := range f.run {
		if !f.fits[i][data[at+i]] {
			return false
		}
	}
	return true
}

// findByte looks for the rarest bytes, and at what is around them.
func (f *finder) findByte(data []byte) int {
	if len(data) < len(f.run) {
		return -1
	}
	base := f.rare
	space := data[base : len(data)-len(f.run)+base+1] // where the rarest byte may be
	one, two := bytes.IndexByte(space, f.one), -1
	if f.two != f.one {
		two = bytes.IndexByte(space, f.two)
	}
	for one >= 0 || two >= 0 {
		at := one
		if one < 0 || two >= 0 && two < one {
			at = two
		}
		if f.at(data, at) {
			return at
		}
		next, c := &one, f.one
		if at != one {
			next, c = &two, f.two
		}
		if *next = bytes.IndexByte(space[at+1:], c); *next >= 0 {
			*next += at + 1
		}
	}
	return -1
}
