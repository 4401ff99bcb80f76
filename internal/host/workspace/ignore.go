package workspace

import (
	"io/fs"
	"path"
	"strings"
)

const (
	ignoreFile    = ".gitignore" // where a directory says what of it is of no interest
	maxIgnoreFile = 256 << 10    // how many bytes of a .gitignore are heeded
	maxSteps      = 100_000      // how long one pattern is tried on one name; patterns of stars can take very long and are then said not to match
)

// never are the directories that are not searched unless named: what version
// control, package managers and we ourselves keep there is not the user's.
var never = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".coder": true,
	"node_modules": true, "__pycache__": true, ".venv": true,
}

// rules are the ignore patterns of one file, and those that hold where none of
// them matches: the ones of the directories above, of the repository and of the
// person. A nil *rules has none.
type rules struct {
	dir      string    // of the tree, that names are relative to
	lead     string    // or, if that lies above the tree, what leads from there to it
	patterns []pattern // as written; the last that matches decides
	fold     bool      // case does not matter
	above    *rules
}

// pattern is one line of a .gitignore.
type pattern struct {
	glob     string
	fixed    int  // bytes of glob before the first wildcard
	anywhere bool // glob is matched with the base name, at any depth
	dirOnly  bool
	keep     bool // the line began with "!"
}

// ignore reports whether the thing at rel is of no interest.
func (r *rules) ignore(rel string, dir bool) bool {
	base := path.Base(rel)
	return dir && never[base] || base == ".git" || r.matches(rel, dir)
}

// matches reports whether the last pattern that fits rel ignores it.
func (r *rules) matches(rel string, dir bool) bool {
	base := path.Base(rel)
	for ; r != nil; r = r.above {
		name := ""
		for i := len(r.patterns) - 1; i >= 0; i-- {
			p := &r.patterns[i]
			if p.dirOnly && !dir {
				continue
			}
			at := base
			if !p.anywhere {
				if name == "" {
					name = strings.TrimPrefix(rel, r.dir+"/")
					if r.lead != "" {
						name = r.lead + "/" + rel
					}
				}
				at = name
			}
			if p.matches(at, r.fold) {
				return !p.keep
			}
		}
	}
	return false
}

func (p *pattern) matches(name string, fold bool) bool {
	m := wild{fold: fold, steps: maxSteps}
	if p.fixed > len(name) || !fold && p.glob[:p.fixed] != name[:p.fixed] {
		return false
	}
	for i := 0; fold && i < p.fixed; i++ {
		if m.low(p.glob[i]) != m.low(name[i]) {
			return false
		}
	}
	if p.fixed == len(p.glob) {
		return p.fixed == len(name)
	}
	// As git does it: * and ? do not match a slash, **/ and /** match directories at any depth, a class may be negated
	// by ! or ^ and name others ([:alpha:]). A pattern that is not well formed matches nothing.
	return m.match(p.glob[p.fixed:], name[p.fixed:], 0) == yes
}

// smothers reports whether the rules leave nothing of what is in dir, whatever
// its name.
func (r *rules) smothers(dir string) bool {
	for _, name := range []string{"\x01\x01\x01\x01\x01\x01\x01\x01", "aaaaaaaaaaaaaaaa", "ZZZZZZZZZZZZZZZZZZZZ"} {
		if at := path.Join(dir, name); !r.ignore(at, false) || !r.ignore(at, true) {
			return false
		}
	}
	return true
}

// rulesOf adds the rules dir has of its own to those from above. If it is the
// top of another repository, only that one's hold.
func (w *Workspace) rulesOf(dir string, entries []fs.DirEntry, above *rules) *rules {
	own, repository := false, false
	for _, d := range entries {
		switch d.Name() {
		case ignoreFile:
			own = d.Type().IsRegular()
		case ".git":
			repository = dir != "." && w.isRepository(dir)
		}
	}
	return w.rulesIn(dir, own, repository, above)
}

func (w *Workspace) rulesIn(dir string, own, repository bool, above *rules) *rules {
	if repository {
		above = w.repository(dir)
	}
	if own {
		return w.readRules(dir, above)
	}
	return above
}

// readRules adds the rules of the ignore file in dir, if there is one. Git does
// not follow links there either.
func (w *Workspace) readRules(dir string, above *rules) *rules {
	name := path.Join(dir, ignoreFile)
	if info, err := w.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return above
	}
	text, _, err := w.ReadFile(w.called(name), maxIgnoreFile)
	if err != nil {
		return above // an ignore file we cannot read ignores nothing
	}
	return &rules{dir: dir, patterns: parsePatterns(text), fold: w.surroundings().fold, above: above}
}

// rulesAsked are the rules from above for a directory that was asked for: if
// they leave nothing of it they do not count.
func (w *Workspace) rulesAsked(dir string) *rules {
	r := w.rulesAbove(dir)
	if dir != "." && r.smothers(dir) {
		return nil
	}
	return r
}

// rulesAbove gathers the rules of the directories that hold dir.
func (w *Workspace) rulesAbove(dir string) *rules {
	r := w.surroundings().rules
	if dir != "." {
		r = w.readRules(".", r)
	}
	for i, c := range dir {
		if c == '/' {
			up := dir[:i]
			if w.isRepository(up) {
				r = w.repository(up)
			}
			r = w.readRules(up, r)
		}
	}
	return r
}

// parsePatterns reads the text of a .gitignore.
func parsePatterns(text []byte) (list []pattern) {
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), "\x00")
		if strings.HasPrefix(line, "#") {
			continue
		}
		n := 0 // spaces at the end that no backslash keeps
		for i := 0; i < len(line); i++ {
			switch line[i] {
			case ' ':
				n++
			case '\\':
				i, n = i+1, 0
			default:
				n = 0
			}
		}
		var p pattern
		line, p.keep = strings.CutPrefix(line[:len(line)-n], "!")
		line, p.dirOnly = strings.CutSuffix(line, "/")
		p.anywhere = !strings.Contains(line, "/")
		p.glob = strings.TrimPrefix(line, "/")
		if p.fixed = strings.IndexAny(p.glob, `*?[\`); p.fixed < 0 {
			p.fixed = len(p.glob)
		}
		if p.glob != "" {
			list = append(list, p)
		}
	}
	return list
}

// An IgnoreList holds the patterns of an ignore file at the top of a workspace. The
// zero list matches nothing.
type IgnoreList struct{ rules rules }

// ParseIgnore reads patterns as git reads those of a .gitignore.
func ParseIgnore(text []byte) IgnoreList {
	return IgnoreList{rules{dir: ".", patterns: parsePatterns(text), fold: true}}
}

// Match reports whether the list covers a file or folder, or a folder that holds it.
// The path rel is relative to the top.
func (l IgnoreList) Match(rel string) bool {
	for i, c := range rel {
		if c == '/' && l.rules.matches(rel[:i], true) {
			return true
		}
	}
	return l.rules.matches(rel, false)
}

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
			in = in || last <= b && b <= p[i] || m.fold && b >= 'a' && b <= 'z' && last <= up && up <= p[i]
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
			ranges, known := posix[p[i+2:max(close-1, i+2)]]
			if !known {
				return 0, false, false
			}
			if m.fold && p[i+2:close-1] == "upper" {
				ranges = posix["alpha"]
			}
			for ; ranges != ""; ranges = ranges[2:] {
				in = in || ranges[0] <= b && b <= ranges[1]
			}
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
	if m.fold && b >= 'A' && b <= 'Z' {
		return b - 'A' + 'a'
	}
	return b
}

// posix are the classes that have names: pairs of a first and a last byte.
var posix = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\r", "upper": "AZ", "xdigit": "09AFaf",
}
