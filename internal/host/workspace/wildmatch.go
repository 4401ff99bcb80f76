package workspace

import "strings"

// maxSteps is how long one pattern is tried on one name; patterns of stars can
// take very long and are then said not to match.
const maxSteps = 100_000

// verdict is what came of trying to match.
type verdict int

const (
	no        verdict = iota
	yes               // it matches
	noneLeft          // no star before can help: the name is used up
	notInHere         // only a star that matches slashes can help
)

type wild struct {
	fold  bool
	steps int
}

// match tries to match what is left of the pattern, from at on, with a name.
func (m *wild) match(p, name string, at int) verdict {
	for ; at < len(p); at++ {
		if m.steps--; m.steps < 0 {
			return noneLeft
		}
		c := p[at]
		if name == "" && c != '*' {
			return noneLeft
		}
		switch c {
		case '*':
			return m.star(p, name, at)
		case '?':
			if name[0] == '/' {
				return no
			}
		case '[':
			end, in, ok := m.class(p, at, name[0])
			if !ok {
				return noneLeft
			}
			if !in || name[0] == '/' {
				return no
			}
			at = end
		case '\\':
			if at++; at == len(p) {
				return no
			}
			if p[at] != m.low(name[0]) {
				return no
			}
		default:
			if m.low(c) != m.low(name[0]) {
				return no
			}
		}
		name = name[1:]
	}
	if name == "" {
		return yes
	}
	return no
}

// star matches a star, or several in a row, and what follows.
func (m *wild) star(p, name string, at int) verdict {
	first := at
	for at < len(p) && p[at] == '*' {
		at++
	}
	slashes := false // whether it matches slashes too
	if at-first >= 2 && (first == 0 || p[first-1] == '/') && (at == len(p) || p[at] == '/' || at+1 < len(p) && p[at] == '\\' && p[at+1] == '/') {
		slashes = true
		// **/ is also no directory at all.
		if at < len(p) && p[at] == '/' && m.match(p, name, at+1) == yes {
			return yes
		}
	}
	if at == len(p) {
		if !slashes && strings.Contains(name, "/") {
			return notInHere
		}
		return yes
	}
	for ; ; name = name[1:] {
		v := m.match(p, name, at)
		switch {
		case v == yes, v == noneLeft, v == notInHere && !slashes:
			return v
		case name == "":
			return noneLeft
		case !slashes && name[0] == '/':
			return notInHere
		}
	}
}

// class reads the class that begins at from and tells whether b is in it, and
// where it ends. It is not ok if it does not end.
func (m *wild) class(p string, from int, b byte) (end int, in, ok bool) {
	i := from + 1
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	b = m.low(b)
	var last byte // what a range may begin with, 0 if nothing
	for first := true; i < len(p) && (first || p[i] != ']'); first = false {
		c := p[i]
		switch {
		case c == '\\':
			if i++; i == len(p) {
				return 0, false, false
			}
			c = p[i]
			in = in || c == b
		case c == '-' && last != 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			if p[i] == '\\' {
				if i++; i == len(p) {
					return 0, false, false
				}
			}
			up := b - 'a' + 'A'
			in = in || last <= b && b <= p[i] || m.fold && isLower(b) && last <= up && up <= p[i]
			c = 0 // no range begins with the end of another
		case c == '[' && i+1 < len(p) && p[i+1] == ':':
			close := i + 2
			for close < len(p) && p[close] != ']' {
				close++
			}
			if close == len(p) {
				return 0, false, false
			}
			if close == i+2 || p[close-1] != ':' { // just a bracket
				in = in || b == '['
				break
			}
			has, known := posix[p[i+2:max(close-1, i+2)]]
			if !known {
				return 0, false, false
			}
			in = in || has(b) || m.fold && p[i+2:close-1] == "upper" && posix["lower"](b)
			i, c = close, 0
		default:
			in = in || c == b
		}
		last = c
		i++
	}
	if i >= len(p) {
		return 0, false, false
	}
	return i, in != negated, true
}

func (m *wild) low(b byte) byte {
	if m.fold && isUpper(b) {
		return b - 'A' + 'a'
	}
	return b
}

func isUpper(b byte) bool { return b >= 'A' && b <= 'Z' }
func isLower(b byte) bool { return b >= 'a' && b <= 'z' }
func isAlpha(b byte) bool { return isUpper(b) || isLower(b) }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isGraph(b byte) bool { return b > ' ' && b < 0x7f }

// posix are the classes that have names.
var posix = map[string]func(byte) bool{
	"alnum": func(b byte) bool { return isAlpha(b) || isDigit(b) },
	"alpha": isAlpha,
	"blank": func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl": func(b byte) bool { return b < ' ' || b == 0x7f },
	"digit": isDigit,
	"graph": isGraph,
	"lower": isLower,
	"print": func(b byte) bool { return b >= ' ' && b < 0x7f },
	"punct": func(b byte) bool { return isGraph(b) && !isAlpha(b) && !isDigit(b) },
	"space": func(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' },
	"upper": isUpper,
	"xdigit": func(b byte) bool {
		return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
	},
}
