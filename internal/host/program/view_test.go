package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// world is a home, a repository in a workspace beside it, and a program that leaves a
// mark when it is run.
type world struct {
	*testing.T
	home, ws, program, mark string
	env                     []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	w := &world{T: t, home: at("home"), ws: at("ws"), program: at("program"), mark: at("mark")}
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	w.put(w.home+"/.gitconfig", "[user]\n name = Ann\n email = a@b\n")
	w.put(w.program, "#!/bin/sh\ncat\necho \"$0 $*\" >>"+w.mark+"\n")
	w.put(w.ws+"/a.txt", "one\n")
	if err := os.Chmod(w.program, 0o755); err != nil {
		t.Fatal(err)
	}
	w.git("init", "-q", "-b", "main")
	w.git("add", ".")
	w.git("commit", "-qm", "first")
	w.put(w.ws+"/.gitattributes", "*.txt filter=x\n")
	w.put(w.ws+"/a.txt", "two\n")
	return w
}

func (w *world) put(name, text string) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// git runs git as a person would.
func (w *world) git(args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.ws, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// open is coder's own git in a folder.
func (w *world) open(dir string) Git {
	w.Helper()
	g, err := NewOutside(w.env, w.ws).Git(w.Context(), dir)
	if err != nil {
		w.Fatal(err)
	}
	return g
}

// runs runs a command of coder's own git.
func (w *world) runs(g Git, args ...string) string {
	w.Helper()
	out, err := g.Command(w.Context(), args...).CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// evil is a configuration that has git run the program.
func (w *world) evil() string {
	return "[core]\n repositoryformatversion = 0\n fsmonitor = " + w.program + "\n[filter \"x\"]\n clean = " + w.program + "\n"
}

func (w *world) marked() string {
	text, _ := os.ReadFile(w.mark)
	return string(text)
}

// TestWhatChangesAfterTheLookIsNotObeyed: each row is a way to have git run a program
// that is taken once coder has looked at the repository.
func TestWhatChangesAfterTheLookIsNotObeyed(t *testing.T) {
	evils := map[string]func(w *world){
		"configuration": func(w *world) { w.put(w.ws+"/.git/config", w.evil()) },
		"included file": func(w *world) { w.put(w.ws+"/team.inc", w.evil()) },
		"commondir": func(w *world) {
			w.git("clone", "-q", "--no-hardlinks", ".", "evil")
			w.put(w.ws+"/evil/.git/config", w.evil())
			w.put(w.ws+"/.git/commondir", "../evil/.git\n")
		},
		"configuration of the work tree": func(w *world) {
			w.put(w.ws+"/.git/config", "[core]\n repositoryformatversion = 1\n[extensions]\n worktreeConfig = true\n")
			w.put(w.ws+"/.git/config.worktree", w.evil())
		},
		"a file in place of .git": func(w *world) {
			if err := os.Rename(w.ws+"/.git", w.ws+"/moved"); err != nil {
				w.Fatal(err)
			}
			w.put(w.ws+"/moved/config", w.evil())
			w.put(w.ws+"/.git", "gitdir: moved\n")
		},
		"a link in place of .git": func(w *world) {
			if err := errors.Join(os.Rename(w.ws+"/.git", w.ws+"/moved"), os.Symlink("moved", w.ws+"/.git")); err != nil {
				w.Fatal(err)
			}
			w.put(w.ws+"/moved/config", w.evil())
		},
	}
	for name, plant := range evils {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(w.ws+"/team.inc", "")
			w.git("config", "include.path", "../team.inc")
			g := w.open(w.ws)
			plant(w)
			cmd := g.Command(t.Context(), "status", "--short")
			out, err := cmd.CombinedOutput()
			if got := w.marked(); got != "" {
				t.Errorf("it ran %s", got)
			}
			if name != "a file in place of .git" && (err != nil || !strings.Contains(string(out), " M a.txt")) {
				t.Errorf("%v: %s", err, out)
			}
			if g, err := NewOutside(w.env, w.ws).Git(t.Context(), w.ws); err == nil { // what is there for good
				_, _ = g.Command(t.Context(), "status", "--short").CombinedOutput()
				_, _ = g.Command(t.Context(), "add", ".").CombinedOutput()
				if got := w.marked(); got != "" {
					t.Errorf("opened again it ran %s", got)
				}
			}
			w.git("status")
			if w.marked() == "" {
				t.Error("plain git does not run the program either: this tests nothing")
			}
		})
	}
}

// TestASettingIsYoursWhereItsFileIs: what your configuration leads to in the workspace
// is not yours.
func TestASettingIsYoursWhereItsFileIs(t *testing.T) {
	for name, tt := range map[string]struct {
		mine bool
		set  func(w *world)
	}{
		"in the home": {true, func(w *world) { w.put(w.home+"/.gitconfig", w.evil()) }},
		"included in the home": {true, func(w *world) {
			w.put(w.home+"/.gitconfig", "[include]\n path = more\n")
			w.put(w.home+"/more", w.evil())
		}},
		"a link to the workspace": {false, func(w *world) {
			w.put(w.ws+"/dot/gitconfig", w.evil())
			if err := errors.Join(os.Remove(w.home+"/.gitconfig"), os.Symlink("../ws/dot/gitconfig", w.home+"/.gitconfig")); err != nil {
				w.Fatal(err)
			}
		}},
		"a link through the workspace": {false, func(w *world) {
			w.put(w.home+"/real", w.evil())
			link(w.T, w.home, w.ws+"/away")
			if err := errors.Join(os.Remove(w.home+"/.gitconfig"), os.Symlink(w.ws+"/away/real", w.home+"/.gitconfig")); err != nil {
				w.Fatal(err)
			}
		}},
		"a folder of settings in the workspace": {false, func(w *world) {
			w.put(w.ws+"/.cfg/git/config", w.evil())
			w.env = append(w.env, "XDG_CONFIG_HOME="+w.ws+"/.cfg")
		}},
		"a variable that leads there": {false, func(w *world) {
			w.put(w.ws+"/dev.conf", w.evil())
			w.env = append(w.env, "GIT_CONFIG_GLOBAL="+w.ws+"/dev.conf")
		}},
		"a relative variable": {false, func(w *world) {
			w.put(w.ws+"/dev.conf", w.evil())
			w.env = append(w.env, "GIT_CONFIG_GLOBAL=dev.conf")
		}},
		"an include for the workspace": {false, func(w *world) {
			w.put(w.home+"/.gitconfig", fmt.Sprintf("[includeIf \"gitdir:%s/\"]\n path = %[1]s/work.inc\n", w.ws))
			w.put(w.ws+"/work.inc", w.evil())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.set(w)
			g, _ := w.open(w.ws).WithFilters()
			w.runs(g, "status", "--short")
			if ran := strings.Contains(w.marked(), "program"); ran != tt.mine {
				t.Errorf("it ran: %t, want %t", ran, tt.mine)
			}
			settings, err := NewOutside(w.env, w.ws).Inspect(t.Context(), w.ws)
			off := false
			for _, s := range settings {
				off = off || s == Setting{"filter.x.clean", ""}
			}
			if err != nil || off == tt.mine {
				t.Errorf("for the sandbox it is off: %t, %v", off, err)
			}
			clone := strings.Join(NewOutside(w.env, w.ws).Clone(t.Context(), "file", w.ws, filepath.Join(w.ws, "clone")).Env, "\n")
			if strings.Contains(clone, w.program) != tt.mine || !strings.Contains(clone, "GIT_CONFIG_GLOBAL="+os.DevNull) {
				t.Errorf("a clone gets %s", clone)
			}
		})
	}
}

// TestOrdinaryRepositoriesWork: the view has all that git needs of a repository.
func TestOrdinaryRepositoriesWork(t *testing.T) {
	kinds := map[string]func(w *world) (dir string){
		"plain":    func(w *world) string { return w.ws },
		"a folder": func(w *world) string { w.put(w.ws+"/sub/b.txt", "b\n"); return w.ws + "/sub" },
		"a linked tree": func(w *world) string {
			w.git("worktree", "add", "-q", "-b", "side", "../side")
			return w.ws + "/../side"
		},
		"packed": func(w *world) string {
			w.git("pack-refs", "--all")
			w.git("-c", "gc.auto=0", "repack", "-adq")
			return w.ws
		},
		"shallow": func(w *world) string {
			w.git("commit", "-qam", "second")
			w.git("clone", "-q", "--depth=1", "file://"+w.ws, "../shallow")
			return w.ws + "/../shallow"
		},
		"partial": func(w *world) string {
			w.git("config", "uploadpack.allowFilter", "true")
			w.git("clone", "-q", "--filter=blob:none", "file://"+w.ws, "../partial")
			return w.ws + "/../partial"
		},
		"with alternates": func(w *world) string { w.git("clone", "-q", "--shared", ".", "../shared"); return w.ws + "/../shared" },
		"sha256": func(w *world) string {
			w.git("init", "-q", "--object-format=sha256", "../long")
			return w.ws + "/../long"
		},
		"empty": func(w *world) string { w.git("init", "-q", "../empty"); return w.ws + "/../empty" },
		"a submodule": func(w *world) string {
			w.git("clone", "-q", ".", "../origin")
			w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../origin", "sub")
			return w.ws + "/sub"
		},
		"an odd name": func(w *world) string { w.git("clone", "-q", ".", "../a \"b\"\tc"); return w.ws + "/../a \"b\"\tc" },
		"sparse": func(w *world) string {
			w.git("clone", "-q", ".", "../sparse")
			w.git("-C", "../sparse", "sparse-checkout", "set", "x")
			return w.ws + "/../sparse"
		},
	}
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dir, err := filepath.EvalSymlinks(make(w))
			if err != nil {
				t.Fatal(err)
			}
			w.put(dir+"/new", "new\n")
			g := w.open(dir)
			if out := w.runs(g, "status", "--short", "--", "."); !strings.Contains(out, "?? new") && !strings.Contains(out, "?? sub/") && !strings.Contains(out, "?? ./") {
				t.Errorf("status: %s", out)
			}
			w.runs(g, "add", "--sparse", "new")
			w.runs(g, "commit", "-qm", "made by coder")
			plain := exec.Command("git", "log", "-1", "--format=%an %s", "--", "new")
			plain.Dir, plain.Env = dir, w.env
			reflog := exec.Command("git", "reflog", "-1")
			reflog.Dir, reflog.Env = dir, w.env
			out, err := plain.CombinedOutput()
			log, unlogged := reflog.CombinedOutput()
			if string(out) != "Ann made by coder\n" || !strings.Contains(string(log), "made by coder") {
				t.Errorf("git has %s, %s, %v, %v", out, log, err, unlogged)
			}
			check := exec.Command("git", "fsck", "--strict")
			check.Dir, check.Env = dir, w.env
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestAWorkTreeThatCoderMakesIsOneForAll: git wrote the name of a view into it, which
// means nothing to others.
func TestAWorkTreeThatCoderMakesIsOneForAll(t *testing.T) {
	w := newWorld(t)
	side := filepath.Join(filepath.Dir(w.ws), "side")
	w.runs(w.open(w.ws), "worktree", "add", "--quiet", "-b", "side", "--", side, "HEAD")
	w.runs(w.open(side), "status")
	text, err := os.ReadFile(filepath.Join(side, ".git"))
	if want := "gitdir: " + w.ws + "/.git/worktrees/side\n"; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	if out := w.runs(w.open(side), "worktree", "list"); !strings.HasPrefix(out, w.ws+" ") || !strings.Contains(out, side+" ") {
		t.Errorf("there are %s", out)
	}
	w.runs(w.open(w.ws), "worktree", "remove", "--force", "--", side)
	if out := w.git("worktree", "list"); strings.Contains(out, "side") {
		t.Errorf("there are %s", out)
	}
}

// TestWhereGitCannotBeUsedItSaysSo in one line.
func TestWhereGitCannotBeUsedItSaysSo(t *testing.T) {
	w := newWorld(t)
	w.git("config", "core.repositoryformatversion", "1")
	w.git("config", "extensions.future", "true")
	if _, err := w.open(w.ws).Repository(); err == nil || !strings.Contains(err.Error(), "future") {
		t.Errorf("an unknown extension: %v", err)
	}
	empty := t.TempDir()
	g := w.open(empty)
	if err := g.Command(t.Context(), "status").Run(); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("no repository: %v", err)
	}
	w = newWorld(t)
	w.env = append(w.env, "CODER_HOME="+w.program)
	if _, err := NewOutside(w.env, w.ws).Git(t.Context(), w.ws); err == nil || !strings.Contains(err.Error(), "prepare git: ") {
		t.Errorf("no folder: %v", err)
	}
	w.env = append(w.env, "CODER_HOME=", "HOME=")
	if _, err := NewOutside(w.env, w.ws).Git(t.Context(), w.ws); !errors.Is(err, errNoViewsDir) {
		t.Errorf("no home: %v", err)
	}
}

// TestAViewIsMadeOnce, and again where something is wrong with it.
func TestAViewIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	first := w.open(w.ws)
	w.put(first.viewDir+"/config", w.evil())
	second := w.open(w.ws)
	if w.runs(second, "status"); first.viewDir != second.viewDir || w.marked() != "" {
		t.Errorf("%s and %s; it ran %s", first.viewDir, second.viewDir, w.marked())
	}
	folder := filepath.Dir(first.viewDir)
	for i := range maxViews {
		w.put(filepath.Join(folder, fmt.Sprint(i), "config"), "")
	}
	w.git("config", "extensions.preciousObjects", "true")
	w.git("config", "core.repositoryformatversion", "1")
	w.open(w.ws)
	if views, err := os.ReadDir(folder); err != nil || len(views) > maxViews {
		t.Errorf("there are %d views, %v", len(views), err)
	}
}

// TestGitDoesNotRunItselfInSubmodules, whose settings nobody judged, whatever the
// .gitmodules of the repository say.
func TestGitDoesNotRunItselfInSubmodules(t *testing.T) {
	for _, args := range [][]string{
		{"status", "--porcelain"}, {"diff", "--no-ext-diff"}, {"diff", "--no-ext-diff", "--", "sub"}, {"diff-files", "-p", "--no-ext-diff"}, {"diff-index", "HEAD"},
		{"add", "--all", "--", "."}, {"add", "-u"}, {"update-index", "--add", "sub"}, {"checkout", "-f", "HEAD"}, {"reset", "--hard"}, {"ls-files", "--modified"},
	} {
		w := newWorld(t)
		w.git("clone", "-q", ".", "../origin")
		w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../origin", "sub")
		w.git("commit", "-qm", "sub")
		w.git("config", "-f", ".gitmodules", "submodule.sub.ignore", "none")
		w.git("-C", "sub", "config", "filter.x.clean", w.program)
		w.put(w.ws+"/sub/.gitattributes", "*.txt filter=x\n")
		w.put(w.ws+"/sub/a.txt", "ano\n")
		out, err := w.open(w.ws).Command(t.Context(), args...).CombinedOutput()
		if w.marked() != "" || args[0] != "add" && err != nil {
			t.Errorf("git %v ran %q: %v, %s", args, w.marked(), err, out)
		}
		if w.git("status"); w.marked() == "" {
			t.Error("plain git does not run the program either: this tests nothing")
		}
	}
}

// TestABranchThatIsNoFileIsRefused: git would wait for what a pipe or a device holds.
func TestABranchThatIsNoFileIsRefused(t *testing.T) {
	w := newWorld(t)
	branch := filepath.Join(w.ws, ".git", strings.TrimSpace(w.git("symbolic-ref", "HEAD")))
	if err := errors.Join(os.RemoveAll(branch), os.MkdirAll(filepath.Dir(branch), 0o700), os.Symlink(os.DevNull, branch)); err != nil {
		t.Fatal(err)
	}
	if _, err := NewOutside(w.env, w.ws).Git(t.Context(), w.ws); err == nil || !strings.Contains(err.Error(), branch) {
		t.Errorf("%v", err)
	}
}
