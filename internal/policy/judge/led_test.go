package judge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatTheHomeLeadsToIsKnown: the files of a workspace that links of the home, or
// the environment, make settings of the person's programs.
func TestWhatTheHomeLeadsToIsKnown(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, ws := filepath.Join(top, "home"), filepath.Join(top, "ws")
	err = errors.Join(os.MkdirAll(filepath.Join(home, ".config", "git"), 0o755), os.MkdirAll(filepath.Join(ws, "git"), 0o755), os.WriteFile(filepath.Join(ws, "git", "gitconfig"), nil, 0o644))
	for name, to := range map[string]string{
		".gitconfig": ws + "/git/gitconfig", ".config/git/config": "../../../ws/git/later", ".config/nvim": ws + "/nvim",
		".dotfiles": ws, "projects": ws + "/src", ".other": top + "/other", ".bashrc": top + "/added/bashrc", ".added": top + "/added",
	} {
		err = errors.Join(err, os.Symlink(to, filepath.Join(home, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	led := newFileView(ws, home, []string{top + "/added"}).newLinkTest([]string{filepath.Join(ws, "dev.conf"), "relative", ""})
	for name, want := range map[string]bool{
		"git/gitconfig": true, "git/later": true, "nvim/init.lua": true, "dev.conf": true,
		"../added/bashrc": true, "../added/x": false, "../other": false,
		"git": false, "git/other": false, "src/a.go": false, "relative": false, "a": false, "nvim2": false,
	} {
		if got := led(filepath.Join(ws, name)); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
