package rule

import (
	"path"
	"slices"
	"strings"

	"coder/internal/policy"
	"coder/internal/policy/risk"
)

// IsDenied reports whether a rule denies every use of a file in a class, read or write. Commands are then
// kept from that file, too, in every mode.
func (b *Book) IsDenied(class, file string) bool {
	if !b.HasDenials(class) {
		return false
	}
	place := b.place(file)
	_, denied := b.denyingRule(class, place)
	if real := b.realPath(place); !denied && real != "" {
		_, denied = b.denyingRule(class, b.place(real))
	}
	return denied
}

// toolsOf returns the names for rules about a class of use.
func toolsOf(class string) []string {
	if class == ClassWrite {
		return writeTools
	}
	return readTools
}

// denyingRule returns the rule that denies a use of one file.
func (b *Book) denyingRule(class, place string) (rule string, ok bool) {
	if by, ok := b.ignoreFileFor(place); ok && class == ClassRead {
		return by, true
	}
	for d := range b.denials(class) {
		if b.covers(d.pattern, place) && !d.hasException(func(pattern string) bool { return b.covers(pattern, place) }) {
			return d.rule, true
		}
	}
	return "", false
}

// folderDenyingRule returns the rule that denies all writes in a folder, including files created later.
func (b *Book) folderDenyingRule(place string) (rule string, ok bool) {
	for d := range b.denials(ClassWrite) {
		folder, whole := d.folder()
		inside := func(pattern string) bool {
			return !strings.Contains(pattern, "/") || strings.ContainsAny(path.Dir(pattern), "*?[{~") ||
				strings.HasPrefix(pattern, folder+"/")
		}
		if whole && b.covers(folder, place) && !d.hasException(inside) {
			return d.rule, true
		}
	}
	return "", false
}

// denial is a rule that denies a use of files.
type denial struct {
	pattern, rule string
	others        risk.Patterns // other rules for the same tool
}

// hasException reports whether a more specific rule, for which matches is true, allows what d denies.
func (d denial) hasException(matches func(pattern string) bool) bool {
	for pattern, v := range d.others {
		if v != policy.Deny && len(pattern) > len(d.pattern) && matches(pattern) {
			return true
		}
	}
	return false
}

// folder returns the folder that the rule covers, and whether it covers all of it.
func (d denial) folder() (folder string, whole bool) {
	folder = strings.TrimSuffix(strings.TrimSuffix(d.pattern, "/"), "/**")
	return folder, folder != d.pattern && folder != "" && folder != "**"
}

// denials yields the rules of the user and of the run that deny a class of use of files.
func (b *Book) denials(class string) func(yield func(denial) bool) {
	return func(yield func(denial) bool) {
		for _, s := range b.Deny {
			d := denial{pattern: s.On, rule: newDenial(s).rule}
			if s.On != "" && slices.Contains(toolsOf(class), strings.ToLower(s.Tool)) && !yield(d) {
				return
			}
		}
		for _, t := range toolsOf(class) {
			for pattern, v := range b.UserRules[t] {
				d := denial{pattern, `permission.` + t + `["` + pattern + `"] = deny`, b.UserRules[t]}
				if pattern != "*" && v == policy.Deny && !yield(d) {
					return
				}
			}
		}
	}
}

// HasDenials reports whether any rule denies a class of use of files.
func (b *Book) HasDenials(class string) bool {
	for range b.denials(class) {
		return true
	}
	return b.Ignored != nil && class == ClassRead
}

// DeniedPaths returns the files and folders whose use in a class rules deny by name alone. Workspace
// paths are relative, and folders end in a slash. shown are exceptions inside that other rules allow.
func (b *Book) DeniedPaths(class string) (denied, shown []string) {
	plain := func(pattern string) (string, bool) {
		folder, whole := denial{pattern: pattern}.folder()
		if rest, ok := strings.CutPrefix(folder, "~/"); ok && b.Home != "" {
			folder = path.Join(b.Home, rest)
		}
		return b.place(folder), (whole || strings.Contains(folder, "/")) && !strings.ContainsAny(folder, "*?[{~")
	}
	for d := range b.denials(class) {
		if at, ok := plain(d.pattern); ok {
			if _, whole := d.folder(); whole {
				at += "/"
			}
			denied = append(denied, at)
		}
		for pattern, v := range d.others {
			at, ok := plain(pattern)
			if ok && v == policy.Allow && len(pattern) > len(d.pattern) && !slices.Contains(shown, at) {
				shown = append(shown, at)
			}
		}
	}
	return denied, shown
}

// judgeUnchecked returns what applies to a command in a mode without command checks: rules about files still do.
func (b *Book) judgeUnchecked(p Preset, r risk.Report) (fs []finding) {
	if !b.HasDenials(ClassRead) && !b.HasDenials(ClassWrite) {
		return nil
	}
	for _, f := range b.judgeNamed(p, r) {
		if f.verdict == policy.Deny {
			fs = append(fs, f)
		}
	}
	vague := func(c risk.Command) bool { return !c.Exact || c.AddsArgs }
	hidden := b.HidesSecrets == nil || b.HidesSecrets() && (r.ReadOnly || b.EnforcesFrozen == nil || b.EnforcesFrozen())
	if b.HasDenials(ClassRead) && !hidden && (!r.ReadOnly || slices.ContainsFunc(r.Simple, vague)) {
		text := "a rule denies reading some files, and nothing here hides them from the command"
		fs = append(fs, finding{policy.Ask, text, "permission.read", true})
	}
	return fs
}
