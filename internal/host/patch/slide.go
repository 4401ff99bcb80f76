package patch

import "strings"

// Lines that come or go among equal ones can often be told in several ways: of
// "a b b c" it may be the first b that is new, or the second. People read best
// what begins where a paragraph or a block does.

// maxSlide is how far an edit is moved.
const maxSlide = 200

// slide is by how many lines the run from from to to is best moved, between low
// and high.
func slide(lines []string, from, to, low, high int) (by int) {
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

// roughness is how badly a run begins or ends before line i: well where a line
// stands far to the left, better still behind an empty one.
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
