package workspace_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"coder/internal/host/workspace"
)

// survey collects what a Survey visits, in order.
func survey(ctx context.Context, ws *workspace.Workspace, limit int) (all []workspace.Folder, more bool, err error) {
	more, err = ws.Survey(ctx, workspace.Survey{Limit: limit, Each: func(f workspace.Folder) {
		f.Entries = slices.Clone(f.Entries)
		all = append(all, f)
	}})
	slices.SortFunc(all, func(a, b workspace.Folder) int { return strings.Compare(a.Path, b.Path) })
	return all, more, err
}

func TestSurvey(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/.gitignore", "*.log\n/out/\n")
	put(t, dir+"/b/z", "12345")
	put(t, dir+"/b/x.log", "")
	put(t, dir+"/b/.gitignore", "!keep.log\nhere\n")
	put(t, dir+"/b/keep.log", "")
	put(t, dir+"/b/here", "")
	put(t, dir+"/a/deep/er/f", "")
	put(t, dir+"/out/o", "")
	put(t, dir+"/.git/config", "")
	put(t, dir+"/node_modules/m", "")
	put(t, evil+"/secret", "")
	linkUnnamed(t, evil, dir+"/leave")
	linkUnnamed(t, "..", dir+"/a/loop")
	if err := os.Mkdir(dir+"/empty", 0o700); err != nil {
		t.Fatal(err)
	}
	folders, more, err := survey(t.Context(), ws, 1000)
	if err != nil || more {
		t.Fatal(more, err)
	}
	var got []string
	for _, f := range folders {
		for _, info := range f.Entries {
			got = append(got, f.Path+": "+info.Name)
			if info.Name == "z" && info.Size != 5 {
				t.Errorf("z has %d bytes", info.Size)
			}
		}
	}
	want := []string{
		".: .gitignore", ".: a", ".: b", ".: empty", ".: leave",
		"a: deep", "a: loop", "a/deep: er", "a/deep/er: f",
		"b: .gitignore", "b: keep.log", "b: z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("survey = %q\nwant     %q", got, want)
	}
}

func TestSurveyIsBounded(t *testing.T) {
	ws, dir, _ := open(t)
	for i := range 50 {
		put(t, dir+"/d"+strconv.Itoa(i)+"/f", "")
	}
	folders, more, err := survey(t.Context(), ws, 60)
	n := 0
	for _, f := range folders {
		n += len(f.Entries)
	}
	if err != nil || !more || n < 60 || n > 70 {
		t.Errorf("%d entries, more %v, %v", n, more, err)
	}
	if _, more, err = survey(t.Context(), ws, 100); more || err != nil {
		t.Errorf("more %v, %v", more, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := survey(ctx, ws, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestRestore(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/ro", "old")
	if err := os.Chmod(dir+"/ro", 0o444); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/target", "target")
	linkUnnamed(t, "target", dir+"/link")
	linkUnnamed(t, evil+"/f", dir+"/outlink")
	put(t, evil+"/f", "out")
	for name, mode := range map[string]fs.FileMode{"ro": 0o755, "new/deep/f": 0o600, "link": 0o640, "outlink": 0o444} {
		if err := ws.Restore(name, strings.NewReader("by "+name), mode, nil); err != nil {
			t.Fatalf("Restore(%q): %v", name, err)
		}
		info, err := os.Lstat(dir + "/" + name)
		if err != nil || info.Mode() != mode || get(t, dir+"/"+name) != "by "+name {
			t.Errorf("%s = %v, %v", name, info, err)
		}
	}
	if get(t, dir+"/target") != "target" || get(t, evil+"/f") != "out" {
		t.Error("a link was followed")
	}
}

func TestRestoreInAnAddedTree(t *testing.T) {
	_, dir, other := open(t)
	ws, err := workspace.Open(dir, other)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	name := other + "/new/f"
	if err := ws.Restore(name, strings.NewReader("x"), 0o640, nil); err != nil || get(t, name) != "x" {
		t.Fatal(err)
	}
	if err := errors.Join(ws.Mkdir(other+"/d", 0o750), ws.Chmod(name, 0o600), ws.RestoreLink(other+"/l", "new/f", nil), ws.CheckNoLinks(name)); err != nil {
		t.Fatal(err)
	}
	if to, err := ws.Readlink(other + "/l"); to != "new/f" || err != nil {
		t.Errorf("Readlink = %q, %v", to, err)
	}
	linkUnnamed(t, "new", other+"/alias")
	if err := ws.CheckNoLinks(other + "/alias/f"); !errors.Is(err, workspace.ErrThroughLink) {
		t.Errorf("Direct: %v", err)
	}
}

func TestRestoreFails(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/f", "old")
	put(t, dir+"/d/f", "old")
	put(t, evil+"/f", "out")
	linkUnnamed(t, evil, dir+"/out")
	linkUnnamed(t, "d", dir+"/in")
	broken := errors.New("broken")
	if err := ws.Restore("f", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 0o644, nil); !errors.Is(err, broken) {
		t.Errorf("Restore of what cannot be read: %v", err)
	}
	if err := ws.Restore("d", strings.NewReader("x"), 0o644, nil); !errors.Is(err, workspace.ErrNotRegular) {
		t.Errorf("Restore onto a directory: %v", err)
	}
	for _, name := range []string{"out/f", "in/f", "../ws-evil/f", "out/new/f"} {
		if err := ws.Restore(name, strings.NewReader("bad"), 0o644, nil); err == nil {
			t.Errorf("Restore(%q) succeeded", name)
		}
		if err := ws.RestoreLink(name, "bad", nil); err == nil {
			t.Errorf("RestoreLink(%q) succeeded", name)
		}
		if err := ws.Mkdir(name, 0o755); err == nil {
			t.Errorf("Mkdir(%q) succeeded", name)
		}
		if err := ws.Chmod(name, 0o777); err == nil {
			t.Errorf("Chmod(%q) succeeded", name)
		}
	}
	if err := ws.Restore("in/f", strings.NewReader("bad"), 0o644, nil); !errors.Is(err, workspace.ErrThroughLink) {
		t.Errorf("Restore through a link: %v", err)
	}
	if get(t, dir+"/f") != "old" || get(t, dir+"/d/f") != "old" || get(t, evil+"/f") != "out" {
		t.Error("a file was changed")
	}
	if names := list(t, dir); !slices.Equal(names, []string{"d", "f", "in", "out"}) {
		t.Errorf("left behind: %q", names)
	}
}

func TestRestoreLink(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/f", "old")
	linkUnnamed(t, "f", dir+"/l")
	for _, name := range []string{"f", "l", "new/n"} {
		if err := ws.RestoreLink(name, evil+"/x", nil); err != nil {
			t.Fatalf("RestoreLink(%q): %v", name, err)
		}
		if to, err := ws.Readlink(name); to != evil+"/x" || err != nil {
			t.Errorf("Readlink(%q) = %q, %v", name, to, err)
		}
	}
	if err := ws.RestoreLink("new", "x", nil); !errors.Is(err, workspace.ErrNotRegular) {
		t.Errorf("RestoreLink onto a directory: %v", err)
	}
	if names := list(t, evil); len(names) != 0 {
		t.Errorf("outside now holds %q", names)
	}
}

func TestMkdirChmodDelete(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, evil+"/f", "out")
	linkUnnamed(t, evil+"/f", dir+"/out")
	if err := ws.Mkdir("a/b", 0o711); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(dir + "/a/b"); info.Mode().Perm() != 0o711 {
		t.Errorf("mode = %v", info.Mode())
	}
	if err := ws.Mkdir("a/b", 0o755); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Mkdir: %v", err)
	}
	put(t, dir+"/a/b/f", "x")
	if err := errors.Join(ws.Chmod("a/b", 0o750), ws.Chmod("a/b/f", 0o400)); err != nil {
		t.Fatal(err)
	}
	d, _ := os.Stat(dir + "/a/b")
	f, _ := os.Stat(dir + "/a/b/f")
	if d.Mode().Perm() != 0o750 || f.Mode().Perm() != 0o400 {
		t.Errorf("modes = %v, %v", d.Mode(), f.Mode())
	}
	if err := ws.Chmod("out", 0o777); err == nil {
		t.Error("Chmod followed a link")
	}
	if err := ws.Delete("a/b"); err == nil {
		t.Error("a directory was removed with what was in it")
	}
	for _, name := range []string{"a/b/f", "a/b", "out"} {
		if err := ws.Delete(name); err != nil {
			t.Errorf("Delete(%q): %v", name, err)
		}
	}
	for _, name := range []string{".", "..", "../ws-evil/f", "missing"} {
		if err := ws.Delete(name); err == nil {
			t.Errorf("Delete(%q) succeeded", name)
		}
	}
	if get(t, evil+"/f") != "out" {
		t.Error("the target of a link was touched")
	}
}

// Added trees are surveyed too, under the names that Resolve gives, and nothing
// is listed twice.
func TestSurveyOfAddedTrees(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"outer/main/sub/a", "outer/b", "outer/lib/deep/c", "other/d", "other/.gitignore", "other/ignored"} {
		p := filepath.Join(dir, name)
		text := "ignored\n"
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	w, err := workspace.Open(in("outer/main"), in("outer/lib"), in("outer/main/sub"), in("other"), in("outer"), in("other"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	folders, more, err := survey(t.Context(), w, 1000)
	if err != nil || more {
		t.Fatal(more, err)
	}
	var got []string
	for _, f := range folders {
		if f.Err != nil {
			t.Errorf("%s: %v", f.Path, f.Err)
		}
		for _, e := range f.Entries {
			name := path.Join(f.Path, e.Name)
			if r, err := w.Resolve(name); r != name || err != nil {
				t.Errorf("%s is called %s, %v", name, r, err)
			}
			got = append(got, name)
		}
	}
	want := []string{
		"sub", "sub/a", in("other/.gitignore"), in("other/d"), in("outer/b"), in("outer/lib"), in("outer/lib/deep"), in("outer/lib/deep/c"),
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
