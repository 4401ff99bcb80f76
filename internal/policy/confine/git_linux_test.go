package confine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/policy/confine"
)

// TestWhatGitIsMadeToRunIsConfined changes what git obeys after coder has looked at
// it: in the repository, in a file that it includes, by another common directory,
// and in a configuration of the person's that lies in the workspace.
func TestWhatGitIsMadeToRunIsConfined(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if backend := sandbox.Find(t.Context(), sandbox.Options{Exe: exe}).Backend(); backend != sandbox.Namespaces {
		t.Skip("there are no namespaces here")
	}
	for name, change := range map[string]string{
		"the repository":        "cat evil >> .git/config",
		"what it includes":      "cat evil >> team",
		"another common folder": "cp -r .git other; cat evil >> other/config; echo ../other > .git/commondir",
		"the person's settings": "cat evil >> own",
	} {
		for _, args := range [][]string{{"status", "--short"}, {"add", "a.txt"}} {
			top := t.TempDir()
			root := filepath.Join(top, "work")
			evil := "[filter \"x\"]\n\tclean = \"sh -c 'grep Seccomp: /proc/self/status > seen; exit 1'\"\n"
			must(t, os.Mkdir(root, 0o755))
			shell := func(line string) {
				t.Helper()
				cmd := exec.Command("sh", "-ec", line)
				cmd.Dir, cmd.Env = root, append(os.Environ(), "HOME="+top, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", line, err, out)
				}
			}
			must(t, os.WriteFile(filepath.Join(root, "evil"), []byte(evil), 0o644))
			shell("git init -q; git config include.path ../team; : > own; : > team; echo x > a.txt; git add a.txt; echo '* filter=x' > .gitattributes; echo yy > a.txt")
			c := confine.New(confine.Options{
				Demand: confine.Auto, Exe: exe, Root: root, Home: top, Network: func() bool { return true },
			})
			t.Cleanup(func() { _ = c.Close() })
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + top, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + filepath.Join(root, "own")}
			git, err := program.Outside(env, filepath.Join(top, "none")).Within(c.Git).Git(t.Context(), root)
			must(t, err)
			shell(change)
			out, _ := git.Command(t.Context(), args...).CombinedOutput()
			if text, err := os.ReadFile(filepath.Join(root, "seen")); err == nil && !strings.Contains(string(text), "\t2") {
				t.Errorf("%s, git %s: unconfined: %s", name, args[0], text)
			} else if (args[0] == "add") != (err == nil) {
				t.Errorf("%s, git %s: the filter left something: %v, %s", name, args[0], err == nil, out)
			}
		}
	}
}

// TestConfinedGitDoesItsWork stages and commits in a repository and in a linked work
// tree, and leaves what git obeys alone.
func TestConfinedGitDoesItsWork(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	if backend := sandbox.Find(t.Context(), sandbox.Options{Exe: exe}).Backend(); backend != sandbox.Namespaces {
		t.Skip("there are no namespaces here")
	}
	top := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + top, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	setup := exec.Command("sh", "-ec", "mkdir main; cd main; git init -q; git commit -q --allow-empty -m first; git worktree add -q ../tree; mkdir sub")
	setup.Dir, setup.Env = top, env
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dir := range []string{"main", "tree", "main/sub"} {
		root := filepath.Join(top, dir)
		must(t, os.WriteFile(filepath.Join(root, ".env"), []byte("A=1\n"), 0o644))
		c := confine.New(confine.Options{
			Demand: confine.Auto, Exe: exe, Root: root, Home: top, Network: func() bool { return true },
			Secrets: func(context.Context) ([]string, bool) { return []string{filepath.Join(root, ".env")}, true },
		})
		t.Cleanup(func() { _ = c.Close() })
		git, err := program.Outside(env, filepath.Join(top, "none")).Within(c.Git).Git(t.Context(), root)
		must(t, err)
		run := func(args ...string) string {
			t.Helper()
			out, err := git.Command(t.Context(), args...).CombinedOutput()
			if err != nil {
				t.Errorf("%s: git %q: %v: %s", dir, args, err, out)
			}
			return string(out)
		}
		if got := run("status", "--short", "."); got != "?? .env\n" && got != "?? sub/\n" && got != "?? ./\n" {
			t.Errorf("%s: status %q", dir, got)
		}
		run("add", ".env")
		run("commit", "-q", "-m", "second")
		if got := run("show", "HEAD:./.env"); got != "A=1\n" {
			t.Errorf("%s: committed %q", dir, got)
		}
		if out, err := git.Command(t.Context(), "config", "core.pager", "evil").CombinedOutput(); err == nil {
			t.Errorf("%s: the configuration was written: %s", dir, out)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
