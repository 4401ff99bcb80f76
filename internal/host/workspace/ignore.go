package workspace

import (
	"io/fs"
	"path"
	"strings"
)

// never are the directories that are not searched unless named: what version
// control, package managers and we ourselves keep there is not the user's.
var never = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".coder": true,
	"node_modules": true, "__pycache__": true, ".venv": true,
}

// ignoreFile is where a directory says what of it is of no interest.
const ignoreFile = ".gitignore"

// maxIgnoreFile is how many bytes of a .gitignore are heeded.
const maxIgnoreFile = 256 << 10

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
	if dir && never[base] || base == ".git" {
		return true
	}
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
					name = r.name(rel)
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

// name is rel as seen from the directory of the rules.
func (r *rules) name(rel string) string {
	if r.lead != "" {
		return r.lead + "/" + rel
	}
	return strings.TrimPrefix(rel, r.dir+"/")
}

func (p *pattern) matches(name string, fold bool) bool {
	if p.fixed > len(name) || !same(p.glob[:p.fixed], name[:p.fixed], fold) {
		return false
	}
	if p.fixed == len(p.glob) {
		return p.fixed == len(name)
	}
	// As git does it: * and ? do not match a slash, **/ and /** match directories at any depth, a class may be negated
	// by ! or ^ and name others ([:alpha:]). A pattern that is not well formed matches nothing.
	m := wild{fold: fold, steps: maxSteps}
	return m.match(p.glob[p.fixed:], name[p.fixed:], 0) == yes
}

func same(a, b string, fold bool) bool {
	if !fold {
		return a == b
	}
	m := wild{fold: true}
	for i := range len(a) {
		if m.low(a[i]) != m.low(b[i]) {
			return false
		}
	}
	return true
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
		if p, ok := parsePattern(line); ok {
			list = append(list, p)
		}
	}
	return list
}

// parsePattern reads one line of a .gitignore.
func parsePattern(line string) (p pattern, ok bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	line, _, _ = strings.Cut(line, "\x00")
	if strings.HasPrefix(line, "#") {
		return p, false
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
	line = line[:len(line)-n]
	if strings.HasPrefix(line, "!") {
		p.keep, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly, line = true, line[:len(line)-1]
	}
	p.anywhere = !strings.Contains(line, "/")
	p.glob = strings.TrimPrefix(line, "/")
	if p.fixed = strings.IndexAny(p.glob, `*?[\`); p.fixed < 0 {
		p.fixed = len(p.glob)
	}
	return p, p.glob != ""
}
