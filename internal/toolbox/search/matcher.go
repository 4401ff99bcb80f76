package search

import (
	"bytes"
	"context"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	re2 "github.com/wasilibs/go-re2"
)

// matcher finds the lines that match a pattern. If every match must hold one
// of a few literals, it looks for those first and tries the pattern only on
// lines that have one, which is many times faster.
type matcher struct {
	source   string // the pattern with its flags
	re       *regexp.Regexp
	fast     *re2.Regexp // the same for text that is UTF-8; nil if literals are enough
	literals [][]byte    // lower case if fold; none if we know of none
	fold     bool
}

func newMatcher(pattern string, ignoreCase bool) (*matcher, error) {
	re, err := compile(pattern, ignoreCase)
	if err != nil {
		return nil, err
	}
	m := &matcher{re: re, source: re.String()}
	if tree, err := syntax.Parse(re.String(), syntax.Perl); err == nil {
		need := needed(tree.Simplify())
		m.fold = need.fold
		for _, l := range need.any {
			m.literals = append(m.literals, []byte(l))
		}
	}
	if len(m.literals) == 0 {
		m.fast, _ = re2.Compile(m.source) // without it we are only slower
	}
	return m, nil
}

// lines finds the matching lines of data, at most limit of them. It stops when
// ctx ends.
func (m *matcher) lines(ctx context.Context, data []byte, limit int) (lines []span) {
	find := m.byLiteral(data)
	if find == nil {
		find = m.byPattern(ctx, data)
	}
	for from := 0; from < len(data) && len(lines) < limit && ctx.Err() == nil; {
		at := find(from)
		if at < 0 {
			break
		}
		l := lineAt(data, at)
		if m.re.Match(data[l.from:l.to]) {
			lines = append(lines, l)
		}
		from = l.to + 1
	}
	return lines
}

// lineAt is the line of data that holds position at.
func lineAt(data []byte, at int) span {
	l := span{bytes.LastIndexByte(data[:at], '\n') + 1, len(data)}
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		l.to = at + i
	}
	return l
}

// window is how much is searched with an expression in one go.
const window = 64 << 10

// byPattern returns a function that finds where a match begins, from the
// beginning of a line on. It goes by whole lines, window after window.
func (m *matcher) byPattern(ctx context.Context, data []byte) func(from int) int {
	find := m.re.FindIndex
	if m.fast != nil && utf8.Valid(data) {
		find = m.fast.FindIndex
	}
	return func(from int) int {
		for from < len(data) && ctx.Err() == nil {
			end := lineAt(data, min(from+window, len(data)-1)).to
			if at := find(data[from:end]); at != nil {
				return from + at[0]
			}
			from = end + 1
		}
		return -1
	}
}

// byLiteral returns a function that finds the next of the literals, or nil if
// they are of no help here.
func (m *matcher) byLiteral(data []byte) func(from int) int {
	if len(m.literals) == 0 || m.fold && foldsStrangely(data) {
		return nil
	}
	index := bytes.Index
	if m.fold {
		index = indexFold
	}
	next := make([]int, len(m.literals)) // where each was last found, -1 for nowhere
	for i := range next {
		next[i] = -2 // not looked for yet
	}
	return func(from int) int {
		best := -1
		for i, l := range m.literals {
			if next[i] != -1 && next[i] < from {
				if next[i] = index(data[from:], l); next[i] >= 0 {
					next[i] += from
				}
			}
			if next[i] >= 0 && (best < 0 || next[i] < best) {
				best = next[i]
			}
		}
		return best
	}
}

// foldsStrangely reports whether data holds one of the two characters beyond
// ASCII that are letters of ASCII in another case: ſ and the Kelvin sign.
func foldsStrangely(data []byte) bool {
	return bytes.Contains(data, []byte("ſ")) || bytes.Contains(data, []byte("\u212a"))
}

// indexFold finds the lower-case ASCII literal in any case.
func indexFold(data, literal []byte) int {
	lower := literal[0]
	upper := lower
	if 'a' <= lower && lower <= 'z' {
		upper -= 'a' - 'A'
	}
	a, b := bytes.IndexByte(data, lower), bytes.IndexByte(data, upper)
	for a >= 0 || b >= 0 {
		at := a
		if a < 0 || b >= 0 && b < a {
			at = b
		}
		if at+len(literal) > len(data) {
			return -1
		}
		if equalFold(data[at:at+len(literal)], literal) {
			return at
		}
		if at == a {
			a = after(data, at, lower)
		}
		if at == b {
			b = after(data, at, upper)
		}
	}
	return -1
}

func after(data []byte, at int, c byte) int {
	i := bytes.IndexByte(data[at+1:], c)
	if i < 0 {
		return -1
	}
	return at + 1 + i
}

func equalFold(b, lower []byte) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// need is what every match of an expression must hold: one of a few literals.
// With none of them nothing is known.
type need struct {
	any  []string
	fold bool // in any case; they are lower case then
}

// maxLiterals is how many alternatives are worth looking for.
const maxLiterals = 8

// needed works out what a match of re must hold.
func needed(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpLiteral:
		return literal(re)
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needed(re.Sub[0])
		}
	case syntax.OpConcat:
		var best need
		for _, sub := range re.Sub {
			if n := needed(sub); n.length() > best.length() {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		return either(re.Sub)
	}
	return need{}
}

func literal(re *syntax.Regexp) need {
	s := string(re.Rune)
	if strings.Contains(s, "\n") {
		return need{}
	}
	if re.Flags&syntax.FoldCase == 0 {
		return need{any: []string{s}}
	}
	best := "" // cases beyond ASCII are left to the expression
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if len(part) > len(best) {
			best = part
		}
	}
	if best == "" {
		return need{}
	}
	return need{any: []string{strings.ToLower(best)}, fold: true}
}

// either joins what the alternatives need, if each needs something.
func either(subs []*syntax.Regexp) (joined need) {
	for i, sub := range subs {
		n := needed(sub)
		if len(n.any) == 0 || i > 0 && n.fold != joined.fold || len(joined.any)+len(n.any) > maxLiterals {
			return need{}
		}
		joined.any, joined.fold = append(joined.any, n.any...), n.fold
	}
	return joined
}

// length is that of the shortest literal: the longer, the rarer.
func (n need) length() int {
	if len(n.any) == 0 {
		return 0
	}
	short := len(n.any[0])
	for _, s := range n.any {
		short = min(short, len(s))
	}
	return short
}
