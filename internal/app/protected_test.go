package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"coder/internal/host/workspace"
)

// One list finds secrets, repositories and projects, and each is taken for what it is.
func TestFilesThatAreProtected(t *testing.T) {
	env, o := Env{Environ: []string{"HOME=" + t.TempDir()}, Dir: t.TempDir(), Now: time.Now}, Options{}
	settings, err := Load(env, o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(env, o, settings, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", ".git/HEAD", "repo/.git/config", "repo/.env", "bare/HEAD", "project/.coder/config.json"} {
		path := filepath.Join(a.Root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.Open(a.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	in := func(names ...string) (list []string) {
		for _, name := range names {
			list = append(list, filepath.Join(a.Root, name))
		}
		return list
	}
	p := a.newProtectedFiles(ws)
	if files, all := p.hiddenFiles(t.Context()); !all || !slices.Equal(files, in(".env", "project/.coder/config.json", "repo/.env")) {
		t.Errorf("hidden: %q %v", files, all)
	}
	if dirs := p.nestedRepositories(t.Context()); !slices.Equal(dirs, in("repo", "bare")) {
		t.Errorf("repositories: %q", dirs)
	}
	if dirs := p.projectDirs(t.Context()); !slices.Equal(dirs, in("project")) {
		t.Errorf("projects: %q", dirs)
	}
}
