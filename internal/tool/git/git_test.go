package git_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/core/display"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/git"
	"coder/testkit/tooltest"
)

// repo is a repository for one test, away from the configuration of the user
// who runs it.
type repo struct {
	*testing.T
	dir, home string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := repo{t, t.TempDir(), t.TempDir()}
	r.user("[user]\n name = Ann\n email = ann@example.org\n[init]\n defaultBranch = main\n")
	r.git("init", "-q")
	r.put("a.txt", "one\n")
	r.git("add", "a.txt")
	r.git("commit", "-qm", "first")
	return r
}

// door starts git as in the repository.
func (r repo) door() program.Launcher { return program.NewOutside(r.env(), r.dir) }

func (r repo) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + filepath.Join(r.home, "config"),
		"GIT_AUTHOR_DATE=2020-02-03T04:05:06Z", "GIT_COMMITTER_DATE=2020-02-03T04:05:06Z",
	}
}

// user writes the user's own configuration.
func (r repo) user(config string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.home, "config"), []byte(config), 0o600); err != nil {
		r.Fatal(err)
	}
}

// git runs git as a person would, and returns what it prints.
func (r repo) git(args ...string) string {
	r.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (r repo) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.dir, append(r.env(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r repo) put(name, text string) {
	r.Helper()
	name = filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

// options are those of tools that work in a directory of the repository.
func (r repo) options(dir string) git.Options {
	r.Helper()
	ws, err := workspace.Open(filepath.Join(r.dir, dir))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { ws.Close() })
	return git.Options{Workspace: ws, Launcher: r.door()}
}

// value is the fields of all results.
type value struct {
	OK                                 bool
	Branch, Changes, Diff, Log, Commit string
	Subject, Note                      string
	Clean, Truncated                   bool
	Commits, Additions, Deletions      int
	Staged                             int
	Files                              json.RawMessage
}

func (r repo) call(t tool.Tool, args string) (value, error) {
	r.Helper()
	call, err := t.Prepare(r.Context(), json.RawMessage(args))
	if err != nil {
		return value{}, err
	}
	result, err := call.Run(r.Context(), io.Discard)
	if err != nil {
		return value{}, err
	}
	b, err := json.Marshal(result.Value)
	if err != nil {
		r.Fatal(err)
	}
	var v value
	if err := json.Unmarshal(b, &v); err != nil || !v.OK || result.Failed {
		r.Errorf("%s: %v, %s", t.Spec().Name, err, b)
	}
	if !utf8.Valid(b) || strings.ContainsFunc(v.Changes+v.Diff+v.Log+v.Subject, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' }) {
		r.Errorf("%s printed %q", t.Spec().Name, b)
	}
	return v, nil
}

func (r repo) must(t tool.Tool, args string) value {
	r.Helper()
	v, err := r.call(t, args)
	if err != nil {
		r.Fatalf("%s %s: %v", t.Spec().Name, args, err)
	}
	return v
}

// refused sees that a call fails for the reason given.
func (r repo) refused(t tool.Tool, args, why string) {
	r.Helper()
	if v, err := r.call(t, args); err == nil || !strings.Contains(err.Error(), why) {
		r.Errorf("%s %s: %v %v, want %q", t.Spec().Name, args, v, err, why)
	}
}

func TestContract(t *testing.T) {
	for name, tc := range map[string]struct {
		make      func(git.Options) tool.Tool
		good, bad []string
	}{
		"status": {git.Status, []string{`{}`}, []string{`{"x":1}`}},
		"diff":   {git.Diff, []string{`{}`, `{"staged":true}`, `{"path":"a.txt"}`, `{"cached":"true","file":"d"}`}, []string{`{"path":"../x"}`, `{"path":"/etc/passwd"}`, `{"path":"a\u0000"}`}},
		"log":    {git.Log, []string{`{}`, `{"limit":1,"path":"a.txt"}`, `{"limit":100000}`}, []string{`{"limit":-1}`, `{"path":"~/x"}`}},
		"add":    {git.Add, []string{`{"path":"a.txt"}`, `{"paths":["new.txt","d"]}`, `{"path":"b.txt"}`}, []string{`{}`, `{"paths":[]}`, `{"paths":[""]}`, `{"path":"../x"}`, `{"path":"no such file"}`, `{"paths":["a.txt","/etc"]}`}},
		"commit": {git.Commit, []string{`{"message":"second\n\nwith details"}`}, []string{`{"message":""}`, `{"message":" \n"}`, `{"message":"a\u0000b"}`, `{"message":"x","amend":true}`, `{"message":"x","no_verify":true}`}},
	} {
		t.Run(name, func(t *testing.T) {
			tooltest.TestTool(t, func(t *testing.T) tooltest.Fixture {
				r := newRepo(t)
				r.put("b.txt", "b\n")
				r.git("add", "b.txt")
				r.put("a.txt", "two\n")
				r.put("new.txt", "n\n")
				r.put("d/x", "x\n")
				return tooltest.Fixture{Tool: tc.make(r.options(".")), Dir: r.dir, Good: tc.good, Bad: tc.bad}
			})
		})
	}
}

func TestAWholeCommit(t *testing.T) {
	r := newRepo(t)
	o := r.options(".")
	if v := r.must(git.Status(o), `{}`); v.Branch != "main" || !v.Clean || v.Changes != "" {
		t.Errorf("status = %+v", v)
	}
	r.put("a.txt", "two\n")
	r.put("-f", "dash\n")
	r.put("sub/世界.txt", "new\n")
	if v := r.must(git.Status(o), `{}`); v.Clean || v.Changes != " M a.txt\n?? -f\n?? sub/\n" {
		t.Errorf("status = %+v", v)
	}
	if v := r.must(git.Diff(o), `{}`); v.Additions != 1 || v.Deletions != 1 || !strings.Contains(v.Diff, "-one\n+two\n") || string(v.Files) != "1" {
		t.Errorf("diff = %+v", v)
	}
	if v := r.must(git.Add(o), `{"paths":["a.txt","-f","sub"]}`); v.Staged != 3 || string(v.Files) != `["-f","a.txt","sub/世界.txt"]` {
		t.Errorf("add = %+v", v)
	}
	if v := r.must(git.Diff(o), `{}`); v.Diff != "" || v.Additions != 0 {
		t.Errorf("diff = %+v", v)
	}
	if v := r.must(git.Diff(o), `{"staged":true,"path":"sub"}`); !strings.Contains(v.Diff, "b/sub/世界.txt") || strings.Contains(v.Diff, "a.txt") {
		t.Errorf("diff = %+v", v)
	}
	v := r.must(git.Commit(o), `{"message":"#1 -m \"quoted\" $(id)\n\n# kept\n"}`)
	if v.Subject != `#1 -m "quoted" $(id)` || string(v.Files) != "3" || v.Commit == "" {
		t.Errorf("commit = %+v", v)
	}
	if got := r.git("log", "-1", "--format=%B"); got != "#1 -m \"quoted\" $(id)\n\n# kept\n\n" {
		t.Errorf("message = %q", got)
	}
	l := r.must(git.Log(o), `{}`)
	want := v.Commit + ` 2020-02-03 Ann: #1 -m "quoted" $(id) (HEAD -> main)` + "\n"
	if l.Commits != 2 || !strings.HasPrefix(l.Log, want) || !strings.HasSuffix(l.Log, ": first\n") {
		t.Errorf("log = %+v, want %s", l, want)
	}
	if l := r.must(git.Log(o), `{"limit":1}`); l.Commits != 1 || l.Log != want {
		t.Errorf("log = %+v", l)
	}
	if l := r.must(git.Log(o), `{"path":"sub"}`); l.Commits != 1 {
		t.Errorf("log = %+v", l)
	}
	os.Remove(filepath.Join(r.dir, "a.txt"))
	if v := r.must(git.Add(o), `{"path":"."}`); string(v.Files) != `["a.txt"]` {
		t.Errorf("add of a deletion = %+v", v)
	}
	if v := r.must(git.Status(o), `{}`); v.Changes != "D  a.txt\n" {
		t.Errorf("status = %+v", v)
	}
}

func TestNamesAreTakenAsTheyAre(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	names := []string{"$(id)", "x;id", "*.txt", ":(top)a", ":!a.txt", "--help", "-A", "a b", "tab\there", "nl\nhere", "esc\x1b[2Jhere", "bad\xffname", "rtl\u202egpj", `back\slash`, `"quoted"`}
	for _, name := range names {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			r := newRepo(t)
			o := r.options(".")
			r.put("a.txt", "two\n")
			r.put(name, "odd\n")
			r.must(git.Status(o), `{}`)
			if utf8.ValidString(name) {
				args, err := json.Marshal(map[string]string{"path": name})
				if err != nil {
					t.Fatal(err)
				}
				r.must(git.Add(o), string(args))
			} else {
				r.git("add", "--", name)
			}
			if got := r.git("diff", "--cached", "--name-only", "-z"); got != name+"\x00" {
				t.Errorf("staged %q", got)
			}
			r.must(git.Diff(o), `{"staged":true}`)
			r.must(git.Commit(o), `{"message":"odd"}`)
		})
	}
}

func TestBranchNamesAreOnlyText(t *testing.T) {
	r := newRepo(t)
	r.git("checkout", "-qb", "x;touch${IFS}marked")
	if v := r.must(git.Status(r.options(".")), `{}`); v.Branch != "x;touch${IFS}marked" {
		t.Errorf("branch = %q", v.Branch)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "marked")); err == nil {
		t.Error("the name of a branch was run")
	}
}

func TestAWorkspaceBelowTheRepository(t *testing.T) {
	r := newRepo(t)
	r.put("in/x.txt", "x\n")
	r.git("add", ".")
	r.git("commit", "-qm", "second")
	r.put("in/x.txt", "y\n")
	r.put("a.txt", "outside\n")
	o := r.options("in")
	if v := r.must(git.Status(o), `{}`); v.Changes != " M x.txt\n" {
		t.Errorf("status = %q", v.Changes)
	}
	if v := r.must(git.Diff(o), `{}`); !strings.Contains(v.Diff, "--- a/x.txt\n") || strings.Contains(v.Diff, "outside") {
		t.Errorf("diff = %s", v.Diff)
	}
	if v := r.must(git.Log(o), `{}`); v.Commits != 1 {
		t.Errorf("log = %s", v.Log)
	}
	if v := r.must(git.Add(o), `{"path":"."}`); string(v.Files) != `["x.txt"]` {
		t.Errorf("add = %+v", v)
	}
	call, err := git.Commit(o).Prepare(t.Context(), json.RawMessage(`{"message":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := call.Plan().Effects; !slices.Equal(got, []tool.Effect{{Kind: tool.Write, Target: "history of ../.git"}}) {
		t.Errorf("effects = %v", got)
	}
}

// TestALinkedWorktreeIsItsOwnRepository: what git keeps for it is named as in the
// repository itself. A file that merely points to the files of another is not
// believed.
func TestALinkedWorktreeIsItsOwnRepository(t *testing.T) {
	r := newRepo(t)
	side := filepath.Join(t.TempDir(), "side")
	r.git("worktree", "add", "-q", side, "-b", "side")
	plan := func(dir string) []tool.Effect {
		r.dir = dir
		r.put("a.txt", "changed\n")
		call, err := git.Add(r.options(".")).Prepare(t.Context(), json.RawMessage(`{"path":"a.txt"}`))
		if err != nil {
			t.Fatal(err)
		}
		return call.Plan().Effects
	}
	if got := plan(side); got[0].Target != "index of .git" {
		t.Errorf("in a linked worktree the effects are %v", got)
	}
	pointer, err := os.ReadFile(filepath.Join(side, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, ".git"), pointer, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := plan(other); got[0].Target == "index of .git" || !strings.HasSuffix(got[0].Target, ".git/worktrees/side") {
		t.Errorf("where only .git points to the worktree's files the effects are %v", got)
	}
}

func TestPlans(t *testing.T) {
	r := newRepo(t)
	r.put("a.txt", "two\n")
	r.put("b", "b\n")
	r.git("add", "a.txt")
	o := r.options(".")
	hooked := o
	hooked.Hooks = true
	for _, tc := range []struct {
		tool    tool.Tool
		args    string
		effects []tool.Effect
		preview string
	}{
		{git.Diff(o), `{"path":"./a.txt"}`, []tool.Effect{{Kind: tool.Read, Target: "a.txt"}}, ""},
		{git.Add(o), `{"path":"b"}`, []tool.Effect{{Kind: tool.Write, Target: "index of .git"}, {Kind: tool.Read, Target: "b"}}, "A  b\n"},
		{git.Commit(o), `{"message":"m"}`, []tool.Effect{{Kind: tool.Write, Target: "history of .git"}}, "m\n\nM  a.txt\n"},
		{git.Commit(hooked), `{"message":"m"}`, []tool.Effect{{Kind: tool.Write, Target: "history of .git"}, {Kind: tool.Exec, Target: "git commit"}}, "m\n\nM  a.txt\n"},
	} {
		call, err := tc.tool.Prepare(t.Context(), json.RawMessage(tc.args))
		if err != nil {
			t.Fatal(err)
		}
		p := call.Plan()
		if !slices.Equal(p.Effects, tc.effects) || tc.preview != "" && p.Preview != display.Block(display.Text(tc.preview)) {
			t.Errorf("%s %s: %v %q", tc.tool.Spec().Name, tc.args, p.Effects, p.Preview)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	r := newRepo(t)
	o := r.options(".")
	r.put(".gitignore", "*.log\n")
	r.put("x.log", "x")
	r.refused(git.Add(o), `{"path":"x.log"}`, "x.log is ignored")
	r.refused(git.Add(o), `{"path":"nowhere"}`, "no such file")
	r.refused(git.Add(o), `{"paths":[".gitignore","nowhere"]}`, "no such file")
	r.refused(git.Commit(o), `{"message":"m"}`, "nothing is staged")
	if v := r.must(git.Add(o), `{"path":"a.txt"}`); v.Staged != 0 || v.Note == "" {
		t.Errorf("add of an unchanged file = %+v", v)
	}
	if err := os.Symlink("/etc", filepath.Join(r.dir, "etc")); err != nil {
		t.Fatal(err)
	}
	r.refused(git.Add(o), `{"path":"etc/hostname"}`, "outside workspace")
	if v := r.must(git.Add(o), `{"path":"etc"}`); string(v.Files) != `["etc"]` {
		t.Errorf("add of a link = %+v", v)
	}
	if got := r.git("ls-files", "-s", "etc"); !strings.HasPrefix(got, "120000 ") {
		t.Errorf("a link was staged as %s", got)
	}
}

func TestAFolderAddedToTheWorkspace(t *testing.T) {
	r, other := newRepo(t), newRepo(t)
	ws, err := workspace.Open(r.dir, other.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	o := git.Options{Workspace: ws, Launcher: r.door()}
	args := fmt.Sprintf(`{"path":%q}`, filepath.Join(other.dir, "a.txt"))
	for _, tl := range []tool.Tool{git.Diff(o), git.Log(o), git.Add(o)} {
		r.refused(tl, args, "a folder added to it")
	}
}

func TestAConflictCannotBeCommitted(t *testing.T) {
	r := newRepo(t)
	r.git("checkout", "-qb", "other")
	r.put("a.txt", "theirs\n")
	r.git("commit", "-qam", "theirs")
	r.git("checkout", "-q", "main")
	r.put("a.txt", "ours\n")
	r.git("commit", "-qam", "ours")
	if _, err := r.try("merge", "-q", "other"); err == nil {
		t.Fatal("there is no conflict")
	}
	o := r.options(".")
	if v := r.must(git.Status(o), `{}`); v.Changes != "UU a.txt\n" {
		t.Errorf("status = %q", v.Changes)
	}
	if v := r.must(git.Diff(o), `{}`); !strings.Contains(v.Diff, "<<<<<<<") {
		t.Errorf("diff = %q", v.Diff)
	}
	r.refused(git.Commit(o), `{"message":"m"}`, "unmerged")
	r.git("checkout", "--ours", "a.txt")
	r.must(git.Add(o), `{"path":"a.txt"}`)
	if v := r.must(git.Commit(o), `{"message":"merged"}`); v.Subject != "merged" {
		t.Errorf("a merge without changes: %+v", v)
	}
}

func TestWhatIsStagedMustStay(t *testing.T) {
	r := newRepo(t)
	r.put("a.txt", "two\n")
	r.git("add", "a.txt")
	call, err := git.Commit(r.options(".")).Prepare(t.Context(), json.RawMessage(`{"message":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.put("a.txt", "three\n")
	r.git("add", "a.txt")
	if _, err := call.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "no longer those") {
		t.Errorf("commit of something else: %v", err)
	}
}

func TestOutsideARepository(t *testing.T) {
	r := newRepo(t)
	r.dir = t.TempDir()
	r.put("x", "x")
	o := r.options(".")
	for _, tl := range git.All(o) {
		args := map[string]string{"git_add": `{"path":"x"}`, "git_commit": `{"message":"m"}`}[tl.Spec().Name]
		if _, err := r.call(tl, args); !errors.Is(err, git.ErrNoRepository) {
			t.Errorf("%s: %v", tl.Spec().Name, err)
		}
	}
}

func TestAnEmptyRepository(t *testing.T) {
	r := newRepo(t)
	r.dir = t.TempDir()
	r.git("init", "-q")
	o := r.options(".")
	if v := r.must(git.Log(o), `{}`); v.Commits != 0 || v.Log != "" {
		t.Errorf("log = %+v", v)
	}
	if v := r.must(git.Status(o), `{}`); v.Branch != "No commits yet on main" || !v.Clean {
		t.Errorf("status = %+v", v)
	}
	r.put("x", "x\n")
	r.must(git.Add(o), `{"path":"x"}`)
	r.must(git.Commit(o), `{"message":"root"}`)
}

func TestNoIdentity(t *testing.T) {
	r := newRepo(t)
	r.user("[user]\n useConfigOnly = true\n")
	r.put("a.txt", "two\n")
	o := r.options(".")
	r.must(git.Add(o), `{"path":"a.txt"}`)
	r.refused(git.Commit(o), `{"message":"m"}`, "Please tell me who you are")
}

func TestLongOutputIsCut(t *testing.T) {
	r := newRepo(t)
	r.put("a.txt", strings.Repeat("x\x1b[2J\xff\n", 200_000))
	r.put(".gitattributes", "a.txt diff\n") // text, whatever it holds
	v := r.must(git.Diff(r.options(".")), `{}`)
	if !v.Truncated || len(v.Diff) > 256<<10 || !strings.HasSuffix(v.Diff, "+x^[[2J\ufffd\n") {
		t.Errorf("truncated %v, %d bytes, end %q", v.Truncated, len(v.Diff), v.Diff[max(0, len(v.Diff)-40):])
	}
}

func TestLineEnds(t *testing.T) {
	r := newRepo(t)
	r.put("a.txt", "one\r\n")
	if v := r.must(git.Diff(r.options(".")), `{}`); !strings.Contains(v.Note, "CR LF") {
		t.Errorf("diff = %+v", v)
	}
}

// append adds to a file.
func (r repo) append(name, text string) {
	r.Helper()
	r.put(name, r.read(name)+text)
}

func (r repo) read(name string) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// TestWhatWritesIsConfined to the directories of git's own files.
func TestWhatWritesIsConfined(t *testing.T) {
	r := newRepo(t)
	side := filepath.Join(t.TempDir(), "side")
	r.git("worktree", "add", "-q", side, "-b", "side")
	own := r.dir + "/.git"
	r.dir = side
	r.put("a.txt", "two\n")
	o := r.options(".")
	var ran []string
	o.Confine = func(_ context.Context, cmd *program.Cmd, dirs ...string) error {
		ran = append(ran, cmd.Args[2])
		if want := []string{own + "/worktrees/side", own}; !slices.Equal(dirs, want) {
			t.Errorf("it may write %q, want %q", dirs, want)
		}
		return nil
	}
	for _, use := range everyUse(o) {
		if _, err := r.call(use.tool, use.args); err != nil && use.tool.Spec().Name != "git_commit" {
			t.Errorf("%s: %v", use.tool.Spec().Name, err)
		}
	}
	if want := []string{"add", "commit"}; !slices.Equal(ran, want) {
		t.Errorf("confined were %q, want %q", ran, want)
	}
	o.Confine = func(context.Context, *program.Cmd, ...string) error { return errors.New("no sandbox") }
	r.put("a.txt", "three\n")
	r.refused(git.Add(o), `{"path":"a.txt"}`, "no sandbox")
}
