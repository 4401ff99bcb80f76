package search

import (
	"bytes"
	"math"
	"regexp/syntax"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// finder finds a run in a text. It is safe for concurrent use.
type finder struct {
	run     byteRun
	rarePos int // the position of the run that accepts the fewest bytes
	// A run with a position that accepts only one or two bytes,
	// and rare ones, is found by searching for these bytes.
	byte1, byte2  byte
	useByteSearch bool
	// Other runs are found by their ends: how far ahead the next
	// end may be, given the byte at the current position.
	skip      [256]uint8 // 0 if the run may end here
	skipAfter [256]uint8 // the same, if it turns out not to
	accepts   [maxRun][256]bool
}

const (
	// maxRareShare is the maximum share of bytes worth searching for.
	maxRareShare = 0.03
	// minSkip is how many bytes a finder must advance per examined byte to be faster than examining each.
	minSkip = 1.8
	// minScore is how rare a need must be to be worth searching
	// for, as a logarithm: once in a few hundred bytes.
	minScore = 5.5
)

// newFinders returns a finder for each run of n, or none if searching for them does not help.
func newFinders(n requirement) (all []*finder) {
	if n.score() < minScore {
		return nil
	}
	for _, r := range n {
		f := newFinder(r[:min(len(r), maxRun)])
		of, ahead, total := byteShares(), 0.0, 0.0 // average advance per examined byte
		for b := range 256 {
			ahead += float64(max(f.skip[b], 1)) * of[b]
			total += of[b]
		}
		if !f.useByteSearch && ahead/total < minSkip {
			return nil
		}
		all = append(all, f)
	}
	return all
}

func newFinder(r byteRun) *finder {
	f := &finder{run: r}
	for i, s := range r {
		for b := range 256 {
			f.accepts[i][b] = s.has(byte(b))
		}
		if s.share() < r[f.rarePos].share() {
			f.rarePos = i
		}
	}
	var fit []byte // bytes that the rarest position accepts
	for b := range 256 {
		if f.accepts[f.rarePos][b] {
			fit = append(fit, byte(b))
		}
	}
	if len(fit) > 0 && len(fit) <= 2 && f.run[f.rarePos].share() <= maxRareShare {
		f.useByteSearch, f.byte1, f.byte2 = true, fit[0], fit[len(fit)-1]
	}
	last := len(r) - 1
	for b := range 256 {
		f.skipAfter[b] = uint8(len(r))
		for i := range last {
			if f.accepts[i][b] {
				f.skipAfter[b] = uint8(last - i)
			}
		}
		if !f.accepts[last][b] {
			f.skip[b] = f.skipAfter[b]
		}
	}
	return f
}

// find returns the index of the next run, or -1.
func (f *finder) find(data []byte) int {
	if f.useByteSearch {
		return f.findByte(data)
	}
	for end := len(f.run) - 1; end < len(data); {
		b := data[end]
		if n := f.skip[b]; n > 0 {
			end += int(n)
			continue
		}
		if at := end - len(f.run) + 1; f.matchesAt(data, at) {
			return at
		}
		end += int(f.skipAfter[b])
	}
	return -1
}

// matchesAt reports whether the run is at a position of data with room for it.
func (f *finder) matchesAt(data []byte, at int) bool {
	for i := range f.run {
		if !f.accepts[i][data[at+i]] {
			return false
		}
	}
	return true
}

// findByte searches for the rarest bytes, and checks their surroundings.
func (f *finder) findByte(data []byte) int {
	if len(data) < len(f.run) {
		return -1
	}
	base := f.rarePos
	space := data[base : len(data)-len(f.run)+base+1] // where the rarest byte may be
	one, two := bytes.IndexByte(space, f.byte1), -1
	if f.byte2 != f.byte1 {
		two = bytes.IndexByte(space, f.byte2)
	}
	for one >= 0 || two >= 0 {
		at := one
		if one < 0 || two >= 0 && two < one {
			at = two
		}
		if f.matchesAt(data, at) {
			return at
		}
		next, c := &one, f.byte1
		if at != one {
			next, c = &two, f.byte2
		}
		if *next = bytes.IndexByte(space[at+1:], c); *next >= 0 {
			*next += at + 1
		}
	}
	return -1
}

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *byteSet) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

func (s byteSet) or(t byteSet) byteSet {
	return byteSet{s[0] | t[0], s[1] | t[1], s[2] | t[2], s[3] | t[3]}
}

// byteRun is a partly known text: the possible bytes at each position. No position is a line end.
type byteRun []byteSet

func literalRun(text string) (r byteRun) {
	for i := range len(text) {
		var s byteSet
		s.add(text[i])
		r = append(r, s)
	}
	return r
}

const (
	maxRun  = 32 // examined positions of a run
	maxRuns = 8  // alternatives worth searching for
)

// requirement is what a match must contain: one of a few runs. The zero need is nothing.
type requirement []byteRun

// score returns the rarity of a need, as a logarithm: higher is rarer.
func (n requirement) score() float64 {
	least := 0.0
	for i, r := range n {
		sum := 0.0
		for _, s := range r {
			sum -= math.Log(s.share())
		}
		if i == 0 || sum < least {
			least = sum
		}
	}
	return least - math.Log(float64(max(len(n), 1)))
}

// commonBytes are the bytes of source code, most frequent first.
const commonBytes = " etniarosclpduf\tm\n.gh,(b)x=_v\"0/yw:1k-S;Tq{}2EIAC*R[]NPjz3>PLF4DM8&O<BU56'9!7V+W|XG#\\HK`@$%YQ?JZ^~"

// byteShares returns the approximate frequency of each byte.
var byteShares = sync.OnceValue(func() *[256]float64 {
	all := new([256]float64)
	for i := range all {
		all[i] = 0.0004
	}
	for i := range len(commonBytes) {
		all[commonBytes[i]] = math.Max(0.1*math.Pow(0.94, float64(i)), 0.0004)
	}
	return all
})

func (s byteSet) share() (sum float64) {
	of := byteShares()
	for b := range 256 {
		if s.has(byte(b)) {
			sum += of[b]
		}
	}
	return min(sum, 1)
}

// matchInfo is what is known about the matches of an expression.
type matchInfo struct {
	exact       bool        // every match is exactly head
	head, tail  byteRun     // how a match begins and ends
	requirement requirement // what a match contains
}

func exactMatch(r byteRun) matchInfo { return matchInfo{exact: true, head: r, tail: r} }

// analyzer computes the shapes of expressions. It does not distinguish non-ASCII bytes.
type analyzer struct {
	// foldsNonASCII means that the result ignores two non-ASCII characters
	// that are ASCII letters in another case: ſ and the Kelvin sign.
	foldsNonASCII bool
}

// findRequirement returns what a match of re must contain. If strange,
// this applies only to texts without ſ and the Kelvin sign.
func findRequirement(re *syntax.Regexp) (n requirement, strange bool) {
	var a analyzer
	n = a.analyze(re).bestRequirement()
	return n, a.foldsNonASCII
}

// bestRequirement returns the rarest need.
func (s matchInfo) bestRequirement() requirement {
	best := s.requirement
	for _, r := range []byteRun{s.head, s.tail} {
		if n := (requirement{r[:min(len(r), maxRun)]}); len(r) > 0 && n.score() > best.score() {
			best = n
		}
	}
	return best
}

func (a *analyzer) analyze(re *syntax.Regexp) matchInfo {
	switch re.Op {
	case syntax.OpLiteral:
		return a.literal(re)
	case syntax.OpCharClass:
		return a.class(re.Rune)
	case syntax.OpCapture:
		return a.analyze(re.Sub[0])
	case syntax.OpPlus:
		s := a.analyze(re.Sub[0])
		s.exact = false
		return s
	case syntax.OpConcat:
		parts := make([]matchInfo, len(re.Sub))
		for i, sub := range re.Sub {
			parts[i] = a.analyze(sub)
		}
		return concatenate(parts)
	case syntax.OpAlternate:
		return a.alternatives(re.Sub)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return exactMatch(nil)
	}
	return matchInfo{}
}

func (a *analyzer) literal(re *syntax.Regexp) matchInfo {
	parts := make([]matchInfo, 0, len(re.Rune))
	for _, r := range re.Rune {
		switch {
		case re.Flags&syntax.FoldCase != 0:
			pairs := []rune{r, r}
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				pairs = append(pairs, f, f)
			}
			parts = append(parts, a.class(pairs))
		case r == utf8.RuneError:
			parts = append(parts, a.class([]rune{r, r}))
		default:
			parts = append(parts, exactMatch(literalRun(string(r))))
		}
	}
	return concatenate(parts)
}

const kelvinSign, longS = '\u212a', '\u017f'

// class returns the shape of one character from a class, given as pairs of first and last.
func (a *analyzer) class(pairs []rune) matchInfo {
	var s byteSet
	wide := false
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := pairs[i], pairs[i+1]
		for r := lo; r <= min(hi, unicode.MaxASCII); r++ {
			if r != '\n' {
				s.add(byte(r))
			}
		}
		switch {
		case lo == hi && (lo == kelvinSign || lo == longS):
			a.foldsNonASCII = true
		case hi > unicode.MaxASCII:
			wide = true
		}
	}
	if !wide {
		return exactMatch(byteRun{s})
	}
	s[2], s[3] = math.MaxUint64, math.MaxUint64
	return matchInfo{head: byteRun{s}, tail: byteRun{s}}
}

// concatenate returns the shape of consecutive parts.
func concatenate(parts []matchInfo) matchInfo {
	all := matchInfo{exact: true}
	for _, p := range parts {
		if !p.exact {
			all.requirement = rarest(all.requirement, requirement{limitRun(append(slices.Clip(all.tail), p.head...))}, p.bestRequirement())
		} else {
			all.requirement = rarest(all.requirement, p.requirement)
		}
		if all.exact {
			all.head = append(slices.Clip(all.head), p.head...)
		}
		if p.exact {
			all.tail = append(slices.Clip(all.tail), p.head...)
		} else {
			all.tail = p.tail
		}
		all.exact = all.exact && p.exact
	}
	all.requirement = rarest(all.requirement, requirement{limitRun(all.tail)})
	return all
}

func limitRun(r byteRun) byteRun { return r[:min(len(r), maxRun)] }

func rarest(best requirement, others ...requirement) requirement {
	for _, n := range others {
		if n.score() > best.score() {
			best = n
		}
	}
	return best
}

// alternatives returns the shape of alternatives.
func (a *analyzer) alternatives(subs []*syntax.Regexp) matchInfo {
	all := a.analyze(subs[0])
	list := slices.Clip(all.bestRequirement())
	for _, sub := range subs[1:] {
		s := a.analyze(sub)
		own := s.bestRequirement()
		if len(list) == 0 || len(own) == 0 || len(list)+len(own) > maxRuns {
			list = nil
		} else {
			list = append(list, own...)
		}
		all.exact = all.exact && s.exact && len(all.head) == len(s.head)
		n := min(len(all.tail), len(s.tail))
		all.head, all.tail = unionRuns(all.head, s.head), unionRuns(all.tail[len(all.tail)-n:], s.tail[len(s.tail)-n:])
	}
	all.requirement = list
	return all
}

// unionRuns returns what is known about a text that begins like a or like b.
func unionRuns(a, b byteRun) byteRun {
	n := min(len(a), len(b))
	u := make(byteRun, n)
	for i := range n {
		u[i] = a[i].or(b[i])
	}
	return u
}
