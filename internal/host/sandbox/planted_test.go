package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// field is a workspace with a repository, submodules, a bare repository and links.
type field struct {
	*testing.T
	root  string
	inner []string
}

func newField(t *testing.T) *field {
	f := &field{T: t, root: filepath.Join(realPath(t.TempDir()), "w")}
	for _, name := range []string{"sub", "linked", "bare.git", "new", "tree", "x"} {
		f.inner = append(f.inner, filepath.Join(f.root, name))
	}
	f.write("sub/.git/config", "[core]\n\tbare = false\n")
	f.write("sub/.git/hooks/pre-commit.sample", "#!/bin/sh\n")
	f.write("linked/.git", "gitdir: ../real\n")
	f.write("real/config", "[core]\n")
	f.write("tree/.git", "gitdir: ../.git/worktrees/tree\n")
	f.write(".git/worktrees/tree/commondir", "../..\n")
	f.write("elsewhere/config", "[core]\n\tpager = ./evil\n")
	f.write("team.conf", "[alias]\n")
	for _, dir := range []string{"bare.git", ".git", ".git/modules/new"} {
		for _, name := range []string{"HEAD", "objects/info/x", "refs/heads/x"} {
			f.write(dir+"/"+name, "ref: refs/heads/main\n")
		}
		f.write(dir+"/config", "[core]\n\tbare = true\n")
	}
	f.write("new/.git", "gitdir: ../.git/modules/new\n")
	f.write(".git/modules/new/config", "[core]\n\tworktree = ../../../new\n")
	f.write(".git/config", "[include]\n\tpath = ../team.conf\n[core]\n\tpager = less\n")
	return f
}

func (f *field) write(name, text string) {
	f.Helper()
	path := filepath.Join(f.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.Fatal(err)
	}
}

// news are the files named because of what a command did, below the root.
func (f *field) news(command func()) (names []string) {
	runs, elsewhere := FindPlanted(f.root, filepath.Join(f.root, "home"), f.inner)
	command()
	runs2, elsewhere2 := FindPlanted(f.root, filepath.Join(f.root, "home"), f.inner)
	for _, pair := range [][2]map[string]string{{runs, runs2}, {elsewhere, elsewhere2}} {
		for path, state := range pair[1] {
			if pair[0][path] != state {
				names = append(names, strings.TrimPrefix(path, f.root+"/"))
			}
		}
	}
	slices.Sort(names)
	return names
}

func TestWhatGitWouldObeyIsFound(t *testing.T) {
	for _, c := range []struct{ file, text, at string }{
		{"sub/.git/hooks/post-checkout", "#!/bin/sh\n", ""},
		{"real/config", "[alias]\n\tst = !./evil\n", "linked/.git"},
		{"linked/.git", "gitdir: ../elsewhere\n", ""},
		{"x/.git", "gitdir: ../elsewhere\n", ""},
		{"x/commondir", "../elsewhere\n", "elsewhere/config x/commondir"},
		{"bare.git/config", "[core]\n\tpager = ./evil\n", ""},
		{"bare.git/hooks/pre-receive", "#!/bin/sh\n", ""},
		{".git/config.worktree", "[filter \"x\"]\n\tclean = ./evil\n", ""},
		{".git/worktrees/tree/config.worktree", "[core]\n\tfsmonitor = ./evil\n", ""},
		{".git/hooks/pre-commit", "#!/bin/sh\n", ""},
		{".git/info/attributes", "* filter=x\n", ""},
		{".git/objects/info/alternates", "/srv/objects\n", ""},
		{".git/HEAD", "ref: ../../other\n", ""},
		{".git/modules/new/config", "[gpg]\n\tprogram = ./evil\n", ""},
		{".git/modules/new/config", "[core]\n\tworktree = /srv\n", ""},
		{"team.conf", "[core]\n\tsshCommand = ./evil\n", ""},
		{"team.conf", "[includeIf \"onbranch:x\"]\n\tpath = elsewhere/config\n", "elsewhere/config"},
	} {
		f := newField(t)
		if c.file == "x/commondir" {
			f.write("x/HEAD", "ref: refs/heads/main\n")
		}
		names := f.news(func() { f.write(c.file, c.text) })
		if want := cmp.Or(c.at, c.file); strings.Join(names, " ") != want {
			t.Errorf("%s %q: %q", c.file, c.text, names)
		}
	}
	for _, setting := range []string{
		"[core]\n\tfsmonitor = ./evil", "[core]pager=./evil", "[CORE]\neditor = ./evil",
		"[core]\n sshCommand = ./evil", "[core]\nhooksPath = hooks",
		"[core]\naskPass=./evil", "[a][core] gitProxy = ./evil", "[core]\nworktree = /srv",
		"[core]\nattributesFile = a", "[gpg \"ssh\"]\nprogram = ./evil",
		"[gpg \"ssh\"]\ndefaultKeyCommand = ./evil", "[filter \"a]b\"]\nclean = ./evil",
		"[filter.x]\nprocess = ./evil",
		"[filter \"lfs\"]\nclean = \"git-lfs clean; ./evil\"", "[diff \"x\"]\ntextconv = ./evil",
		"[diff]\nexternal = ./evil", "[merge \"x\"]\ndriver = ./evil",
		"[alias]\nst = !./evil", "[alias]\nst = -c core.pager=./evil log",
		"[credential \"https://x\"]\nhelper = ./evil", "[submodule \"x\"]\nupdate = !./evil",
		"[pager]\nlog = ./evil", "[difftool \"x\"]\npath = ./evil", "[mergetool \"x\"]\ncmd = ./evil",
		"[sequence]\neditor = ./evil",
		"[remote \"x\"]\nuploadpack = ./evil", "[protocol \"ext\"]\nallow = always", "[init]\ntemplateDir = t",
		"[interactive]\ndiffFilter = ./evil",
		"[hook \"x\"]\ncommand = ./evil", "[user]\nname = \"a\\\n[core]\\\nfsmonitor = ./evil",
		"[core] # \\\nfsmonitor = ./evil", "\ufeff[core]\nfsmonitor = ./evil\r",
		"[include]\npath = ../evil.\\\nconf", "[include]\npath = \"../evil.conf\" ; a",
		"[include]\npath = ~/evil.conf",
	} {
		for _, file := range []string{"sub/.git/config", ".git/config"} {
			f := newField(t)
			f.write("evil.conf", "[core]\n\tpager = ./evil\n")
			f.write("sub/evil.conf", "[core]\n\tpager = ./evil\n")
			f.write("home/evil.conf", "[core]\n\tpager = ./evil\n")
			if names := f.news(func() { f.write(file, setting+"\n") }); len(names) != 1 {
				t.Errorf("%s %q: %q", file, setting, names)
			}
		}
	}
}

func TestALinkInPlaceOfWhatGitReadsIsFound(t *testing.T) {
	for file, to := range map[string]string{
		".git/HEAD": "../../other", ".git/config": "../../evil.conf", "sub/.git/config": "../../evil.conf",
		"x/.git": "../elsewhere", ".git/hooks": "../x",
	} {
		f := newField(t)
		f.write("evil.conf", "[core]\n\tpager = ./evil\n")
		f.write("x/pre-commit", "#!/bin/sh\n")
		names := f.news(func() {
			path := filepath.Join(f.root, file)
			_ = os.RemoveAll(path)
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		})
		if len(names) != 1 || !strings.HasPrefix(names[0], file) {
			t.Errorf("%s: %q", file, names)
		}
	}
}

// TestOrdinaryGitGivesNoAlarm runs git as people do, in a repository whose owner
// configured a pager, a driver and a hook.
func TestOrdinaryGitGivesNoAlarm(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := realPath(t.TempDir())
	f := &field{T: t, root: filepath.Join(dir, "w")}
	git := func(args string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", args)
		cmd.Dir = f.root
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	f.write("a", "a\n")
	git("git init -q . && git add a && git commit -qm a")
	git("git config core.pager less && git config merge.x.driver true && echo true > .git/hooks/pre-push")
	git("git clone -q . ../origin && git -C ../origin config core.pager less")
	for _, name := range []string{"new", "new.git", "copy", "copy.git", "shared", "apart", "tree", "module", "module/tree"} {
		f.inner = append(f.inner, filepath.Join(f.root, name))
	}
	for _, command := range []string{
		"git init -q new", "git init -q --bare new.git", "git clone -q ../origin copy",
		"git clone -q --bare ../origin copy.git", "git clone -q -s . shared",
		"git init -q --separate-git-dir=apart.dir apart", "git worktree add -q tree",
		"git worktree add -q ../outside", "git -C tree commit -q --allow-empty -m x",
		"git submodule --quiet add ../origin module", "git commit -qm module",
		"git submodule --quiet update --init --recursive", "git -C module worktree add -q tree",
		"git checkout -q -b other", "git checkout -q --detach", "git switch -q other", "git remote add up ../origin",
		"git fetch -q up", "git config user.name b",
		"git config filter.lfs.clean 'git-lfs clean -- %f'",
		"git config filter.lfs.process 'git-lfs filter-process' && git config core.fsmonitor true",
		"git stash -q || true; git gc -q; git sparse-checkout set --cone . || true", "git merge -q up/HEAD || true",
		"git submodule --quiet deinit -f module",
		"git worktree remove -f tree", "git rebase -q HEAD",
		"git tag v1 && git branch -q -D master main 2>/dev/null || true",
	} {
		if names := f.news(func() { git(command) }); len(names) > 0 {
			runs, elsewhere := FindPlanted(f.root, dir, f.inner)
			t.Errorf("%s: %q of %s", command, names, fmt.Sprint(slices.Collect(maps.Values(runs)), elsewhere))
		}
	}
	git("git -C new config core.pager ./evil")
	if names := f.news(func() {
		git("git -C new config alias.x log && git config core.editor ./evil")
	}); len(names) != 2 {
		t.Errorf("an alarm is missing: %q", names)
	}
}
