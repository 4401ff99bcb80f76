package program

import (
	"slices"
	"strings"
	"testing"
)

// Your filter runs in the folder with the files, and may load what lies there: git runs it
// only where somebody confines it. That of git-lfs loads nothing.
func TestYourFiltersRunWhereGitIsConfined(t *testing.T) {
	w := newWorld(t)
	w.put(w.home+"/.gitconfig", "[user]\n name = Ann\n email = a@b\n[filter \"x\"]\n clean = "+w.program+"\n[filter \"lfs\"]\n clean = git-lfs clean -- %f\n")
	g := w.open(w.ws)
	if !slices.Contains(g.DisabledFilters, "x") || slices.Contains(g.DisabledFilters, "lfs") {
		t.Errorf("off are %q", g.DisabledFilters)
	}
	if w.runs(g, "status", "--short"); strings.Contains(w.marked(), "program") {
		t.Error("a filter of yours ran though nothing confines it")
	}
	filtered, any := g.WithFilters()
	if w.runs(filtered, "status", "--short"); !any || slices.Contains(filtered.DisabledFilters, "x") || !strings.Contains(w.marked(), "program") {
		t.Errorf("with your filters: %v, off are %q", any, filtered.DisabledFilters)
	}
	w.put(w.home+"/.gitconfig", "[user]\n name = Ann\n email = a@b\n")
	if _, any := w.open(w.ws).WithFilters(); any {
		t.Error("you have no filters")
	}
}
