package pathfind

import (
	"strings"
	"unicode/utf8"
)

// path is a path as it is looked at.
type path struct {
	text   string
	low    string // in small letters
	base   int    // where its last part begins in low
	has    letters
	hidden bool // a part of it begins with a dot
}

func newPath(text string) path {
	p := path{text: text, low: strings.ToLower(text)}
	p.base = strings.LastIndexByte(strings.TrimSuffix(p.low, "/"), '/') + 1
	p.has = lettersOf(p.low)
	p.hidden = strings.HasPrefix(text, ".") || strings.Contains(text, "/.")
	return p
}

// letters says which letters a text may have.
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

// query is what was typed.
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

// How far a path is from what was typed: the letters stand together in its last
// part, elsewhere in it, or apart.
const (
	isName = iota * 2
	beginsName
	beginsWord
	inName
	beginsPart
	inPath
	apart
)

// rank is how far p is from what was typed; not ok if it does not have its
// letters in their order. The folder that was typed itself is not looked for.
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
	if strings.HasSuffix(p.low, "/") { // a file is meant more often
		rank++
	}
	return rank, true
}

// scattered finds the letters in their order from a place on, and counts where
// they stand apart: less if a word begins there.
func (q *query) scattered(p *path, from int) (gaps int, ok bool) {
	at := from
	for _, c := range q.each {
		i := strings.Index(p.low[at:], c)
		if i < 0 {
			return 0, false
		}
		at += i + len(c)
	}
	// From the last letter back, so that they stand close to each other
	next := -1 // where the letter behind was found
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
