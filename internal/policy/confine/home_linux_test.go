package confine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/sandbox"
	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// TestAHomeIsHiddenUnlessHarmless reads files of a home from confined lines: those that
// nobody approved see harmless places, tool chains and the work, and the rest only where
// they name it.
func TestAHomeIsHiddenUnlessHarmless(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if backend := sandbox.Find(t.Context(), sandbox.Options{Exe: exe}).Backend(); backend != sandbox.Namespaces {
		t.Skip("there are no namespaces here")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(here, ".homes-") // a temporary folder may be written anyway
	if err != nil {
		t.Skipf("there is no place for a home: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	home := filepath.Join(dir, "home")
	in := func(name string) string { return filepath.Join(home, name) }
	hidden := []string{
		".unheardof", ".newtool/token", ".config/unheardof/key.toml", ".config/stripe/config.toml", ".local/share/unheardof/db", ".local/share/crush/crush.json",
		".cursor/mcp.json", ".bash_history", ".ssh/id_rsa", ".cargo/credentials.toml", ".m2/settings.xml", ".linked", "dotfiles/vimrc",
		".cache/cliphist/db", ".cache/huggingface/stored_tokens", ".gradle/init.d/x.gradle", ".sbt/1.0/credentials.sbt", ".foundry/keystores/x",
	}
	seen := []string{
		"src/go.mod", ".gitconfig", ".cargo/registry/x", ".config/git/ignore", ".config/go/env", ".local/bin/tool", ".local/share/uv/python", ".m2/repository/x", ".cache/go-build/x",
		".cache/huggingface/hub/x", ".gradle/caches/x", ".foundry/bin/forge",
		".strange/bin/tool", "plain", ".config/nvim/init.lua", ".local/share/chezmoi/a", "work/.env.example", ".outside",
	}
	for _, name := range append(hidden, seen...) {
		if name == ".linked" || name == ".outside" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in(name), []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(dir, "outside")
	for _, make := range []error{os.WriteFile(outside, []byte("content"), 0o600), os.Symlink(in("dotfiles/vimrc"), in(".linked")), os.Symlink(outside, in(".outside"))} {
		if make != nil {
			t.Fatal(make)
		}
	}
	// reads reports whether a line that runs in root, judged as written, can read a file.
	reads := func(root, line, file string, approved bool) bool {
		t.Helper()
		c := confine.New(confine.Options{
			Demand: confine.Auto, Exe: exe, Root: root, Home: home, Network: func() bool { return false }, LooksIncomplete: func() bool { return false },
			ToolChains: []string{in(".strange")},
			NamedFiles: func(r risk.Report) (named []string) {
				for _, word := range strings.Fields(r.Command) {
					if filepath.IsAbs(word) {
						named = append(named, word)
					}
				}
				return named
			},
		})
		defer c.Close()
		confined, err := c.Command(tool.WithApproval(t.Context(), approved), read(line))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/cat", file)
		cmd.Dir = root
		sandbox.Wrapper{Argv: confined.Wrapper, Attr: confined.Attr}.Apply(cmd)
		out, _ := cmd.Output()
		return string(out) == "content"
	}
	work := in("work")
	for _, line := range []string{"ls", "make"} {
		for _, name := range hidden {
			if name == "dotfiles/vimrc" {
				continue // hidden behind its link
			}
			if reads(work, line, in(name), false) {
				t.Errorf("%s: reads ~/%s", line, name)
			}
		}
		for _, name := range seen {
			if wanted := name != ".config/nvim/init.lua" && name != ".local/share/chezmoi/a"; reads(work, line, in(name), false) != wanted {
				t.Errorf("%s: reads ~/%s: %v", line, name, !wanted)
			}
		}
	}
	for _, c := range []struct {
		root, line, file string
		approved, want   bool
	}{
		{"work", "make", ".config/unheardof/key.toml", true, true},
		{"work", "make", ".ssh/id_rsa", true, false},
		{"work", "make", ".config/stripe/config.toml", true, false},
		{"work", "stripe listen", ".config/stripe/config.toml", false, true},
		{"work", "make " + in(".config/unheardof/key.toml"), ".config/unheardof/key.toml", false, true},
		{".config/nvim", "ls", ".config/nvim/init.lua", false, true},
		{".config/nvim", "make", ".config/nvim/init.lua", false, true},
		{".config/nvim", "ls", ".config/unheardof/key.toml", false, false},
		{".config/nvim", "ls", ".config/git/ignore", false, true},
		{".local/share/chezmoi", "ls", ".local/share/chezmoi/a", false, true},
		{".local/share/chezmoi", "ls", ".local/share/unheardof/db", false, false},
		{"dotfiles", "ls", "dotfiles/vimrc", false, true},
		{"", "ls", ".unheardof", false, true},
		{"", "ls", ".ssh/id_rsa", false, false},
	} {
		if got := reads(in(c.root), c.line, in(c.file), c.approved); got != c.want {
			t.Errorf("%q in ~/%s, approved %v: reads ~/%s: %v", c.line, c.root, c.approved, c.file, got)
		}
	}
}
