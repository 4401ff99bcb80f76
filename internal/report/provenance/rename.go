package provenance

import (
	"path"
	"slices"

	"coder/internal/host/patch"
)

// followRename continues with the file's earlier name before a rename by somebody else: a file that no longer
// exists and had the same content, or at least half of it.
func (t *tracer) followRename(all []*Change) {
	looked, best := make(map[string]bool), ""
	for _, c := range slices.Backward(all) {
		for _, f := range c.Files {
			name := f.After.Path
			if looked[name] {
				continue
			}
			looked[name] = true
			switch {
			case !hasContent(f.After) || !t.isGone(name):
			case f.After.Hash == t.hash:
				t.setName(name)
				return
			case best == "" && path.Ext(name) == path.Ext(t.name):
				if text, err := t.contentAfter(c, f); err == nil && t.isSimilar(text) {
					best = name
				}
			}
		}
	}
	if best != "" {
		t.setName(best)
	}
}

// EarlierNames returns these names of a file and its earlier names, as far as calls renamed it.
func EarlierNames(names []string, all []*Change) []string {
	names = slices.Clone(names)
	for _, c := range slices.Backward(all) {
		for _, f := range c.Files {
			if !slices.Contains(names, f.After.Path) {
				continue
			}
			for _, from := range c.sourceFiles(f) {
				if !slices.Contains(names, from.Before.Path) {
					names = append(names, from.Before.Path)
				}
			}
		}
	}
	return names
}

// isSimilar reports whether text has at least half of the file's lines.
func (t *tracer) isSimilar(text []byte) bool {
	n, earlier := 0, splitLines(text)
	match := patch.MatchLines(earlier, t.text)
	followMoves(earlier, t.text, findUnmatched(len(earlier), match), match)
	for _, at := range match {
		if at >= 0 {
			n++
		}
	}
	return n > 0 && 2*n >= len(t.text)
}
