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
	// Given are the user's own rules: by tool or class (read, write,
	// bash, fetch, note, default), then by pattern; "*" is any use.
	Given map[string]risk.Patterns
	// Lines are the command patterns that the user's own settings allow, not a project's.
	Lines []string
	// Allow and Deny are the rules of one run. Allow allows only what the preset alone would ask about.
	Allow, Deny []Spec
	// Always has the user's grants for this project, Session those for this session.
	Always, Session *Always
	// Exact is set if whole command lines are remembered, not shapes.
	Exact bool
	// Named, which may be nil, reports whether the user's settings name a host,
	// Typed whether the user typed it. Exceeds reports whether an address exceeds
	// the bounds for typed hosts, Whence describes where a host came from.
	Named, Typed func(host string) bool
	Exceeds      func(address string) bool
	Whence       func(host string) string

	Root, Home string // absolute
	// Visible are folders of the home, absolute, that commands see although
	// their names begin with a dot: tool chains and the workspace.
	Visible []string
	// Analyse returns what a command line would do, for plans without a report.
	Analyse func(command string) risk.Report
	// Frozen are patterns of files that are never writable.
	Frozen []string
	// Freezes, which may be nil, reports whether commands are kept from writing frozen files, and Hidden
	// whether secret files that a command does not name are hidden from it.
	Freezes, Hidden func() bool
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
	// Below, which may be nil, yields the files below a folder, or only the first ones if there are very many.
	Below func(dir string) iter.Seq[string]
}

// In returns the book's policy under a preset.
func (b *Book) In(p Preset) policy.Policy {
	return policy.Func(func(_ context.Context, c policy.Case) (policy.Opinion, error) {
		o := policy.Opinion{Verdict: policy.Allow}
		effects := c.Plan.Effects
		if len(effects) == 0 {
			effects = []tool.Effect{{}}
		}
		for _, e := range effects {
			for _, f := range b.judge(p, c, e) {
				f.addTo(&o)
			}
			if f, ok := b.frozen(c, e); ok {
				f.addTo(&o)
			}
		}
		return o, nil
	})
}

// finding is one rule's verdict on one effect.
type finding struct {
	verdict policy.Verdict
	text    string
	rule    string
	once    bool // it cannot be waived for good
}

func (f finding) addTo(o *policy.Opinion) {
	o.Verdict = min(o.Verdict, f.verdict)
	if f.verdict == policy.Allow {
		return
	}
	r := policy.Reason{By: "rule", Text: f.text, Lasting: !f.once, Rule: f.rule}
	if !slices.Contains(o.Reasons, r) {
		o.Reasons = append(o.Reasons, r)
	}
}

// These are the class names in rules about what a call does, for any tool.
const (
	Reads    = "read"
	Writes   = "write"
	Commands = "bash"
	Fetches  = "fetch"
)

var classes = map[tool.Kind]string{
	tool.Read: Reads, tool.Write: Writes, tool.Exec: Commands, tool.Net: Fetches, tool.Note: "note",
}

func (b *Book) judge(p Preset, c policy.Case, e tool.Effect) []finding {
	name := c.Tool
	class, known := classes[e.Kind]
	if !known {
		class = "default"
	}
	switch e.Kind {
	case tool.Exec:
		r := b.read(c.Plan, e.Target)
		if s, ok := objects(b.Deny, name, r); ok { // for this run, so it applies in every mode
			return []finding{denied(s)}
		}
		if p.Unchecked {
			return b.unchecked(p, r)
		}
		fs := append([]finding{b.line(p, name, r)}, b.named(p, r)...)
		if p.Wary { // other commands need approval there anyway
			return fs
		}
		for _, file := range r.Redirects { // a redirection counts like a write by any other tool
			fs = append(fs, b.file(p, Writes, Writes, b.spot(file)))
		}
		return fs
	case tool.Read, tool.Write:
		at := b.spot(e.Target)
		if f, ok := b.records(name, class, at); ok {
			return []finding{f}
		}
		return []finding{b.file(p, name, class, at)}
	case tool.Net:
		f := b.address(p, name, e.Target)
		if host := HostOf(e.Target); f.verdict == policy.Ask && host != "" && c.Call.Name != "" && b.Whence != nil {
			return []finding{f, {verdict: policy.Ask, text: b.Whence(host), rule: f.rule}}
		}
		return []finding{f}
	case tool.Note, tool.Unknown:
	}
	about := func(on string) bool { return e.Kind == tool.Note && matchFold(on, e.Target) }
	if s, ok := b.forbids(name, class, about); ok {
		return []finding{denied(s)}
	}
	f := b.noted(p, name, class, about)
	// Under a rule that says "ask", skills still load without approval: they do nothing by themselves, and
	// a question before each would only teach users to say yes.
	if f.verdict == policy.Ask && (tool.ClassOf(name) == tool.LoadsSkill || b.lets(name, class, about) || b.useGranted(name, c.Plan.Version)) {
		f.verdict = policy.Allow
	}
	if f.verdict == policy.Ask && b.wasGranted(name) {
		return []finding{f, {verdict: policy.Ask, text: "its description or its server has changed since you allowed it", rule: f.rule}}
	}
	return []finding{f}
}

// noted returns the verdict on a use of coder's own memory: from the
// longest matching rule for the tool, else from the rules for any use.
func (b *Book) noted(p Preset, name, class string, about func(on string) bool) finding {
	wide, best := b.wide(p, name, class), longest(b.Given[name], about)
	if best == "" {
		return wide
	}
	v := b.Given[name][best]
	if p.Floor {
		v = min(v, wide.verdict)
	}
	return finding{verdict: v, text: words(name, v), rule: fmt.Sprintf("permission.%s[%q] = %s", name, best, v)}
}

// longest returns the longest pattern that covers a use, except for "*".
func longest(patterns risk.Patterns, covers func(pattern string) bool) (best string) {
	for pattern := range patterns {
		if pattern != "*" && len(pattern) > len(best) && covers(pattern) {
			best = pattern
		}
	}
	return best
}

// denied is the verdict of a rule of this run, and says where the rule comes from.
func denied(s Spec) finding {
	if s.From != "" {
		return finding{policy.Deny, fmt.Sprintf("%s is not allowed by managed settings", s), fmt.Sprintf("managed.deny = %s in %s", s, s.From), true}
	}
	return finding{policy.Deny, fmt.Sprintf("%s is not allowed in this run", s), "--disallowed-tools " + s.String(), true}
}

// forbids returns the rule of this run that denies a use for which matches is true.
func (b *Book) forbids(name, class string, matches func(on string) bool) (Spec, bool) {
	i := slices.IndexFunc(b.Deny, func(s Spec) bool { return s.names(name, class) && (s.On == "" || matches(s.On)) })
	if i < 0 {
		return Spec{}, false
	}
	return b.Deny[i], true
}

// lets reports whether a rule of this run allows a use for which matches is true.
func (b *Book) lets(name, class string, matches func(on string) bool) bool {
	return slices.ContainsFunc(b.Allow, func(s Spec) bool { return s.names(name, class) && (s.On == "" || matches(s.On)) })
}

// wide returns the verdict on any use of a tool: from the preset, or from a rule for the tool or its class.
func (b *Book) wide(p Preset, name, class string) finding {
	v, key, given := p.Verdicts[class], class, false
	rule := "preset " + p.Name
	for _, k := range []string{b.givenName(name), class} {
		if own, ok := b.Given[k]["*"]; ok {
			v, key, given = merge(p, class, own), k, true
			rule = fmt.Sprintf("permission.%s = %s", k, own)
			break
		}
	}
	if own, ok := b.Given["default"]["*"]; ok && !given && (class == "default" || class == Fetches) {
		v, key = merge(p, class, own), "default"
		rule = fmt.Sprintf("permission.default = %s", own)
	}
	return finding{verdict: v, text: words(key, v), rule: rule}
}

// givenName returns the name of a tool in the user's rules:
// its own or, for an MCP tool, the longest that covers it.
func (b *Book) givenName(name string) string {
	if b.Given[name] != nil || !strings.HasPrefix(name, "mcp__") {
		return name
	}
	best := name
	for written := range b.Given {
		if strings.HasPrefix(written, "mcp__") && nameCovers(written, name) && (best == name || len(written) > len(best) || len(written) == len(best) && written < best) {
			best = written
		}
	}
	return best
}

// merge combines a user's rule for any use of a class with the preset.
func merge(p Preset, class string, own policy.Verdict) policy.Verdict {
	base := p.Verdicts[class]
	switch {
	case p.Floor && !(class == Fetches && base == policy.Ask):
		return min(base, own)
	case own == policy.Ask && slices.Contains(p.Lifts, class):
		return base
	}
	return own
}

func words(key string, v policy.Verdict) string {
	if v == policy.Deny {
		return key + " policy does not allow it"
	}
	return key + " policy requires approval"
}

// readTools and writeTools are the tool names in rules about files.
var (
	readTools  = tool.Names(tool.ReadsFile, tool.ListsFolder, tool.FindsFiles, tool.SearchesText, tool.SearchesCode)
	writeTools = tool.Names(tool.EditsFile, tool.PatchesFiles, tool.EditsNotebook)
)

// file judges a use of one file: by the rules about that file, else by those for any use of the tool.
func (b *Book) file(p Preset, name, class string, at *spot) finding {
	about := func(on string) bool { return b.covers(on, at.place) }
	if s, ok := b.forbids(name, class, about); ok {
		return denied(s)
	}
	wide := b.wide(p, name, class)
	if f, ok := b.about(p, name, class, at); ok {
		if p.Floor && wide.verdict < f.verdict {
			return wide
		}
		return f
	}
	if wide.verdict == policy.Ask && (b.lets(name, class, about) || b.fileGranted(class, at.place)) {
		wide.verdict = policy.Allow
	}
	return wide
}

// Hides reports whether searches that do not name a file
// skip its content: a rule about the file asks or denies.
func (b *Book) Hides(p Preset, file string) bool {
	at := b.spot(file)
	f, ok := b.about(p, "", Reads, at)
	return ok && f.verdict != policy.Allow || at.inRecords() && !b.inOwnLogs(at)
}

// about returns the verdict of the rules about one file, if there are any. A
// file that may not be read may not be edited either; a readable file is not
// automatically editable, and a rule about a folder allows no secret in it.
func (b *Book) about(p Preset, name, class string, at *spot) (f finding, ok bool) {
	place := at.place
	tools, own := readTools, readTools
	if class == Writes {
		tools, own = slices.Concat(writeTools, readTools), writeTools
	}
	covers := func(s Spec, tools []string) bool {
		return s.On != "" && b.covers(s.On, place) && (strings.EqualFold(s.Tool, name) || slices.Contains(tools, strings.ToLower(s.Tool)))
	}
	lets := func(s Spec) bool {
		return covers(s, own) && (class != Writes || !strings.HasSuffix(strings.TrimSuffix(s.On, "**"), "/"))
	}
	if i := slices.IndexFunc(b.Deny, func(s Spec) bool { return covers(s, tools) }); i >= 0 {
		return denied(b.Deny[i]), true
	}
	if b.Ignored != nil {
		for _, real := range []string{place, at.real()} {
			if by, ok := b.ignored(real); ok {
				return finding{policy.Deny, fmt.Sprintf("hidden by %s: %s", by, place), by, true}, true
			}
		}
	}
	if b.HasDenials(class) {
		if real := at.real(); real != "" {
			if rule, denied := b.denied(class, real); denied {
				return finding{policy.Deny, wordsAbout(real, place, policy.Deny), rule, true}, true
			}
		}
	}
	f, ok = b.pattern(tools, name, place)
	if secrecy, secret := b.secrecy(at); !ok && secret && !p.Unchecked {
		f, ok = secrecy, true
		if slices.ContainsFunc(b.Allow, lets) {
			f.verdict = policy.Allow
		}
	}
	if f.verdict == policy.Ask && b.fileGranted(class, place) {
		f.verdict = policy.Allow
	}
	return f, ok
}

// ignored returns the ignore file that hides a place in the workspace.
func (b *Book) ignored(place string) (by string, ok bool) {
	if b.Ignored == nil || place == "" || filepath.IsAbs(place) {
		return "", false
	}
	return b.Ignored(place)
}

// secrecy asks about a file that commands do not see unless
// they name it, because of its own path or its link target.
func (b *Book) secrecy(at *spot) (f finding, ok bool) {
	for _, place := range []string{at.place, at.real()} {
		switch {
		case place == "":
		case secret.Is(place):
			return finding{verdict: policy.Ask, text: "the file usually holds secrets: " + at.place, rule: "secret files"}, true
		case b.isDotfile(place):
			return finding{verdict: policy.Ask, text: "dotfiles in the home folder may hold secrets: " + at.place, rule: "secret files"}, true
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
	return err == nil && secret.Dotfile(filepath.ToSlash(rel)) && !slices.ContainsFunc(b.Visible, inside)
}

// pattern returns the strictest of the user's rules about one
// file: for each tool, the longest matching rule counts.
func (b *Book) pattern(tools []string, name, place string) (f finding, ok bool) {
	if !slices.Contains(tools, name) {
		tools = append(slices.Clip(tools), name)
	}
	for _, t := range tools {
		best := longest(b.Given[t], func(pattern string) bool { return b.covers(pattern, place) })
		if v, given := b.Given[t][best]; given && (!ok || v < f.verdict) {
			f, ok = finding{verdict: v, text: wordsAbout(best, place, v), rule: fmt.Sprintf("permission.%s[%q] = %s", t, best, v)}, true
		}
	}
	return f, ok
}

func wordsAbout(pattern, place string, v policy.Verdict) string {
	if v == policy.Deny {
		return fmt.Sprintf("a rule about %s does not allow it: %s", pattern, place)
	}
	return fmt.Sprintf("a rule about %s requires approval: %s", pattern, place)
}

// address judges a use of the network.
func (b *Book) address(p Preset, name, target string) finding {
	about := func(on string) bool { return onHost(on, target) }
	if s, ok := b.forbids(name, Fetches, about); ok {
		return denied(s)
	}
	if best := longest(b.Given[Fetches], about); best != "" {
		v := b.Given[Fetches][best]
		if p.Floor && p.Verdicts[Fetches] == policy.Deny {
			v = policy.Deny
		}
		return finding{v, words(Fetches, v), fmt.Sprintf("permission.fetch[%q] = %s", best, v), false}
	}
	f := b.wide(p, name, Fetches)
	if f.verdict != policy.Ask {
		return f
	}
	host := HostOf(target)
	if b.lets(name, Fetches, about) || host != "" && (b.granted(Host, host) || b.Named != nil && b.Named(host) || b.Typed != nil && b.Typed(host) && !b.Exceeds(target)) {
		f.verdict = policy.Allow
	}
	return f
}

// Reaches reports whether fetching from an address needs no approval.
func (b *Book) Reaches(p Preset, address string) bool {
	return b.address(p, Fetches, address).verdict == policy.Allow
}

// Preset decides where the user's own rules are silent, and how far those rules apply.
type Preset struct {
	Name string
	// Verdicts by class: read, write, bash, fetch, note, default.
	Verdicts map[string]policy.Verdict
	// Floor is set if rules can only make the preset stricter.
	Floor bool
	// Lifts are the classes for which the preset's verdict applies
	// even if the user's rules for any use of the class would ask.
	Lifts []string
	// Readers is set if read-only commands run without approval.
	Readers bool
	// Wary is set if every other command needs approval each time, whatever was allowed or remembered.
	Wary bool
	// Unchecked is set if only the rules of the run apply to commands.
	Unchecked bool
}

var presets = map[string]Preset{
	"strict":   {Verdicts: verdicts(policy.Deny, policy.Allow, policy.Deny, policy.Deny, policy.Deny), Floor: true},
	"balanced": {Verdicts: verdicts(policy.Ask, policy.Allow, policy.Ask, policy.Ask, policy.Ask), Readers: true},
	"build":    {Verdicts: verdicts(policy.Ask, policy.Allow, policy.Ask, policy.Ask, policy.Ask), Readers: true},
	"plan": {
		Verdicts: verdicts(policy.Ask, policy.Allow, policy.Deny, policy.Ask, policy.Ask),
		Floor:    true, Readers: true, Wary: true,
	},
	"auto-edit": {
		Verdicts: verdicts(policy.Ask, policy.Allow, policy.Allow, policy.Ask, policy.Ask),
		Lifts:    []string{Writes}, Readers: true,
	},
	"yolo": {
		Verdicts: verdicts(policy.Allow, policy.Allow, policy.Allow, policy.Allow, policy.Allow),
		Lifts:    []string{"default", Reads, Writes, Commands, Fetches, "note"}, Readers: true, Unchecked: true,
	},
}

func verdicts(other, read, write, bash, fetch policy.Verdict) map[string]policy.Verdict {
	return map[string]policy.Verdict{
		"default": other, Reads: read, Writes: write, Commands: bash, Fetches: fetch, "note": policy.Allow,
	}
}

// PresetNamed returns the preset with a name.
func PresetNamed(name string) (Preset, bool) {
	p, ok := presets[name]
	p.Name = name
	p.Verdicts = maps.Clone(p.Verdicts)
	return p, ok
}
