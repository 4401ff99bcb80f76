package provenance

import (
	"path"
	"slices"

	"coder/internal/host/patch"
)

// rename continues with the file's earlier name before a rename by somebody else: a file that no longer
// exists and had the same content, or at least half of it.
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

// Names returns these names of a file and its earlier names, as far as calls renamed it.
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

// resembles reports whether text has at least half of the file's lines.
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
