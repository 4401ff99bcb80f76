package workspace

import (
	"io/fs"
	"iter"
	"path"
	"strings"
)

const (
	ignoreFile    = ".gitignore" // ignore rules of a directory
	maxIgnoreFile = 256 << 10    // bytes of a .gitignore that are read
	// steps to match one pattern with one name; a pattern with too many stars counts as not matching
	maxSteps = 100_000
)

// alwaysSkipped are directories that are searched only if named: they belong to version control, package
// managers and coder, not to the user.
var alwaysSkipped = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".coder": true,
	"node_modules": true, "__pycache__": true, ".venv": true,
}

// rules are the ignore patterns of one file, followed by those that apply if none of them matches: of
// parent directories, the repository and the user. A nil *rules has none.
type rules struct {
	dir        string    // directory in the tree that names are relative to
	prefix     string    // or, if that is above the tree, the path from it to the tree
	patterns   []pattern // as written; the last match decides
	ignoreCase bool      // ignore case
	parent     *rules
}

// pattern is one line of a .gitignore.
type pattern struct {
	glob       string
	literalLen int  // length of glob before the first wildcard
	anywhere   bool // glob matches the base name, at any depth
	dirOnly    bool
	isNegated  bool // the line began with "!"
}

// isIgnored reports whether the file or directory rel is ignored.
func (r *rules) isIgnored(rel string, dir bool) bool {
	base := path.Base(rel)
	return dir && alwaysSkipped[base] || base == ".git" || r.matches(rel, dir)
}

// matches reports whether the last pattern that matches rel ignores it.
func (r *rules) matches(rel string, dir bool) bool {
	base := path.Base(rel)
	for ; r != nil; r = r.parent {
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
					if r.prefix != "" {
						name = r.prefix + "/" + rel
					}
				}
				at = name
			}
			if p.matches(at, r.ignoreCase) {
				return !p.isNegated
			}
		}
	}
	return false
}

func (p *pattern) matches(name string, fold bool) bool {
	m := globMatcher{ignoreCase: fold, steps: maxSteps}
	if p.literalLen > len(name) || !fold && p.glob[:p.literalLen] != name[:p.literalLen] {
		return false
	}
	for i := 0; fold && i < p.literalLen; i++ {
		if m.lower(p.glob[i]) != m.lower(name[i]) {
			return false
		}
	}
	if p.literalLen == len(p.glob) {
		return p.literalLen == len(name)
	}
	// As in git: * and ? do not match a slash, **/ and /** match directories at any depth, ! or ^ negates a
	// class, and a class may name others ([:alpha:]). A malformed pattern matches nothing.
	return m.match(p.glob[p.literalLen:], name[p.literalLen:], 0) == matchYes
}

// ignoresAll reports whether the rules ignore everything in dir, whatever its name.
func (r *rules) ignoresAll(dir string) bool {
	for _, name := range []string{"\x01\x01\x01\x01\x01\x01\x01\x01", "aaaaaaaaaaaaaaaa", "ZZZZZZZZZZZZZZZZZZZZ"} {
		if at := path.Join(dir, name); !r.isIgnored(at, false) || !r.isIgnored(at, true) {
			return false
		}
	}
	return true
}

// extendRules adds the rules of dir to those from above. If dir is the top of another repository, only that
// repository's rules apply.
func (w *Workspace) extendRules(dir string, entries []fs.DirEntry, above *rules) *rules {
	own, repository := false, false
	for _, d := range entries {
		switch d.Name() {
		case ignoreFile:
			own = d.Type().IsRegular()
		case ".git":
			repository = dir != "." && w.isRepository(dir)
		}
	}
	return w.dirRules(dir, own, repository, above)
}

func (w *Workspace) dirRules(dir string, own, repository bool, above *rules) *rules {
	if repository {
		above = w.nestedRepositoryRules(dir)
	}
	if own {
		return w.readRules(dir, above)
	}
	return above
}

// readRules adds the rules of the ignore file in dir, if any. Like git, it does not follow a link there.
func (w *Workspace) readRules(dir string, above *rules) *rules {
	name := path.Join(dir, ignoreFile)
	if info, err := w.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return above
	}
	text, _, err := w.ReadFile(w.callerName(name), maxIgnoreFile)
	if err != nil {
		return above // an unreadable ignore file ignores nothing
	}
	return &rules{dir: dir, patterns: parsePatterns(text), ignoreCase: w.readOuterRules().ignoreCase, parent: above}
}

// rulesForNamed returns the rules from above for a directory named by the caller: if they ignore all of it,
// they do not apply.
func (w *Workspace) rulesForNamed(dir string) *rules {
	r := w.rulesAbove(dir)
	if dir != "." && r.ignoresAll(dir) {
		return nil
	}
	return r
}

// rulesAbove collects the rules of the directories above dir.
func (w *Workspace) rulesAbove(dir string) *rules {
	r := w.readOuterRules().rules
	if dir != "." {
		r = w.readRules(".", r)
	}
	for i, c := range dir {
		if c == '/' {
			up := dir[:i]
			if w.isRepository(up) {
				r = w.nestedRepositoryRules(up)
			}
			r = w.readRules(up, r)
		}
	}
	return r
}

// parsePatterns parses a .gitignore.
func parsePatterns(text []byte) (list []pattern) {
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), "\x00")
		if strings.HasPrefix(line, "#") {
			continue
		}
		n := 0 // trailing spaces without a backslash
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
		line, p.isNegated = strings.CutPrefix(line[:len(line)-n], "!")
		line, p.dirOnly = strings.CutSuffix(line, "/")
		p.anywhere = !strings.Contains(line, "/")
		p.glob = strings.TrimPrefix(line, "/")
		if p.literalLen = strings.IndexAny(p.glob, `*?[\`); p.literalLen < 0 {
			p.literalLen = len(p.glob)
		}
		if p.glob != "" {
			list = append(list, p)
		}
	}
	return list
}

// An IgnoreList is a list of ignore patterns for the top of a workspace. The zero list matches nothing.
type IgnoreList struct{ rules rules }

// ParseIgnore parses patterns in the form of a .gitignore.
func ParseIgnore(text []byte) IgnoreList {
	return IgnoreList{rules{dir: ".", patterns: parsePatterns(text), ignoreCase: true}}
}

// Patterns yields the patterns, without their signs.
func (l IgnoreList) Patterns() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, p := range l.rules.patterns {
			if !yield(p.glob) {
				return
			}
		}
	}
}

// Match reports whether the list covers a file or folder, or a folder above it. rel is relative to the
// top.
func (l IgnoreList) Match(rel string) bool {
	for i, c := range rel {
		if c == '/' && l.rules.matches(rel[:i], true) {
			return true
		}
	}
	return l.rules.matches(rel, false)
}

// matchResult is the result of trying to match.
type matchResult int

const (
	matchNo            matchResult = iota
	matchYes                       // a match
	matchExhausted                 // the name is used up, so no earlier star can help
	matchNeedsGlobstar             // only a star that matches slashes can help
)

type globMatcher struct {
	ignoreCase bool
	steps      int
}

// match tries to match the rest of the pattern, from at on, with a name.
func (m *globMatcher) match(p, name string, at int) matchResult {
	for ; at < len(p); at++ {
		if m.steps--; m.steps < 0 {
			return matchExhausted
		}
		c := p[at]
		if name == "" && c != '*' {
			return matchExhausted
		}
		switch c {
		case '*':
			return m.matchStar(p, name, at)
		case '?':
			if name[0] == '/' {
				return matchNo
			}
		case '[':
			end, in, ok := m.parseClass(p, at, name[0])
			if !ok {
				return matchExhausted
			}
			if !in || name[0] == '/' {
				return matchNo
			}
			at = end
		case '\\':
			if at++; at == len(p) {
				return matchNo
			}
			if p[at] != m.lower(name[0]) {
				return matchNo
			}
		default:
			if m.lower(c) != m.lower(name[0]) {
				return matchNo
			}
		}
		name = name[1:]
	}
	if name == "" {
		return matchYes
	}
	return matchNo
}

// matchStar matches one or more stars, and the rest of the pattern.
func (m *globMatcher) matchStar(p, name string, at int) matchResult {
	first := at
	for at < len(p) && p[at] == '*' {
		at++
	}
	slashes := false // whether it also matches slashes
	if at-first >= 2 && (first == 0 || p[first-1] == '/') &&
		(at == len(p) || p[at] == '/' || at+1 < len(p) && p[at] == '\\' && p[at+1] == '/') {
		slashes = true
		// **/ also matches no directory at all.
		if at < len(p) && p[at] == '/' && m.match(p, name, at+1) == matchYes {
			return matchYes
		}
	}
	if at == len(p) {
		if !slashes && strings.Contains(name, "/") {
			return matchNeedsGlobstar
		}
		return matchYes
	}
	for ; ; name = name[1:] {
		v := m.match(p, name, at)
		switch {
		case v == matchYes, v == matchExhausted, v == matchNeedsGlobstar && !slashes:
			return v
		case name == "":
			return matchExhausted
		case !slashes && name[0] == '/':
			return matchNeedsGlobstar
		}
	}
}

// parseClass parses the class that begins at from, and returns its end and whether it contains b. ok is false
// if it is unterminated.
func (m *globMatcher) parseClass(p string, from int, b byte) (end int, in, ok bool) {
	c := class{pattern: p, at: from + 1, name: m.lower(b), ignoreCase: m.ignoreCase}
	negated := c.at < len(p) && (p[c.at] == '!' || p[c.at] == '^')
	if negated {
		c.at++
	}
	for first := true; c.at < len(p) && (first || p[c.at] != ']'); first = false {
		if !c.addMember() {
			return 0, false, false
		}
	}
	if c.at >= len(p) {
		return 0, false, false
	}
	return c.at, c.contains != negated, true
}

// class is a class of bytes such as [a-z_] while it is parsed and compared with one byte of a name.
type class struct {
	pattern    string
	at         int  // the next byte of pattern
	name       byte // in lower case if ignoreCase
	ignoreCase bool
	last       byte // possible start of a range, or 0
	contains   bool // a member up to at is name
}

// addMember parses the next member: a byte, the end of a range, or a named class. It returns false if the class
// is unterminated.
func (c *class) addMember() bool {
	b := c.pattern[c.at]
	switch {
	case b == '\\':
		if !c.unescape() {
			return false
		}
		b = c.pattern[c.at]
		c.add(b, b)
	case b == '-' && c.last != 0 && c.at+1 < len(c.pattern) && c.pattern[c.at+1] != ']':
		c.at++
		if c.pattern[c.at] == '\\' && !c.unescape() {
			return false
		}
		c.addRange(c.last, c.pattern[c.at])
		b = 0 // the end of a range cannot start another
	case b == '[' && c.at+1 < len(c.pattern) && c.pattern[c.at+1] == ':':
		end := strings.IndexByte(c.pattern[c.at+2:], ']')
		if end < 0 {
			return false
		}
		name, named := strings.CutSuffix(c.pattern[c.at+2:c.at+2+end], ":")
		if !named { // only a bracket
			c.add(b, b)
			break
		}
		if !c.addNamed(name) {
			return false
		}
		c.at, b = c.at+2+end, 0
	default:
		c.add(b, b)
	}
	c.last = b
	c.at++
	return true
}

// unescape moves from a backslash to the byte after it, if there is one.
func (c *class) unescape() bool {
	c.at++
	return c.at < len(c.pattern)
}

func (c *class) add(first, last byte) { c.contains = c.contains || first <= c.name && c.name <= last }

func (c *class) addRange(first, last byte) {
	c.add(first, last)
	if upper := c.name - 'a' + 'A'; c.ignoreCase && c.name >= 'a' && c.name <= 'z' {
		c.contains = c.contains || first <= upper && upper <= last
	}
}

// addNamed adds a class such as alpha, and returns false if the name is unknown.
func (c *class) addNamed(name string) bool {
	ranges, known := posixClasses[name]
	if c.ignoreCase && name == "upper" {
		ranges = posixClasses["alpha"]
	}
	for ; ranges != ""; ranges = ranges[2:] {
		c.add(ranges[0], ranges[1])
	}
	return known
}

func (m *globMatcher) lower(b byte) byte {
	if m.ignoreCase && b >= 'A' && b <= 'Z' {
		return b - 'A' + 'a'
	}
	return b
}

// posixClasses are the named classes, as pairs of a first and a last byte.
var posixClasses = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\r", "upper": "AZ", "xdigit": "09AFaf",
}
