package pathfind

import (
	"strings"
	"unicode/utf8"
)

// path is a path prepared for matching.
type path struct {
	text      string
	lower     string // lower case
	base      int    // start of the last element in low
	letterSet letterSet
	isHidden  bool // some element begins with a dot
}

func newPath(text string) path {
	p := path{text: text, lower: strings.ToLower(text)}
	p.base = strings.LastIndexByte(strings.TrimSuffix(p.lower, "/"), '/') + 1
	p.letterSet = newLetterSet(p.lower)
	p.isHidden = strings.HasPrefix(text, ".") || strings.Contains(text, "/.")
	return p
}

// letterSet is a set of letters that a text may contain.
type letterSet uint64

func newLetterSet(s string) (l letterSet) {
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
	want        string
	chars       []string // its characters
	letterSet   letterSet
	wantsHidden bool
}

func newQuery(typed string) query {
	q := query{want: strings.TrimPrefix(strings.ToLower(typed), "./")}
	q.letterSet, q.wantsHidden = newLetterSet(q.want), strings.Contains(q.want, ".")
	for rest := q.want; rest != ""; {
		_, n := utf8.DecodeRuneInString(rest)
		q.chars, rest = append(q.chars, rest[:n]), rest[n:]
	}
	return q
}

// Distances of a path from the input: the letters are together in its last element, together elsewhere,
// or apart.
const (
	distName = iota * 2
	distNamePrefix
	distWordPrefix
	distInName
	distPartPrefix
	distInPath
	distScattered
)

// rank returns the distance of p from the input; ok is false if p lacks its letters in order. The typed
// folder itself never matches.
func (q *query) rank(p *path) (rank int, ok bool) {
	if q.letterSet&^p.letterSet != 0 || strings.HasSuffix(p.lower, "/") && p.lower == q.want {
		return 0, false
	}
	name := p.lower[p.base:]
	if i := strings.Index(name, q.want); i >= 0 {
		switch rest := name[i+len(q.want):]; {
		case i == 0 && (rest == "" || rest[0] == '.' || rest == "/"):
			rank = distName
		case i == 0:
			rank = distNamePrefix
		case p.startsWord(p.base + i):
			rank = distWordPrefix
		default:
			rank = distInName
		}
	} else if i := strings.Index(p.lower, q.want); i >= 0 {
		if rank = distInPath; i == 0 || p.lower[i-1] == '/' {
			rank = distPartPrefix
		}
	} else if gaps, ok := q.findScattered(p, p.base); ok {
		rank = distScattered + gaps
	} else if gaps, ok := q.findScattered(p, 0); ok {
		rank = distScattered + 2 + gaps
	} else {
		return 0, false
	}
	if p.isHidden && !q.wantsHidden {
		rank += distNamePrefix - distName
	}
	if strings.HasSuffix(p.lower, "/") { // files are more likely
		rank++
	}
	return rank, true
}

// findScattered finds the letters in order from a position on, and counts the gaps between them: less where
// a word begins.
func (q *query) findScattered(p *path, from int) (gaps int, ok bool) {
	at := from
	for _, c := range q.chars {
		i := strings.Index(p.lower[at:], c)
		if i < 0 {
			return 0, false
		}
		at += i + len(c)
	}
	// From the last letter back, so that the letters are close together
	next := -1 // position of the following letter
	for i := len(q.chars) - 1; i >= 0; i-- {
		c := q.chars[i]
		at = from + strings.LastIndex(p.lower[from:at], c)
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
	if i == 0 || strings.IndexByte("/_-. ", p.lower[i-1]) >= 0 {
		return true
	}
	return len(p.text) == len(p.lower) && isUpper(p.text[i]) && !isUpper(p.text[i-1])
}

func isUpper(b byte) bool { return b >= 'A' && b <= 'Z' }
