package workspace_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"coder/internal/host/workspace"
)

// gitHere runs git as a person with the given home.
func gitHere(t *testing.T, home, dir string, args ...string) string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	cmd := exec.Command(git, args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "PATH=" + os.Getenv("PATH")}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, said.String())
	}
	return string(out)
}

// as is how the person with a home is heeded.
func as(home string) workspace.GitSettings {
	return workspace.GitSettings{
		Home: home, Ignore: home + "/.config/git/ignore",
		Configs: []string{home + "/.config/git/config", home + "/.gitconfig"},
	}
}

// visited lists the files of a workspace at dir that are not ignored, by walking
// and by a survey.
func visited(t *testing.T, dir, home string) []string {
	t.Helper()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	ws.UseGitSettings(as(home))
	var walked, surveyed []string
	for e := range ws.Walk(t.Context(), ".", 0) {
		if !e.Ignored && !e.IsDir() {
			walked = append(walked, e.Path)
		}
	}
	_, err = ws.Survey(t.Context(), workspace.Survey{Limit: 1 << 30, Each: func(f workspace.Folder) {
		for _, e := range f.Entries {
			if !e.Mode.IsDir() {
				surveyed = append(surveyed, path.Join(f.Path, strings.Clone(e.Name)))
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(walked)
	slices.Sort(surveyed)
	if !slices.Equal(walked, surveyed) {
		t.Errorf("a walk finds %q\na survey      %q", walked, surveyed)
	}
	return walked
}

// untracked lists the files that git would.
func untracked(t *testing.T, home, dir string) []string {
	t.Helper()
	out := strings.TrimSuffix(gitHere(t, home, dir, "ls-files", "-coz", "--exclude-standard"), "\x00")
	if out == "" {
		return nil
	}
	list := strings.Split(out, "\x00")
	slices.Sort(list)
	return list
}

// Random trees with random rules, above the workspace, in it, of the repository
// and of the person, are seen as git sees them.
func TestRandomIgnoreRulesAgreeWithGit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	rnd := rand.New(rand.NewPCG(7, 11))
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	names := []string{"a", "b", "ab", "A", "a.o", "b.log", "keep.log", "x y", "sp ", "[a]", "]", "-", "é", "a!b", "#c", "!d", "a\\b", "build", "doc", "1", "a-b", "{a,b}", "**", "win\r"}
	atoms := []string{"a", "b", "ab", "*", "**", "?", "*.o", "*.log", "keep.log", "build", "doc", "[ab]", "[!a]", "[^a]", "[]a]", "[!]a]", "[[:alpha:]]", "[[:alpha:][:digit:]]", "[[:upper:]]*", "[[:bad:]]", "[a-", "[a-b]", "[b-a]", "[--a]", "[a\\]]", "[[]a]", "\\[a\\]", "\\a", "\\", "x y", "sp\\ ", "sp ", "a*b", "*a*", "a**", "**b", "é", "[é]", "#c", "\\#c", "!d", "\\!d", "a\\\\b", "{a,b}", "[[:space:]]", "x[[:space:]]y", "???", "*.*", "[*]", "[!a-b]", "[\\!a]", "win\r", "\\**"}
	pattern := func() string {
		parts := []string{pick(atoms)}
		for rnd.IntN(3) == 0 {
			parts = append(parts, pick(atoms))
		}
		p := strings.Join(parts, "/")
		if rnd.IntN(4) == 0 {
			p = "/" + p
		}
		if rnd.IntN(4) == 0 {
			p += "/"
		}
		if rnd.IntN(4) == 0 {
			p = "!" + p
		}
		if rnd.IntN(6) == 0 {
			p += pick([]string{" ", "  ", "\t", "\\ ", " \\", "//"})
		}
		return p
	}
	file := func() string {
		var b strings.Builder
		if rnd.IntN(5) == 0 {
			b.WriteString("\ufeff")
		}
		end := pick([]string{"\n", "\n", "\r\n"})
		for range 1 + rnd.IntN(5) {
			b.WriteString(pattern() + end)
		}
		if rnd.IntN(4) == 0 {
			b.WriteString(pattern())
		}
		return b.String()
	}
	paths, wrong := 0, 0
	for round := range 80 {
		home, top := t.TempDir(), t.TempDir()
		gitHere(t, home, top, "init", "-q")
		if round%5 == 0 {
			gitHere(t, home, top, "config", "core.ignorecase", "true")
		}
		dirs := []string{".", "ws"}
		for range 6 {
			dirs = append(dirs, path.Join(pick(dirs[1:]), pick(names)))
		}
		for _, d := range dirs {
			if os.MkdirAll(filepath.Join(top, d), 0o755) != nil {
				continue // there is a file
			}
			for _, n := range names {
				if rnd.IntN(2) == 0 && os.WriteFile(filepath.Join(top, d, n), nil, 0o644) == nil {
					paths++
				}
			}
			if rnd.IntN(3) > 0 {
				put(t, filepath.Join(top, d, ".gitignore"), file())
			}
		}
		put(t, top+"/.git/info/exclude", file())
		if rnd.IntN(2) == 0 {
			put(t, home+"/.config/git/ignore", file())
		}
		if rnd.IntN(4) == 0 {
			put(t, home+"/.gitconfig", "[core] # of the person\n\texcludesFile = \"~/my ignore\" ; here\n")
			put(t, home+"/my ignore", file())
		}
		for _, at := range []string{".", "ws"} {
			got, want := visited(t, filepath.Join(top, at), home), untracked(t, home, filepath.Join(top, at))
			if at != "." && len(want) == 0 {
				continue // the workspace itself is ignored, and was asked for
			}
			if slices.Equal(got, want) {
				continue
			}
			if ignored := exec.Command("git", "-C", top, "check-ignore", "-q", "--no-index", at); at != "." && ignored.Run() == nil {
				continue
			}
			wrong++
			t.Errorf("round %d in %s:\nonly here %q\nonly git  %q", round, at, without(got, want), without(want, got))
			for _, d := range dirs {
				if text, err := os.ReadFile(filepath.Join(top, d, ".gitignore")); err == nil {
					t.Logf("%s/.gitignore %q", d, text)
				}
			}
			for _, f := range []string{top + "/.git/info/exclude", home + "/.config/git/ignore", home + "/my ignore"} {
				if text, err := os.ReadFile(f); err == nil {
					t.Logf("%s %q", filepath.Base(f), text)
				}
			}
			if wrong > 5 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d paths, %d rounds that differ", paths, wrong)
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}

// The rules of other repositories within a workspace are their own, and those
// of a work tree are those of its repository.
func TestRepositoriesWithinAndWorkTreesAgreeWithGit(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	main := dir + "/main"
	put(t, main+"/.gitignore", "*.log\n")
	put(t, main+"/x.log", "")
	put(t, main+"/a.tmp", "")
	gitHere(t, home, main, "init", "-q")
	put(t, main+"/.git/info/exclude", "*.tmp\n")
	gitHere(t, home, main, "add", ".gitignore")
	gitHere(t, home, main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
	gitHere(t, home, main, "worktree", "add", "-q", "../tree")
	for _, d := range []string{main + "/inner", dir + "/tree/inner"} {
		put(t, d+"/.gitignore", "*.o\n")
		for _, name := range []string{"x.log", "x.o", "x.tmp", "x.c"} {
			put(t, d+"/"+name, "")
		}
		gitHere(t, home, d, "init", "-q")
	}
	put(t, dir+"/tree/y.tmp", "")
	put(t, dir+"/tree/y.log", "")
	put(t, dir+"/tree/y.c", "")
	put(t, main+"/not/.git/config", "") // no repository
	put(t, main+"/not/x.log", "")
	for _, top := range []string{main, dir + "/tree"} {
		var want []string
		for _, name := range untracked(t, home, top) {
			if !strings.HasPrefix(name, "inner") {
				want = append(want, name)
			}
		}
		for _, name := range untracked(t, home, top+"/inner") {
			want = append(want, "inner/"+name)
		}
		slices.Sort(want)
		if got := visited(t, top, home); !slices.Equal(got, want) {
			t.Errorf("%s: %q\ngit says %q", top, got, want)
		}
	}
}

// A directory that is asked for is shown although rules leave nothing of it.
func TestWhatIsAskedForIsSeen(t *testing.T) {
	for _, rule := range []string{"logs/**", "logs/*", "logs", "*", "/logs/"} {
		ws, dir, _ := open(t)
		put(t, dir+"/.gitignore", rule+"\n")
		put(t, dir+"/logs/x", "")
		n := 0
		for e := range ws.Walk(t.Context(), "logs", 0) {
			if !e.Ignored {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d seen", rule, n)
		}
		top := t.TempDir()
		put(t, top+"/.gitignore", rule+"\n")
		put(t, top+"/logs/x", "")
		gitHere(t, top, top, "init", "-q")
		if got := visited(t, top+"/logs", t.TempDir()); !slices.Equal(got, []string{"x"}) {
			t.Errorf("%s above: %q", rule, got)
		}
	}
}

// Traps where rules are read are passed over.
func TestTrapsInPlaceOfIgnoreFiles(t *testing.T) {
	for name, lay := range map[string]func(string) error{
		"pipe":      func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"zero":      func(at string) error { return os.Symlink("/dev/zero", at) },
		"circle":    func(at string) error { return os.Symlink(filepath.Base(at), at) },
		"huge":      func(at string) error { return errorsOf(os.WriteFile(at, nil, 0o644), os.Truncate(at, 1<<40)) },
		"elsewhere": func(at string) error { return os.Symlink("/etc/passwd", at) },
	} {
		for _, place := range []string{".gitignore", ".git/info/exclude", ".git/config", "ws/.gitignore", "ws/in/.gitignore", "ws/in/.git"} {
			home, top := t.TempDir(), t.TempDir()
			put(t, top+"/ws/in/f", "")
			gitHere(t, home, top, "init", "-q")
			if err := errorsOf(os.RemoveAll(filepath.Join(top, place)), lay(filepath.Join(top, place))); err != nil {
				t.Fatal(err)
			}
			if got := visited(t, top+"/ws", home); !slices.Contains(got, "in/f") {
				t.Errorf("%s in place of %s: %q", name, place, got)
			}
		}
	}
}

func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return fmt.Errorf("lay: %w", err)
		}
	}
	return nil
}

// Nothing that was ignored comes to light in a survey because a repository is
// made around it, or its rules are changed where no one sees.
func TestSurveysKeepTheirRules(t *testing.T) {
	home, top := t.TempDir(), t.TempDir()
	put(t, top+"/.gitignore", "*.log\n")
	put(t, top+"/sub/x.log", "")
	put(t, top+"/sub/x.tmp", "")
	gitHere(t, home, top, "init", "-q")
	put(t, top+"/.git/info/exclude", "*.tmp\n")
	ws, err := workspace.Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	count := func(dirs []string) (n int) {
		if _, err := ws.Survey(t.Context(), workspace.Survey{Dirs: dirs, Limit: 1000, Each: func(f workspace.Folder) {
			if f.Path == "sub" {
				n += len(f.Entries)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(nil); n != 0 {
		t.Fatalf("%d entries", n)
	}
	gitHere(t, home, top+"/sub", "init", "-q")
	put(t, top+"/.git/info/exclude", "")
	for _, dirs := range [][]string{nil, {"sub"}} {
		if n := count(dirs); n != 0 {
			t.Errorf("%d entries came to light", n)
		}
	}
}
