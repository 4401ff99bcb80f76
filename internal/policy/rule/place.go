package rule

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"coder/internal/policy"
	"coder/internal/tool"

	"github.com/bmatcuk/doublestar/v4"
)

// place returns a file as rules see it: relative to the workspace if inside, absolute elsewhere.
func (b *Book) place(file string) string {
	file = strings.TrimPrefix(file, "file://")
	if rest, ok := strings.CutPrefix(file, "~/"); ok && b.Home != "" {
		file = filepath.Join(b.Home, rest)
	}
	if !filepath.IsAbs(file) {
		return path.Clean(filepath.ToSlash(file))
	}
	if rel, err := filepath.Rel(b.Root, file); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return filepath.ToSlash(rel)
	}
	return path.Clean(filepath.ToSlash(file))
}

// rulePath is a file as rules see it, and its link target, which is resolved
// only once: resolving asks the system about every folder on the way.
type rulePath struct {
	place string
	real  func() string // the link target; empty if it is the same
}

func (b *Book) newRulePath(file string) *rulePath {
	place := b.place(file)
	return &rulePath{place, sync.OnceValue(func() string {
		if real := b.realPath(place); real != "" {
			return b.place(real)
		}
		return ""
	})}
}

// covers reports whether a pattern covers a file: by its name alone if the pattern has no slash, else
// by its whole path. A pattern for a folder covers everything in it.
func (b *Book) covers(pattern, place string) bool {
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok && b.Home != "" {
		pattern = b.place(filepath.Join(b.Home, rest))
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if folder, ok := strings.CutSuffix(pattern, "/"); ok {
		pattern = folder + "/**"
	}
	switch {
	case !strings.Contains(pattern, "/"):
		return matchFold(pattern, path.Base(place))
	case path.IsAbs(pattern) && !path.IsAbs(place):
		place = path.Join(b.Root, place)
	}
	if !path.IsAbs(pattern) && path.IsAbs(place) {
		pattern = "**/" + pattern
	}
	return matchFold(pattern, place)
}

// matchFold matches regardless of case: on some file systems .ENV is .env.
func matchFold(pattern, name string) bool {
	ok, err := doublestar.Match(strings.ToLower(pattern), strings.ToLower(name))
	return err == nil && ok
}

// IsFrozen reports whether a file is unwritable for all. For a folder it reports whether everything in it is.
func (b *Book) IsFrozen(file string, dir bool) bool {
	place := b.place(file)
	_, frozen := b.freezingPattern(place, dir)
	if !frozen && dir {
		_, frozen = b.folderDenyingRule(place)
	}
	if !frozen && !dir {
		_, frozen = b.denyingRule(ClassWrite, place)
	}
	return frozen
}

// freezingPattern returns the pattern that freezes a place.
func (b *Book) freezingPattern(place string, dir bool) (pattern string, ok bool) {
	i := slices.IndexFunc(b.Frozen, func(pattern string) bool {
		if !dir {
			return b.covers(pattern, place)
		}
		whole := strings.TrimSuffix(strings.TrimSuffix(pattern, "/"), "/**")
		return b.covers(whole, place) && (whole != pattern || !strings.ContainsAny(pattern, "*?["))
	})
	if i >= 0 {
		return b.Frozen[i], true
	}
	if up := path.Dir(place); up != place && up != "." && up != "/" {
		return b.freezingPattern(up, true)
	}
	return "", false
}

// judgeFrozen returns the objection to a call that writes something
// frozen. It applies in every mode and cannot be waived.
func (b *Book) judgeFrozen(c policy.Case, e tool.Effect) (finding, bool) {
	deny := func(text string) (finding, bool) {
		return finding{verdict: policy.Deny, text: text, rule: "permission.frozen", notWaivable: true}, true
	}
	if len(b.Frozen) == 0 && (e.Kind != tool.Exec || !b.HasDenials(ClassWrite)) {
		return finding{}, false
	}
	switch e.Kind {
	case tool.Write:
		if pattern, ok := b.freezingPattern(b.place(e.Target), false); ok {
			return deny("frozen by " + pattern + ": " + b.place(e.Target))
		}
	case tool.Exec:
		r := b.analyse(c.Plan, e.Target)
		for _, w := range r.Writes {
			if pattern, ok := b.freezingPattern(b.place(w), false); ok {
				return deny("frozen by " + pattern + ": " + b.place(w))
			}
		}
		switch {
		case r.ReadOnly:
		case c.Plan.Unconfined:
			return deny("a command outside the sandbox could write frozen or denied files")
		case b.EnforcesFrozen != nil && !b.EnforcesFrozen():
			return deny("nothing here stops a command from writing frozen or denied files, so only commands known to be read-only run")
		}
	case tool.Read, tool.Net, tool.Note, tool.Unknown:
	}
	return finding{}, false
}
