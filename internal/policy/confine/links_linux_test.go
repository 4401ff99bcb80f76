package confine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/policy/confine"
	"coder/internal/policy/risk"
	"coder/internal/tool"
)

// TestLinksOfAHomeLeadToWhatTheyName reads files of a home whose settings, tool chains and
// programs are links into a hidden folder, as those who keep their dotfiles in git have them.
func TestLinksOfAHomeLeadToWhatTheyName(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(here, ".homes-") // a temporary folder may be written anyway
	if err != nil {
		t.Skipf("there is no place for a home: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	in := func(name string) string { return filepath.Join(home, name) }
	for _, file := range []string{
		".dotfiles/gitconfig", ".dotfiles/cargo/config.toml", ".dotfiles/cargo/credentials.toml", ".dotfiles/common/bin/tool", ".dotfiles/netrc", ".dotfiles/zshrc",
		".local/state/nix/profiles/p-1/bin/x", ".ssh/id_rsa", ".unheardof/key", ".cache/go-build/a", ".config/nvim/bin/a", ".local/share/uv/a", ".local/share/uv/credentials/a", ".coder/key",
	} {
		if err := os.MkdirAll(filepath.Dir(in(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in(file), []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		".gitconfig": ".dotfiles/gitconfig", ".cargo": ".dotfiles/cargo", ".local/bin/tool": "../../.dotfiles/bin/tool", ".dotfiles/bin": "common/bin",
		".nix-profile": in(".local/state/nix/profiles/p"), ".local/state/nix/profiles/p": "p-1", ".netrc": ".dotfiles/netrc", ".zshrc": ".dotfiles/zshrc",
		".local/bin/key": "../../.ssh/id_rsa", ".local/bin/state": "../../.coder/key", ".cache/go-build/planted": "../../.unheardof/key",
		".config/nvim/bin/planted": in(".unheardof/key"), ".local/bin/round": "round", ".local/bin/by": "../../.cache/go-build/planted",
	} {
		if err := os.MkdirAll(filepath.Dir(in(link)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, only := range []string{sandbox.Namespaces, sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(only, func(t *testing.T) {
			if sandbox.Find(t.Context(), sandbox.Options{Exe: exe, Launcher: program.NewOutside(os.Environ(), "/nowhere"), Backend: only}).Backend() != only {
				t.Skip("not on this machine")
			}
			c := confine.New(confine.Options{
				Demand: confine.Auto, Exe: exe, Backend: only, Launcher: program.NewOutside(os.Environ(), "/nowhere"), Root: in(".config/nvim"), Home: home, Network: func() bool { return false }, LooksIncomplete: func() bool { return false },
				Write: []string{in(".cache/go-build")}, ToolChains: []string{in(".config/nvim/bin")}, StateDirs: []string{in(".coder")},
				NamedFiles: func(risk.Report) []string { return nil },
			})
			t.Cleanup(func() { c.Close() })
			for file, want := range map[string]bool{
				".gitconfig": true, ".cargo/config.toml": true, ".cargo/credentials.toml": false, ".local/bin/tool": true, ".nix-profile/bin/x": true,
				".netrc": false, ".zshrc": false, ".dotfiles/netrc": false, ".dotfiles/zshrc": false, ".local/bin/key": false, ".ssh/id_rsa": false,
				".local/share/uv/a": true, ".local/share/uv/credentials/a": false, ".local/bin/state": false, ".coder/key": false, ".unheardof/key": false, ".local/bin/by": false,
			} {
				for _, line := range []string{"ls", "make"} {
					confined, err := c.Command(t.Context(), read(line))
					if err != nil {
						t.Fatal(err)
					}
					cmd := exec.Command("/bin/cat", in(file))
					cmd.Dir = in(".config/nvim")
					sandbox.Wrapper{Argv: confined.Wrapper, Attr: confined.Attr}.Apply(cmd)
					if out, err := cmd.CombinedOutput(); string(out) == "content" != want {
						t.Errorf("%s: reads ~/%s: %v (%s, %v)", line, file, !want, out, err)
					}
				}
			}
		})
	}
}

// TestProfilesThatLieInAWorkspaceStayAsTheyAre: what the next shell or git of a person
// obeys is not written by commands that nobody approved, by whatever name.
func TestProfilesThatLieInAWorkspaceStayAsTheyAre(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
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
	home, work, added := filepath.Join(dir, "home"), filepath.Join(dir, "work"), filepath.Join(dir, "added")
	links := map[string]string{
		".gitconfig": filepath.Join(work, "gitconfig"), ".bashrc": filepath.Join(added, "bashrc"), ".config/git": filepath.Join(work, "git"),
		".local/bin": work, ".prettierrc": filepath.Join(work, "prettierrc"),
	}
	for _, dir := range []string{filepath.Join(home, ".config"), filepath.Join(home, ".local"), filepath.Join(work, "git"), added} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range links {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, only := range []string{sandbox.Namespaces, sandbox.Bubblewrap} {
		door := program.NewOutside(os.Environ(), "/nowhere")
		if sandbox.Find(t.Context(), sandbox.Options{Exe: exe, Launcher: door, Backend: only}).Backend() != only {
			continue
		}
		for file, want := range map[string]bool{
			filepath.Join(work, "gitconfig"): false, filepath.Join(added, "bashrc"): false, filepath.Join(work, "git/config"): false,
			filepath.Join(work, "prettierrc"): true, filepath.Join(work, "a"): true,
		} {
			for _, approved := range []bool{false, true} {
				if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
				c := confine.New(confine.Options{
					Demand: confine.Auto, Backend: only, Launcher: door, Exe: exe, Root: work, Home: home, Write: []string{added},
					Network: func() bool { return false }, LooksIncomplete: func() bool { return false },
				})
				confined, err := c.Command(tool.WithApproval(t.Context(), approved), read("make"))
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command("/bin/sh", "-c", `echo new > "$0"; rm -f "$0"; mv "$(dirname "$0")" "$(dirname "$0").moved"`, file)
				cmd.Dir = work
				sandbox.Wrapper{Argv: confined.Wrapper, Attr: confined.Attr}.Apply(cmd)
				out, err := cmd.CombinedOutput()
				text, _ := os.ReadFile(file)
				if changed := string(text) != "mine"; changed != (want || approved) {
					t.Errorf("%s: %s, approved %v: changed is %v (%s, %v)", only, file, approved, changed, out, err)
				}
				os.Rename(filepath.Dir(file)+".moved", filepath.Dir(file))
				c.Close()
			}
		}
	}
}
