package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"coder/internal/agent/rerun"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/uip"
	"coder/internal/model/scripted"
)

// TestRandomGitSessionsComeToTheSameAgain: sessions made by chance in git repositories come
// to the same again, also after people have gone on in the repository, and a record that is
// changed by hand is the one that differs. CODER_TEST_SESSIONS says how many.
func TestRandomGitSessionsComeToTheSameAgain(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	sessions, from := 2, 0
	if n, err := strconv.Atoi(os.Getenv("CODER_TEST_SESSIONS")); err == nil {
		sessions = n
	}
	if n, err := strconv.Atoi(os.Getenv("CODER_TEST_FROM")); err == nil {
		from = n
	}
	var tally struct{ agree, gone, found int }
	for seed := from; seed < from+sessions; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			g := newGitChance(t, uint64(seed))
			g.begin()
			g.live()
			records := g.records()
			if seed%4 == 3 {
				g.checkPlanted(records)
				tally.found++
			}
			for range 1 + g.r.IntN(3) {
				g.goOn()
			}
			switch report, err := g.app.Verify(t.Context(), "s", records, len(records)); {
			case err != nil && strings.Contains(err.Error(), "no longer in the repository"):
				tally.gone++ // named, which is no false alarm
			case err != nil:
				skipWithoutSandbox(t, err)
				t.Fatalf("%v\n%s", err, g.story())
			case report.Difference != nil && report.Missing == "":
				d := report.Difference
				t.Errorf("record %d, %s of %s %s:\n%s\nis now\n%s\n%s", d.Record, d.Kind, d.Subject, d.Call, d.Recorded, d.Rerun, g.story())
			default:
				tally.agree++
			}
		})
	}
	t.Logf("%d agree, %d whose objects are gone, %d planted differences found", tally.agree, tally.gone, tally.found)
}

// gitChance is a session made by chance in a repository.
type gitChance struct {
	t    *testing.T
	r    *rand.Rand
	p    *program
	app  *app.Workspace
	n    int
	done []string // the commands that ran, for the message of a failure
}

func newGitChance(t *testing.T, seed uint64) *gitChance {
	p := newProgram(t)
	a := p.app(app.Options{Mode: "yolo", Overrides: app.Overrides{AutoApprove: true}})
	a.Config.Storage.Fsync = "never"
	return &gitChance{t: t, r: rand.New(rand.NewPCG(seed, 44)), p: p, app: a}
}

func (g *gitChance) story() string { return strings.Join(g.done, "\n") }

// sh runs a command as the person.
func (g *gitChance) sh(line string) {
	g.done = append(g.done, "$ "+line)
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = g.p.ws
	cmd.Env = append(os.Environ(), "HOME="+g.p.home(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	_ = cmd.Run() // what makes no sense here does nothing
}

// begin makes a repository with untracked, ignored, staged and stashed files.
func (g *gitChance) begin() {
	g.sh("git init -q -b main . && git config user.name a && git config user.email a@b")
	g.sh("printf 'one\\ntwo\\nthree\\n' > a.txt; mkdir lib; echo lib > lib/b.txt; printf '*.log\\n' > .gitignore; git add -A; git commit -qm first")
	for i := range g.r.IntN(4) {
		g.sh(fmt.Sprintf("echo more %d >> a.txt; git commit -qam 'more %d'", i, i))
	}
	for _, line := range []string{
		"git checkout -q -b side; echo side > side.txt; git add -A; git commit -qm side; git checkout -q main",
		"echo stashed >> a.txt; git stash -q", "echo staged > staged.txt; git add staged.txt", "echo loose > loose.txt", "echo log > x.log",
		"echo changed >> lib/b.txt", "git tag v1", "git worktree add -q ../wt" + strconv.Itoa(g.r.IntN(1000)), "mkdir empty",
		"git config core.autocrlf false", "git checkout -q HEAD~0",
	} {
		if g.r.IntN(3) > 0 {
			g.sh(line)
		}
	}
}

// commands are what a session may run.
var gitCommands = []string{
	"echo edit %d >> a.txt", "sed -i 's/two/two %d/' a.txt", "echo new > new%d.txt", "git add -A", "git add a.txt", "git commit -qam 'commit %d'",
	"git add -A && git commit -m 'all %d'", "git status", "git status --short --branch", "git log --oneline --graph --all", "git log --stat -3", "git show --stat",
	"git reflog", "git branch -avv", "git checkout -b b%d", "git checkout main", "git checkout side", "git switch -", "git stash -u", "git stash pop", "git stash list",
	"git merge --no-edit side", "git merge --abort", "git rebase main", "git rebase --abort", "git mv a.txt c%d.txt", "git mv lib lib%d", "git rm -q --cached a.txt",
	"git diff", "git diff --cached", "git diff --stat HEAD", "git tag t%d", "git tag -n", "git worktree add -q .trees/w%d", "git worktree list", "git cherry-pick side",
	"git cherry-pick --abort", "git reset -q --hard HEAD~1", "git reset -q", "git blame a.txt", "git ls-files -s", "git clean -nd", "git commit -q --amend -m 'amended %d'",
	"ls -la", "find . -name '*.txt' | sort", "cat a.txt x.log loose.txt", "date; echo $$; echo $RANDOM", "python3 -c 'import time; print(time.time())'", "mktemp; hostname",
	"git rev-parse HEAD", "git describe --tags --always", "git shortlog -sn HEAD", "git count-objects", "git fsck", "git bisect start", "git bisect reset", "git for-each-ref",
	"git gc -q", "git notes add -m note%d; git log -1", "git archive HEAD | tar t", "git restore .", "git check-ignore -v x.log", "env | sort | head -50", "git config --list",
}

// call is a call of a tool.
func (g *gitChance) call() string {
	g.n++
	switch g.r.IntN(12) {
	case 0:
		return "call git_status {}"
	case 1:
		return "call git_diff {}"
	case 2:
		return "call git_log {}"
	case 3:
		return fmt.Sprintf(`call write {"path": "made%d.txt", "content": "made\n"}`, g.n)
	case 4:
		return `call git_add {"files": ["a.txt"]}`
	case 5:
		return fmt.Sprintf(`call git_commit {"message": "by tool %d"}`, g.n)
	case 6:
		return `call grep {"pattern": "one|more"}`
	case 7:
		return `call glob {"pattern": "**/*.txt"}`
	case 8:
		return fmt.Sprintf(`call bash {"command": "sleep 0.1; echo job > job%[1]d.txt", "background": true}`+"\n---\n"+
			`call bash {"command": "until [ -s job%[1]d.txt ]; do sleep 0.1; done; cat job%[1]d.txt"}`, g.n)
	}
	line := gitCommands[g.r.IntN(len(gitCommands))]
	if strings.Contains(line, "%d") {
		line = fmt.Sprintf(line, g.n)
	}
	args, _ := json.Marshal(map[string]string{"command": line})
	return "call bash " + string(args)
}

// live lets the session happen.
func (g *gitChance) live() {
	g.t.Helper()
	var steps []string
	for range 4 + g.r.IntN(10) {
		steps = append(steps, g.call())
	}
	g.run(steps...)
}

// run has the session make these calls.
func (g *gitChance) run(steps ...string) {
	g.t.Helper()
	g.done = append(g.done, steps...)
	script, err := scripted.Parse(strings.Join(steps, "\n---\n") + "\n---\nsay done\n")
	if err != nil {
		g.t.Fatal(err)
	}
	g.app.ScriptedProvider = scripted.New(script, scripted.Options{})
	ctx := context.Background()
	s, err := g.app.OpenSession(ctx, g.app.NewSupervisor(uip.NoInteractor, app.Screen{}), app.SessionChoice{NewID: "s"}, event.Discard)
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := s.RunText(ctx, "go", event.Discard); err != nil {
		g.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gitChance) records() (records []event.Record) {
	g.t.Helper()
	for r, err := range g.app.Store().Logs.Read(g.t.Context(), "s", 0) {
		if err != nil {
			g.t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// TestCommitsOfASecondKeepTheirOrder, though only the seconds of their calls are on record, and
// whichever tool made them.
func TestCommitsOfASecondKeepTheirOrder(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	shell := func(line string) string { return fmt.Sprintf("call bash {\"command\": %q}", line) }
	for name, calls := range map[string][]string{
		"by commands": {shell("true"), shell("git commit -q --allow-empty -m one"), shell("git checkout -q -b zed HEAD~1; git commit -q --allow-empty -m two")},
		"by a tool": {
			shell("git checkout -q -b zed HEAD~1; echo x > x.txt; git add x.txt"), `call git_commit {"message": "one"}`,
			shell("git checkout -q main; git commit -q --allow-empty -m two"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGitChance(t, 0)
			g.sh("git init -q -b main . && git config user.name a && git config user.email a@b && git commit -q --allow-empty -m zero && git commit -q --allow-empty -m base")
			g.run(append(calls, shell("git log --graph --all --format=%s"))...)
			records := g.records()
			tick := records[0].Time.Truncate(time.Second).Add(-time.Minute)
			last := 0
			for i, r := range records { // the next second begins while the last commit is made
				if e, ok := r.Event.(event.ToolCallRequested); ok && strings.Contains(string(e.Input), "two") {
					last = i
				}
			}
			for i := range records {
				if after := time.Second; i > last {
					records[i].Time = tick.Add(after + time.Duration(i)*time.Millisecond)
				} else if last-i < 4 { // the first records are under a seal
					records[i].Time = tick.Add(after - time.Duration(last-i+1)*time.Millisecond)
				}
			}
			report, err := g.app.Verify(t.Context(), "s", records, len(records))
			if err != nil {
				skipWithoutSandbox(t, err)
				t.Fatal(err)
			}
			if d := report.Difference; d != nil {
				t.Errorf("record %d, %s of %s:\n%s\nis now\n%s", d.Record, d.Kind, d.Call, d.Recorded, d.Rerun)
			}
		})
	}
}

// goOn is what a person does in the repository afterwards.
func (g *gitChance) goOn() {
	g.n++
	lines := []string{
		"git add -A", "git commit -qam later", "git add -A; git commit -qm 'later, all'", "git checkout -q -b later%d", "git checkout -q -f main; git branch -D side",
		"git stash clear", "git stash -u", "git reset -q --hard; git clean -fdq -e .coder", "git rm -q --cached a.txt", "echo z > z%d.txt", "echo 'z*' >> .gitignore",
		"rm -f a.txt loose.txt staged.txt", "git commit -q --amend -m other", "git tag -d v1", "git gc -q", "git config user.name other", "git merge --abort; git rebase --abort",
		"git reflog expire --expire=now --all; git gc -q --prune=now", "git worktree prune", "git rebase -q --root --onto main", "echo by hand >> a.txt", "git branch -m renamed%d",
	}
	line := lines[g.r.IntN(len(lines))]
	if strings.Contains(line, "%d") {
		line = fmt.Sprintf(line, g.n)
	}
	g.sh(line)
}

// checkPlanted changes one record by hand: that one must differ.
func (g *gitChance) checkPlanted(records []event.Record) {
	g.t.Helper()
	changed := slices.Clone(records)
	var calls []int
	for i, r := range changed {
		if e, ok := r.Event.(event.ToolCallCompleted); ok && !bytes.Contains(e.Output, []byte(`"running"`)) {
			calls = append(calls, i)
		}
	}
	at := calls[g.r.IntN(len(calls))]
	e := changed[at].Event.(event.ToolCallCompleted)
	var out map[string]any
	if err := json.Unmarshal(e.Output, &out); err != nil {
		g.t.Fatal(err)
	}
	switch stdout, is := out["stdout"].(string); {
	case is && g.r.IntN(2) == 0:
		out["stdout"] = stdout + "planted\n"
	case is:
		out["exit_code"] = 77
	default:
		out["planted"] = "planted"
	}
	e.Output, _ = json.Marshal(out)
	changed[at].Event = e
	report, err := g.app.Verify(g.t.Context(), "s", changed, len(changed))
	if err != nil {
		skipWithoutSandbox(g.t, err)
		g.t.Fatal(err)
	}
	if d := report.Difference; d == nil || d.Record != changed[at].Seq || d.Kind != "result" {
		g.t.Errorf("planted in record %d: %s, found %+v\n%s", changed[at].Seq, e.Output, d, g.story())
	}
}

// TestGoldenSessionsOfGitAgreeLater saves sessions made by chance in repositories, and runs
// them a day later in another folder, by a stranger.
func TestGoldenSessionsOfGitAgreeLater(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	sessions, from := 1, 1000
	if n, err := strconv.Atoi(os.Getenv("CODER_TEST_SESSIONS")); err == nil {
		sessions = n
	}
	green := 0
	for seed := from; seed < from+sessions; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			g := newGitChance(t, uint64(seed))
			g.begin()
			g.live()
			dir := filepath.Join(t.TempDir(), "golden")
			saved, err := g.app.SaveGolden(t.Context(), "s", dir, g.records(), rerun.Exceptions{})
			if err != nil {
				skipWithoutSandbox(t, err)
				t.Fatalf("%v\n%s", err, g.story())
			}
			if saved.Diverged {
				t.Fatalf("not saved: %+v\n%s", saved.Difference, g.story())
			}
			g.goOn()
			later := newProgram(t)
			b := later.app(app.Options{})
			b.Env.Now = dayLater(b.Env.Now)
			report, err := b.RunGolden(t.Context(), dir, false)
			if err != nil {
				t.Fatalf("%v\n%s", err, g.story())
			}
			if d := report.Difference; d != nil {
				t.Fatalf("record %d, %s of %s %s:\n%s\nis now\n%s\n%s", d.Record, d.Kind, d.Subject, d.Call, d.Recorded, d.Rerun, g.story())
			}
			green++
		})
	}
	t.Logf("%d of %d green a day later", green, sessions)
}

// dayLater is a clock that is a day ahead, but for an hour: copies that are a day old are swept,
// and other tests have some.
func dayLater(now func() time.Time) func() time.Time {
	return func() time.Time { return now().Add(23 * time.Hour) }
}
