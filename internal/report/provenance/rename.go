package provenance

import (
	"path"
	"slices"

	"coder/internal/host/patch"
)

// rename goes on with the file that this one was before somebody gave it another
// name: one that is no longer there and held the same, or at least half of it.
func (t *tracer) rename(all []*Change) {
	looked, best := make(map[string]bool), ""
	for _, c := range slices.Backward(all) {
		for _, f := range c.Files {
			name := f.After.Path
			if looked[name] {
				continue
			}
			looked[name] = true
			switch {
			case !holds(f.After) || !t.gone(name):
			case f.After.Hash == t.hash:
				t.called(name)
				return
			case best == "" && path.Ext(name) == path.Ext(t.name):
				if text, err := t.outcome(c, f); err == nil && t.resembles(text) {
					best = name
				}
			}
		}
	}
	if best != "" {
		t.called(best)
	}
}

// Names are these names of a file and those that it had before, as far as calls
// gave it others.
func Names(names []string, all []*Change) []string {
	names = slices.Clone(names)
	for _, c := range slices.Backward(all) {
		for _, f := range c.Files {
			if !slices.Contains(names, f.After.Path) {
				continue
			}
			for _, from := range c.sources(f) {
				if !slices.Contains(names, from.Before.Path) {
					names = append(names, from.Before.Path)
				}
			}
		}
	}
	return names
}

// resembles reports whether at least half of the file is what text holds.
func (t *tracer) resembles(text []byte) bool {
	n, earlier := 0, linesOf(text)
	match := patch.Match(earlier, t.text)
	followMoves(earlier, t.text, vanished(len(earlier), match), match)
	for _, at := range match {
		if at >= 0 {
			n++
		}
	}
	return n > 0 && 2*n >= len(t.text)
}
