package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFurtherFoldersAreThoseThePersonNamed(t *testing.T) {
	here := t.TempDir()
	for _, dir := range []string{"work", "lib", "work/vendored"} {
		if err := os.MkdirAll(filepath.Join(here, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(here, name) }
	open := func(o Options) (*Workspace, error) {
		env := Env{Environ: []string{"HOME=" + t.TempDir()}, Dir: in("work"), Now: time.Now}
		s, err := Load(env, o)
		if err != nil {
			t.Fatal(err)
		}
		return New(env, o, s, func(string) {})
	}
	named := []string{"../lib", "vendored/", in("lib/../work/vendored")}
	for _, dir := range []string{"", in("lib")} { // where the work is done says nothing of what was meant
		a, err := open(Options{Dir: dir, AddDirs: named})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{in("lib"), in("work/vendored"), in("work/vendored")}; !slices.Equal(a.Options.AddDirs, want) {
			t.Errorf("in %q: %q, want %q", dir, a.Options.AddDirs, want)
		}
	}
	if named[0] != "../lib" {
		t.Error("the flags were changed")
	}
	if _, err := open(Options{AddDirs: []string{"none"}}); err == nil || !strings.Contains(err.Error(), in("work/none")) {
		t.Errorf("one that is not there: %v", err)
	}
}
