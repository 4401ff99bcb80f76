// Package rule judges calls by what the user allowed: a preset of permissions, the
// user's own rules on top of it, and the user's "always" answers. It considers what a
// call would touch; a tool's name matters only if a user's rule names it.
//
// Three things always apply. A rule about a file covers every way to that file: the tools that read,
// search and edit, and the commands that get its name. A pattern that allows a command allows that
// command only, never what is chained, substituted or redirected with it. If two rules disagree, the
// stricter one wins: deny, then ask, then allow.
package rule

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/secret"
	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// Book is everything that the user ever allowed or denied here. The
// zero Book asks about everything that the preset asks about.
type Book struct {
	// UserRules are the user's own rules: by tool or class (read, write,
	// bash, fetch, note, default), then by pattern; "*" is any use.
	UserRules map[string]risk.Patterns
	// Lines are the command patterns that the user's own settings allow, not a project's.
	Lines []string
	// Allow and Deny are the rules of one run. Allow allows only what the preset alone would ask about.
	Allow, Deny []Spec
	// Always has the user's grants for this project, Session those for this session.
	Always, Session *GrantList
	// Exact is set if whole command lines are remembered, not shapes.
	Exact bool
	// IsNamed, which may be nil, reports whether the user's settings name a host,
	// Typed whether the user typed it. Exceeds reports whether an address exceeds
	// the bounds for typed hosts, Whence describes where a host came from.
	IsNamed, IsTyped func(host string) bool
	ExceedsLimits    func(address string) bool
	DescribeOrigin   func(host string) string

	Root, Home string // absolute
	// Visible are folders of the home, absolute, that commands see although
	// their names begin with a dot: tool chains and the workspace.
	Visible []string
	// Analyse returns what a command line would do, for plans without a report.
	Analyse func(command string) risk.Report
	// Frozen are patterns of files that are never writable.
	Frozen []string
	// EnforcesFrozen, which may be nil, reports whether commands are kept from writing frozen files, and Hidden
	// whether secret files that a command does not name are hidden from it.
	EnforcesFrozen, HidesSecrets func() bool
	// Tracked, which may be nil, lists the secret files that git tracks.
	Tracked func() []string
	// Logs, which may be nil, returns the folder below Root where this session stores output, or "".
	Logs func() string
	// Real, which may be nil, returns the path of a file with links resolved.
	Real func(file string) string
	// Ignored, which may be nil, returns the ignore file of the workspace that hides a file from every tool.
	Ignored func(place string) (by string, ok bool)
	// Glob, which may be nil, lists the files that match a shell pattern.
	Glob func(pattern string) []string
	// Walk, which may be nil, yields the files below a folder, or only the first ones if there are very many.
	Walk func(dir string) iter.Seq[string]
}

// PolicyFor returns the book's policy under a preset.
func (b *Book) PolicyFor(p Preset) policy.Policy {
	return policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		o := policy.Opinion{Verdict: policy.Allow}
		effects := c.Plan.Effects
		if len(effects) == 0 {
			effects = []tool.Effect{{}}
		}
		for _, e := range effects {
			for _, f := range b.judgeEffect(p, c, e) {
				f.addTo(&o)
			}
			if f, ok := b.judgeFrozen(c, e); ok {
				f.addTo(&o)
			}
		}
		return o, nil
	})
}

// finding is one rule's verdict on one effect.
type finding struct {
	verdict     policy.Verdict
	text        string
	rule        string
	notWaivable bool // it cannot be waived for good
}

func (f finding) addTo(o *policy.Opinion) {
	o.Verdict = min(o.Verdict, f.verdict)
	if f.verdict == policy.Allow {
		return
	}
	r := policy.Reason{By: "rule", Text: f.text, Lasting: !f.notWaivable, Rule: f.rule}
	if !slices.Contains(o.Reasons, r) {
		o.Reasons = append(o.Reasons, r)
	}
}

// These are the class names in rules about what a call does, for any tool.
const (
	ClassRead    = "read"
	ClassWrite   = "write"
	ClassCommand = "bash"
	ClassFetch   = "fetch"
)

var classes = map[tool.Kind]string{
	tool.Read: ClassRead, tool.Write: ClassWrite, tool.Exec: ClassCommand, tool.Net: ClassFetch, tool.Note: "note",
}

func (b *Book) judgeEffect(p Preset, c policy.Case, e tool.Effect) []finding {
	name := c.Tool
	class, known := classes[e.Kind]
	if !known {
		class = "default"
	}
	switch e.Kind {
	case tool.Exec:
		r := b.analyse(c.Plan, e.Target)
		if s, ok := denyingSpec(b.Deny, name, r); ok { // for this run, so it applies in every mode
			return []finding{newDenial(s)}
		}
		if p.Unchecked {
			return b.judgeUnchecked(p, r)
		}
		fs := append([]finding{b.judgeLine(p, name, r)}, b.judgeNamed(p, r)...)
		if p.AlwaysAsk { // other commands need approval there anyway
			return fs
		}
		for _, file := range r.Redirects { // a redirection counts like a write by any other tool
			fs = append(fs, b.judgeFile(p, ClassWrite, ClassWrite, b.newRulePath(file)))
		}
		return fs
	case tool.Read, tool.Write:
		at := b.newRulePath(e.Target)
		if f, ok := b.judgeRecords(name, class, at); ok {
			return []finding{f}
		}
		return []finding{b.judgeFile(p, name, class, at)}
	case tool.Net:
		f := b.judgeAddress(p, name, e.Target)
		if host := HostOf(e.Target); f.verdict == policy.Ask && host != "" && c.Call.Name != "" && b.DescribeOrigin != nil {
			return []finding{f, {verdict: policy.Ask, text: b.DescribeOrigin(host), rule: f.rule}}
		}
		return []finding{f}
	case tool.Note, tool.Unknown:
	}
	about := func(on string) bool { return e.Kind == tool.Note && matchFold(on, e.Target) }
	if s, ok := b.runDenial(name, class, about); ok {
		return []finding{newDenial(s)}
	}
	f := b.judgeMemory(p, name, class, about)
	// Under a rule that says "ask", skills still load without approval: they do nothing by themselves, and
	// a question before each would only teach users to say yes.
	if f.verdict == policy.Ask && (tool.ClassOf(name) == tool.ClassLoadSkill || b.isAllowedByRun(name, class, about) ||
		b.isUseGranted(name, c.Plan.Version)) {
		f.verdict = policy.Allow
	}
	if f.verdict == policy.Ask && b.wasUseGranted(name) {
		return []finding{f, {verdict: policy.Ask,
			text: "the description or the server has changed since you allowed the tool",
			rule: f.rule}}
	}
	return []finding{f}
}

// judgeMemory returns the verdict on a use of coder's own memory: from the
// longest matching rule for the tool, else from the rules for any use.
func (b *Book) judgeMemory(p Preset, name, class string, about func(on string) bool) finding {
	wide, best := b.judgeAnyUse(p, name, class), longestPattern(b.UserRules[name], about)
	if best == "" {
		return wide
	}
	v := b.UserRules[name][best]
	if p.OnlyStricter {
		v = min(v, wide.verdict)
	}
	return finding{verdict: v, text: reasonText(name, v), rule: fmt.Sprintf("permission.%s[%q] = %s", name, best, v)}
}

// longestPattern returns the longest pattern that covers a use, except for "*".
func longestPattern(patterns risk.Patterns, covers func(pattern string) bool) (best string) {
	for pattern := range patterns {
		if pattern != "*" && len(pattern) > len(best) && covers(pattern) {
			best = pattern
		}
	}
	return best
}

// newDenial is the verdict of a rule of this run, and says where the rule comes from.
func newDenial(s Spec) finding {
	if s.From != "" {
		return finding{policy.Deny, fmt.Sprintf("%s is not allowed by managed settings", s),
			fmt.Sprintf("managed.deny = %s in %s", s, s.From), true}
	}
	return finding{policy.Deny, fmt.Sprintf("%s is not allowed in this run", s), "--disallowed-tools " + s.String(), true}
}

// runDenial returns the rule of this run that denies a use for which matches is true.
func (b *Book) runDenial(name, class string, matches func(on string) bool) (Spec, bool) {
	i := slices.IndexFunc(b.Deny, func(s Spec) bool {
		return s.matchesClass(name, class) &&
			(s.On == "" || matches(s.On))
	})
	if i < 0 {
		return Spec{}, false
	}
	return b.Deny[i], true
}

// isAllowedByRun reports whether a rule of this run allows a use for which matches is true.
func (b *Book) isAllowedByRun(name, class string, matches func(on string) bool) bool {
	return slices.ContainsFunc(b.Allow, func(s Spec) bool {
		return s.matchesClass(name, class) &&
			(s.On == "" || matches(s.On))
	})
}

// judgeAnyUse returns the verdict on any use of a tool: from the preset, or from a rule for the tool or its class.
func (b *Book) judgeAnyUse(p Preset, name, class string) finding {
	v, key, given := p.Verdicts[class], class, false
	rule := "preset " + p.Name
	for _, k := range []string{b.ruleName(name), class} {
		if own, ok := b.UserRules[k]["*"]; ok {
			v, key, given = mergeVerdict(p, class, own), k, true
			rule = fmt.Sprintf("permission.%s = %s", k, own)
			break
		}
	}
	if own, ok := b.UserRules["default"]["*"]; ok && !given && (class == "default" || class == ClassFetch) {
		v, key = mergeVerdict(p, class, own), "default"
		rule = fmt.Sprintf("permission.default = %s", own)
	}
	return finding{verdict: v, text: reasonText(key, v), rule: rule}
}

// ruleName returns the name of a tool in the user's rules:
// its own or, for an MCP tool, the longest that covers it.
func (b *Book) ruleName(name string) string {
	if b.UserRules[name] != nil || !strings.HasPrefix(name, "mcp__") {
		return name
	}
	best := name
	for written := range b.UserRules {
		if strings.HasPrefix(written, "mcp__") && nameMatches(written, name) &&
			(best == name || len(written) > len(best) || len(written) == len(best) && written < best) {
			best = written
		}
	}
	return best
}

// mergeVerdict combines a user's rule for any use of a class with the preset.
func mergeVerdict(p Preset, class string, own policy.Verdict) policy.Verdict {
	base := p.Verdicts[class]
	switch {
	case p.OnlyStricter && !(class == ClassFetch && base == policy.Ask):
		return min(base, own)
	case own == policy.Ask && slices.Contains(p.Lifts, class):
		return base
	}
	return own
}

func reasonText(key string, v policy.Verdict) string {
	if v == policy.Deny {
		return key + " policy does not allow it"
	}
	return key + " policy requires approval"
}

// readTools and writeTools are the tool names in rules about files.
var (
	readTools = tool.BuiltinNames(tool.ClassReadFile, tool.ClassListFolder, tool.ClassFindFiles, tool.ClassSearchText,
		tool.ClassSearchCode)
	writeTools = tool.BuiltinNames(tool.ClassEditFile, tool.ClassPatchFiles, tool.EditsNotebook)
)

// judgeFile judges a use of one file: by the rules about that file, else by those for any use of the tool.
func (b *Book) judgeFile(p Preset, name, class string, at *rulePath) finding {
	about := func(on string) bool { return b.covers(on, at.place) }
	if s, ok := b.runDenial(name, class, about); ok {
		return newDenial(s)
	}
	wide := b.judgeAnyUse(p, name, class)
	if f, ok := b.judgeByFileRules(p, name, class, at); ok {
		if p.OnlyStricter && wide.verdict < f.verdict {
			return wide
		}
		return f
	}
	if wide.verdict == policy.Ask && (b.isAllowedByRun(name, class, about) || b.isFileGranted(class, at.place)) {
		wide.verdict = policy.Allow
	}
	return wide
}

// SkipsInSearch reports whether searches that do not name a file
// skip its content: a rule about the file asks or denies.
func (b *Book) SkipsInSearch(p Preset, file string) bool {
	at := b.newRulePath(file)
	f, ok := b.judgeByFileRules(p, "", ClassRead, at)
	return ok && f.verdict != policy.Allow || at.isRecord() && !b.isOwnLog(at)
}

// judgeByFileRules returns the verdict of the rules about one file, if there are any. A
// file that may not be read may not be edited either; a readable file is not
// automatically editable, and a rule about a folder allows no secret in it.
func (b *Book) judgeByFileRules(p Preset, name, class string, at *rulePath) (f finding, ok bool) {
	place := at.place
	tools, own := readTools, readTools
	if class == ClassWrite {
		tools, own = slices.Concat(writeTools, readTools), writeTools
	}
	covers := func(s Spec, tools []string) bool {
		return s.On != "" && b.covers(s.On, place) && (strings.EqualFold(s.Tool, name) ||
			slices.Contains(tools, strings.ToLower(s.Tool)))
	}
	lets := func(s Spec) bool {
		return covers(s, own) && (class != ClassWrite || !strings.HasSuffix(strings.TrimSuffix(s.On, "**"), "/"))
	}
	if i := slices.IndexFunc(b.Deny, func(s Spec) bool { return covers(s, tools) }); i >= 0 {
		return newDenial(b.Deny[i]), true
	}
	if b.Ignored != nil {
		for _, real := range []string{place, at.real()} {
			if by, ok := b.ignoreFileFor(real); ok {
				return finding{policy.Deny, fmt.Sprintf("hidden by %s: %s", by, place), by, true}, true
			}
		}
	}
	if b.HasDenials(class) {
		if real := at.real(); real != "" {
			if rule, denied := b.denyingRule(class, real); denied {
				return finding{policy.Deny, patternReason(real, place, policy.Deny), rule, true}, true
			}
		}
	}
	f, ok = b.judgeByPattern(tools, name, place)
	if secrecy, secret := b.judgeSecret(at); !ok && secret && !p.Unchecked {
		f, ok = secrecy, true
		if slices.ContainsFunc(b.Allow, lets) {
			f.verdict = policy.Allow
		}
	}
	if f.verdict == policy.Ask && b.isFileGranted(class, place) {
		f.verdict = policy.Allow
	}
	return f, ok
}

// ignoreFileFor returns the ignore file that hides a place in the workspace.
func (b *Book) ignoreFileFor(place string) (by string, ok bool) {
	if b.Ignored == nil || place == "" || filepath.IsAbs(place) {
		return "", false
	}
	return b.Ignored(place)
}

// judgeSecret asks about a file that commands do not see unless
// they name it, because of its own path or its link target.
func (b *Book) judgeSecret(at *rulePath) (f finding, ok bool) {
	for _, place := range []string{at.place, at.real()} {
		switch {
		case place == "":
		case secret.IsSecretFile(place):
			return finding{verdict: policy.Ask, text: "the file usually contains secrets: " + at.place,
				rule: "secret files"}, true
		case b.isDotfile(place):
			return finding{verdict: policy.Ask, text: "dotfiles in the home folder may contain secrets: " + at.place,
				rule: "secret files"}, true
		}
	}
	return finding{}, false
}

// isDotfile reports whether a place is in a dotfile of the home
// that is hidden from commands without the user's approval.
func (b *Book) isDotfile(place string) bool {
	if b.Home == "" || !filepath.IsAbs(place) {
		return false
	}
	inside := func(dir string) bool {
		rel, err := filepath.Rel(dir, place)
		return err == nil && filepath.IsLocal(rel)
	}
	rel, err := filepath.Rel(b.Home, place)
	return err == nil && secret.IsHiddenDotfile(filepath.ToSlash(rel)) && !slices.ContainsFunc(b.Visible, inside)
}

// judgeByPattern returns the strictest of the user's rules about one
// file: for each tool, the longest matching rule counts.
func (b *Book) judgeByPattern(tools []string, name, place string) (f finding, ok bool) {
	if !slices.Contains(tools, name) {
		tools = append(slices.Clip(tools), name)
	}
	for _, t := range tools {
		best := longestPattern(b.UserRules[t], func(pattern string) bool { return b.covers(pattern, place) })
		if v, given := b.UserRules[t][best]; given && (!ok || v < f.verdict) {
			f, ok = finding{verdict: v, text: patternReason(best, place, v),
				rule: fmt.Sprintf("permission.%s[%q] = %s", t, best, v)}, true
		}
	}
	return f, ok
}

func patternReason(pattern, place string, v policy.Verdict) string {
	if v == policy.Deny {
		return fmt.Sprintf("a rule about %s does not allow it: %s", pattern, place)
	}
	return fmt.Sprintf("a rule about %s requires approval: %s", pattern, place)
}

// judgeAddress judges a use of the network.
func (b *Book) judgeAddress(p Preset, name, target string) finding {
	about := func(on string) bool { return matchesHost(on, target) }
	if s, ok := b.runDenial(name, ClassFetch, about); ok {
		return newDenial(s)
	}
	if best := longestPattern(b.UserRules[ClassFetch], about); best != "" {
		v := b.UserRules[ClassFetch][best]
		if p.OnlyStricter && p.Verdicts[ClassFetch] == policy.Deny {
			v = policy.Deny
		}
		return finding{v, reasonText(ClassFetch, v), fmt.Sprintf("permission.fetch[%q] = %s", best, v), false}
	}
	f := b.judgeAnyUse(p, name, ClassFetch)
	if f.verdict != policy.Ask {
		return f
	}
	host := HostOf(target)
	if b.isAllowedByRun(name, ClassFetch, about) || host != "" &&
		(b.isGranted(KindFetch, host) || b.IsNamed != nil && b.IsNamed(host) || b.IsTyped != nil && b.IsTyped(host) &&
			!b.ExceedsLimits(target)) {
		f.verdict = policy.Allow
	}
	return f
}

// AllowsFetch reports whether fetching from an address needs no approval.
func (b *Book) AllowsFetch(p Preset, address string) bool {
	return b.judgeAddress(p, ClassFetch, address).verdict == policy.Allow
}

// Preset decides where the user's own rules are silent, and how far those rules apply.
type Preset struct {
	Name string
	// Verdicts by class: read, write, bash, fetch, note, default.
	Verdicts map[string]policy.Verdict
	// OnlyStricter is set if rules can only make the preset stricter.
	OnlyStricter bool
	// Lifts are the classes for which the preset's verdict applies
	// even if the user's rules for any use of the class would ask.
	Lifts []string
	// AllowReaders is set if read-only commands run without approval.
	AllowReaders bool
	// AlwaysAsk is set if every other command needs approval each time, whatever was allowed or remembered.
	AlwaysAsk bool
	// Unchecked is set if only the rules of the run apply to commands.
	Unchecked bool
}

var presets = map[string]Preset{
	"strict": {Verdicts: newVerdicts(policy.Deny, policy.Allow, policy.Deny, policy.Deny, policy.Deny),
		OnlyStricter: true},
	"balanced": {Verdicts: newVerdicts(policy.Ask, policy.Allow, policy.Ask, policy.Ask, policy.Ask), AllowReaders: true},
	"build":    {Verdicts: newVerdicts(policy.Ask, policy.Allow, policy.Ask, policy.Ask, policy.Ask), AllowReaders: true},
	"plan": {
		Verdicts:     newVerdicts(policy.Ask, policy.Allow, policy.Deny, policy.Ask, policy.Ask),
		OnlyStricter: true, AllowReaders: true, AlwaysAsk: true,
	},
	"auto-edit": {
		Verdicts: newVerdicts(policy.Ask, policy.Allow, policy.Allow, policy.Ask, policy.Ask),
		Lifts:    []string{ClassWrite}, AllowReaders: true,
	},
	"yolo": {
		Verdicts: newVerdicts(policy.Allow, policy.Allow, policy.Allow, policy.Allow, policy.Allow),
		Lifts:    []string{"default", ClassRead, ClassWrite, ClassCommand, ClassFetch, "note"}, AllowReaders: true,
		Unchecked: true,
	},
}

func newVerdicts(other, read, write, bash, fetch policy.Verdict) map[string]policy.Verdict {
	return map[string]policy.Verdict{
		"default": other, ClassRead: read, ClassWrite: write, ClassCommand: bash, ClassFetch: fetch, "note": policy.Allow,
	}
}

// LookupPreset returns the preset with a name.
func LookupPreset(name string) (Preset, bool) {
	p, ok := presets[name]
	p.Name = name
	p.Verdicts = maps.Clone(p.Verdicts)
	return p, ok
}
