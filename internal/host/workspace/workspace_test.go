package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/workspace"
)

// open makes a workspace in a directory that has a sibling with the same
// prefix, and returns both.
func open(t *testing.T) (ws *workspace.Workspace, dir, evil string) {
	t.Helper()
	base := t.TempDir()
	dir, evil = filepath.Join(base, "ws"), filepath.Join(base, "ws-evil")
	for _, d := range []string{dir, evil} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	return ws, dir, evil
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func linkUnnamed(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	ws, dir, evil := open(t)
	for _, tc := range []struct {
		name, in, want string
	}{
		{"relative", "a/b.go", "a/b.go"},
		{"root", ".", "."},
		{"absolute root", dir, "."},
		{"absolute below", dir + "/a/b", "a/b"},
		{"unclean", "a//b/./c/../d", "a/b/d"},
		{"up and down again", "a/../../ws-evil/../ws/x", ""},
		{"up", "..", ""},
		{"up in the middle", "a/../../x", ""},
		{"sibling with our prefix", evil, ""},
		{"absolute elsewhere", "/etc/passwd", ""},
		{"home", "~/.profile", ""},
		{"home alone", "~", ""},
		{"tilde inside a name", "a~/b", "a~/b"},
		{"trailing dot", "a.", "a."},
		{"trailing space", "a ", "a "},
		{"newline", "a\nb", "a\nb"},
		{"empty", "", ""},
		{"NUL", "a\x00b", ""},
		{"very long", strings.Repeat("a/", 5000), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ws.Resolve(tc.in)
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("Resolve(%.40q) = %q, %v, want %q", tc.in, got, err, tc.want)
			}
		})
	}
}

func TestErrorsShowNamesEscaped(t *testing.T) {
	ws, _, _ := open(t)
	for _, name := range []string{"../a\nb\x1b[2J", "/x\u202ey", "a\x00\x1b", "../" + strings.Repeat("\x1b", 9000)} {
		_, err := ws.Resolve(name)
		if err == nil || strings.ContainsAny(err.Error(), "\n\x1b\x00\u202e") || len(err.Error()) > 2000 {
			t.Errorf("Resolve(%.40q) error = %q", name, err)
		}
	}
	if _, err := ws.Resolve("../x"); !errors.Is(err, workspace.ErrOutside) || err.Error() != "path outside workspace: ../x" {
		t.Errorf("error = %v", err)
	}
	_, err := ws.Stat("no\x1bthing")
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("Stat error = %q", err)
	}
}

func TestWorkspaceOpenedThroughLinkTakesBothNames(t *testing.T) {
	_, dir, _ := open(t)
	alias := filepath.Join(filepath.Dir(dir), "alias")
	linkUnnamed(t, dir, alias)
	ws, err := workspace.Open(alias)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for _, name := range []string{alias + "/x", dir + "/x"} {
		if got, err := ws.Resolve(name); got != "x" || err != nil {
			t.Errorf("Resolve(%q) = %q, %v", name, got, err)
		}
	}
	if ws.Root() != alias {
		t.Errorf("Root() = %q, want %q", ws.Root(), alias)
	}
}

func TestOpenRefusesWhatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	put(t, file, "")
	for _, name := range []string{file, file + "-missing"} {
		if _, err := workspace.Open(name); err == nil {
			t.Errorf("Open(%q) succeeded", name)
		}
	}
}

// linked is a tree with links of every sort.
func linked(t *testing.T) (ws *workspace.Workspace, dir, evil string) {
	ws, dir, evil = open(t)
	put(t, dir+"/real/file", "in")
	put(t, dir+"/real/deep/x", "deep")
	put(t, evil+"/file", "out")
	linkUnnamed(t, "real/file", dir+"/rel")
	linkUnnamed(t, dir+"/real/file", dir+"/abs")
	linkUnnamed(t, dir+"/real", dir+"/absdir")
	linkUnnamed(t, "../abs", dir+"/real/chain")
	linkUnnamed(t, "real/deep", dir+"/deep")
	linkUnnamed(t, "deep/../file", dir+"/physical") // real/file, not ./file
	linkUnnamed(t, evil+"/file", dir+"/outabs")
	linkUnnamed(t, "../ws-evil/file", dir+"/outrel")
	linkUnnamed(t, evil, dir+"/outdir")
	linkUnnamed(t, evil+"/missing", dir+"/dangling")
	linkUnnamed(t, "nowhere", dir+"/pending")
	linkUnnamed(t, "loop2", dir+"/loop1")
	linkUnnamed(t, "loop1", dir+"/loop2")
	return ws, dir, evil
}

func TestReadThroughLinks(t *testing.T) {
	ws, _, _ := linked(t)
	for _, name := range []string{"rel", "abs", "absdir/file", "real/chain", "absdir/chain", "physical"} {
		b, _, err := ws.ReadFile(name, 100)
		if string(b) != "in" || err != nil {
			t.Errorf("ReadFile(%q) = %q, %v", name, b, err)
		}
		if at, err := ws.Locate(name); at != "real/file" || err != nil {
			t.Errorf("Locate(%q) = %q, %v", name, at, err)
		}
	}
	for _, name := range []string{"outabs", "outrel", "outdir", "outdir/file", "outdir/a/b/x", "dangling"} {
		_, _, err := ws.ReadFile(name, 100)
		if !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("ReadFile(%q) error = %v", name, err)
		}
		if _, err := ws.Stat(name); !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("Stat(%q) error = %v", name, err)
		}
		if _, _, err := ws.ReadDir(name, 10); !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("ReadDir(%q) error = %v", name, err)
		}
		if _, err := ws.Locate(name); !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("Locate(%q) error = %v", name, err)
		}
	}
	if _, _, err := ws.ReadFile("loop1", 100); err == nil || !strings.Contains(err.Error(), "too many links") {
		t.Errorf("ReadFile(loop) error = %v", err)
	}
}

func TestWriteThroughLinks(t *testing.T) {
	ws, dir, evil := linked(t)
	for _, name := range []string{"rel", "abs", "absdir/file", "real/chain"} {
		if err := ws.WriteFile(name, []byte("by "+name)); err != nil {
			t.Fatalf("WriteFile(%q): %v", name, err)
		}
		if got := get(t, dir+"/real/file"); got != "by "+name {
			t.Errorf("after WriteFile(%q) the file holds %q", name, got)
		}
	}
	for _, name := range []string{"rel", "abs", "absdir", "real/chain"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no longer a link", name)
		}
	}
	for _, name := range []string{"outabs", "outrel", "outdir/file", "outdir/new", "outdir/a/b/x", "dangling", "loop1"} {
		if err := ws.WriteFile(name, []byte("bad")); err == nil {
			t.Errorf("WriteFile(%q) succeeded", name)
		}
		if err := ws.CreateFile(name, []byte("bad"), 0o600); err == nil {
			t.Errorf("CreateFile(%q) succeeded", name)
		}
	}
	if err := ws.WriteFile("pending", []byte("now")); err != nil || get(t, dir+"/nowhere") != "now" {
		t.Errorf("write through a link to a file not yet there: %v", err)
	}
	if names := list(t, evil); len(names) != 1 || get(t, evil+"/file") != "out" {
		t.Errorf("outside now holds %q", names)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
