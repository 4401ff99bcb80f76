//go:build unix

package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/program"
	"coder/internal/policy/risk"
	"coder/internal/tool"
	"coder/internal/tool/git"
)

// A trap is a way in which a repository tells git to run a program.
type trap struct {
	name string
	set  func(r repo, program string)
	// springs is a use of git that falls into the trap, to see that it is one;
	// none where that depends on git's version, a terminal or a network.
	springs []string
	// breaks is set if the tools may fail, so long as they do not run it.
	breaks bool
	// asks is set if lines are not let run unasked.
	asks bool
}

var hookNames = []string{
	"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change", "reference-transaction",
	"pre-auto-gc", "post-rewrite", "post-checkout", "pre-merge-commit", "fsmonitor-watchman",
}

func hooks(r repo, dir, program string) {
	if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
		r.Fatal(err)
	}
	for _, name := range hookNames {
		if err := os.Symlink(program, filepath.Join(r.dir, dir, name)); err != nil {
			r.Fatal(err)
		}
	}
}

// config sets pairs of key and value in the repository's own configuration.
func config(r repo, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		r.git("config", pairs[i], pairs[i+1])
	}
}

// startError takes away the content of a file that is committed, and names a
// remote from which git would fetch it.
func startError(r repo, pairs ...string) {
	blob := strings.TrimSpace(r.git("rev-parse", "HEAD:a.txt"))
	if err := os.Remove(filepath.Join(r.dir, ".git/objects", blob[:2], blob[2:])); err != nil {
		r.Fatal(err)
	}
	config(r, append([]string{"core.repositoryformatversion", "1", "extensions.partialclone", "evil", "remote.evil.promisor", "true"}, pairs...)...)
}

// submodule puts a repository with a trap of its own into this one.
func submodule(r repo, set func(repo)) {
	inner := newRepo(r.T)
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.dir, "sub")
	r.git("commit", "-qm", "submodule", "--", ".gitmodules", "sub")
	r.git("config", "-f", ".gitmodules", "submodule.sub.ignore", "none")
	inner.dir = filepath.Join(r.dir, "sub")
	set(inner)
	inner.put("a.txt", "ano\n")
}

var traps = []trap{
	{name: "fsmonitor", springs: []string{"status"}, set: func(r repo, p string) { config(r, "core.fsmonitor", p) }},
	{name: "hooks", springs: []string{"add", "a.txt"}, set: func(r repo, p string) { hooks(r, ".git/hooks", p) }},
	{name: "hooks on commit", springs: []string{"commit", "-m", "x"}, set: func(r repo, p string) { hooks(r, ".git/hooks", p) }},
	{name: "hooks elsewhere", springs: []string{"commit", "-m", "x"}, set: func(r repo, p string) { hooks(r, "h", p); config(r, "core.hooksPath", "h") }},
	{name: "hooks by configuration", set: func(r repo, p string) {
		config(r, "hook.h.command", p)
		for _, name := range hookNames {
			r.git("config", "--add", "hook.h.event", name)
		}
	}},
	{name: "external diff", springs: []string{"diff"}, set: func(r repo, p string) { config(r, "diff.external", p) }},
	{name: "diff driver", springs: []string{"diff"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* diff=x\n")
		config(r, "diff.x.command", p)
	}},
	{name: "textconv", springs: []string{"diff"}, set: func(r repo, p string) {
		r.put(".git/info/attributes", "* diff=x\n")
		config(r, "diff.x.textconv", p, "diff.x.cachetextconv", "true")
	}},
	{name: "filter", breaks: true, springs: []string{"status"}, set: filter("x", "clean")},
	{name: "filter with an odd name", breaks: true, springs: []string{"status"}, set: filter("a=b", "clean")},
	{name: "filter with a dotted name", breaks: true, springs: []string{"diff"}, set: filter("X.clean=.y", "clean")},
	{name: "filter process", breaks: true, springs: []string{"status"}, set: filter("x", "process")},
	{name: "filter on add", breaks: true, springs: []string{"add", "a.txt"}, set: filter("x", "clean")},
	{name: "required filter", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		filter("x", "clean")(r, p)
		config(r, "filter.x.required", "true", "filter.x.smudge", p)
	}},
	{name: "included configuration", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* filter=x\n")
		r.put("evil", "[filter \"x\"]\n clean = "+p+"\n")
		config(r, "include.path", "../evil")
	}},
	{name: "configuration of the work tree", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* filter=x\n")
		config(r, "core.repositoryformatversion", "1", "extensions.worktreeConfig", "true")
		r.git("config", "--worktree", "filter.x.clean", p)
	}},
	{name: "sections on one line", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* filter=x\n")
		r.append(".git/config", "[core][filter \"x\"] clean = "+p+"\n")
	}},
	{name: "a mark at the beginning", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* filter=x\n")
		r.put(".git/config", "\ufeff[filter \"x\"]\n\tclean = "+p+"\n"+r.read(".git/config"))
	}},
	{name: "a bracket in a name", breaks: true, springs: []string{"blame", "a.txt"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* diff=a]b\n")
		r.append(".git/config", "[diff \"a]b\"] TextConv = "+p+"\n")
	}},
	{name: "an odd spelling", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* filter=x\n")
		r.append(".git/config", "[FILTER\t\"x\"]\r\n\tClean\t=\\\n \""+p+"\" # ]\n")
	}},
	{name: "a conditional include", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		r.put(".gitattributes", "* filter=x\n")
		r.put("evil", "[filter \"x\"]\n clean = "+p+"\n")
		config(r, "includeIf.onbranch:ma*.path", "../evil")
	}},
	{name: "a repository within, without .gitmodules", springs: []string{"status"}, set: func(r repo, p string) {
		submodule(r, func(in repo) { config(in, "core.fsmonitor", p) })
		if err := os.Remove(filepath.Join(r.dir, ".gitmodules")); err != nil {
			r.Fatal(err)
		}
		config(r, "submodule.sub.ignore", "none", "diff.ignoreSubmodules", "none")
	}},
	{name: "signing", springs: []string{"commit", "-m", "x"}, set: func(r repo, p string) {
		config(r, "commit.gpgsign", "true", "gpg.program", p, "user.signingkey", "x")
	}},
	{name: "signing with ssh", springs: []string{"commit", "-m", "x"}, set: func(r repo, p string) {
		config(r, "commit.gpgsign", "true", "gpg.format", "ssh", "gpg.ssh.program", p, "gpg.ssh.defaultKeyCommand", p)
	}},
	{name: "signatures in the log", springs: []string{"log"}, set: func(r repo, p string) { signed(r); config(r, "log.showSignature", "true", "gpg.program", p) }},
	{name: "signatures in the format", springs: []string{"log"}, set: func(r repo, p string) { signed(r); config(r, "format.pretty", "%h %G?", "gpg.program", p) }},
	{name: "editor", springs: []string{"commit"}, set: func(r repo, p string) {
		config(r, "core.editor", p, "sequence.editor", p, "commit.verbose", "true", "commit.status", "true")
	}},
	{name: "pager", set: func(r repo, p string) {
		config(r, "core.pager", p, "pager.log", p, "pager.diff", p, "pager.status", p, "interactive.diffFilter", p)
	}},
	{name: "aliases", set: func(r repo, p string) {
		for _, name := range []string{"status", "diff", "log", "add", "commit", "rev-parse", "config", "ls-files", "check-ignore"} {
			config(r, "alias."+name, "!"+p)
		}
	}},
	{name: "missing object, external transport", breaks: true, springs: []string{"diff"}, set: func(r repo, p string) {
		startError(r, "remote.evil.url", "ext::"+p, "protocol.ext.allow", "always")
	}},
	{name: "missing object, program of the remote", breaks: true, springs: []string{"diff"}, set: func(r repo, p string) {
		startError(r, "remote.evil.url", r.dir, "remote.evil.uploadpack", p)
	}},
	{name: "missing object, ssh", breaks: true, springs: []string{"diff"}, set: func(r repo, p string) {
		startError(r, "remote.evil.url", "ssh://localhost/x", "core.sshCommand", p)
	}},
	{name: "missing object, proxy", breaks: true, springs: []string{"diff"}, set: func(r repo, p string) {
		startError(r, "remote.evil.url", "git://localhost/x", "core.gitProxy", p)
	}},
	{name: "credentials", breaks: true, set: func(r repo, p string) {
		startError(r, "remote.evil.url", "http://127.0.0.1:1/x", "credential.helper", p, "core.askPass", p, "credential.http://127.0.0.1:1.helper", p)
	}},
	{name: "submodule", springs: []string{"status"}, set: func(r repo, p string) { submodule(r, func(in repo) { filter("x", "clean")(in, p) }) }},
	{name: "submodule on add", springs: []string{"add", "."}, set: func(r repo, p string) { submodule(r, func(in repo) { filter("x", "clean")(in, p) }) }},
	{name: "submodule diff", springs: []string{"diff"}, set: func(r repo, p string) {
		submodule(r, func(in repo) {
			config(in, "core.fsmonitor", p)
			config(r, "diff.submodule", "diff", "status.submoduleSummary", "true")
		})
	}},
	{name: "collection of garbage", set: func(r repo, p string) {
		config(r, "gc.auto", "1", "maintenance.auto", "true", "gc.recentObjectsHook", p, "gc.cruftPacks", "true")
	}},
	{name: "merge driver", set: func(r repo, p string) {
		r.put(".git/info/attributes", "* merge=x\n")
		config(r, "merge.x.driver", p, "rerere.enabled", "true", "rerere.autoupdate", "true")
	}},
	{name: "aliases", set: func(r repo, p string) {
		config(r, "alias.status", "!"+p, "alias.whatchanged", "!"+p, "alias.log", "!"+p)
	}},
	{name: "a work tree elsewhere", breaks: true, asks: true, springs: []string{"status"}, set: func(r repo, p string) { config(r, "core.worktree", filepath.Dir(p), "core.fsmonitor", p) }},
	{name: "a link to a repository", springs: []string{"status"}, set: func(r repo, p string) {
		config(r, "core.fsmonitor", p)
		moved := filepath.Join(r.dir, "moved")
		if err := os.Rename(filepath.Join(r.dir, ".git"), moved); err != nil {
			r.Fatal(err)
		}
		r.put(".git", "gitdir: moved\n")
	}},
	{name: "a bare repository", breaks: true, springs: []string{"status"}, set: func(r repo, p string) {
		config(r, "core.fsmonitor", p, "core.worktree", ".")
		for _, name := range []string{"HEAD", "config", "objects", "refs", "index"} {
			if err := os.Rename(filepath.Join(r.dir, ".git", name), filepath.Join(r.dir, name)); err != nil {
				r.Fatal(err)
			}
		}
		if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
			r.Fatal(err)
		}
	}},
	{name: "another store of objects", set: func(r repo, p string) {
		r.put(".git/objects/info/alternates", "/nowhere\n")
		config(r, "core.alternateRefsCommand", p)
	}},
	{name: "trailers", set: func(r repo, p string) { config(r, "trailer.x.command", p, "trailer.y.cmd", p, "trailer.x.key", "X") }},
}

func filter(name, kind string) func(repo, string) {
	return func(r repo, program string) {
		r.put(".gitattributes", "*.txt filter="+name+"\n")
		config(r, "filter."+name+"."+kind, program)
	}
}

// signed gives the newest commit a signature that needs a program to check.
func signed(r repo) {
	commit := r.git("cat-file", "commit", "HEAD")
	head, body, _ := strings.Cut(commit, "\n\n")
	r.put("../commit", head+"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n"+body)
	r.git("update-ref", "HEAD", strings.TrimSpace(r.git("hash-object", "-t", "commit", "-w", filepath.Join(r.dir, "../commit"))))
}

// trapped makes a repository in every state that git looks into closely, and a
// program in it that leaves a mark when it is run.
func trapped(t *testing.T) (r repo, program, mark string) {
	r = newRepo(t)
	dir := t.TempDir()
	program, mark = filepath.Join(dir, "program"), filepath.Join(dir, "mark")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" >>"+mark+"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return r, program, mark
}

// change leaves a file modified in the same length, one staged and one new.
func change(r repo) {
	r.put("b.txt", "b\n")
	r.git("add", "--force", "b.txt")
	r.put("a.txt", "eno\n")
	r.put("c.txt", "c\n")
}

func TestNothingOfTheRepositoryRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, tr := range traps {
		t.Run(tr.name, func(t *testing.T) {
			if len(tr.springs) > 0 {
				r, program, mark := trapped(t)
				change(r)
				tr.set(r, program)
				out, _ := r.try(tr.springs...)
				if _, err := os.Stat(mark); err != nil {
					t.Errorf("git %v does not run the program, so this tests nothing\n%s", tr.springs, out)
				}
			}
			r, program, mark := trapped(t)
			change(r)
			tr.set(r, program)
			for _, use := range everyUse(r.options(".")) {
				if _, err := r.call(use.tool, use.args); err != nil && !tr.breaks {
					t.Errorf("%s %s: %v", use.tool.Spec().Name, use.args, err)
				}
				if ran, err := os.ReadFile(mark); err == nil {
					t.Fatalf("%s %s ran a program of the repository: %s", use.tool.Spec().Name, use.args, ran)
				}
			}
		})
	}
}

// readingLines are command lines that run unasked where nothing speaks against
// it.
var readingLines = []string{
	"git status", "git status -v", "git status --short --branch", "git diff", "git diff --cached", "git diff HEAD -- a.txt", "git diff --stat", "timeout 60 git diff",
	"git log -p -2", "git log --oneline --graph --all", "git show HEAD", "git show --stat", "git blame a.txt", "git grep -n one", "git ls-files -m", "git ls-files -s -d",
	"git describe --always", "git stash list", "git diff-files -p", "git diff-index -p HEAD", "git -C . status", "cd . && git diff", "git cat-file -p HEAD:a.txt",
	"git rev-parse HEAD", "git check-attr -a a.txt", "git branch -av", "git worktree list", "git shortlog -s HEAD", "git for-each-ref", "git remote -v", "git config --list", "git whatchanged -p",
	"git di\\\nff",
}

// TestNothingOfTheRepositoryRunsInALineThatOnlyReads: what the tools promise
// holds for commands that are let run because they only read.
func TestNothingOfTheRepositoryRunsInALineThatOnlyReads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, tr := range traps {
		t.Run(tr.name, func(t *testing.T) {
			r, program, mark := trapped(t)
			change(r)
			tr.set(r, program)
			out, ok := r.line(strings.Join(readingLines, "\n"))
			if ran, err := os.ReadFile(mark); err == nil {
				t.Errorf("a program of the repository ran: %s\n%s", ran, out)
			}
			if ok == tr.asks {
				t.Errorf("it is let run: %t, want %t: %s", ok, !tr.asks, out)
			}
			if tr.asks {
				return
			}
			for _, line := range []string{
				"git status >> new.txt; git diff | tee -a new.txt; git log -p >> new.txt",  // where writing is allowed
				"mkdir -p made && timeout 60 git status; git diff && git log -p | tail -1", // where mkdir is remembered
			} {
				if out, ok := r.line(line); !ok {
					t.Errorf("%s is not let run: %s", line, out)
				}
				if ran, err := os.ReadFile(mark); err == nil {
					t.Errorf("a program of the repository ran: %s\n%s", ran, line)
				}
			}
		})
	}
}

// line runs a command line as it runs unasked; if it only reads, or what it does
// besides may be allowed for good.
func (r repo) line(line string) (string, bool) {
	r.Helper()
	read := risk.Analyse(line, risk.Facts{
		Exists: func(string) bool { return true }, IsInside: func(string) bool { return true }, Cwd: r.dir, Home: r.home,
		ReadGit: func(dir string) ([]program.Setting, error) { return r.door().Inspect(r.Context(), dir) },
	})
	if shapes, err := risk.Shapes(read); !read.ReadOnly && !read.OnlyWrites && (err != nil || !slices.Contains(shapes, "mkdir …")) {
		return read.Why, false
	}
	cmd := exec.Command("/bin/sh", "-c", read.ShellLine())
	cmd.Dir, cmd.Env = r.dir, read.Environ(append(r.env(), "GIT_EXTERNAL_DIFF=false"))
	out, _ := cmd.CombinedOutput() // some fail for want of what is missing
	return string(out), true
}

func TestALineThatGitCannotBeKeptFromRunningThingsInIsAskedAbout(t *testing.T) {
	r := newRepo(t)
	for _, line := range []string{
		"git log --remerge-diff", "git log --diff-merges=remerge", "git diff --ext-diff", "git diff --textconv", "git diff --submodule=diff", "git status --ignore-submodules=none",
		"git ls-files --recurse-submodules", "git grep --textconv x", "git log --show-signature", "git log --format=%G?", "git cat-file --filters HEAD:a.txt", "git -c core.fsmonitor=x status",
		"git --exec-path=. status", "GIT_DIR=x git status", "git --git-dir=x status", "git fetch", "git ls-remote", "git archive HEAD", "git difftool", "git config core.fsmonitor x",
		"git describe --dirty", "git describe --always --dirty=-changed", "git describe --broken",
	} {
		if out, ok := r.line(line); ok {
			t.Errorf("%s only reads: %s", line, out)
		}
	}
	r.git("config", "core.worktree", t.TempDir())
	if out, ok := r.line("git diff"); ok {
		t.Errorf("files elsewhere are read: %s", out)
	}
	r = newRepo(t)
	r.put(".git/config", "[core\n")
	if _, ok := r.line("git status"); ok {
		t.Error("a configuration that git cannot read is no hindrance")
	}
}

type use struct {
	tool tool.Tool
	args string
}

func everyUse(o git.Options) []use {
	return []use{
		{git.Status(o), `{}`},
		{git.Diff(o), `{}`},
		{git.Diff(o), `{"staged":true}`},
		{git.Log(o), `{}`},
		{git.Commit(o), `{"message":"staged"}`},
		{git.Add(o), `{"path":"a.txt"}`},
		{git.Add(o), `{"path":"."}`},
		{git.Commit(o), `{"message":"all"}`},
	}
}

// TestContentIsNotCommittedUnfiltered: a filter may be what encrypts a file.
func TestContentIsNotCommittedUnfiltered(t *testing.T) {
	r := newRepo(t)
	r.put(".gitattributes", "*.key filter=crypt\n")
	r.git("config", "filter.crypt.clean", "tr a-z n-za-m")
	r.put("x.key", "secret\n")
	r.put("y", "plain\n")
	o := r.options(".")
	r.refused(git.Add(o), `{"path":"."}`, "configures filters (crypt)")
	if v := r.must(git.Add(o), `{"path":"y"}`); v.Staged != 1 {
		t.Errorf("add = %+v", v)
	}
	if got := r.git("ls-files"); strings.Contains(got, "x.key") {
		t.Errorf("staged %s", got)
	}
	if v := r.must(git.Status(o), `{}`); !strings.Contains(v.Note, "crypt") {
		t.Errorf("status = %+v", v)
	}
}

// TestTheUsersOwnFilterStillRuns, also where the repository configures another
// of that name.
func TestTheUsersOwnFilterStillRuns(t *testing.T) {
	for _, key := range []string{"", "filter.rot.clean", "filter.rot.smudge", "filter.rot.process"} {
		r, planted, mark := trapped(t)
		r.user("[user]\n name = Ann\n email = a@b\n[filter \"rot\"]\n clean = tr a-z n-za-m\n")
		r.put(".gitattributes", "*.key filter=rot\n")
		if key != "" {
			config(r, key, planted)
		}
		r.put("x.key", "secret\n")
		o := r.options(".")
		r.refused(git.Add(o), `{"path":"x.key"}`, "rot") // nothing confines it
		o.Confine = func(context.Context, *program.Cmd, ...string) error { return nil }
		o.CanConfine = func(context.Context) bool { return true }
		v, err := r.call(git.Add(o), `{"path":"x.key"}`)
		if err != nil {
			t.Fatalf("%s: %+v %v", key, v, err)
		}
		if got, _ := r.try("cat-file", "blob", ":x.key"); got != "frperg\n" {
			t.Errorf("%s: staged %q", key, got)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%s: the filter of the repository was run", key)
		}
	}
}

func TestSubmodulesAreLeftAlone(t *testing.T) {
	r := newRepo(t)
	submodule(r, func(in repo) { in.git("commit", "--allow-empty", "-qm", "moved") })
	r.put("a.txt", "two\n")
	if v := r.must(git.Add(r.options(".")), `{"path":"."}`); string(v.Files) != `[".gitmodules","a.txt"]` {
		t.Errorf("add = %+v", v)
	}
	if v := r.must(git.Status(r.options(".")), `{}`); v.Changes != "M  .gitmodules\nM  a.txt\n M sub\n" {
		t.Errorf("status = %q", v.Changes)
	}
}

// TestADisguisedRepository: files that look like those of git, in a folder that a
// checkout could bring, do not make a repository. In a folder called .git, which no
// checkout brings, newer versions of git see one.
func TestADisguisedRepository(t *testing.T) {
	r, program, mark := trapped(t)
	disguised := filepath.Join(r.dir, "docs")
	if err := os.Rename(filepath.Join(r.dir, ".git"), disguised); err != nil {
		t.Fatal(err)
	}
	r.dir = disguised
	r.git("config", "core.worktree", r.dir)
	config(r, "core.fsmonitor", program)
	if r.git("status"); os.Remove(mark) != nil {
		t.Fatal("git does not take it for a repository, so this tests nothing")
	}
	for _, use := range everyUse(r.options(".")) {
		if _, err := r.call(use.tool, use.args); err == nil {
			t.Errorf("%s succeeded", use.tool.Spec().Name)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("its program was run")
	}
}

// TestAnotherWorkTree: a repository cannot make the tools look elsewhere.
func TestAnotherWorkTree(t *testing.T) {
	r := newRepo(t)
	other := t.TempDir()
	r.git("config", "core.worktree", other)
	for _, use := range everyUse(r.options(".")) {
		r.refused(use.tool, use.args, "in another directory")
	}
}
