package confine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/sandbox"
	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
)

// TestFoldersKeepTheNamesThatHideWhatIsInThem: coder's own folder, a denied file, a secret known by its folder
// and the records of sessions stay hidden from the command after one that moves folders.
func TestFoldersKeepTheNamesThatHideWhatIsInThem(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if backend := sandbox.Find(t.Context(), sandbox.Options{Exe: exe}).Backend(); backend != sandbox.Namespaces {
		t.Skip("there are no namespaces here")
	}
	above := t.TempDir()
	root := filepath.Join(above, "w")
	in := func(name string) string { return filepath.Join(root, name) }
	files := []string{"private/a/x", "web/app/playwright/.auth/user.json", "services/api/.env", "asked/x"}
	for _, name := range append(files, "sub/.coder/log/s/x", "../.coder/log/s/x") {
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, _ := helpless(t, confine.Auto)
	o.Exe, o.Root = exe, root
	o.Secrets = func(context.Context) (all []string, whole bool) {
		for _, name := range files {
			all = append(all, in(name))
		}
		return all, true
	}
	o.IsDenied = func(file string) bool { return strings.HasPrefix(file, in("private")+"/") }
	o.Projects = func(context.Context) []string { return []string{in("sub")} }
	c := confine.New(o)
	defer c.Close()
	got, err := c.Command(t.Context(), read("make"))
	if err != nil {
		t.Fatal(err)
	}
	var pinned []string
	for _, arg := range got.Wrapper {
		if dir, ok := strings.CutPrefix(arg, "--pin="); ok {
			rel, _ := filepath.Rel(root, dir)
			pinned = append(pinned, rel)
		}
	}
	slices.Sort(pinned)
	want := []string{"../.coder", "asked", "private", "private/a", "sub/.coder", "web/app/playwright", "web/app/playwright/.auth"}
	if !slices.Equal(pinned, want) {
		t.Errorf("pinned are %q, want %q", pinned, want)
	}
	state := filepath.Join(above, "home", ".coder")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Home, o.StateDirs = filepath.Dir(state), []string{state}
	o.NamedFiles = func(risk.Report) []string { return []string{filepath.Join(state, "key"), state} }
	naming := confine.New(o)
	defer naming.Close()
	for _, line := range []string{"make", "cat " + filepath.Join(state, "key")} {
		confined, err := naming.Command(t.Context(), read(line))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(confined.Wrapper, "--empty="+state) || slices.Contains(confined.Wrapper, "--show="+filepath.Join(state, "key")) {
			t.Errorf("%s sees coder's own folder: %q", line, confined.Wrapper)
		}
	}
	if above := "--empty=" + filepath.Join(above, ".coder/log"); !slices.Contains(got.Wrapper, above) {
		t.Errorf("records above the workspace are seen: %q", got.Wrapper)
	}
}
