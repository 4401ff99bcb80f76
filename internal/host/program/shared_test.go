package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A repository that names another one as the place of its files is neither read nor
// written: git would work in the other one.
func TestGitWorksInNoOtherRepository(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(filepath.Dir(w.ws), "other")
	w.git("clone", "-q", "--no-local", w.ws, other)
	w.git("worktree", "add", "-q", filepath.Join(filepath.Dir(w.ws), "tree"))
	door := NewOutside(w.env, filepath.Join(w.ws, "sub"))
	for _, dir := range []string{w.ws, filepath.Join(filepath.Dir(w.ws), "tree")} {
		if _, err := door.Git(t.Context(), dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	w.put(w.ws+"/.git/commondir", other+"/.git\n")
	if _, err := door.Git(t.Context(), w.ws); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("commondir: %v", err)
	}
}

// Git writes refs and logs where they are, not where a link leads.
func TestGitWritesNoRefThroughALink(t *testing.T) {
	w := newWorld(t)
	target := filepath.Join(w.home, "target")
	w.put(target, "")
	for _, name := range []string{"logs/refs/heads/task", "refs/heads/task", "logs/refs/heads/deep/x"} {
		at := filepath.Join(w.ws, ".git", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, at); err != nil {
			t.Fatal(err)
		}
		g, err := NewOutside(w.env, filepath.Join(w.ws, "sub")).Git(t.Context(), w.ws)
		if err != nil {
			t.Fatal(err)
		}
		branch := strings.TrimPrefix(name, "logs/")
		if err := g.Command(t.Context(), "update-ref", branch, "HEAD").Run(); err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.Command(t.Context(), "update-ref", "refs/heads/free", "HEAD").Run(); err != nil {
			t.Errorf("beside %s: %v", name, err)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(target); err != nil || len(text) > 0 {
		t.Errorf("the target of the links holds %q, %v", text, err)
	}
}
