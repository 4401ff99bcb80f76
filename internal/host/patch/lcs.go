package patch

import (
	"math"
	"strings"
)

// edit replaces a run of old lines, a to aEnd, by a run of new lines, b to bEnd. Either may be empty,
// not both.
type edit struct{ a, aEnd, b, bEnd int }

// editsWith returns the smallest list of edits from old to new, in order, as far as patience allows.
func editsWith(patience int, old, new []string) []edit {
	m := matcher{patience: patience}
	numbers := make(map[string]int, len(old))
	of := func(lines []string) []int {
		list := make([]int, len(lines))
		for i, l := range lines {
			n, ok := numbers[l]
			if !ok {
				n = len(numbers)
				numbers[l] = n
			}
			list[i] = n
		}
		return list
	}
	m.a.keep, m.b.keep = of(old), of(new)
	m.a.changed, m.b.changed = make([]bool, len(old)), make([]bool, len(new))
	m.reduce(&m.a, &m.b)
	m.reduce(&m.b, &m.a)
	n := len(m.a.lines) + len(m.b.lines)
	m.forward, m.backward = make([]int, n+4), make([]int, n+4)
	m.match(0, len(m.a.lines), 0, len(m.b.lines))
	var list []edit
	a, b := m.a.changed, m.b.changed // unmarked lines are equal, pairwise
	for i, j := 0, 0; i < len(a) || j < len(b); i, j = i+1, j+1 {
		e := edit{a: i, b: j}
		for i < len(a) && a[i] {
			i++
		}
		for j < len(b) && b[j] {
			j++
		}
		if e.aEnd, e.bEnd = i, j; i > e.a || j > e.b {
			list = append(list, e)
		}
	}
	var out []edit
	for i, e := range list {
		low, high := edit{}, edit{a: len(old), b: len(new)}
		if len(out) > 0 {
			low = out[len(out)-1]
		}
		if i+1 < len(list) {
			high = list[i+1]
		}
		switch {
		case e.a == e.aEnd:
			by := slideOffset(new, e.b, e.bEnd, low.bEnd, high.b)
			e = edit{e.a + by, e.aEnd + by, e.b + by, e.bEnd + by}
		case e.b == e.bEnd:
			by := slideOffset(old, e.a, e.aEnd, low.aEnd, high.a)
			e = edit{e.a + by, e.aEnd + by, e.b + by, e.bEnd + by}
		}
		if n := len(out); n > 0 && out[n-1].aEnd == e.a && out[n-1].bEnd == e.b {
			out[n-1].aEnd, out[n-1].bEnd = e.aEnd, e.bEnd
			continue
		}
		out = append(out, e)
	}
	return out
}

// matcher finds the longest common subsequence of two files' lines.
type matcher struct {
	a, b     side
	patience int // number of changes to try before accepting a longer diff
	// The position reached on each diagonal of the old file: from the start forward, from the end backward.
	forward, backward []int
}

type side struct {
	keep      []int // indices of its lines
	lines     []int // those that the other side also has
	positions []int // positions of these lines
	changed   []bool
}

const (
	// maxWork bounds the total steps for two files, based on the number of changes to try at each part: for
	// large files with little in common, the edits may not be minimal.
	maxWork     = 1 << 25
	minPatience = 64
	maxPatience = 2048
)

// reduce drops the lines of s that the other side lacks, which cannot be common.
func (m *matcher) reduce(s, other *side) {
	has := make(map[int]bool, len(other.keep))
	for _, n := range other.keep {
		has[n] = true
	}
	for i, n := range s.keep {
		if !has[n] {
			s.changed[i] = true
			continue
		}
		s.lines, s.positions = append(s.lines, n), append(s.positions, i)
	}
}

// match marks the changes between lines a to aEnd of the old file and b to bEnd of the new one. It skips
// equal lines at both ends, finds a midpoint of a shortest path, and recurses into both halves.
func (m *matcher) match(a, aEnd, b, bEnd int) {
	for a < aEnd && b < bEnd && m.a.lines[a] == m.b.lines[b] {
		a, b = a+1, b+1
	}
	for a < aEnd && b < bEnd && m.a.lines[aEnd-1] == m.b.lines[bEnd-1] {
		aEnd, bEnd = aEnd-1, bEnd-1
	}
	if a == aEnd || b == bEnd {
		m.a.mark(a, aEnd)
		m.b.mark(b, bEnd)
		return
	}
	x, y := m.findMidpoint(a, aEnd, b, bEnd)
	m.match(a, x, b, y)
	m.match(x, aEnd, y, bEnd)
}

func (s *side) mark(from, to int) {
	for _, i := range s.positions[from:to] {
		s.changed[i] = true
	}
}

// findMidpoint finds that midpoint. A path through the two files follows a diagonal (the old lines consumed
// minus the new ones) while lines are equal, and changes to an adjacent one with each edit. The search
// extends the furthest paths with one, two, three and more edits from both ends until they meet. If that
// takes too long, it uses the furthest point.
func (m *matcher) findMidpoint(a, aEnd, b, bEnd int) (x, y int) {
	f := frontier{far: m.forward, zero: len(m.b.lines) + 1, minDiag: a - bEnd, maxDiag: aEnd - b, low: a - b, high: a - b}
	r := frontier{far: m.backward, zero: len(m.b.lines) + 1, minDiag: a - bEnd, maxDiag: aEnd - b, low: aEnd - bEnd,
		high: aEnd - bEnd}
	f.set(a-b, a)
	r.set(aEnd-bEnd, aEnd)
	odd := (a-b-aEnd+bEnd)%2 != 0
	for changes := 1; ; changes++ {
		f.widen(-1)
		for d := f.high; d >= f.low; d -= 2 {
			x = max(f.get(d-1)+1, f.get(d+1))
			for y = x - d; x < aEnd && y < bEnd && m.a.lines[x] == m.b.lines[y]; x, y = x+1, y+1 {
			}
			if f.set(d, x); odd && r.low <= d && d <= r.high && r.get(d) <= x {
				return x, x - d
			}
		}
		r.widen(math.MaxInt)
		for d := r.high; d >= r.low; d -= 2 {
			x = min(r.get(d-1), r.get(d+1)-1)
			for y = x - d; x > a && y > b && m.a.lines[x-1] == m.b.lines[y-1]; x, y = x-1, y-1 {
			}
			if r.set(d, x); !odd && f.low <= d && d <= f.high && x <= f.get(d) {
				return x, x - d
			}
		}
		if changes >= m.patience {
			return farthestPoint(f, r, a, aEnd, b, bEnd)
		}
	}
}

// frontier holds the furthest positions on every second diagonal from low to high, limited to least and
// most.
type frontier struct {
	far                         []int
	zero                        int // index of diagonal 0 in far
	minDiag, maxDiag, low, high int
}

func (w *frontier) get(d int) int { return w.far[w.zero+d] }
func (w *frontier) set(d, x int)  { w.far[w.zero+d] = x }

// widen adds a diagonal on each side, or drops one at the limit. Diagonals next to the range count as
// unreached.
func (w *frontier) widen(unreached int) {
	if w.low > w.minDiag {
		w.low--
		w.set(w.low-1, unreached)
	} else {
		w.low++
	}
	if w.high < w.maxDiag {
		w.high++
		w.set(w.high+1, unreached)
	} else {
		w.high--
	}
}

// farthestPoint returns the point furthest from the start of its path.
func farthestPoint(f, r frontier, a, aEnd, b, bEnd int) (x, y int) {
	gone := -1
	for d := f.low; d <= f.high; d += 2 {
		u := min(f.get(d), aEnd, bEnd+d)
		if u >= a && u-d >= b && u+u-d-a-b > gone {
			gone, x, y = u+u-d-a-b, u, u-d
		}
	}
	for d := r.low; d <= r.high; d += 2 {
		u := max(r.get(d), a, b+d)
		if u <= aEnd && u-d <= bEnd && aEnd+bEnd-u-u+d > gone {
			gone, x, y = aEnd+bEnd-u-u+d, u, u-d
		}
	}
	return x, y
}

// Inserted or deleted lines among equal ones are ambiguous: of "a b b c" the first or the second b may
// be new. A change is most readable if it begins where a paragraph or a block does.

// maxSlide limits how far an edit moves.
const maxSlide = 200

// slideOffset returns by how many lines, between low and high, to move the run from "from" to "to" for
// readability.
func slideOffset(lines []string, from, to, low, high int) (by int) {
	up, down := 0, 0
	for up > -maxSlide && from+up > low && lines[from+up-1] == lines[to+up-1] {
		up--
	}
	for down < maxSlide && to+down < high && lines[from+down] == lines[to+down] {
		down++
	}
	best := roughness(lines, from+down) + roughness(lines, to+down)
	by = down
	for d := down - 1; d >= up; d-- {
		if r := roughness(lines, from+d) + roughness(lines, to+d); r < best {
			best, by = r, d
		}
	}
	return by
}

// roughness rates a boundary before line i: better the less the line is indented, best after an empty
// line.
func roughness(lines []string, i int) int {
	const tab, blank, inside = 8, 3, 2
	if i == 0 || i == len(lines) {
		return 0
	}
	cost := 0
	if strings.TrimSpace(lines[i]) == "" {
		cost = blank
	}
	if strings.TrimSpace(lines[i-1]) != "" {
		cost += inside
	}
	for _, c := range lines[i] {
		switch c {
		case ' ':
			cost++
		case '\t':
			cost += tab
		default:
			return cost
		}
	}
	return cost
}
