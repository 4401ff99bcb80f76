package workspace

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// never are the directories that are not searched unless named: what version
// control, package managers and we ourselves keep there is not the user's.
var never = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".coder": true,
	"node_modules": true, "__pycache__": true, ".venv": true,
}

// NeverSearched lists the names of directories that are not searched unless
// named, in order.
func NeverSearched() []string { return slices.Sorted(maps.Keys(never)) }

// ignoreFile is where a directory says what of it is of no interest.
const ignoreFile = ".gitignore"

// maxIgnoreFile is how many bytes of a .gitignore are heeded.
const maxIgnoreFile = 256 << 10

// rules are the ignore patterns in force in a directory: its own, then those of
// the directories above it. A nil *rules has none.
type rules struct {
	dir      string
	patterns []pattern // as written; the last that matches decides
	above    *rules
}

// pattern is one line of a .gitignore.
type pattern struct {
	glob     string
	literal  bool // glob holds no wildcard
	anywhere bool // glob is matched with the base name, at any depth
	dirOnly  bool
	keep     bool // the line began with "!"
}

// ignore reports whether the thing at rel is of no interest.
func (r *rules) ignore(rel string, dir bool) bool {
	if dir && never[path.Base(rel)] {
		return true
	}
	for ; r != nil; r = r.above {
		for i := len(r.patterns) - 1; i >= 0; i-- {
			if r.patterns[i].matches(r.dir, rel, dir) {
				return !r.patterns[i].keep
			}
		}
	}
	return false
}

func (p pattern) matches(base, rel string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	name := strings.TrimPrefix(rel, base+"/")
	if p.anywhere {
		name = path.Base(rel)
	}
	if p.literal {
		return name == p.glob
	}
	ok, err := doublestar.Match(p.glob, name)
	return ok && err == nil
}

// rulesOf adds the rules dir has of its own to those from above.
func (w *Workspace) rulesOf(dir string, entries []fs.DirEntry, above *rules) *rules {
	for _, d := range entries {
		if d.Name() == ".gitignore" && d.Type().IsRegular() {
			return w.readRules(dir, above)
		}
	}
	return above
}

func (w *Workspace) readRules(dir string, above *rules) *rules {
	text, _, err := w.ReadFile(path.Join(dir, ".gitignore"), maxIgnoreFile)
	if err != nil {
		return above // an ignore file we cannot read ignores nothing
	}
	r := &rules{dir: dir, above: above}
	for line := range strings.Lines(string(text)) {
		if p, ok := parsePattern(line); ok {
			r.patterns = append(r.patterns, p)
		}
	}
	return r
}

// rulesAbove gathers the rules of the directories that hold dir.
func (w *Workspace) rulesAbove(dir string) *rules {
	var r *rules
	if dir == "." {
		return r
	}
	r = w.readRules(".", r)
	for i, c := range dir {
		if c == '/' {
			r = w.readRules(dir[:i], r)
		}
	}
	return r
}

// parsePattern reads one line of a .gitignore.
func parsePattern(line string) (p pattern, ok bool) {
	line = strings.TrimRight(line, "\r\n")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	if line == "" || line[0] == '#' {
		return p, false
	}
	if line[0] == '!' {
		p.keep, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly, line = true, strings.TrimRight(line, "/")
	}
	p.anywhere = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is inside, not the directory itself
	}
	p.literal = !strings.ContainsAny(line, `*?[\`)
	if !p.literal {
		line = braces.Replace(line)
	}
	p.glob = line
	return p, line != "" && doublestar.ValidatePattern(line)
}

// braces takes from braces the meaning they have in our globs and not in git's.
var braces = strings.NewReplacer("{", `\{`, "}", `\}`)
