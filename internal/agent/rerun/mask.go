package rerun

import (
	"slices"
	"strings"
	"unicode"
)

// varies is how two texts from the same world differ: the parts that both have, and
// between them those that may be anything.
func varies(a, b string) pattern {
	if a == b {
		return pattern{{text: []string{a}}}
	}
	var p pattern
	x, y := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	if len(x) == len(y) { // line by line, so that what varies stays in its line
		for i := range x {
			if x[i] == y[i] {
				p = p.with(x[i])
				continue
			}
			p = p.and(between(tokens(x[i]), tokens(y[i])))
		}
		return p
	}
	return between(x, y)
}

// pattern is a run of texts. What stands before a part that is free may be anything.
type pattern []segment

type segment struct {
	free bool     // anything may stand before the text
	text []string // in tokens
}

func (p pattern) with(text string) pattern { return p.and(pattern{{text: []string{text}}}) }

func (p pattern) and(more pattern) pattern { return append(p, more...) }

// maxVaried bounds how many parts are held against each other.
const maxVaried = 2000

// between is the pattern of two lists: what they have in common, in order.
func between(a, b []string) (p pattern) {
	if len(a) > maxVaried || len(b) > maxVaried {
		return pattern{{text: []string{strings.Join(a, "")}}}
	}
	longest := make([][]uint16, len(a)+1)
	for i := range longest {
		longest[i] = make([]uint16, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	free, run := false, []string(nil)
	flush := func() {
		if free || len(run) > 0 {
			p = append(p, segment{free, run})
		}
		free, run = false, nil
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			run = append(run, a[i])
			i, j = i+1, j+1
			continue
		case len(run) > 0:
			flush()
		}
		free = true
		if j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1] {
			i++
		} else {
			j++
		}
	}
	flush()
	return p
}

// allows reports whether a text fits the pattern.
func (p pattern) allows(text string) bool {
	if !slices.ContainsFunc(p, func(s segment) bool { return s.free }) {
		return false // nothing varied, so the difference is one
	}
	anchored := true // the next text must begin here
	for i, s := range p {
		anchored = anchored && !s.free
		part := strings.Join(s.text, "")
		last := i == len(p)-1
		switch {
		case anchored:
			if !strings.HasPrefix(text, part) {
				return false
			}
			text = text[len(part):]
		case last:
			return strings.HasSuffix(text, part)
		case part == "":
			continue
		default:
			at := strings.Index(text, part)
			if at < 0 {
				return false
			}
			text = text[at+len(part):]
		}
		anchored = true
	}
	return text == "" || !anchored
}

// tokens are the words, numbers and signs of a line.
func tokens(line string) (list []string) {
	class := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 3
	}
	from, was := 0, 0
	for i, r := range line {
		now := class(r)
		if i > from && (now != was || now == 3) {
			list, from = append(list, line[from:i]), i
		}
		was = now
	}
	if from < len(line) {
		list = append(list, line[from:])
	}
	return list
}
