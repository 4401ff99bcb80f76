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
	run  run
	rare int // the position of the run that accepts the fewest bytes
	// A run with a position that accepts only one or two bytes,
	// and rare ones, is found by searching for these bytes.
	one, two byte
	byByte   bool
	// Other runs are found by their ends: how far ahead the next
	// end may be, given the byte at the current position.
	skip  [256]uint8 // 0 if the run may end here
	after [256]uint8 // the same, if it turns out not to
	fits  [maxRun][256]bool
}

const (
	// rareShare is the maximum share of bytes worth searching for.
	rareShare = 0.03
	// leastSkip is how many bytes a finder must advance per examined byte to be faster than examining each.
	leastSkip = 1.8
	// leastScore is how rare a need must be to be worth searching
	// for, as a logarithm: once in a few hundred bytes.
	leastScore = 5.5
)

// newFinders returns a finder for each run of n, or none if searching for them does not help.
func newFinders(n need) (all []*finder) {
	if n.score() < leastScore {
		return nil
	}
	for _, r := range n {
		f := newFinder(r[:min(len(r), maxRun)])
		of, ahead, total := shares(), 0.0, 0.0 // average advance per examined byte
		for b := range 256 {
			ahead += float64(max(f.skip[b], 1)) * of[b]
			total += of[b]
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
	var fit []byte // bytes that the rarest position accepts
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

// find returns the index of the next run, or -1.
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

// at reports whether the run is at a position of data with room for it.
func (f *finder) at(data []byte, at int) bool {
	for i := range f.run {
		if !f.fits[i][data[at+i]] {
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

// set is a set of bytes.
type set [4]uint64

func (s *set) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *set) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

func (s set) or(t set) set { return set{s[0] | t[0], s[1] | t[1], s[2] | t[2], s[3] | t[3]} }

// run is a partly known text: the possible bytes at each position. No position is a line end.
type run []set

func literally(text string) (r run) {
	for i := range len(text) {
		var s set
		s.add(text[i])
		r = append(r, s)
	}
	return r
}

const (
	maxRun  = 32 // examined positions of a run
	maxRuns = 8  // alternatives worth searching for
)

// need is what a match must contain: one of a few runs. The zero need is nothing.
type need []run

// score returns the rarity of a need, as a logarithm: higher is rarer.
func (n need) score() float64 {
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

// common are the bytes of source code, most frequent first.
const common = " etniarosclpduf\tm\n.gh,(b)x=_v\"0/yw:1k-S;Tq{}2EIAC*R[]NPjz3>PLF4DM8&O<BU56'9!7V+W|XG#\\HK`@$%YQ?JZ^~"

// shares returns the approximate frequency of each byte.
var shares = sync.OnceValue(func() *[256]float64 {
	all := new([256]float64)
	for i := range all {
		all[i] = 0.0004
	}
	for i := range len(common) {
		all[common[i]] = math.Max(0.1*math.Pow(0.94, float64(i)), 0.0004)
	}
	return all
})

func (s set) share() (sum float64) {
	of := shares()
	for b := range 256 {
		if s.has(byte(b)) {
			sum += of[b]
		}
	}
	return min(sum, 1)
}

// shape is what is known about the matches of an expression.
type shape struct {
	exact      bool // every match is exactly head
	head, tail run  // how a match begins and ends
	need       need // what a match contains
}

func exactly(r run) shape { return shape{exact: true, head: r, tail: r} }

// analysis computes the shapes of expressions. It does not distinguish non-ASCII bytes.
type analysis struct {
	// strange means that the result ignores two non-ASCII characters
	// that are ASCII letters in another case: ſ and the Kelvin sign.
	strange bool
}

// needed returns what a match of re must contain. If strange,
// this applies only to texts without ſ and the Kelvin sign.
func needed(re *syntax.Regexp) (n need, strange bool) {
	var a analysis
	n = a.shape(re).best()
	return n, a.strange
}

// best returns the rarest need.
func (s shape) best() need {
	best := s.need
	for _, r := range []run{s.head, s.tail} {
		if n := (need{r[:min(len(r), maxRun)]}); len(r) > 0 && n.score() > best.score() {
			best = n
		}
	}
	return best
}

func (a *analysis) shape(re *syntax.Regexp) shape {
	switch re.Op {
	case syntax.OpLiteral:
		return a.literal(re)
	case syntax.OpCharClass:
		return a.class(re.Rune)
	case syntax.OpCapture:
		return a.shape(re.Sub[0])
	case syntax.OpPlus:
		s := a.shape(re.Sub[0])
		s.exact = false
		return s
	case syntax.OpConcat:
		parts := make([]shape, len(re.Sub))
		for i, sub := range re.Sub {
			parts[i] = a.shape(sub)
		}
		return join(parts)
	case syntax.OpAlternate:
		return a.either(re.Sub)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return exactly(nil)
	}
	return shape{}
}

func (a *analysis) literal(re *syntax.Regexp) shape {
	parts := make([]shape, 0, len(re.Rune))
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
			parts = append(parts, exactly(literally(string(r))))
		}
	}
	return join(parts)
}

const kelvin, longS = '\u212a', '\u017f'

// class returns the shape of one character from a class, given as pairs of first and last.
func (a *analysis) class(pairs []rune) shape {
	var s set
	wide := false
	for i := 0; i+1 < len(pairs); i += 2 {
		lo, hi := pairs[i], pairs[i+1]
		for r := lo; r <= min(hi, unicode.MaxASCII); r++ {
			if r != '\n' {
				s.add(byte(r))
			}
		}
		switch {
		case lo == hi && (lo == kelvin || lo == longS):
			a.strange = true
		case hi > unicode.MaxASCII:
			wide = true
		}
	}
	if !wide {
		return exactly(run{s})
	}
	s[2], s[3] = math.MaxUint64, math.MaxUint64
	return shape{head: run{s}, tail: run{s}}
}

// join returns the shape of consecutive parts.
func join(parts []shape) shape {
	all := shape{exact: true}
	for _, p := range parts {
		if !p.exact {
			all.need = better(all.need, need{clip(append(slices.Clip(all.tail), p.head...))}, p.best())
		} else {
			all.need = better(all.need, p.need)
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
	all.need = better(all.need, need{clip(all.tail)})
	return all
}

func clip(r run) run { return r[:min(len(r), maxRun)] }

func better(best need, others ...need) need {
	for _, n := range others {
		if n.score() > best.score() {
			best = n
		}
	}
	return best
}

// either returns the shape of alternatives.
func (a *analysis) either(subs []*syntax.Regexp) shape {
	all := a.shape(subs[0])
	list := slices.Clip(all.best())
	for _, sub := range subs[1:] {
		s := a.shape(sub)
		own := s.best()
		if len(list) == 0 || len(own) == 0 || len(list)+len(own) > maxRuns {
			list = nil
		} else {
			list = append(list, own...)
		}
		all.exact = all.exact && s.exact && len(all.head) == len(s.head)
		n := min(len(all.tail), len(s.tail))
		all.head, all.tail = union(all.head, s.head), union(all.tail[len(all.tail)-n:], s.tail[len(s.tail)-n:])
	}
	all.need = list
	return all
}

// union returns what is known about a text that begins like a or like b.
func union(a, b run) run {
	n := min(len(a), len(b))
	u := make(run, n)
	for i := range n {
		u[i] = a[i].or(b[i])
	}
	return u
}
