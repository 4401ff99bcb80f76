package rule

import (
	"path"
	"slices"
	"strings"

	"coder/internal/policy"
	"coder/internal/tool"
)

// IsFrozen reports whether a file may not be written by anybody here. Of a
// folder it says whether nothing in it may be.
func (b *Book) IsFrozen(file string, dir bool) bool {
	_, frozen := b.freezes(b.place(file), dir)
	return frozen
}

// freezes finds the pattern that freezes a place.
func (b *Book) freezes(place string, dir bool) (pattern string, ok bool) {
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
		return b.freezes(up, true)
	}
	return "", false
}

// frozen is what is said against a call because of what is frozen. It holds in
// every mode, and nobody can waive it.
func (b *Book) frozen(c policy.Case, e tool.Effect) (finding, bool) {
	deny := func(text string) (finding, bool) {
		return finding{verdict: policy.Deny, text: text, rule: "permission.frozen", once: true}, true
	}
	if len(b.Frozen) == 0 {
		return finding{}, false
	}
	switch e.Kind {
	case tool.Write:
		if pattern, ok := b.freezes(b.place(e.Target), false); ok {
			return deny("frozen by " + pattern + ": " + b.place(e.Target))
		}
	case tool.Exec:
		r := b.read(c.Plan, e.Target)
		for _, w := range r.Writes {
			if pattern, ok := b.freezes(b.place(w), false); ok {
				return deny("frozen by " + pattern + ": " + b.place(w))
			}
		}
		switch {
		case r.ReadOnly:
		case c.Plan.Unconfined:
			return deny("a command outside the sandbox could write what is frozen")
		case b.Freezes != nil && !b.Freezes():
			return deny("nothing here keeps a command from writing what is frozen, so only those run that are known to only read")
		}
	case tool.Read, tool.Net, tool.Note, tool.Unknown:
	}
	return finding{}, false
}
