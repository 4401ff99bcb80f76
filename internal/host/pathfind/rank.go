package pathfind

import (
	"strings"
	"unicode/utf8"
)

// path is a path prepared for matching.
type path struct {
	text   string
	low    string // lower case
	base   int    // start of the last element in low
	has    letters
	hidden bool // some element begins with a dot
}

func newPath(text string) path {
	p := path{text: text, low: strings.ToLower(text)}
	p.base = strings.LastIndexByte(strings.TrimSuffix(p.low, "/"), '/') + 1
	p.has = lettersOf(p.low)
	p.hidden = strings.HasPrefix(text, ".") || strings.Contains(text, "/.")
	return p
}

// letters is a set of letters that a text may contain.
type letters uint64

func lettersOf(s string) (l letters) {
	for i := range len(s) {
		b := s[i]
		switch {
		case b >= 'a' && b <= 'z':
			l |= 1 << (b - 'a')
		case b >= '0' && b <= '9':
			l |= 1 << (26 + b - '0')
		default:
			l |= 1 << (36 + b%28)
		}
	}
	return l
}

// query is the user's input.
type query struct {
	want string
	each []string // its characters
	has  letters
	dots bool
}

func newQuery(typed string) query {
	q := query{want: strings.TrimPrefix(strings.ToLower(typed), "./")}
	q.has, q.dots = lettersOf(q.want), strings.Contains(q.want, ".")
	for rest := q.want; rest != ""; {
		_, n := utf8.DecodeRuneInString(rest)
		q.each, rest = append(q.each, rest[:n]), rest[n:]
	}
	return q
}

// Distances of a path from the input: the letters are together in its last element, together elsewhere,
// or apart.
const (
	isName = iota * 2
	beginsName
	beginsWord
	inName
	beginsPart
	inPath
	apart
)

// rank returns the distance of p from the input; ok is false if p lacks its letters in order. The typed
// folder itself never matches.
func (q *query) rank(p *path) (rank int, ok bool) {
	if q.has&^p.has != 0 || strings.HasSuffix(p.low, "/") && p.low == q.want {
		return 0, false
	}
	name := p.low[p.base:]
	if i := strings.Index(name, q.want); i >= 0 {
		switch rest := name[i+len(q.want):]; {
		case i == 0 && (rest == "" || rest[0] == '.' || rest == "/"):
			rank = isName
		case i == 0:
			rank = beginsName
		case p.startsWord(p.base + i):
			rank = beginsWord
		default:
			rank = inName
		}
	} else if i := strings.Index(p.low, q.want); i >= 0 {
		if rank = inPath; i == 0 || p.low[i-1] == '/' {
			rank = beginsPart
		}
	} else if gaps, ok := q.scattered(p, p.base); ok {
		rank = apart + gaps
	} else if gaps, ok := q.scattered(p, 0); ok {
		rank = apart + 2 + gaps
	} else {
		return 0, false
	}
	if p.hidden && !q.dots {
		rank += beginsName - isName
	}
	if strings.HasSuffix(p.low, "/") { // files are more likely
		rank++
	}
	return rank, true
}

// scattered finds the letters in order from a position on, and counts the gaps between them: less where
// a word begins.
func (q *query) scattered(p *path, from int) (gaps int, ok bool) {
	at := from
	for _, c := range q.each {
		i := strings.Index(p.low[at:], c)
		if i < 0 {
			return 0, false
		}
		at += i + len(c)
	}
	// From the last letter back, so that the letters are close together
	next := -1 // position of the following letter
	for i := len(q.each) - 1; i >= 0; i-- {
		c := q.each[i]
		at = from + strings.LastIndex(p.low[from:at], c)
		if next >= 0 && at+len(c) != next {
			gaps += 3
			if p.startsWord(next) {
				gaps -= 2
			}
		}
		next = at
	}
	if !p.startsWord(next) {
		gaps += 2
	}
	return gaps, true
}

// startsWord reports whether a word begins at i.
func (p *path) startsWord(i int) bool {
	if i == 0 || strings.IndexByte("/_-. ", p.low[i-1]) >= 0 {
		return true
	}
	return len(p.text) == len(p.low) && upper(p.text[i]) && !upper(p.text[i-1])
}

func upper(b byte) bool { return b >= 'A' && b <= 'Z' }
