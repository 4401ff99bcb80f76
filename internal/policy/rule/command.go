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

// analyse returns the report on a command line, from its plan if that has one.
func (b *Book) analyse(p tool.Plan, line string) risk.Report {
	if r, ok := risk.ReportOf(p, line); ok {
		return r
	}
	return b.Analyse(line)
}

// IsVouched reports whether one of the user's own rules names the whole line and allows it.
func (b *Book) IsVouched(r risk.Report) bool {
	text := strings.TrimSpace(r.Command)
	return isWhole(b.ownPatterns(ClassCommand), text) || b.isGranted(KindLine, text)
}

// isWhole reports whether one of the patterns is the line itself.
func isWhole(patterns []string, line string) bool {
	return line != "" && !strings.Contains(line, "*") && slices.Contains(patterns, line)
}

// ownPatterns returns the command patterns that the user's own rules allow for a tool.
func (b *Book) ownPatterns(tool string) []string {
	patterns := slices.Clone(b.Lines)
	for _, s := range b.Allow {
		if s.matchesClass(tool, ClassCommand) {
			patterns = append(patterns, s.On)
		}
	}
	return patterns
}

// judgeLine judges the commands of a line.
func (b *Book) judgeLine(p Preset, name string, r risk.Report) finding {
	wide := b.judgeAnyUse(p, name, ClassCommand)
	patterns := maps.Clone(b.UserRules[ClassCommand])
	if patterns == nil {
		patterns = risk.Patterns{}
	}
	patterns["*"] = wide.verdict
	v, pattern, _ := patterns.Verdict(r)
	f := finding{v, reasonText(ClassCommand, v), fmt.Sprintf("permission.bash[%q] = %s", pattern, v), false}
	wideSpoke := pattern == "*"
	if wideSpoke {
		f.rule = wide.rule
	}
	_, askedFor := b.UserRules[ClassCommand]["*"]
	switch {
	case v == policy.Deny:
	case v == policy.Ask && wideSpoke && (r.ReadOnly || r.OnlyWrites && !p.AlwaysAsk) && p.AllowReaders &&
		(!askedFor || p.AlwaysAsk):
		f.verdict = policy.Allow
	case p.AlwaysAsk && !r.ReadOnly:
		f.verdict, f.notWaivable = policy.Ask, true
		f.text, f.rule = "plan mode: the command may do more than read", "preset plan"
		if r.Why != "" {
			f.text = fmt.Sprintf("plan mode: the command may do more than read (%s)", r.Why)
		}
	case v == policy.Ask && wideSpoke && (b.isRemembered(name, r) || specsCover(b.Allow, name, r) || len(r.SetVars) > 0 &&
		!r.Unknown && b.IsVouched(r)):
		f.verdict = policy.Allow
	}
	return f
}

// WaivedRisks reports which risks of a line the user's own rules accept. A rule
// that names a program and its action accepts what the command sends out; a
// rule that is the line itself accepts everything that can be approved.
func (b *Book) WaivedRisks(tool string, r risk.Report) (outward, all bool) {
	if r.Unknown || r.Substituted || r.Redirected || len(r.Simple) == 0 {
		return false, false
	}
	patterns := b.ownPatterns(tool)
	all = isWhole(patterns, strings.TrimSpace(r.Command))
	if len(r.SetVars) > 0 {
		return all, all
	}
	patterns = slices.DeleteFunc(patterns, func(p string) bool { return !namesAction(p) })
	for _, c := range r.Simple {
		if !c.ReadOnly && !slices.ContainsFunc(patterns, func(p string) bool { return risk.MatchPattern(p, c) }) {
			return all, all
		}
	}
	return true, all
}

// namesAction reports whether a pattern begins with a program and a plain word for its action.
func namesAction(pattern string) bool {
	words := strings.Fields(pattern)
	return len(words) > 1 && !strings.ContainsAny(words[0]+words[1], "*?[") && !strings.HasPrefix(words[1], "-")
}

// judgeNamed judges the files that a line names, whatever the command that gets them.
func (b *Book) judgeNamed(p Preset, r risk.Report) []finding {
	var fs []finding
	judge := func(class string, files ...string) {
		for _, file := range files {
			if f, ok := b.judgeByFileRules(p, "", class, b.newRulePath(file)); ok {
				fs = append(fs, f)
			}
		}
	}
	judge(ClassRead, r.Reads...)
	judge(ClassWrite, r.Writes...)
	// without full enforcement, only for read-only lines
	hidden := b.HidesSecrets != nil && b.HidesSecrets() && (r.ReadOnly || b.EnforcesFrozen == nil || b.EnforcesFrozen())
	for _, c := range r.Simple {
		judge(ClassRead, b.shownByGit(c)...)
		if !nameOnlyCommands[path.Base(c.Name)] {
			for _, w := range c.Args {
				judge(ClassRead, b.possibleFiles(c.Dir, w, hidden)...)
			}
		}
		if f, ok := b.judgeSearch(p, c, hidden); ok {
			fs = append(fs, f)
		}
	}
	if f, ok := b.judgeVague(p, r, hidden); ok && b.HidesSecrets != nil {
		fs = append(fs, f)
	}
	return fs
}

// judgeSearch judges a command that reads whole folders, by the first file there that a rule covers.
func (b *Book) judgeSearch(p Preset, c risk.Command, hidden bool) (finding, bool) {
	dirs, dotted := searchedFolders(c)
	if b.Walk == nil {
		return finding{}, false
	}
	for _, dir := range dirs {
		if hidden && b.isInside(dir) {
			continue
		}
		for file := range b.Walk(b.place(b.pathFrom(c.Dir, dir))) {
			place := b.place(file)
			if !dotted && strings.HasPrefix(path.Base(place), ".") {
				continue
			}
			if f, ok := b.judgeByFileRules(p, "", ClassRead, b.newRulePath(place)); ok && f.verdict != policy.Allow {
				return f, true
			}
		}
	}
	return finding{}, false
}

// searchedFolders returns what a search covers, and whether it includes hidden files.
func searchedFolders(c risk.Command) (dirs []string, hidden bool) {
	if c.AddsArgs {
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
			deep = deep || isAbbreviation(w, "--recursive") || isAbbreviation(w, "--dereference-recursive") ||
				isAbbreviation(w, "--directories")
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

// isAbbreviation reports whether a word is a long option, in full
// or in one of the short forms that GNU programs accept.
func isAbbreviation(word, option string) bool {
	name, _, _ := strings.Cut(word, "=")
	return len(name) > 3 && strings.HasPrefix(option, name)
}

// nameOnlyCommands are commands that do not open their file arguments.
var nameOnlyCommands = func() map[string]bool {
	names := make(map[string]bool)
	for _, n := range strings.Fields("echo printf test [ ls dir stat basename dirname realpath readlink touch mkdir find fd which type true false cd pwd") {
		names[n] = true
	}
	return names
}()

// possibleFiles returns the files that a word of a command in dir may name. If unnamed files are hidden from
// the command, a pattern matches nothing in the workspace.
func (b *Book) possibleFiles(dir, word string, hidden bool) (files []string) {
	for _, w := range plainWords(word) {
		w = b.pathFrom(dir, w)
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
