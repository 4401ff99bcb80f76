package rule

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// read returns the report on a command line, from its plan if that has one.
func (b *Book) read(p tool.Plan, line string) risk.Report {
	if r, ok := risk.Of(p, line); ok {
		return r
	}
	return b.Analyse(line)
}

// Vouches reports whether one of the user's own rules names the whole line and allows it.
func (b *Book) Vouches(r risk.Report) bool {
	text := strings.TrimSpace(r.Command)
	return isWhole(b.ownPatterns(Commands), text) || b.granted(Line, text)
}

// isWhole reports whether one of the patterns is the line itself.
func isWhole(patterns []string, line string) bool {
	return line != "" && !strings.Contains(line, "*") && slices.Contains(patterns, line)
}

// ownPatterns returns the command patterns that the user's own rules allow for a tool.
func (b *Book) ownPatterns(tool string) []string {
	patterns := slices.Clone(b.Lines)
	for _, s := range b.Allow {
		if s.names(tool, Commands) {
			patterns = append(patterns, s.On)
		}
	}
	return patterns
}

// line judges the commands of a line.
func (b *Book) line(p Preset, name string, r risk.Report) finding {
	wide := b.wide(p, name, Commands)
	patterns := maps.Clone(b.Given[Commands])
	if patterns == nil {
		patterns = risk.Patterns{}
	}
	patterns["*"] = wide.verdict
	v, pattern, _ := patterns.Verdict(r)
	f := finding{v, words(Commands, v), fmt.Sprintf("permission.bash[%q] = %s", pattern, v), false}
	wideSpoke := pattern == "*"
	if wideSpoke {
		f.rule = wide.rule
	}
	_, askedFor := b.Given[Commands]["*"]
	switch {
	case v == policy.Deny:
	case v == policy.Ask && wideSpoke && (r.ReadOnly || r.OnlyWrites && !p.Wary) && p.Readers && (!askedFor || p.Wary):
		f.verdict = policy.Allow
	case p.Wary && !r.ReadOnly:
		f.verdict, f.once = policy.Ask, true
		f.text, f.rule = "plan mode: the command may do more than read", "preset plan"
		if r.Why != "" {
			f.text = fmt.Sprintf("plan mode: the command may do more than read (%s)", r.Why)
		}
	case v == policy.Ask && wideSpoke && (b.remembers(name, r) || vouches(b.Allow, name, r) || len(r.Sets) > 0 && !r.Unknown && b.Vouches(r)):
		f.verdict = policy.Allow
	}
	return f
}

// Waives reports which risks of a line the user's own rules accept. A rule
// that names a program and its action accepts what the command sends out; a
// rule that is the line itself accepts everything that can be approved.
func (b *Book) Waives(tool string, r risk.Report) (outward, all bool) {
	if r.Unknown || r.Substituted || r.Redirected || len(r.Simple) == 0 {
		return false, false
	}
	patterns := b.ownPatterns(tool)
	all = isWhole(patterns, strings.TrimSpace(r.Command))
	if len(r.Sets) > 0 {
		return all, all
	}
	patterns = slices.DeleteFunc(patterns, func(p string) bool { return !namesDeed(p) })
	for _, c := range r.Simple {
		if !c.ReadOnly && !slices.ContainsFunc(patterns, func(p string) bool { return risk.MatchPattern(p, c) }) {
			return all, all
		}
	}
	return true, all
}

// namesDeed reports whether a pattern begins with a program and a plain word for its action.
func namesDeed(pattern string) bool {
	words := strings.Fields(pattern)
	return len(words) > 1 && !strings.ContainsAny(words[0]+words[1], "*?[") && !strings.HasPrefix(words[1], "-")
}

// named judges the files that a line names, whatever the command that gets them.
func (b *Book) named(p Preset, r risk.Report) []finding {
	var fs []finding
	judge := func(class string, files ...string) {
		for _, file := range files {
			if f, ok := b.about(p, "", class, b.spot(file)); ok {
				fs = append(fs, f)
			}
		}
	}
	judge(Reads, r.Reads...)
	judge(Writes, r.Writes...)
	hidden := b.Hidden != nil && b.Hidden() && (r.ReadOnly || b.Freezes == nil || b.Freezes()) // without full enforcement, only for read-only lines
	for _, c := range r.Simple {
		judge(Reads, b.shownByGit(c)...)
		if !onlyNames[path.Base(c.Name)] {
			for _, w := range c.Args {
				judge(Reads, b.files(c.Dir, w, hidden)...)
			}
		}
		if f, ok := b.searched(p, c, hidden); ok {
			fs = append(fs, f)
		}
	}
	if f, ok := b.vague(p, r, hidden); ok && b.Hidden != nil {
		fs = append(fs, f)
	}
	return fs
}

// searched judges a command that reads whole folders, by the first file there that a rule covers.
func (b *Book) searched(p Preset, c risk.Command, hidden bool) (finding, bool) {
	dirs, dotted := folders(c)
	if b.Below == nil {
		return finding{}, false
	}
	for _, dir := range dirs {
		if hidden && b.isInside(dir) {
			continue
		}
		for file := range b.Below(b.place(b.from(c.Dir, dir))) {
			place := b.place(file)
			if !dotted && strings.HasPrefix(path.Base(place), ".") {
				continue
			}
			if f, ok := b.about(p, "", Reads, b.spot(place)); ok && f.verdict != policy.Allow {
				return f, true
			}
		}
	}
	return finding{}, false
}

// folders returns what a search covers, and whether it includes hidden files.
func folders(c risk.Command) (dirs []string, hidden bool) {
	if c.Fed {
		return []string{"."}, true // its input has the names of found files
	}
	deep := false
	switch path.Base(c.Name) {
	case "rgrep":
		deep, hidden = true, true
	case "grep", "egrep", "fgrep", "zgrep":
		hidden = true
	case "rg", "ag", "ack":
		deep = true
	case "diff", "colordiff", "tar":
		return operandsOf(c), true
	case "git":
		if slices.Contains(c.Args, "--no-index") {
			return operandsOf(c), true
		}
		return nil, false
	default:
		return nil, false
	}
	pattern := false // the pattern was given as an option
	var operands []string
	for _, w := range c.Args {
		switch {
		case strings.HasPrefix(w, "--"):
			deep = deep || abbreviates(w, "--recursive") || abbreviates(w, "--dereference-recursive") || abbreviates(w, "--directories")
			hidden = hidden || w == "--hidden" || w == "--unrestricted" || w == "--no-ignore"
			pattern = pattern || strings.HasPrefix(w, "--regexp") || strings.HasPrefix(w, "--file") || w == "--files"
		case strings.HasPrefix(w, "-") && len(w) > 1:
			deep = deep || strings.ContainsAny(w, "rRd")
			hidden = hidden || strings.Contains(w, "u")
			pattern = pattern || strings.ContainsAny(w, "ef")
		default:
			operands = append(operands, w)
		}
	}
	if !pattern && len(operands) > 0 {
		operands = operands[1:]
	}
	switch {
	case !deep:
		return nil, false
	case len(operands) == 0:
		return []string{"."}, hidden
	}
	return operands, hidden
}

// operandsOf returns the words of a command that are not options.
func operandsOf(c risk.Command) []string {
	return slices.DeleteFunc(slices.Clone(c.Args), func(w string) bool { return strings.HasPrefix(w, "-") })
}

// abbreviates reports whether a word is a long option, in full
// or in one of the short forms that GNU programs accept.
func abbreviates(word, option string) bool {
	name, _, _ := strings.Cut(word, "=")
	return len(name) > 3 && strings.HasPrefix(option, name)
}

// onlyNames are commands that do not open their file arguments.
var onlyNames = func() map[string]bool {
	names := make(map[string]bool)
	for _, n := range strings.Fields("echo printf test [ ls dir stat basename dirname realpath readlink touch mkdir find fd which type true false cd pwd") {
		names[n] = true
	}
	return names
}()

// files returns the files that a word of a command in dir may name. If unnamed files are hidden from
// the command, a pattern matches nothing in the workspace.
func (b *Book) files(dir, word string, hidden bool) (files []string) {
	for _, w := range plainWords(word) {
		w = b.from(dir, w)
		switch {
		case !strings.ContainsAny(w, "*?["):
			files = append(files, w)
		case b.Glob != nil:
			if rest, ok := strings.CutPrefix(w, "~/"); ok && b.Home != "" {
				w = path.Join(b.Home, rest)
			}
			for _, file := range append(b.Glob(w), w) {
				if !hidden || !b.isInside(file) {
					files = append(files, file)
				}
			}
		}
	}
	return files
}
